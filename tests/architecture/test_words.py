"""International English: words and phrases that code, help texts, docs and pages do without."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live import ROOT

# What separates two words of a phrase: also the end of a line within a string or a comment.
GAP = r"""(?:[\s"'#*/]|\bf["'])+"""
BE = "(?:be|been|being|is|are|was|were)"
PHRASES = (
    *("nobody", "somebody", "anybody", "everybody", "whoever"),
    *(f"so{GAP}many", f"so{GAP}long"),
    *(f"{BE}{GAP}told", f"{BE}{GAP}meant", f"{BE}{GAP}taken,{GAP}too"),
)
FORBIDDEN = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b", re.IGNORECASE)

PLACES = ("README.md", "CHANGELOG.md", "app", "benchmarks", "client", "docs", "research")

ENDS = frozenset({".css", ".html", ".ipynb", ".js", ".md", ".py", ".svg", ".ts"})
MADE = frozenset({"node_modules", "dist", "__pycache__"})

# Where such a word is right: (file, text that holds it).
ALLOWED = (
    ("CHANGELOG.md", "slug `everybody`"),
    # Comments of columns are part of the schema: another word would take a migration.
    ("app/store/operation_tables.py", 'comment="of anybody\'s epsilon, at most [parts per million]"'),
)


def files(place: str) -> Iterator[Path]:
    path = ROOT / place
    for found in [path] if path.is_file() else sorted(path.rglob("*")):
        if found.suffix in ENDS and not MADE & set(found.relative_to(ROOT).parts):
            yield found


def found_in(text: str, allowed: tuple[str, ...] = ()) -> list[str]:
    for right in allowed:
        text = text.replace(right, "")
    return [match[0] for match in FORBIDDEN.finditer(text)]


@pytest.mark.parametrize("place", PLACES)
def test_the_words_are_international_english(place):
    found = {}
    for path in files(place):
        name = str(path.relative_to(ROOT))
        allowed = tuple(text for file, text in ALLOWED if file == name)
        if words := found_in(path.read_text(encoding="utf-8"), allowed):
            found[name] = words
    assert not found


@pytest.mark.parametrize(
    "text",
    ["Nobody pays.", "with so\n    # many answers", '"it is " "told"', "is\ntaken, too", "EVERYBODY = 1"],
)
def test_the_list_finds_a_word_however_it_is_written(text):
    assert len(found_in(text)) == 1


def test_every_allowed_text_is_there_and_holds_a_word():
    for name, text in ALLOWED:
        assert text in (ROOT / name).read_text(encoding="utf-8")
        assert found_in(text)
