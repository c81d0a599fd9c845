"""Heavy work leaves the interpreter, and places, to others, and ends with its request."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from uuid import UUID, uuid4

import pytest

from app.core.errors import Unavailable
from app.services import work
from app.services.work import (
    FREE_PART,
    FREE_SECONDS,
    LATELY,
    LINE_OF_ONE,
    REST,
    SLICE,
    Answered,
    Ended,
    Line,
    Slices,
    Work,
    checkpoint,
)


class Watch:
    """Time that passes by naps and by work alone, and a note of every nap.

    Attributes:
        others: Whether others are answered all the time.
    """

    def __init__(self, *, others: bool) -> None:
        self.now, self.others = 0.0, others
        self.naps: list[float] = []
        self.answered = Answered(lambda: self.now)
        self.slices = Slices(self.answered, lambda: self.now, lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds

    def compute(self, seconds: float, token: UUID) -> None:
        with self.slices.slice(self.slices.account(token), threading.Event()):
            self.now += seconds
            if self.others:
                self.answered.note(None)


@pytest.fixture
async def places() -> AsyncIterator[Work]:
    made = Work(at_once=3, of_one=2, patience=0.01)
    yield made
    made.close()


def test_a_token_that_computes_much_rests_while_others_are_answered():
    watch, token = Watch(others=True), uuid4()
    watch.compute(FREE_SECONDS, token)
    watch.compute(2 * SLICE, token)
    assert watch.naps == [], "this slice was the first of long work"
    watch.compute(2 * SLICE, token)
    assert sum(watch.naps) == pytest.approx(REST * 2 * SLICE)


def test_long_work_of_several_tokens_rests_together():
    watch, tokens = Watch(others=True), [uuid4(), uuid4()]
    for token in tokens:
        watch.compute(2 * FREE_SECONDS, token)
    for token in tokens:
        watch.compute(SLICE, token)
    watch.compute(SLICE, tokens[0])
    assert sum(watch.naps) == pytest.approx(2 * REST * SLICE)


def test_no_one_rests_where_no_one_else_is_answered():
    watch, token = Watch(others=False), uuid4()
    for _ in range(3):
        watch.compute(2 * FREE_SECONDS, token)
        watch.answered.note(token)
    assert watch.naps == [], "its own requests alone are answered"


def test_long_work_rests_where_others_are_answered_slowly():
    """One was answered before, and none since: it may wait for the long work itself."""
    watch, token = Watch(others=False), uuid4()
    watch.compute(2 * FREE_SECONDS, token)
    watch.answered.note(uuid4())
    for _ in range(3):
        watch.compute(SLICE, token)
        watch.answered.note(token)
    assert sum(watch.naps) == pytest.approx(2 * REST * SLICE)
    watch.now += LATELY
    watch.compute(SLICE, token)
    watch.naps.clear()
    watch.compute(SLICE, token)
    assert watch.naps == [], "no one has been answered for long"


def test_threads_get_a_line_in_the_order_in_which_they_ask():
    line, order, going = Line(), list[str](), threading.Event()

    def once() -> None:
        with line.turn(threading.Event()):
            order.append("other")

    with line.turn(threading.Event()):
        other = threading.Thread(target=once)
        other.start()
        while line.waiting < 2:
            going.wait(0.001)
    with line.turn(threading.Event()):
        order.append("greedy")
    other.join()
    assert order == ["other", "greedy"]


def test_who_leaves_a_line_holds_no_one_up():
    line, ended = Line(), threading.Event()
    ended.set()
    with line.turn(threading.Event()):
        with pytest.raises(Ended), line.turn(ended):
            raise AssertionError("it is not its turn")
        assert line.waiting == 1
    with line.turn(threading.Event()):
        pass


def test_one_thread_computes_for_a_token_at_a_time():
    """Also what it computes freely: several threads of it would take others the interpreter."""
    slices, token, inside, most = Slices(Answered()), uuid4(), list[int](), list[int]()

    def compute() -> None:
        with slices.slice(slices.account(token), threading.Event()):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.01)
            inside.pop()

    threads = [threading.Thread(target=compute) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 4


def test_another_token_computes_at_once():
    watch, greedy = Watch(others=True), uuid4()
    for _ in range(2):
        watch.compute(2 * FREE_SECONDS, greedy)
    watch.compute(FREE_SECONDS / 2, uuid4())
    assert watch.naps == []


def test_what_a_token_computes_freely_grows_again():
    watch, token = Watch(others=True), uuid4()
    watch.compute(FREE_SECONDS, token)
    watch.now += FREE_SECONDS / FREE_PART
    for _ in range(2):
        watch.compute(FREE_SECONDS / 3, token)
    assert watch.naps == []


async def test_one_token_leaves_places_to_others(places: Work):
    greedy, other = uuid4(), uuid4()
    async with places.turn(greedy), places.turn(greedy):
        with pytest.raises(Unavailable):
            async with places.turn(greedy):
                pass
        async with places.turn(other):
            with pytest.raises(Unavailable):
                async with places.turn(other):
                    pass
            async with places.turn(greedy, batch=True):
                "batches have places of their own"
    async with places.turn(greedy):
        pass


async def test_one_token_waits_for_itself_alone():
    """However many requests of it wait, the next place in all is another token's as soon as it asks."""
    made, greedy, order = Work(at_once=2, of_one=1, patience=5), uuid4(), list[str]()

    async def ask(name: str, token: UUID) -> None:
        async with made.turn(token):
            order.append(name)
            await asyncio.sleep(0)

    async with AsyncExitStack() as first:
        await first.enter_async_context(made.turn(greedy))
        await first.enter_async_context(made.turn(uuid4()))
        asked = [asyncio.create_task(ask("greedy", greedy)) for _ in range(5)]
        await asyncio.sleep(0)
        asked.append(asyncio.create_task(ask("other", uuid4())))
        await asyncio.sleep(0)
    await asyncio.gather(*asked)
    assert order.index("other") <= 1
    made.close()


async def test_the_line_of_one_token_is_bounded():
    made, token = Work(of_one=1, patience=30), uuid4()

    async def ask() -> None:
        async with made.turn(token):
            pass

    async with made.turn(token):
        waiting = [asyncio.create_task(ask()) for _ in range(LINE_OF_ONE)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable, match="this token"):
            await ask()
    await asyncio.gather(*waiting)
    made.close()


async def test_work_ends_at_the_next_checkpoint_once_its_client_leaves(places: Work):
    begun, left, steps = threading.Event(), asyncio.Event(), 0

    def endless() -> None:
        nonlocal steps
        while True:
            checkpoint()
            steps += 1
            begun.set()

    async def leave() -> None:
        await asyncio.to_thread(begun.wait)
        left.set()

    leaving = asyncio.create_task(leave())
    async with places.turn(uuid4(), left.wait):
        with pytest.raises(Ended):
            await work.run(endless)
        assert steps > 0
        with pytest.raises(Ended):
            await work.run(lambda: "nothing more is begun")
    await leaving


async def test_a_place_is_held_until_the_thread_of_a_cancelled_request_ends():
    made, token, go_on, begun = Work(of_one=1, patience=0.01), uuid4(), threading.Event(), threading.Event()

    def stubborn() -> None:
        begun.set()
        go_on.wait()
        checkpoint()

    async def ask() -> None:
        async with made.turn(token):
            await work.run(stubborn)

    task = asyncio.create_task(ask())
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    with pytest.raises(Unavailable):
        async with made.turn(token):
            pass
    go_on.set()
    for _ in range(1_000):
        with suppress(Unavailable):
            async with made.turn(token):
                break
    else:
        raise AssertionError("the place never came back")
    made.close()


async def test_work_without_a_turn_is_done_in_a_thread():
    assert await work.run(threading.get_ident) != threading.get_ident()
    checkpoint()
