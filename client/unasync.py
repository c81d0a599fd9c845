"""Make the methods of `Client` from those of `AsyncClient`.

`python client/unasync.py` (or `make sdk`) writes `dither/_sync` from `dither/_async`. A test fails when they
have drifted apart. Examples in docstrings are translated with the rest.
"""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).parent / "dither"
SOURCE = PACKAGE / "_async"
TWIN = PACKAGE / "_sync"

NOTE = "# Made by client/unasync.py from dither/_async/{name}. Do not edit.\n"

RULES: Mapping[str, str] = {
    r"\basync (def|with|for)\b": r"\1",
    r"\bawait ": "",
    r"\bAsync(?=[A-Z])": "",
    r"\b_async\b": "_sync",
    r"\baclose\b": "close",
    r"\b__a(enter|exit)__\b": r"__\1__",
}
"""What is replaced, and by what, in this order."""

RUFF = (sys.executable, "-m", "ruff")


def twin(name: str) -> str:
    """The synchronous module for an asynchronous one, formatted."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    for pattern, replacement in RULES.items():
        text = re.sub(pattern, replacement, text)
    path = str(TWIN / name)
    # Shorter names change the order of imports and where lines break.
    for command in (("check", "--fix-only", "--select", "I"), ("format",)):
        text = subprocess.run(  # noqa: S603  # ruff, on our own text
            [*RUFF, *command, "--quiet", "--stdin-filename", path, "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=PACKAGE.parents[1],
            check=True,
        ).stdout
    return NOTE.format(name=name) + text


def twins() -> Mapping[Path, str]:
    """Every module that `_sync` shall hold, and its text."""
    return {TWIN / path.name: twin(path.name) for path in sorted(SOURCE.glob("*.py"))}


def main() -> None:
    """Write the twin, and remove what has no source any more."""
    texts = twins()
    for path in set(TWIN.glob("*.py")) - set(texts):
        path.unlink()
    TWIN.mkdir(exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
