"""Commands of other distributions."""

import sys

import pytest

from app.cli import extensions


@pytest.fixture
def others(monkeypatch):
    """What other distributions add: nothing, unless a test does. Groups of commands are loaded anew."""
    found: list[object] = []
    monkeypatch.setattr(extensions, "entry_points", lambda group: found)
    monkeypatch.delitem(sys.modules, "app.cli.audit", raising=False)
    yield found
    sys.modules.pop("app.cli.audit", None)


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "--profile", "mixed"),
        ("reproduce", "--all"),
        ("audit", "privacy", "--draws", "10000"),
        ("demo", "--no-wait"),
        ("simulate", "devices", "--study", "age"),
    ],
)
def test_a_command_of_research_says_what_to_install_where_it_is_missing(dither, others, command):
    done = dither(*command)
    assert done.status == 1
    (line,) = done.errors.splitlines()
    assert "needs dither-research, which is not installed" in line
    assert "pip install" not in line, "the name is not ours in any package index"
    assert done.output == ""


def test_without_research_all_other_commands_are_there(dither, others):
    done = dither("--help")
    assert done.status == 0
    assert all(word in done.output for word in ("serve", "release", "reproduce", "compare"))


def test_a_command_of_another_distribution_cannot_take_the_place_of_one_of_ours(dither, others):
    class Planted:
        name = "serve"

        def load(self):
            raise AssertionError("loaded")

    others.append(Planted())
    assert dither("serve", "--help").status == 0
    assert dither("--help").status == 0
