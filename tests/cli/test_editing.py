"""`dither study create --edit`: a form with every field, and what is refused comes back into it."""

import json
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from dither import FieldProblem, ProblemError

from app.cli.editing import edited, form, read
from app.cli.options import fields_in
from app.web.documents.study import StudyIn
from tests.support.live import LiveService

EDITOR = """
import json, pathlib, sys, time
here, file = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
seen = len(list(here.glob("seen-*")))
text = file.read_text()
(here / f"seen-{seen}").write_text(text)
steps = json.loads((here / "steps.json").read_text())[seen]
for old, new in steps or []:
    assert old in text, (old, text)
    text = text.replace(old, new, 1)
if steps is not None:
    file.write_text(text)
    import os
    os.utime(file, (time.time() + 5, time.time() + 5))
"""

Steps = Sequence[Sequence[tuple[str, str]] | None]


def editor(directory: Path, steps: Steps) -> dict[str, str]:
    """An editor that replaces texts, one list each time it is opened; None: it does not save."""
    script = directory / "editor.py"
    script.write_text(EDITOR)
    (directory / "steps.json").write_text(json.dumps(steps))
    return {"EDITOR": f"{sys.executable} {script}", "VISUAL": ""}


def seen(directory: Path) -> list[str]:
    return [one.read_text() for one in sorted(directory.glob("seen-*"))]


def test_the_form_has_every_field_with_its_meaning_and_its_default():
    text = form(StudyIn, {"slug": 'a "b"\n'})
    for _, key, field, schema in fields_in(StudyIn):
        assert f"\n{key} = " in text or f"\n# {key} =" in text, key
        assert schema["description"].split()[0] in text
        assert (f"\n{key} = \n" in text) is (field.is_required() and key != "slug")
    assert '\nslug = "a \\"b\\"\\n"\n' in text
    assert "\n# epsilon.max = 4.0\n" in text
    assert "One of replace_one, add_remove_one." in text
    assert "Any of central, local, public." in text
    filled = text.replace("\n# lower =", "\nlower = 0.10").replace("\n# upper =", "\nupper = 2")
    assert read(StudyIn, filled) == {"slug": 'a "b"\n', "lower": Decimal("0.10"), "upper": 2}
    # Every default, written out, is what the service takes for it.
    names = [line[2:] if line.startswith("# ") and " = " in line else line for line in filled.splitlines()]
    everything = "\n".join(line for line in names if not line.startswith("#") and not line.endswith("="))
    given = read(StudyIn, everything)
    assert given["trust"] == ["central"]
    assert given["epsilon_min"] == Decimal("0.001")


def test_attributes_are_written_in_a_line_or_as_a_table():
    declared = {"region": ["north", "south"], "age": ["-29", "30-"]}
    text = form(StudyIn, {"slug": "s", "lower": 0, "upper": 1, "attributes": declared})
    assert read(StudyIn, text)["attributes"] == declared
    table = (
        "slug = 's'\nlower = 0\nupper = 1\n[attributes]\nregion = ['north', 'south']\nage = ['-29', '30-']"
    )
    assert read(StudyIn, table)["attributes"] == declared


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("slug = ", "not readable"),
        ("slug = 'x'\nnote = 1\n[epsilon]\nleast = 1", "note: is unknown\nepsilon.least: is unknown"),
        ("lower = 0\nupper = 1", "slug: is required"),
        ("slug = 'x'\nlower = 0\nupper = 15.000", "upper: 15.000 may mean 15 or 15000"),
        ("slug = 'x'\nmeasures.pay = {lower = 1.234, upper = 9}", "pay.lower: 1.234 may mean 1.2340 or 1234"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, reason: str):
    with pytest.raises(ValueError, match=reason):
        read(StudyIn, text)


def test_refusals_stand_above_the_form_once(monkeypatch: pytest.MonkeyPatch):
    texts: list[str] = []
    writes = ["lower = 2", "slug = 'x'\nlower = 2\nupper = 1\n", "slug = 'x'\nlower = 0\nupper = 1\n"]

    def written(text: str, extension: str) -> str:
        texts.append(text)
        above = [line for line in text.splitlines() if line.startswith("#!")]
        return "\n".join([*above, writes[len(texts) - 1]])

    def send(fields: Any) -> str:
        if fields["lower"] > fields["upper"]:
            error = FieldProblem(field="upper", reason="must be above lower")
            raise ProblemError(
                status=422, code="invalid_request", detail="not admissible: upper", errors=(error,)
            )
        return "made"

    monkeypatch.setattr("click.edit", written)
    assert edited(StudyIn, {}, send) == "made"
    assert "#!" not in texts[0]
    assert texts[1].startswith("#! slug: is required\nlower = 2")
    assert texts[2].startswith(
        "#! not admissible: upper (invalid_request)\n#!   upper: must be above lower\nslug"
    )


@pytest.mark.system
def test_a_study_is_made_in_an_editor(dither, live_server, tmp_path):
    service: LiveService = live_server()
    address = {"DITHER_URL": service.base_url, "DITHER_TOKEN": service.admin_token}
    steps: Steps = [
        [
            ("\n# lower =", "\nlower = 5"),
            ("\n# upper =", "\nupper = 1"),
            ("# title =", 'title = "How long?"'),
        ],
        [("upper = 1", "upper = 60"), ("# epsilon.max = 4.0", "epsilon.max = 2.5")],
    ]
    command = ("study", "create", "edited", "--edit", "--series", "weekly", "--json")
    done = dither(*command, **address, **editor(tmp_path, steps))
    assert done.status == 0, done.errors
    made = json.loads(done.output)
    assert (made["slug"], made["series"], made["title"]) == ("edited", "weekly", "How long?")
    assert (made["lower"], made["upper"], made["epsilon"]["max"]) == (5, 60, 2.5)
    first, second = seen(tmp_path)
    assert "#!" not in first
    assert "#!   upper: must be above lower" in second

    elsewhere = tmp_path / "again"
    elsewhere.mkdir()
    done = dither("study", "create", "--edit", **address, **editor(elsewhere, [None]))
    assert done.status == 1
    assert "left without saving: nothing was made" in done.errors
    done = dither("study", "create", "short", "--lower", "0", **address)
    assert done.status == 1
    assert "upper: is required, unless there are choices" in done.errors

    # A file says as much, as TOML or as JSON; options come first.
    for name, text in (
        ("party.toml", 'choices = ["red", "blue"]\ntexts.de.labels.red = "rot"\nepsilon.max = 2.5\n'),
        ("party.json", '{"choices": ["red", "blue"], "texts": {"de": {"labels": {"red": "rot"}}}}'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        slug = name.replace(".", "-")
        file = str(tmp_path / name)
        done = dither("study", "create", slug, "--file", file, "--epsilon-max", "2", "--json", **address)
        assert done.status == 0, done.errors
        made = json.loads(done.output)
        assert made["texts"]["de"]["labels"] == {"red": "rot"}
        assert made["epsilon"]["max"] == 2
    for name, text, reason in (
        ("wrong.toml", "slug = ", "not readable"),
        ("wrong.json", '{"slug": "a", "choices": ["a", "b"], "colour": 1}', "colour: is unknown"),
        ("without.toml", 'choices = ["red", "blue"]', "slug: is required"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        done = dither("study", "create", "--file", str(tmp_path / name), **address)
        assert (done.status, reason in done.errors) == (1, True), done.errors
    done = dither("study", "create", "--file", str(tmp_path / "none"), **address)
    assert (done.status, "No such file" in done.errors) == (2, True)

    # What is said of it is changed by a command; what answers depend on is not.
    done = dither("study", "edit", "edited", "--description", "One way.", "--reason", "asked for", **address)
    assert "One way." in done.output
    said = ("study", "edit", "edited", "--reason", "people read it", "--texts")
    done = dither(*said, '{"de": {"title": "Wie lange?"}}', **address)
    assert (done.status, "languages" in done.output) == (0, True), done.errors
    for wrong, status, reason in (
        ("de", 2, "--texts takes a JSON object"),
        ("[1]", 2, "--texts takes a JSON object"),
        ('{"german": {"title": "?"}}', 1, "code of a language"),
        ('{"de": {"labels": {"red": "rot"}}}', 1, "names of the study's measures"),
    ):
        done = dither(*said, wrong, **address)
        assert done.status == status
        assert reason in " ".join(done.errors.split())
    assert "edited" in dither("study", "list", "--series", "weekly", **address).output
    assert "edited" not in dither("study", "list", "--series", "monthly", **address).output
    done = dither("study", "archive", "edited", "--reason", "it is over", **address)
    assert "archived" in done.output
