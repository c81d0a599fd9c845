"""The same tests where the tables of people are distributed: hash partitions, three nodes of Citus."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.citus import require_citus
from tests.support.live import ROOT

pytestmark = pytest.mark.system

FEW = ("tests/store/test_contributions.py", "tests/store/test_sessions.py")

CORE = (
    *("contributions", "batches", "releases", "sessions", "studies", "figures", "administration"),
    # Labels, several numbers, choices, coordinates, and answers that sharpen.
    *("attributes", "label_readings", "shape_labels", "measures", "measure_choices", "choices"),
    *("vector_means", "vector_measures", "shapes", "shape_steps", "steps", "found_range"),
)

# One of the tamperings of the audit's tests, a slice over several shards, crashes Citus 14.0.1's coordinator.
# The others make a server of their own.
LEFT_OUT = {
    "citus": ("audit", "embedded", "lost_worker", "migrate", "partitions", "upgrade"),
    "partitions": ("embedded", "lost_worker", "migrate", "partitions", "upgrade"),
}

ALL = ("tests/store", *(f"tests/api/test_{name}.py" for name in CORE), "tests/system/test_overspend.py")


def passes_on(kind: str, files: tuple[str, ...], directory: Path) -> None:
    """Run tests in a process of their own, with databases of this kind."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-o", f"cache_dir={directory}", *files],
        cwd=ROOT,
        env={**environment, "DITHER_TEST_DATABASES": kind},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["partitions", pytest.param("citus", marks=pytest.mark.slow)])
def test_contributions_and_sessions_are_the_same(kind: str, tmp_path: Path) -> None:
    if kind == "citus":
        require_citus()
    passes_on(kind, FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["partitions", "citus"])
def test_all_of_the_store_and_the_core_of_the_api_are_the_same(kind: str, tmp_path: Path) -> None:
    if kind == "citus":
        require_citus()
    left_out = [f"--ignore=tests/store/test_{name}.py" for name in LEFT_OUT[kind]]
    passes_on(kind, (*ALL, *left_out), tmp_path)
