"""K-means rounds on a real database: what they charge, who drops out, what a crash leaves behind."""

import asyncio
import json
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE
from app.core.session import Answer, SessionProtocol, SessionState
from app.core.study import Relation, Study, Trust
from app.services import Services
from app.services.admin.ledger import ROUND_RULE
from app.services.sessions.session_cache import Session
from app.services.statistics.publishing import FREE_ATTEMPTS
from app.services.statistics.questions import Ask
from app.sessions.kmeans_protocol import ClusterStep, RunningKMeans
from app.sessions.protocols import SessionSpec
from tests.store.faults import Crash, InterceptedDatabase, Interception, crash
from tests.store.session_kit import schedule
from tests.store.workbench import ADMIN, KEY, TOKEN, Workbench, of_offers, offer, workbench
from tests.support.forgery import LOCK, UNLOCK

PATIENCE = 30
CLOSING = "session.close_round"


def spec(*, epsilon: float = 2, rounds: int = 2) -> SessionSpec:
    """Two centers of a study from 0 to 1; a round costs central people epsilon / rounds."""
    return SessionSpec(
        protocol=SessionProtocol.KMEANS,
        epsilon=round(epsilon * MICRO),
        rounds=rounds,
        centers=((Decimal("0.25"),), (Decimal("0.75"),)),
    )


async def start(bench: Workbench, study: Study, *, answers: int | None = None, **wished: Any) -> UUID:
    made = await bench.services.sessions.create(
        study,
        spec(**wished),
        schedule(answers_per_round=answers),
        ADMIN,
        render=lambda session: session.definition.id.bytes,
    )
    return UUID(bytes=made)


async def close(services: Services, session_id: UUID, number: int) -> Session:
    async with asyncio.timeout(PATIENCE):
        return await services.sessions.close_round(session_id, number, ADMIN)


def steps(session: Session) -> tuple[ClusterStep, ...]:
    assert isinstance(session.running, RunningKMeans)
    return session.running.steps


async def give(services: Services, session_id: UUID, name: str, number: int, answer: int = 0) -> str:
    session = await services.sessions.find(session_id)
    report = (GRID_SIZE // 4,)
    given = await services.answers.take(
        session,
        Answer(
            subject=KEY.digest(name),
            sender=TOKEN,
            round=number,
            assigned=None,
            answer=answer,
            report=report,
        ),
    )
    return given.outcome.value


async def charged(bench: Workbench) -> dict[float, list[float]]:
    """Offered epsilon -> what its people paid, in the order of the releases."""
    rows = await bench.fetch("""
        SELECT cohort.epsilon AS offered, charge.epsilon FROM charge
        JOIN cohort ON cohort.id = cohort_id JOIN release ON release.id = release_id ORDER BY number
    """)
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(row["offered"] / MICRO, []).append(row["epsilon"] / MICRO)
    return found


# ------------------------------------------------------------------------------------------- prices


@pytest.mark.usefixtures("free_attempts")
async def test_who_can_pay_for_all_rounds_pays_for_each_and_nobody_else(bench: Workbench) -> None:
    study = await bench.study()
    for epsilon in (1.99, 2, 3):
        await bench.crowd(study, 5, epsilon=epsilon, prefix=f"offer-{epsilon}")
    session_id = await start(bench, study)
    await close(bench.services, session_id, 1)
    session = await close(bench.services, session_id, 2)
    assert session.head.state is SessionState.FINISHED
    assert await charged(bench) == {2: [1, 1], 3: [1, 1]}
    await bench.assert_clean()


@pytest.mark.parametrize("relation", Relation)
async def test_a_cohort_that_a_release_used_up_between_rounds_drops_out(
    bench: Workbench, relation: Relation
) -> None:
    study = await bench.study(relation=relation, trust=frozenset({Trust.CENTRAL}))
    await bench.crowd(study, 10, epsilon=2, prefix="poor")
    await bench.crowd(study, 10, epsilon=4, prefix="rich")
    session_id = await start(bench, study)
    await close(bench.services, session_id, 1)
    estimator = "uniform" if relation is Relation.REPLACE_ONE else "transformed"
    await bench.services.releases.release(
        study, of_offers(relation, Ask(estimator=estimator, share=MICRO // 2), least=2), None
    )
    before = await charged(bench)
    assert before[2] == [1, 1]
    session = await close(bench.services, session_id, 2)
    assert session.head.state is SessionState.FINISHED
    assert await charged(bench) == {2: [1, 1], 4: [*before[4], 1]}
    await bench.assert_clean()


async def test_public_people_count_and_pay_nothing(bench: Workbench) -> None:
    study = await bench.study()
    for number in range(200):
        await bench.services.contributions.contribute(
            study, offer(f"public-{number}", trust=Trust.PUBLIC, value=0.2)
        )
    session = await close(bench.services, await start(bench, study, epsilon=5, rounds=1), 1)
    [step] = steps(session)
    assert step.central is not None
    assert abs(step.central - 200) < 25
    assert await charged(bench) == {}
    await bench.assert_clean()


async def test_central_people_and_devices_pay_separately(bench: Workbench) -> None:
    """The same person may be both: each way has its own reservation."""
    study = await bench.study()
    await bench.services.contributions.contribute(study, offer("ada", epsilon=2, value=0.2))
    session_id = await start(bench, study)
    assert await give(bench.services, session_id, "ada", 1) == "created"
    assert await bench.reserved("ada") == 2 * MICRO + 3 * (2 * MICRO // 3)
    await close(bench.services, session_id, 1)
    await close(bench.services, session_id, 2)
    assert await bench.reserved("ada") == 2 * MICRO + 2 * (2 * MICRO // 3)
    await bench.assert_clean()


# -------------------------------------------------------------------------------------------- races


@pytest.mark.long
@pytest.mark.parametrize("relation", Relation)
async def test_who_keeps_leaving_waits_for_a_round_in_the_end(database_url: str, relation: Relation) -> None:
    slow = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[slow]) as bench:
        study = await bench.study(relation=relation, trust=frozenset({Trust.CENTRAL}))
        await bench.crowd(study, 60, epsilon=2)
        session_id = await start(bench, study, rounds=1)
        names = iter([f"crowd-{number}" for number in range(60)])
        others = bench.replicas[1].contributions
        leaving: list[asyncio.Task[Any]] = []

        async def overtake() -> None:
            await others.withdraw(study, KEY.digest(next(names)))
            await others.replace(study, offer(next(names), epsilon=2, value=0.1))
            # Held back is who leaves while the round is made, not who left before.
            late = try_to_leave if slow.begun[CLOSING] + 1 >= FREE_ATTEMPTS else None
            slow.interceptions[CLOSING] = Interception(first=overtake, before_commit=late)

        async def try_to_leave() -> None:
            for overtaking in (
                others.withdraw(study, KEY.digest(next(names))),
                others.replace(study, offer(next(names), epsilon=2, value=0.1)),
            ):
                leaving.append(asyncio.create_task(overtaking))
                done, _ = await asyncio.wait([leaving[-1]], timeout=0.3)
                assert not done

        slow.interceptions[CLOSING] = Interception(first=overtake)
        session = await close(bench.services, session_id, 1)
        await asyncio.gather(*leaving)
        assert len(leaving) == 2
        assert session.head.state is SessionState.FINISHED
        # Epochs that were folded for drafts that came to nothing share a cohort.
        assert await charged(bench) == {2: [2]}
        await bench.assert_clean()


async def test_a_release_and_a_closing_round_never_spend_the_same_epsilon(cluster: Workbench) -> None:
    study = await cluster.study()
    await cluster.crowd(study, 20)
    sessions = [await start(cluster, study, epsilon=1, rounds=1) for _ in range(4)]
    ask = Ask(estimator="uniform", share=MICRO)
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(
            *(
                cluster.replicas[place % 3].sessions.close_round(session_id, 1, ADMIN)
                for place, session_id in enumerate(sessions)
            ),
            *(cluster.replicas[place].releases.release(study, ask, None, fresh=True) for place in range(3)),
            return_exceptions=True,
        )
    closed, released = results[:4], results[4:]
    part = [session for session in closed if isinstance(session, Session) and steps(session)[0].release]
    made = [release for release in released if not isinstance(release, BaseException)]
    assert len(part) + len(made) == 1
    assert all(isinstance(session, Session) for session in closed)
    refused = [release for release in released if isinstance(release, BaseException)]
    assert all(isinstance(refusal, BudgetExhausted) for refusal in refused)
    assert await charged(cluster) == {1: [1]}
    await cluster.assert_clean()


async def test_a_round_that_everybody_closes_closes_once(cluster: Workbench) -> None:
    study = await cluster.study()
    await cluster.crowd(study, 20, epsilon=2)
    session_id = await start(cluster, study)
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(
            *(cluster.replicas[place % 3].sessions.close_round(session_id, 1, ADMIN) for place in range(9))
        )
    assert {session.head.round for session in results} == {2}
    assert len({steps(session)[0].release for session in results}) == 1
    assert await charged(cluster) == {2: [1]}
    await cluster.assert_clean()


async def test_who_withdraws_while_a_round_closes_is_not_in_it(database_url: str) -> None:
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5, epsilon=2)
        session_id = await start(bench, study)

        async def leave() -> None:
            await bench.replicas[1].contributions.withdraw(study, KEY.digest("crowd-0"))

        database.interceptions[CLOSING] = Interception(first=leave)
        await close(bench.services, session_id, 1)
        # The first draft was void, and what it drew was never shown.
        assert database.begun[CLOSING] == 2
        assert await charged(bench) == {2: [1]}
        [cohort] = await bench.fetch("SELECT count, spent FROM cohort")
        assert (cohort["count"], cohort["spent"]) == (4, MICRO)
        assert await bench.reserved("crowd-0") == 0
        assert await bench.reserved("crowd-1") == 2 * MICRO
        await bench.assert_clean()


# ------------------------------------------------------------------------------------------ crashes


@pytest.mark.parametrize("moment", ["first", "before_commit", "after_commit"])
async def test_whoever_is_started_next_closes_what_a_crash_left_open(database_url: str, moment: str) -> None:
    database = InterceptedDatabase.open(database_url)
    async with workbench(database_url, replicas=2, databases=[database]) as bench:
        study = await bench.study()
        await bench.crowd(study, 5, epsilon=2)
        session_id = await start(bench, study, answers=2)
        database.interceptions[CLOSING] = interception = Interception()
        setattr(interception, moment, crash)
        assert await give(bench.services, session_id, "ada", 1) == "created"
        assert await give(bench.services, session_id, "bob", 1) == "created"
        with pytest.raises(Crash):
            await asyncio.gather(*bench.services.sessions.closer.under_way.values())
        other = bench.replicas[1]
        assert await other.session_watch.close_due() == (0 if moment == "after_commit" else 1)
        session = await other.sessions.get(session_id)
        assert session.head.round == 2
        [step] = steps(session)
        assert (step.answers, step.release is not None) == (2, True)
        assert await charged(bench) == {2: [1]}
        await bench.assert_clean()


async def test_an_early_end_charges_nothing_for_the_open_round(bench: Workbench) -> None:
    study = await bench.study()
    await bench.crowd(study, 5, epsilon=2)
    session_id = await start(bench, study)
    await close(bench.services, session_id, 1)
    await give(bench.services, session_id, "ada", 2)
    session = await bench.services.sessions.finish(session_id, ADMIN)
    assert session.head.state is SessionState.FINISHED
    assert len(steps(session)) == 1
    assert await charged(bench) == {2: [1]}
    # Of epsilon over the report and two answers, she gave the report and one.
    assert await bench.reserved("ada") == 2 * (2 * MICRO // 3)
    await bench.assert_clean()


# ------------------------------------------------------------------------------------------ secrets


async def test_the_stored_session_holds_noisy_numbers_only(bench: Workbench) -> None:
    study = await bench.study()
    await bench.crowd(study, 57, epsilon=2)
    session_id = await start(bench, study)
    await close(bench.services, session_id, 1)
    document = json.loads(await bench.value("SELECT document::text FROM session WHERE id = $1", session_id))
    [step] = document["steps"]
    assert step.keys() == {"centers", "errors", "answers", "central", "release"}
    assert step["central"] != 57
    assert 57 not in _numbers(document)
    [release] = await bench.fetch("SELECT body FROM release")
    assert 57 not in _numbers(json.loads(release["body"]))


def _numbers(value: object) -> list[float]:
    match value:
        case dict():
            return [number for item in value.values() for number in _numbers(item)]
        case list():
            return [number for item in value for number in _numbers(item)]
        case int() | float():
            return [value]
        case _:
            return []


# -------------------------------------------------------------------------------------------- audit


@pytest.mark.parametrize(
    "fault",
    [
        "UPDATE release SET noise = jsonb_set(noise, '{scales,0}', '1000000')",
        'UPDATE release SET noise = \'{"mechanism": "NoNoise"}\'',
        "UPDATE charge SET epsilon = epsilon - 1",
        "UPDATE study SET delta = 1",
        "UPDATE session SET document = jsonb_set(document, '{steps,0,release}', 'null')",
    ],
)
async def test_the_audit_prices_every_round_again(bench: Workbench, fault: str) -> None:
    study = await bench.study()
    await bench.crowd(study, 5, epsilon=2)
    await close(bench.services, await start(bench, study), 1)
    await bench.assert_clean()
    await bench.execute(
        *UNLOCK,
        fault,
        *LOCK,
    )
    assert ROUND_RULE in [finding.rule for finding in await bench.findings()]
