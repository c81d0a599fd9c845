"""The documentation as a site: it builds without a warning, and loads nothing from elsewhere."""

import json
import os
import py_compile
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs import generate
from docs import site as site_hooks
from tests.support.live import ROOT

LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(https?:)?//", re.IGNORECASE)
STYLED = re.compile(
    r"<link\b[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon)[^>]*href=[\"']?(https?:)?//"
)

NAV = re.search(r"^nav:\n.*", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
assert NAV is not None
KINDS = site_hooks.pages_by_kind(yaml.safe_load(NAV[0])["nav"])
MOST_WORDS = 25_000
"""Of tutorials and how-tos."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    # What Python leaves beside pages where it may.
    assert Path(py_compile.compile(str(ROOT / "docs/generate.py")) or "").exists()
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return directory


def test_every_page_is_built(site: Path):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists(), page.name
    assert "added on purpose" in (site / "index.html").read_text(encoding="utf-8")


def test_the_site_has_pages_and_what_they_show_alone(site: Path):
    made = {path.suffix for path in site.rglob("*") if path.is_file()}
    assert made & {".py", ".pyc", ".ipynb"} == set()
    assert not list(site.rglob("__pycache__"))


def test_nothing_is_loaded_from_elsewhere(site: Path):
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not LOADED.search(text), page
        assert not STYLED.search(text), page
    assert LOADED.search('<script src="https://elsewhere.example/x.js">'), "the control is found"
    assert STYLED.search('<link rel="stylesheet" href="//elsewhere.example/x.css">'), "the control is found"


def test_every_page_is_there_as_markdown_and_found(site: Path):
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    pages = {str(page.relative_to(site).with_suffix(".md")) for page in site.rglob("*.html")} - {"404.md"}
    assert {str(page.relative_to(site)) for page in site.rglob("*.md")} == pages
    for page in pages:
        assert (site / page).read_text(encoding="utf-8").strip() in whole, page
    links = re.findall(r"^- \[.+\]\((.+)\): .{8,}\.$", listed, re.MULTILINE)
    assert sorted(links) == sorted(name for kind in site_hooks.KINDS for name in KINDS[kind])
    # What the search of the pages looks into, in the browser.
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {
        entry["location"].partition("#")[0].replace(".html", ".md") or "index.md" for entry in index["docs"]
    }
    assert found == pages
    assert 'data-md-component="search"' in (site / "index.html").read_text(encoding="utf-8")


def test_every_page_is_of_one_of_four_kinds():
    assert list(KINDS) == ["Dither", *site_hooks.KINDS]
    assert KINDS["Dither"] == ["index.md"]
    placed = [name for names in KINDS.values() for name in names]
    assert len(placed) == len(set(placed))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    # A decision is listed by the page of all of them, an explanation.
    pages = {page for page in pages if not re.match(r"decisions/\d", page)}
    assert set(placed) == pages | set(site_hooks.PAGES)
    assert {name for names in KINDS.values() for name in names if name.startswith("how-to/")} <= set(
        KINDS["How to"]
    )


def test_tutorials_and_guides_can_be_read_in_a_day():
    names = [*KINDS["Tutorials"], *KINDS["How to"]]
    words = {name: len((ROOT / "docs" / name).read_text(encoding="utf-8").split()) for name in names}
    assert len(words) > 15
    assert sum(words.values()) <= MOST_WORDS, words


def test_the_plots_of_pages_are_those_of_the_notebooks():
    plots = generate.plots()
    assert {name.partition("_")[0] for name in plots} == {"tutorial", "gallery"}
    for name, content in plots.items():
        assert (generate.DIRECTORY / name).read_bytes() == content, "run `make docs`"
