"""What a person finds without a manual: examples, completion, parameters, and tables for other programs."""

import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from app.cli import common
from app.cli.ask import Parameters
from app.cli.examples import EXAMPLES
from app.cli.extensions import installed
from app.cli.tree import build
from app.core.study import Relation
from app.estimators import registry
from tests.cli.test_commands import commands


def own() -> set[str]:
    ours = typer.main.get_command(build())
    return {" ".join(path) for path, _ in commands(ours)} - set(installed())


@pytest.mark.long
def test_every_command_has_an_example() -> None:
    assert {name for name in own() if name.partition(" ")[0] not in installed()} - {
        "audit"
    } <= EXAMPLES.keys()
    assert EXAMPLES.keys() <= own()


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "postgres"])
def test_an_example_is_a_command_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = dict(commands(typer.main.get_command(build())))[tuple(name.split())]
    words = shlex.split(EXAMPLES[name])
    monkeypatch.chdir(tmp_path)
    for word in words:
        if Path(word).suffix in (".xlsx", ".txt", ".json", ".jsonl"):
            Path(word).touch()  # what a command reads is there
    assert words[: len(name.split())] == name.split()
    found.make_context(name, words[len(name.split()) :])
    assert found.epilog == f"Example: dither {EXAMPLES[name]}"


@pytest.mark.parametrize(
    ("typed", "offered"), [("stu", "study"), ("study cr", "create"), ("plan --sh", "--share")]
)
def test_a_shell_completes_commands_and_options(dither, typed: str, offered: str) -> None:
    place = str(len(typed.split()))
    done = dither(_DITHER_COMPLETE="complete_bash", COMP_WORDS=f"dither {typed}", COMP_CWORD=place)
    assert offered in done.output.split()


def test_the_help_names_every_parameter_of_an_estimator() -> None:
    [option] = get_args(Parameters)[1:]
    help_text = option.help
    names = {found.name for relation in Relation for found in registry.parameters("auto", relation)}
    assert [name for name in names if name not in help_text] == []


def test_a_table_for_another_program_has_tabs(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [{"name": "a\tb", "size": 1.5}, {"name": "c", "size": None}]
    common.print_table(rows, {"name": "name", "size": "how large"}, title="Things")
    assert capsys.readouterr().out == "name\thow large\na b\t1.5\nc\t-\n"
