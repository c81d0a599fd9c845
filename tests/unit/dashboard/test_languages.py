"""Languages of the pages for people: catalogs that are complete, and numbers as people write them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po

from app.dashboard.languages import HERE, catalogs, choose, load

TEMPLATES = HERE.parent / "templates"
CATALOGS = sorted(HERE.glob("*.po"))


def messages() -> Iterator[str]:
    """Every text of the pages that has translations."""
    options = {"trimmed": "true", "silent": "false"}
    for method, paths in (("python", HERE.parent.rglob("*.py")), ("jinja2", TEMPLATES.glob("*.html"))):
        for path in paths:
            for _, message, *_ in extract_from_file(method, path, options=options):
                assert isinstance(message, str), f"{path}: a plural is not in use here"
                yield message


def marks(text: str) -> list[str]:
    """What a translation must have as it is: values and tags."""
    return sorted(re.findall(r"%\(\w+\)s|</?\w+>", text))


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.stem)
def test_a_catalog_has_every_text_of_the_pages_and_no_other(path: Path) -> None:
    with path.open("rb") as file:
        catalog = read_po(file, locale=path.stem, abort_invalid=True)
    translated = {str(one.id): str(one.string) for one in catalog if one.id and one.string and not one.fuzzy}
    wanted = set(messages())
    assert len(wanted) > 50
    assert translated.keys() == wanted
    assert not [one for one, text in translated.items() if marks(one) != marks(text)]


def test_pages_speak_english_german_and_spanish() -> None:
    assert {code: one.name for code, one in catalogs().items()} == {
        "en": "English",
        "de": "Deutsch",
        "es": "Español",
    }


def test_another_language_is_another_file(tmp_path: Path) -> None:
    (tmp_path / "fr.po").write_text('msgid "Send"\nmsgstr "Envoyer"\n\n#, fuzzy\nmsgid "Open"\nmsgstr "?"\n')
    known = load(tmp_path)
    french = choose(known, None, "fr-CA,fr;q=0.8,en;q=0.5")
    assert (french.code, french.name, french.mark) == ("fr", "Français", ",")
    assert french.text("Send") == "Envoyer"
    assert french.text("Open") == "Open"
    assert french.number("1234.5") == "1\N{NO-BREAK SPACE}234,5"


@pytest.mark.parametrize(
    ("named", "accept", "code", "number"),
    [
        (None, "", "en", "1,234.5"),
        (None, "de", "de", "1.234,5"),
        (None, "de-CH, en;q=0.9", "de", "1\N{RIGHT SINGLE QUOTATION MARK}234.5"),
        (None, "DE-at", "de", "1.234,5"),
        (None, "es", "es", "1.234,5"),
        (None, "es-MX, de;q=0.9", "es", "1,234.5"),
        (None, "en;q=0.5, de;q=0.7", "de", "1.234,5"),
        (None, "tlh, *;q=0.1, de;q=0", "en", "1,234.5"),
        ("en", "de", "en", "1,234.5"),
        ("de", "en-US", "de", "1.234,5"),
        ("../de", "de", "de", "1.234,5"),
        (None, "de-" + "x" * 5000, "en", "1,234.5"),
        (None, "de-zz-zzzz-zz", "de", "1.234,5"),
        (None, "\N{LATIN SMALL LETTER A WITH DIAERESIS};q=7,,;;", "en", "1,234.5"),
    ],
)
def test_a_page_is_in_the_language_that_was_chosen_or_that_the_browser_asks_for(
    named: str | None, accept: str, code: str, number: str
) -> None:
    language = choose(catalogs(), named, accept)
    assert (language.code, language.number("1234.5")) == (code, number)
    assert language.typed("1234.5") in ("1234.5", "1234,5")
