"""A worker of a Citus cluster dies when it is told to commit what it prepared: all of it is found, once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar

import pytest
from sqlalchemy import make_url

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, Unavailable
from app.core.study import Study
from app.sessions.search import Mode
from tests.store.session_kit import Stage
from tests.store.workbench import Workbench, offer, workbench
from tests.support.citus import CitusServer, require_citus
from tests.support.databases import scratch_directory

pytestmark = pytest.mark.long

Result = TypeVar("Result")

FALLS = 10
PEOPLE = 30
STUDIES = 3
FITTING_STUDIES = 2
"""The lifetime budget is 10, each contribution reserves 4."""


@pytest.fixture(scope="module")
def citus() -> Iterator[CitusServer]:
    """A cluster whose workers can be made to fall, and that recovers only when it is asked to."""
    require_citus()
    with (
        scratch_directory() as directory,
        closing(CitusServer(directory, gated=True, recovery="-1")) as server,
    ):
        yield server


@pytest.fixture
def url(citus: CitusServer) -> Iterator[str]:
    """A migrated, distributed database."""
    with citus.database() as url:
        yield url


async def falls(citus: CitusServer, number: int, work: Callable[[], Awaitable[Result]]) -> Result:
    """What comes of the work, amid which a worker falls and starts again."""
    gate, node = citus.gates[number % len(citus.gates)], citus.nodes[1 + number % len(citus.gates)]
    gate.arm()
    doing = asyncio.ensure_future(work())
    assert await asyncio.to_thread(gate.fell.wait, 60), "no commit was prepared"
    await asyncio.to_thread(node.launch)
    return await doing


async def until_it_answers(work: Callable[[], Awaitable[Result]]) -> Result:
    """Ask again while the service is unavailable, as a client would."""
    for _ in range(200):
        try:
            return await work()
        except Unavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("the service stays unavailable")


def administer(citus: CitusServer, url: str, *statements: str) -> None:
    """Run statements on the coordinator as its superuser."""
    name = make_url(url).database
    assert name is not None
    citus.administer(name, *statements)


async def test_a_fold_waits_for_what_was_acknowledged(citus: CitusServer, url: str) -> None:
    async with workbench(url) as bench:
        study = await bench.study()
        await bench.crowd(study, 20, prefix="before")
        await falls(citus, 0, lambda: bench.crowd(study, 40))
        assert await bench.value("SELECT count(*) FROM contribution") < 60, "not all can be seen"
        for _ in range(3):
            with pytest.raises(Unavailable, match="recovering"):
                await bench.fold(study)
        assert await bench.members(study) == 0
        administer(citus, url, "SELECT recover_prepared_transactions()")
        await bench.fold(study)
        assert await bench.members(study) == 60
        await bench.assert_clean()


async def test_a_round_waits_for_what_was_acknowledged(citus: CitusServer, url: str) -> None:
    async with workbench(url) as bench:
        stage = await Stage.set(bench, await bench.study(), mode=Mode.BUDGET_SPLIT)
        answers = [stage.made(f"p{number}", 1) for number in range(40)]
        assert await falls(citus, 1, lambda: stage.group(answers)) == ["created"] * 40
        with pytest.raises(Unavailable, match="recovering"):
            await stage.close(1)
        administer(citus, url, "SELECT recover_prepared_transactions()")
        await stage.close(1)
        assert await bench.value("SELECT sum(spent)::bigint FROM enrolment") == 40 * 2 * MICRO
        await bench.assert_clean()


async def contribute(bench: Workbench, person: str, studies: Sequence[Study]) -> list[str]:
    """What becomes of a person's contributions, each sent again until it is answered."""
    outcomes = []
    for study in studies:
        given = partial(bench.services.contributions.contribute, study, offer(person, epsilon=4))
        try:
            await until_it_answers(given)
            outcomes.append("accepted")
        except BudgetExhausted:
            outcomes.append("exhausted")
    return outcomes


async def contribute_all(
    bench: Workbench, people: Sequence[str], studies: Sequence[Study]
) -> list[list[str]]:
    """The same of many people at once."""
    return await asyncio.gather(*(contribute(bench, person, studies) for person in people))


async def test_ten_workers_die_and_nothing_is_torn_or_lost(citus: CitusServer, url: str) -> None:
    recovering = "ALTER SYSTEM SET citus.recover_2pc_interval = '1s'"
    administer(citus, url, recovering, "SELECT pg_reload_conf()")
    async with workbench(url) as bench:
        studies = [await bench.study() for _ in range(STUDIES)]
        for number in range(FALLS):
            people = [f"p{number}-{index}" for index in range(PEOPLE)]
            for outcomes in await falls(citus, number, partial(contribute_all, bench, people, studies)):
                assert outcomes == ["accepted"] * FITTING_STUDIES + ["exhausted"]
        for study in studies:
            await until_it_answers(partial(bench.fold, study))
        members = [await bench.members(study) for study in studies]
        assert members == [FALLS * PEOPLE] * FITTING_STUDIES + [0]
        reserved = await bench.fetch("SELECT DISTINCT reserved FROM subject")
        assert reserved == [{"reserved": FITTING_STUDIES * 4 * MICRO}]
        await bench.assert_clean()
