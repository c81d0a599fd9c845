"""Storms by seed: nobody is lost, overspent or told what no order explains, and a seed is one storm.

`python -m tests.storms SEED` replays one; `DITHER_TEST_STORMS_SEED` and `DITHER_TEST_STORMS` choose others.
"""

import os

import pytest

from tests.storms.storm import Outcome, Storm
from tests.support.databases import Server

FIRST = int(os.environ.get("DITHER_TEST_STORMS_SEED", "1"))
STORMS = int(os.environ.get("DITHER_TEST_STORMS", "200"))

FEW = 6
"""In each run of the tests. The first seeds are those that find the faults of former versions."""


async def stormed(server: Server, seed: int) -> Outcome:
    """The outcome of a seed on a database of its own."""
    with server.database() as url:
        outcome = await Storm(seed, url).run()
    assert outcome.well, f"{outcome}\nagain: python -m tests.storms {seed}"
    return outcome


@pytest.mark.slow
async def test_storms_are_explained(postgres_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [await stormed(postgres_server, seed) for seed in range(FIRST, FIRST + FEW)]
    said = sum((outcome.said for outcome in outcomes), start=outcomes[0].said - outcomes[0].said)
    assert said["made"]
    assert said["created"]
    assert said["shows"]
    with capsys.disabled():
        print("", *outcomes, sep="\n")


@pytest.mark.slow
async def test_one_seed_is_one_storm(postgres_server: Server) -> None:
    """Strikes, locks and all: the same statements in the same order."""
    one, other = [await stormed(postgres_server, 5) for _ in range(2)]
    assert one.struck.total() > 0
    assert (one.story, one.turns, one.said) == (other.story, other.turns, other.said)


@pytest.mark.slow
async def test_many_storms_are_explained(postgres_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    turns = calls = unheard = strikes = 0
    for seed in range(FIRST, FIRST + STORMS):
        outcome = await stormed(postgres_server, seed)
        turns, calls = turns + outcome.turns, calls + outcome.calls
        unheard, strikes = unheard + outcome.unheard, strikes + outcome.struck.total()
    with capsys.disabled():
        print(f"\n{STORMS} storms: {turns} turns, {calls} calls, {strikes} strikes, {unheard} unheard")
