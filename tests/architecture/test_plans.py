"""One way of an answer: what is planned says itself what it is, and the documentation lists the modules."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.services import Services
from app.services.statistics.any_made import AnyMade

ROOT = Path(__file__).parents[2]
ROOMS = ("app/services", "app/web", "app/api", "app/dashboard")
MOST_MODULES = 10


def kinds(kind: type[Any]) -> Iterator[str]:
    """The names of all classes of what is planned."""
    for one in kind.__subclasses__():
        yield one.__name__
        yield from kinds(one)


def asked(source: str, names: set[str]) -> set[str]:
    """Those of them that `isinstance` or a pattern asks for."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            found |= {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
        elif isinstance(node, ast.MatchClass):
            found |= {one.id for one in ast.walk(node.cls) if isinstance(one, ast.Name)}
    return found & names


def test_no_code_asks_which_kind_of_plan_it_has():
    assert Services.__module__, "it imports every kind of plan"
    names = set(kinds(AnyMade))
    assert {"Alone", "MeanStep", "ShapeStep", "LabelsPlan", "FoundPlan"} <= names
    assert asked("isinstance(made, MeanStep | Alone)", names) == {"MeanStep", "Alone"}
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    assert not {str(path): found for path in paths if (found := asked(path.read_text(), names))}


def test_a_question_walks_at_most_ten_modules_and_all_of_them_exist():
    text = (ROOT / "docs/architecture.md").read_text()
    way = text.split("## The way of an answer\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| \d+ \|(.*)$", way, re.MULTILINE)
    assert 5 <= len(rows) <= MOST_MODULES
    there = {
        path.name for room in ("shapes", "statistics") for path in (ROOT / "app/services" / room).iterdir()
    }
    named = {Path(name).name for row in rows for name in re.findall(r"`([a-z_/]+\.py)`", row)}
    assert len(named) > MOST_MODULES, "the statistics' own ones, too"
    assert named <= there
