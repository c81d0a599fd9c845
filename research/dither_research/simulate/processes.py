"""Several processes of devices, and their reports put together."""

import asyncio
import gc
import multiprocessing
import queue
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from multiprocessing.queues import Queue
from typing import TypeVar

from dither import DitherError, Session

from app.cli.common import CommandFailed
from dither_research.simulate import fleet
from dither_research.simulate.fleet import Orders, Report, Tally

T = TypeVar("T")

RARELY = (100_000, 50, 100)
"""Thresholds of the garbage collector."""

SWITCH_SECONDS = 0.000_05
"""How long the thread of the event loop may keep the ledger's waiting; they take turns often."""

LOOK_SECONDS = 1.0
"""Time without a message after which the processes are checked."""

Message = tuple[int, Tally | str, Session | None]


def run(orders: Orders, processes: int, report: Report) -> Tally:
    """Let all devices do what they are there for, spread over processes.

    Raises:
        CommandFailed: a process broke off, and why.
    """
    if processes == 1:
        return run_loop(lambda: fleet.run(orders, report))
    context = multiprocessing.get_context("spawn")
    messages: Queue[Message] = context.Queue()
    parts = [replace(orders, devices=orders.devices[number::processes]) for number in range(processes)]
    workers = [
        context.Process(target=_work, args=(number, part, messages), daemon=True)
        for number, part in enumerate(parts)
    ]
    for worker in workers:
        worker.start()
    try:
        return _collect(messages, workers, report)
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def run_loop(main: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run a coroutine on the fastest event loop that there is."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    # Thousands of devices live long: looking through all of them again and again finds nothing to free.
    before, switch_before = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*RARELY)
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(main())
    finally:
        gc.set_threshold(*before)
        sys.setswitchinterval(switch_before)


def _work(number: int, orders: Orders, messages: "Queue[Message]") -> None:
    """One process."""

    def report(tally: Tally, session: Session | None) -> None:
        messages.put((number, tally, session if number == 0 else None))

    try:
        tally = run_loop(lambda: fleet.run(orders, report))
    except DitherError as error:
        messages.put((number, str(error), None))
    except KeyboardInterrupt:
        messages.put((number, "interrupted", None))
    else:
        messages.put((number, replace(tally, online=-1), None))  # none is: the process is done


def _collect(
    messages: "Queue[Message]", workers: Sequence[multiprocessing.process.BaseProcess], report: Report
) -> Tally:
    latest = [Tally() for _ in workers]
    running = set(range(len(workers)))
    while running:
        try:
            number, news, session = messages.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            if any(workers[number].exitcode is not None for number in running):
                raise CommandFailed("a process of devices has died") from None
            continue
        if isinstance(news, str):
            raise CommandFailed(news)
        if news.online < 0:
            running.discard(number)
            news = replace(news, online=0)
        latest[number] = news
        together = Tally()
        for tally in latest:
            together = together.plus(tally)
        report(together, session)
    return together
