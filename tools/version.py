"""Give every file that names the version another one: `python -m tools.version 1.2.0`.

The changelog's unreleased lines become those of that version, of today.
"""

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.release import ROOT, our_version

FILES = (
    "pyproject.toml",
    "client/pyproject.toml",
    "client/dither/_base.py",
    "client/js/package.json",
    "client/js/package-lock.json",
    "client/r/DESCRIPTION",
    "research/pyproject.toml",
    "deploy/helm/dither/Chart.yaml",
    "docs/how-to/install.md",
    "CITATION.cff",
)
"""Those that name it."""


PAGES = {"CHANGELOG.md": "[{}] - {}", "docs/whats-new.md": "{}"}
"""What turns what is unreleased into a version, and how its heading is written."""


def set_version(root: Path, before: str, after: str, day: str) -> None:
    """Write another version into all files under `root`; ValueError where one does not name `before`."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", after) or after == before:
        raise ValueError(f"{after} is no version, or this one")
    texts = {name: (root / name).read_text(encoding="utf-8") for name in (*FILES, *PAGES)}
    named = rf"(?<![\d.]){re.escape(before)}(?![\d.])"
    for name in FILES:
        if not re.search(named, texts[name]):
            raise ValueError(f"{name} does not name {before}")
        texts[name] = re.sub(named, after, texts[name])
    for name, heading in PAGES.items():
        texts[name], found = re.subn(
            r"^(## \[?Unreleased\]?)$",
            rf"\1\n\n## {heading.format(after, day)}",
            texts[name],
            count=1,
            flags=re.M,
        )
        if not found:
            raise ValueError(f"{name} has nothing that is unreleased")
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    set_version(ROOT, our_version(), sys.argv[1], datetime.now(UTC).date().isoformat())
