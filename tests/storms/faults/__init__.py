"""Faults of former versions: a patch each, which takes the mend away, with what the fault was above it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

FAULTS = tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.patch")))


def patched(fault: str, directory: Path) -> Path:
    """A copy of the service with a fault, in a directory.

    Raises:
        CalledProcessError: the patch does not fit any more. Make it again: take the mend away by hand, and
            write `git diff -U2 app` below its words.
    """
    shutil.copytree(REPOSITORY / "app", directory / "app", ignore=shutil.ignore_patterns("__pycache__"))
    (directory / "migrations").symlink_to(REPOSITORY / "migrations")
    file = Path(__file__).parent / f"{fault}.patch"
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", file], cwd=directory, check=True, capture_output=True
    )
    return directory


def run_storms(
    arguments: Sequence[str], directory: Path | None = None, *, capture: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run `python -m tests.storms`, with the service of a directory; without one with what there is."""
    paths = [str(path) for path in (directory, REPOSITORY) if path is not None]
    # -P: modules are looked for there, and not in the working directory first.
    return subprocess.run(
        [sys.executable, "-P", "-m", "tests.storms", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE if capture else None,
        text=True,
        check=False,
    )
