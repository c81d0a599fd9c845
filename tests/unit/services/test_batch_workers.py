"""Reading batches leaves the interpreter to other requests."""

from collections.abc import Iterator
from itertools import count
from uuid import uuid4

import pytest

from app.core.errors import Unavailable
from app.services.contributing.batch_workers import REST, BatchWorkers


class Watch:
    """A clock on which each look takes a second, and a note of every rest."""

    def __init__(self) -> None:
        self._seconds: Iterator[int] = count()
        self.rests: list[float] = []

    def clock(self) -> float:
        return next(self._seconds)

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)


@pytest.mark.parametrize(("others", "rests"), [([1, 2, 3], 3), ([0, 0, 0], 0), ([1, 1, 2], 2)])
async def test_reading_rests_after_each_piece_during_which_others_were_answered(
    others: list[int], rests: int
):
    watch, answered = Watch(), iter(others)
    workers = BatchWorkers(lambda: next(answered), clock=watch.clock, sleep=watch.sleep)
    try:
        assert [await workers.run(lambda: "read") for _ in others] == ["read"] * 3
    finally:
        workers.close()
    assert watch.rests == [REST] * rests


async def test_one_token_leaves_turns_to_others():
    workers = BatchWorkers(at_once=3, of_one=2, patience=0.01)
    greedy, other = uuid4(), uuid4()
    try:
        async with workers.turn(greedy), workers.turn(greedy):
            with pytest.raises(Unavailable):
                async with workers.turn(greedy):
                    pass
            async with workers.turn(other):
                pass
        async with workers.turn(greedy):
            pass
    finally:
        workers.close()
