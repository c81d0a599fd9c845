"""Plants each fault of `mutants.toml` in a copy of the tree, and runs the tests that must find it there.

`python -m tests.mutants` plants all of them, `python -m tests.mutants price store` those of these kinds, or
of files in such a directory. All tests that are named run once without a fault first: one that fails by
itself finds nothing.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from tomllib import loads
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("mutants.toml")

PASSED, FAILED = 0, 1
"""What pytest answers; anything else means that the tests were not run."""

LONGEST_SECONDS = 300
"""A fault that makes a test run for longer was found."""


class Mutant(NamedTuple):
    """A fault.

    Attributes:
        kind: What kind of fault it is.
        file: Where it is planted, from the root on.
        old, new: What stands there once, and what stands there with the fault.
        tests: What pytest is given.
    """

    kind: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted(self, source: str) -> str:
        """The file with the fault.

        Raises:
            ValueError: what it replaces does not stand there exactly once.
        """
        if source.count(self.old) != 1:
            raise ValueError(f"{self.file} has {source.count(self.old)} times: {self.old}")
        return source.replace(self.old, self.new)


def mutants() -> list[Mutant]:
    """All faults, in the order of the list."""
    found = loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**one, "tests": tuple(one["tests"].split())}) for one in found]


def copy(to: Path) -> None:
    """The tree as it stands, without what is not kept in it."""
    listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(os.path.isfile, names.splitlines()):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def passes(tree: Path, tests: Sequence[str], seconds: float | None = None) -> bool:
    """Whether these tests pass in a tree, within some time if that is given.

    Raises:
        RuntimeError: they were not run.
    """
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-x", *tests]
    paths = os.pathsep.join(str(tree / part) for part in ("", "client", "research"))
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (PASSED, FAILED):
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.returncode == PASSED


def main(words: Sequence[str]) -> int:
    """Plant them; 1 where one survives."""
    chosen = [
        one
        for one in mutants()
        if not words or any(word in (one.kind, *one.file.split("/")) for word in words)
    ]
    if not chosen:
        sys.exit(f"no mutant is of a kind or in a file called {' or '.join(words)}")
    survived = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        os.chdir(ROOT)
        copy(tree)
        if not passes(tree, sorted({test for one in chosen for test in one.tests})):
            sys.exit("a test fails without any fault")
        for number, one in enumerate(chosen, start=1):
            path, started = tree / one.file, time.monotonic()
            source = path.read_text(encoding="utf-8")
            path.write_text(one.planted(source), encoding="utf-8")
            # Compiled modules are told apart by size and whole seconds.
            os.utime(path, (number, number))
            lives = passes(tree, one.tests, LONGEST_SECONDS)
            path.write_text(source, encoding="utf-8")
            survived += lives
            said = f"{'SURVIVED' if lives else 'killed':<8} {time.monotonic() - started:4.0f} s"
            print(said, f"{one.kind}: {one.file}: {' '.join(one.new.split()) or 'nothing'}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - survived} killed, {survived} survived")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
