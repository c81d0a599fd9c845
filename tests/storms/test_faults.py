"""Faults of former versions are found again by a seed, in seconds, once their mends are taken away."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.storms.faults import FAULTS, patched, run_storms
from tests.storms.test_storms import FEW
from tests.support.databases import Server


class Found(NamedTuple):
    """The seed that finds a fault, and words of what it prints."""

    seed: int
    words: str


FOUND = {
    "forgotten_key": Found(6, "-> stands"),
    "lost_tally": Found(1, "no process answers"),
    "torn_statement": Found(2, "statement -> shows"),
}


def test_every_fault_has_its_seed_which_finds_nothing_without_it() -> None:
    """Storms of the first seeds are explained, or `test_storms.py` fails."""
    assert tuple(sorted(FOUND)) == FAULTS
    assert {found.seed for found in FOUND.values()} <= set(range(1, 1 + FEW))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_mend_of_a_fault_can_be_taken_away(fault: str, tmp_path: Path) -> None:
    """Every patch fits the code as it is."""
    patched(fault, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_seed_finds_a_fault_again(postgres_server: Server, fault: str, tmp_path: Path) -> None:
    found = FOUND[fault]
    with postgres_server.database() as url:
        done = run_storms([str(found.seed), "--database", url], patched(fault, tmp_path))
    assert done.returncode == 1, done.stdout
    assert found.words in done.stdout
