"""Traces of the model, done to the service over HTTP: every balance is compared after every step.

`DITHER_TEST_TRACES=100000 make test-slow` runs that many; `DITHER_TEST_TRACES_SEED` makes other ones.
"""

import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.api.service import Service, open_service
from tests.model.quint import made_traces, needs_quint
from tests.model.replay import WORKERS, Replay
from tests.store.faults import InterceptedDatabase

TRACES = int(os.environ.get("DITHER_TEST_TRACES", "2000"))
SEED = int(os.environ.get("DITHER_TEST_TRACES_SEED", "1"))

AT_ONCE = 100
"""Traces of one run of the simulator, which are in memory until they are done."""

HAPPENS = (
    "made",
    "stands",
    "again",
    "budget_exhausted",
    "idempotency_key_reused",
    "replaced",
)
"""What must come of some steps of a hundred traces."""


@asynccontextmanager
async def processes(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Service]]:
    """The service as often as the model has processes, on one database; its books are in order at the end."""
    monkeypatch.setattr("app.main.Database", InterceptedDatabase)
    async with (
        open_service(url, log_level="error") as one,
        open_service(url, log_level="error") as other,
    ):
        yield dict(zip(WORKERS, (one, other), strict=True))
        assert not (await one.api.services.ledger.audit()).findings


async def replayed(
    services: dict[str, Service], *, traces: int, steps: int, seed: int, first: int = 0, init: str = "init"
) -> Counter[str]:
    """Make traces and do them to the service, with studies and people of their own.

    Returns:
        How often each word came of a step.
    """
    words: Counter[str] = Counter()
    for number, states in enumerate(made_traces(samples=traces, steps=steps, seed=seed, init=init), first):
        await Replay(services, number).run(states)
        words.update(state["last"]["said"] for state in states[1:])
    return words


@pytest.mark.long
async def test_the_service_does_what_traces_of_the_model_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_quint()
    async with processes(database_url, monkeypatch) as services:
        words = await replayed(services, traces=100, steps=12, seed=SEED)
    assert all(words[word] for word in HAPPENS), words
    with capsys.disabled():
        print(f"\n100 traces, {words.total()} steps, {words.total() + 100} states compared: {dict(words)}")


@pytest.mark.long
@pytest.mark.parametrize("fault", ["full_price", "late_joiner"])
async def test_a_model_that_charges_otherwise_is_told_apart(
    database_url: str, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """The control: the service is not what a model with a fault says."""
    needs_quint()
    async with processes(database_url, monkeypatch) as services:
        with pytest.raises(AssertionError, match=r"trace \d+, step \d+"):
            await replayed(services, traces=25, steps=16, seed=SEED, init=f'starts("{fault}")')


@pytest.mark.slow
async def test_the_service_does_what_many_traces_of_the_model_do(
    database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_quint()
    words: Counter[str] = Counter()
    async with processes(database_url, monkeypatch) as services:
        for first in range(0, TRACES, AT_ONCE):
            traces = min(AT_ONCE, TRACES - first)
            words += await replayed(services, traces=traces, steps=30, seed=SEED + 1 + first, first=first)
    with capsys.disabled():
        states = words.total() + TRACES
        print(f"\n{TRACES} traces, {words.total()} steps, {states} states compared: {dict(words)}")
