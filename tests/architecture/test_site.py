"""The documentation as a site: it builds without a warning, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import generate
from tests.support.live import ROOT

LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(https?:)?//", re.IGNORECASE)
STYLED = re.compile(
    r"<link\b[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon)[^>]*href=[\"']?(https?:)?//"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
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


def test_nothing_is_loaded_from_elsewhere(site: Path):
    pages = list(site.rglob("*.html"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not LOADED.search(text), page
        assert not STYLED.search(text), page
    assert LOADED.search('<script src="https://elsewhere.example/x.js">'), "the control is found"
    assert STYLED.search('<link rel="stylesheet" href="//elsewhere.example/x.css">'), "the control is found"


def test_the_plots_of_pages_are_those_of_the_notebooks():
    plots = generate.plots()
    assert {name.partition("_")[0] for name in plots} == {"tutorial", "gallery"}
    for name, content in plots.items():
        assert (generate.DIRECTORY / name).read_bytes() == content, "run `make docs`"
