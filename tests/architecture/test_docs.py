"""The documentation says what the code does: generated pages, links, names and code blocks."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from app.estimators.registry import ESTIMATORS
from app.settings import COMMAND_VARIABLES, Settings
from app.store.tables import metadata
from docs import generate
from tests.support.live import ROOT

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), ROOT / "client" / "README.md", *DOCS.rglob("*.md")])
IDS = [str(page.relative_to(ROOT)) for page in PAGES]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path, *languages: str) -> list[str]:
    return [
        code for language, code in FENCE.findall(page.read_text(encoding="utf-8")) if language in languages
    ]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        found.add(text.replace(" ", "-"))
    return found


# --------------------------------------------------------------------------------- generated pages


@pytest.mark.parametrize("name", generate.PAGES)
def test_a_generated_page_is_what_the_code_says(name: str):
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](), "run `make docs`"


def test_every_command_is_documented():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    commands = [path for path, _ in generate.commands()]
    assert len(commands) >= 17
    for path in commands:
        assert f"\n## {path}\n" in page


def test_every_setting_is_documented():
    page = (DOCS / "settings.md").read_text(encoding="utf-8")
    for name in [*Settings.variables(), *COMMAND_VARIABLES]:
        assert f"| `{name}` |" in page
    assert all(Settings.variables().values()), "every setting says what it means"


@pytest.mark.long
def test_a_generated_page_names_nobodys_home():
    for name, page in generate.PAGES.items():
        assert str(Path.home()) not in page(), name


# ------------------------------------------------------------------------------------------ names


def test_every_estimator_is_documented_with_its_parameters():
    page = (DOCS / "estimators.md").read_text(encoding="utf-8")
    for estimator in ESTIMATORS.values():
        assert f"\n## `{estimator.name}`\n" in page
        for parameter in estimator.parameters:
            assert f"`{parameter.name}`" in page


def test_every_table_and_column_is_documented():
    page = (DOCS / "data-model.md").read_text(encoding="utf-8")
    for table in metadata.sorted_tables:
        section = re.search(rf"^### `{table.name}`\n(.*?)(?=^##)", page, re.MULTILINE | re.DOTALL)
        assert section is not None, table.name
        for column in table.columns:
            assert f"`{column.name}`" in section[1], f"{table.name}.{column.name}"


def test_every_make_target_is_documented():
    page = (DOCS / "CONTRIBUTING.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):.*##", makefile, re.MULTILINE)
    assert {"demo", "test", "setup"} <= set(targets)
    for target in targets:
        assert f"`make {target}`" in page, target


def test_every_page_is_reached_from_the_readme():
    """By links, from page to page."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        waiting += [
            (page.parent / link.partition("#")[0]).resolve()
            for link in LINK.findall(prose(page))
            if "://" not in link and link.partition("#")[0].endswith(".md")
        ]
    assert {page for page in PAGES if page not in reached} == set()


# ------------------------------------------------------------------------------------------ links


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_relative_link_leads_somewhere(page: Path):
    for link in LINK.findall(prose(page)):
        if "://" in link or link.startswith("mailto:"):
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), link
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found), link


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_every_test_that_is_named_exists(page: Path):
    for path, name in TEST.findall(page.read_text(encoding="utf-8")):
        file = ROOT / path
        assert file.exists(), path
        if name:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            names = {
                node.name
                for node in ast.walk(tree)
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            }
            assert name in names, f"{path}::{name}"


def test_the_promise_names_a_test_for_every_invariant():
    page = (DOCS / "privacy-promise.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (?=\d\. )", page, flags=re.MULTILINE)[1:]
    assert [section[0] for section in sections] == list("12345678")
    for section in sections:
        assert TEST.search(section.partition("\n## ")[0]), section.splitlines()[0]


# ------------------------------------------------------------------------------------- code blocks


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_python_and_json_blocks_can_be_read(page: Path):
    for code in blocks(page, "python"):
        if not code.lstrip().startswith(">>>"):
            ast.parse(code)
    for code in blocks(page, "json"):
        json.loads(code)


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_shell_blocks_can_be_read(page: Path):
    for code in blocks(page, "sh", "bash", "shell"):
        done = subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        for line in re.findall(r"^\s*curl .*", code, re.MULTILINE):
            assert re.search(r"https?://|\$URL|\$DITHER_URL", line), line


def test_no_fence_is_left_open():
    for page in PAGES:
        fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) % 2 == 0, page
