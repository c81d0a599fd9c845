"""Sessions under concurrency: three processes, many clients, one ledger."""

import asyncio
from collections import Counter
from collections.abc import Awaitable

import pytest

from app.core.clock import SystemClock
from app.core.epsilon import MICRO
from app.core.errors import ServiceError, StudyClosed
from app.core.session import SessionState
from app.core.study import Study, Trust
from app.services.sessions.answer_intake import take_answers
from app.services.sessions.rounds import Rounds
from app.sessions.search import Mode
from app.store.contributions import Allowance
from app.store.database import Connection
from app.store.studies import close_study
from tests.store.session_kit import HandClock, Stage, schedule
from tests.store.workbench import ADMIN, KEY, LIFETIME_EPSILON, Workbench, batch, offer, workbench

pytestmark = pytest.mark.long


async def fate(answering: Awaitable) -> str:
    """The outcome of an answer, or the code of its refusal."""
    try:
        return (await answering).outcome.value
    except ServiceError as error:
        return error.code


async def test_one_person_who_answers_many_times_at_once_is_counted_once(cluster: Workbench) -> None:
    stage = await Stage.set(cluster, await cluster.study())
    fates = Counter(
        await asyncio.gather(
            *(
                fate(stage.answer("ada", 1, number % 2, services=cluster.replicas[number % 3]))
                for number in range(60)
            )
        )
    )
    assert fates["created"] == 1
    assert fates["unchanged"] == 29, "the same answer again"
    assert fates["answer_exists"] == 30, "the other one"
    assert await stage.held("ada") == (6 * MICRO, 2 * MICRO)
    assert (await stage.now()).head.answers == 1
    await cluster.assert_clean()


async def test_every_round_closes_once_and_with_exactly_its_answers(cluster: Workbench) -> None:
    stage = await Stage.set(cluster, await cluster.study(), when=schedule(answers_per_round=25))

    async def device(number: int) -> Counter:
        """Answers whatever round is open, until there is none."""
        sessions = cluster.replicas[number % 3].sessions
        fates: Counter = Counter()
        seen = 0
        while True:
            session = await sessions.wait(stage.id, seen, 30)
            if session.head.round is None:
                return fates
            seen = session.head.round
            fates[
                await fate(stage.answer(f"p{number}", seen, 1, services=cluster.replicas[(number + 1) % 3]))
            ] += 1

    async with asyncio.timeout(60):
        fates = sum(await asyncio.gather(*(device(number) for number in range(40))), Counter())
    assert fates["created"] == 75
    assert fates.keys() <= {"created", "round_closed"}
    assert [await stage.stored(number) for number in (1, 2, 3)] == [25, 25, 25]
    session = await stage.now()
    assert session.head.state is SessionState.FINISHED
    await cluster.assert_clean()


async def test_a_round_that_everybody_closes_at_once_is_closed_once(cluster: Workbench) -> None:
    stage = await Stage.set(cluster, await cluster.study())
    await stage.everybody([f"p{number}" for number in range(10)], 1)
    closing = [cluster.replicas[number % 3].sessions.close_round(stage.id, 1, ADMIN) for number in range(12)]
    answering = [
        fate(stage.answer(f"q{number}", 1, services=cluster.replicas[number % 3])) for number in range(12)
    ]
    sessions, _ = await asyncio.gather(asyncio.gather(*closing), asyncio.gather(*answering))
    assert {session.head.round for session in sessions} == {2}
    assert await cluster.value("SELECT count(*) FROM audit WHERE action = 'session.close_round'") == 1
    await cluster.assert_clean()


async def test_processes_that_watch_the_same_clock_close_a_round_once(database_url: str) -> None:
    clock = HandClock()
    async with workbench(database_url, replicas=3, clock=clock) as cluster:
        stage = await Stage.set(cluster, await cluster.study(), when=schedule(round_seconds=60))
        clock.pass_seconds(60)
        await asyncio.gather(*(services.session_watch.close_due() for services in cluster.replicas * 3))
        assert (await stage.now()).head.round == 2


async def test_sessions_and_contributions_never_reserve_more_than_the_lifetime_budget(
    cluster: Workbench,
) -> None:
    """10 of budget: one session of 6, or contributions of 3 each, in any order, but never more."""
    study = await cluster.study()
    stages = [await Stage.set(cluster, study) for _ in range(3)]
    others = [await cluster.study() for _ in range(4)]

    async def contributed(number: int) -> str:
        services = cluster.replicas[number % 3].contributions
        try:
            return (
                "contributed"
                if (await services.contribute(others[number], offer("ada", epsilon=3))).created
                else "unchanged"
            )
        except ServiceError as error:
            return error.code

    attempts = [
        *(fate(stage.answer("ada", 1, services=cluster.replicas[n % 3])) for n, stage in enumerate(stages)),
        *(contributed(number) for number in range(4)),
    ]
    fates = Counter(await asyncio.gather(*attempts))
    reserved = await cluster.reserved("ada")
    assert reserved == (6 * fates["created"] + 3 * fates["contributed"]) * MICRO
    assert 6 * MICRO <= reserved <= 10 * MICRO
    assert fates.total() - fates["budget_exhausted"] == fates["created"] + fates["contributed"]
    await cluster.assert_clean()


async def test_ending_a_session_amid_answers_and_contributions_loses_nothing(cluster: Workbench) -> None:
    study = await cluster.study()
    stage = await Stage.set(cluster, study)
    names = [f"p{number}" for number in range(120)]
    await asyncio.gather(*(stage.answer(name, 1) for name in names))
    await stage.close(1)
    offers = [offer(name, epsilon=1, trust=Trust.CENTRAL) for name in reversed(names)]

    async def end() -> None:
        await asyncio.sleep(0.02)
        await cluster.replicas[2].sessions.finish(stage.id, ADMIN)

    answers, _, result = await asyncio.gather(
        asyncio.gather(*(fate(stage.answer(name, 2, services=cluster.replicas[1])) for name in names)),
        end(),
        cluster.replicas[0].contributions.apply_batch(study, batch(offers)),
    )
    assert result.created == 120
    assert set(answers) <= {"created", "round_closed"}
    for name, answer in zip(names, answers, strict=True):
        spent = 4 if answer == "created" else 2
        assert await stage.held(name) == (spent * MICRO, spent * MICRO)
    await cluster.assert_clean()


async def test_two_sessions_that_share_people_do_not_stand_in_each_others_way(cluster: Workbench) -> None:
    study = await cluster.study()
    stages = [await Stage.set(cluster, study, epsilon=3 * MICRO) for _ in range(3)]
    names = [f"p{number}" for number in range(60)]
    work = [
        fate(stage.answer(name, 1, services=cluster.replicas[(place + turn) % 3]))
        for turn, stage in enumerate(stages)
        for place, name in enumerate(names if turn % 2 else reversed(names))
    ]
    assert Counter(await asyncio.gather(*work)) == {"created": 180}
    assert {await cluster.reserved(name) for name in names} == {9 * MICRO}
    await cluster.assert_clean()


async def test_who_waits_is_woken_by_another_process(cluster: Workbench) -> None:
    stage = await Stage.set(cluster, await cluster.study())
    waiting = [
        asyncio.create_task(services.sessions.wait(stage.id, 1, 20)) for services in cluster.replicas * 5
    ]
    idle = asyncio.create_task(cluster.services.sessions.wait(stage.id, 2, 0.5))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(5):
        await stage.close(1)
        assert {(await task).head.round for task in waiting} == {2}
    assert (await idle).head.round == 2, "nothing newer came within its time"
    done = await cluster.replicas[1].sessions.finish(stage.id, ADMIN)
    assert (await cluster.services.sessions.wait(stage.id, 5, 20)).head == done.head


async def test_a_user_split_crowd_answers_once_each(cluster: Workbench) -> None:
    stage = await Stage.set(
        cluster,
        await cluster.study(),
        mode=Mode.USER_SPLIT,
        epsilon=2 * MICRO,
        participants=90,
        when=schedule(answers_per_round=20),
    )

    async def device(number: int) -> str:
        name = f"p{number}"
        assigned = stage.made(name, 1).assigned
        assert assigned is not None
        services = cluster.replicas[number % 3]
        session = await services.sessions.wait(stage.id, assigned - 1, 30)
        if session.head.round != assigned:
            return "missed"
        return await fate(stage.answer(name, assigned, services=services))

    async with asyncio.timeout(60):
        fates = Counter(await asyncio.gather(*(device(number) for number in range(120))))
    assert fates["created"] == 60
    assert fates.keys() <= {"created", "round_closed", "missed"}
    rows = await cluster.fetch("SELECT count(*) FROM enrolment WHERE spent = reserved")
    assert rows[0]["count"] == 60
    assert await cluster.value("SELECT count(*) FROM subject WHERE id = $1", KEY.digest("nobody")) == 0
    await cluster.assert_clean()


async def test_nobody_is_enrolled_once_a_study_is_closed(cluster: Workbench) -> None:
    study = await cluster.study()
    stages = [await Stage.set(cluster, study) for _ in range(2)]
    await stages[0].answer("early", 1)

    async def device(number: int) -> str:
        await asyncio.sleep(number / 1000)
        return await fate(stages[number % 2].answer(f"p{number}", 1, services=cluster.replicas[number % 3]))

    async def close() -> int:
        await asyncio.sleep(0.1)
        await cluster.replicas[2].studies.close(study.definition.slug, ADMIN)
        return int(await cluster.value("SELECT count(*) FROM enrolment"))

    enrolled, *fates = await asyncio.gather(close(), *(device(number) for number in range(300)))
    counted = Counter(fates)
    assert counted.keys() <= {"created", "study_closed"}
    assert counted["created"] + 1 == enrolled == await cluster.value("SELECT count(*) FROM enrolment")
    assert await fate(stages[0].answer("late", 1)) == "study_closed"
    assert (await stages[0].answer("early", 1)).outcome.value == "unchanged"
    await cluster.assert_clean()


async def test_closing_a_study_waits_for_enrolments_in_flight(cluster: Workbench) -> None:
    study = await cluster.study()
    stage = await Stage.set(cluster, study)
    stored, commit = asyncio.Event(), asyncio.Event()
    session = await stage.now()

    async def enrol(connection: Connection) -> None:
        await take_answers(
            connection,
            session.definition,
            session.terms,
            [stage.made("ada", 1)],
            rounds=Rounds(SystemClock()),
            allowance=Allowance(epsilon=LIFETIME_EPSILON),
        )
        stored.set()
        await commit.wait()

    enrolling = asyncio.create_task(cluster.services.database.run_tx("test.enrol", enrol))
    await stored.wait()
    closing = asyncio.create_task(cluster.replicas[1].studies.close(study.definition.slug, ADMIN))
    assert not (await asyncio.wait([closing], timeout=0.3))[0]
    commit.set()
    await asyncio.gather(enrolling, closing)
    await cluster.assert_clean()


async def started_while_closing(cluster: Workbench, study: Study, work: Awaitable) -> asyncio.Future:
    """Start work while a study is closed by a transaction that commits once the work waits for it."""
    closed, commit = asyncio.Event(), asyncio.Event()

    async def close(connection: Connection) -> None:
        await close_study(connection, study.id)
        closed.set()
        await commit.wait()

    closing = asyncio.create_task(cluster.services.database.run_tx("test.close", close))
    await closed.wait()
    started = asyncio.ensure_future(work)
    assert not (await asyncio.wait([started], timeout=0.3))[0]
    commit.set()
    await closing
    return started


async def test_a_session_that_waits_for_its_study_to_close_is_refused(cluster: Workbench) -> None:
    study = await cluster.study()
    starting = await started_while_closing(cluster, study, Stage.set(cluster, study))
    with pytest.raises(StudyClosed):
        await starting
    assert await cluster.value("SELECT count(*) FROM session") == 0


async def test_an_answer_that_waits_for_a_study_to_close_is_refused(cluster: Workbench) -> None:
    study = await cluster.study()
    stage = await Stage.set(cluster, study)
    answer = stage.answer("ada", 1, services=cluster.replicas[1])
    answering = await started_while_closing(cluster, study, fate(answer))
    assert await answering == "study_closed"
    assert await cluster.value("SELECT count(*) FROM enrolment") == 0
    await cluster.assert_clean()
