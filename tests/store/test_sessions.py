"""Sessions on a real database: what is reserved, spent and freed, who is refused, when rounds close."""

from decimal import Decimal
from uuid import uuid4

import pytest
from dither.device.response import assigned_round

from app.core.epsilon import MICRO
from app.core.errors import (
    AnswerExists,
    BudgetExhausted,
    InternalFault,
    NotFound,
    NotYourRound,
    RoundClosed,
    RoundNotOpen,
    ServiceError,
)
from app.core.grid import Grid
from app.core.session import AnswerOutcome, SessionState
from app.sessions.search import Mode
from tests.store.session_kit import HandClock, Stage, schedule
from tests.store.workbench import ADMIN, KEY, LIFETIME_EPSILON, Workbench, offer, workbench

NAMES = [f"p{number}" for number in range(10)]


@pytest.fixture
async def stage(bench: Workbench) -> Stage:
    """A minimum in three rounds of 2 epsilon each."""
    return await Stage.set(bench, await bench.study())


def name_of(stage: Stage, round_number: int, prefix: str = "someone") -> str:
    """Somebody who is asked in this round of a user_split session."""
    assert stage.key is not None
    return next(
        name
        for name in (f"{prefix}-{number}" for number in range(1000))
        if assigned_round(stage.key, name, stage.rounds) == round_number
    )


# ---------------------------------------------------------------------------------------- the ledger


async def test_the_first_answer_reserves_everything_and_each_one_spends_its_part(stage: Stage) -> None:
    first = await stage.answer("ada", 1)
    assert (first.outcome, first.spent) == (AnswerOutcome.CREATED, 2 * MICRO)
    assert await stage.held("ada") == (6 * MICRO, 2 * MICRO)
    assert await stage.bench.reserved("ada") == 6 * MICRO
    await stage.close(1)
    second = await stage.answer("ada", 2, 0)
    assert second.spent == 4 * MICRO
    assert await stage.held("ada") == (6 * MICRO, 4 * MICRO)
    account = (await stage.bench.services.budgets.statement(KEY.digest("ada"))).account
    assert (account.reserved, account.spent) == (6 * MICRO, 4 * MICRO)
    page = await stage.bench.services.budgets.page(10, None)
    assert [(one.reserved, one.spent) for one in page.items] == [(6 * MICRO, 4 * MICRO)]
    await stage.bench.assert_clean()


async def test_whoever_is_asked_once_spends_everything_at_once(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), mode=Mode.USER_SPLIT)
    name = name_of(stage, 1)
    assert (await stage.answer(name, 1)).spent == 6 * MICRO
    assert await stage.held(name) == (6 * MICRO, 6 * MICRO)
    await bench.assert_clean()


async def test_the_end_frees_what_nobody_spent(stage: Stage) -> None:
    await stage.everybody(["ada", "bob"], 1)
    await stage.close(1)
    await stage.answer("ada", 2)
    await stage.finish()
    assert await stage.held("ada") == (4 * MICRO, 4 * MICRO)
    assert await stage.held("bob") == (2 * MICRO, 2 * MICRO)
    assert await stage.bench.reserved("bob") == 2 * MICRO
    await stage.bench.assert_clean()
    await stage.finish()
    assert await stage.bench.reserved("bob") == 2 * MICRO, "nothing is freed twice"


async def test_the_last_round_ends_it_and_frees_too(stage: Stage) -> None:
    await stage.answer("ada", 1)
    for number in (1, 2, 3):
        session = await stage.close(number)
    assert session.head.state is SessionState.FINISHED
    assert await stage.bench.reserved("ada") == 2 * MICRO
    await stage.bench.assert_clean()


async def test_a_session_adds_to_what_contributions_hold(stage: Stage) -> None:
    study = await stage.bench.study()
    await stage.bench.services.contributions.contribute(study, offer("ada", epsilon=3))
    await stage.answer("ada", 1)
    assert await stage.bench.reserved("ada") == 9 * MICRO
    with pytest.raises(BudgetExhausted):
        await stage.bench.services.contributions.contribute(
            await stage.bench.study(), offer("ada", epsilon=2)
        )
    await stage.bench.assert_clean()


async def test_nobody_takes_part_beyond_the_lifetime_budget(stage: Stage) -> None:
    other = await Stage.set(stage.bench, await stage.bench.study())
    await stage.answer("ada", 1)
    with pytest.raises(BudgetExhausted):
        await other.answer("ada", 1)
    assert await other.stored(1) == 0
    assert await other.held("ada") == (0, 0)
    assert (await other.now()).head.answers == 0
    await stage.finish()
    assert (await other.answer("ada", 1)).outcome is AnswerOutcome.CREATED, "freed again"
    await stage.bench.assert_clean()


async def test_a_session_that_costs_more_than_a_new_persons_budget_enrols_nobody(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), epsilon=LIFETIME_EPSILON + 3)
    with pytest.raises(BudgetExhausted):
        await stage.answer("ada", 1)
    assert await bench.value("SELECT count(*) FROM subject") == 0
    await bench.services.budgets.set_lifetime(
        KEY.digest("ada"), epsilon=2 * LIFETIME_EPSILON, gaussian=None, reason="test", principal=ADMIN
    )
    assert (await stage.answer("ada", 1)).outcome is AnswerOutcome.CREATED
    await bench.assert_clean()


# ------------------------------------------------------------------------------------------ refusals


async def refused(stage: Stage, error: type[ServiceError], name: str, number: int, answer: int = 1) -> None:
    before = await stage.now(), await stage.bench.value("SELECT count(*) FROM answer")
    with pytest.raises(error):
        await stage.answer(name, number, answer)
    after = await stage.now(), await stage.bench.value("SELECT count(*) FROM answer")
    assert after == before, "the session is unharmed"


async def test_what_comes_too_late_too_early_or_otherwise_is_refused(stage: Stage) -> None:
    await stage.answer("ada", 1)
    await refused(stage, RoundNotOpen, "ada", 2)
    await refused(stage, RoundNotOpen, "new", 3)
    await refused(stage, AnswerExists, "ada", 1, 0)
    await stage.close(1)
    await refused(stage, RoundClosed, "bob", 1)
    await refused(stage, AnswerExists, "ada", 1, 0)
    await stage.finish()
    for number in (2, 3):
        await refused(stage, RoundClosed, "ada", number)
    await stage.bench.assert_clean()


async def test_the_same_answer_again_is_welcome_at_any_time_and_free(stage: Stage) -> None:
    await stage.answer("ada", 1)
    for move in (None, stage.close(1), stage.finish()):
        if move is not None:
            await move
        again = await stage.answer("ada", 1)
        assert (again.outcome, again.spent) == (AnswerOutcome.UNCHANGED, 2 * MICRO)
    assert await stage.stored(1) == 1
    await stage.bench.assert_clean()


async def test_whoever_is_asked_in_another_round_is_refused_in_this_one(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), mode=Mode.USER_SPLIT)
    name = name_of(stage, 2)
    await refused(stage, NotYourRound, name, 1)
    await refused(stage, RoundNotOpen, name, 2)
    await stage.close(1)
    assert (await stage.answer(name, 2)).outcome is AnswerOutcome.CREATED
    await refused(stage, RoundClosed, name, 1)
    await refused(stage, RoundNotOpen, name, 3)
    await bench.assert_clean()


async def test_a_session_that_does_not_exist_is_not_found(stage: Stage) -> None:
    with pytest.raises(NotFound):
        await stage.bench.services.sessions.get(uuid4())


async def test_a_state_that_cannot_be_read_closes_nothing_and_spends_nothing(stage: Stage) -> None:
    await stage.answer("ada", 1)
    await stage.bench.execute("UPDATE session SET document = '{}'")
    with pytest.raises(InternalFault):
        await stage.close(1)
    assert await stage.bench.value("SELECT round FROM session") == 1
    assert await stage.held("ada") == (6 * MICRO, 2 * MICRO)


# -------------------------------------------------------------------------------------------- rounds


async def test_a_round_closes_with_its_last_answer_and_the_next_one_opens(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), when=schedule(answers_per_round=10))
    await stage.everybody(NAMES[:9], 1)
    assert (await stage.now()).head.round == 1
    await stage.answer(NAMES[9], 1)
    head = (await stage.now()).head
    assert (head.round, head.answers) == (2, 0)
    await refused(stage, RoundClosed, "late", 1)
    await stage.everybody(NAMES, 2, 0)
    await stage.everybody(NAMES, 3)
    session = await stage.now()
    assert session.head.state is SessionState.FINISHED
    assert [step["answers"] for step in _path(session)] == [10, 10, 10]
    assert [step["believed"] for step in _path(session)] == [True, False, True]
    assert session.running.result(_grid())["interval"] == {"lower": 0.25, "upper": 0.375}
    await bench.assert_clean()


async def test_a_group_that_overfills_a_round_fills_it_exactly(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), when=schedule(answers_per_round=3))
    group = [
        stage.made("ada", 1),
        stage.made("ada", 1, 0),
        stage.made("early", 2),
        stage.made("ada", 1),
        stage.made("bob", 1),
        stage.made("cleo", 1),
        stage.made("dora", 1),
        stage.made("bob", 2),
    ]
    assert await stage.group(group) == [
        *("created", "answer_exists", "round_not_open", "unchanged", "created", "created"),
        *("round_closed", "round_not_open"),
    ]
    assert await stage.stored(1) == 3
    await bench.assert_clean()


async def test_people_without_budget_do_not_fill_a_round(bench: Workbench) -> None:
    stage = await Stage.set(bench, await bench.study(), when=schedule(answers_per_round=2))
    for name in ("poor", "destitute"):
        await bench.services.budgets.set_lifetime(
            KEY.digest(name), epsilon=MICRO, gaussian=None, reason="test", principal=ADMIN
        )
    group = [stage.made(name, 1) for name in ("poor", "destitute", "ada", "bob", "cleo")]
    assert await stage.group(group) == [
        *("budget_exhausted", "budget_exhausted", "created", "created", "round_closed"),
    ]
    await bench.assert_clean()


async def test_closing_a_closed_round_changes_nothing_and_a_later_one_is_refused(stage: Stage) -> None:
    await stage.close(1)
    assert (await stage.close(1)).head.round == 2
    with pytest.raises(RoundNotOpen):
        await stage.close(3)
    with pytest.raises(ServiceError, match="round"):
        await stage.close(4)
    await stage.finish()
    assert (await stage.close(3)).head.state is SessionState.FINISHED


async def test_an_open_round_counts_at_the_end_only_if_it_is_evidence(bench: Workbench) -> None:
    believed = await Stage.set(bench, await bench.study())
    await believed.everybody(NAMES, 1)
    assert len(_path(await believed.finish())) == 1
    silent = await Stage.set(bench, await bench.study(), epsilon=3 * MICRO)
    await silent.everybody(NAMES, 1, 0)
    assert _path(await silent.finish()) == []
    await bench.assert_clean()


# ---------------------------------------------------------------------------------------------- time


async def test_a_round_closes_by_time_whether_or_not_anybody_asks(database_url: str) -> None:
    clock = HandClock()
    async with workbench(database_url, clock=clock) as bench:
        stage = await Stage.set(bench, await bench.study(), when=schedule(round_seconds=60))
        await stage.everybody(NAMES, 1)
        assert await bench.services.session_watch.close_due() == 0
        clock.pass_seconds(61)
        assert await bench.services.session_watch.close_due() == 1
        session = await stage.now()
        assert session.head.round == 2
        assert session.head.round_closes_at is not None
        clock.pass_seconds(61)
        assert (await stage.now()).head.round == 3, "whoever asks sees no round whose time is over"
        clock.pass_seconds(61)
        with pytest.raises(RoundClosed):
            await stage.answer("late", 3)
        assert await bench.value("SELECT state FROM session") == "finished"
        assert [step["answers"] for step in _path(await stage.now())] == [10, 0, 0]
        await bench.assert_clean()


async def test_the_deadline_ends_a_session(database_url: str) -> None:
    clock = HandClock()
    async with workbench(database_url, clock=clock) as bench:
        stage = await Stage.set(bench, await bench.study(), when=schedule(round_seconds=600))
        await stage.everybody(NAMES, 1)
        clock.pass_seconds(1001)
        assert await bench.services.session_watch.close_due() == 1
        assert (await stage.now()).head.state is SessionState.FINISHED
        assert await stage.held("p0") == (2 * MICRO, 2 * MICRO)
        await bench.assert_clean()


async def test_a_session_goes_on_in_another_process(database_url: str) -> None:
    async with workbench(database_url) as bench:
        stage = await Stage.set(bench, await bench.study(), when=schedule(answers_per_round=10))
        await stage.everybody(NAMES, 1)
        await stage.everybody(NAMES[:5], 2)
    async with workbench(database_url) as bench:
        stage = Stage(bench, stage.id, stage.key, stage.rounds)
        assert (await stage.answer(NAMES[0], 2)).outcome is AnswerOutcome.UNCHANGED
        await stage.everybody(NAMES[5:], 2)
        assert (await stage.now()).head.round == 3
        await bench.assert_clean()


async def test_one_broken_session_does_not_keep_the_others_open(database_url: str) -> None:
    clock = HandClock()
    async with workbench(database_url, clock=clock) as bench:
        study = await bench.study()
        broken = await Stage.set(bench, study)
        sound = await Stage.set(bench, study)
        await bench.execute(f"UPDATE session SET document = '{{}}' WHERE id = '{broken.id}'")
        clock.pass_seconds(1001)
        assert await bench.services.session_watch.close_due() == 2
        assert (await sound.now()).head.state is SessionState.FINISHED
        assert await bench.value("SELECT count(*) FROM session WHERE state = 'open'") == 1


def _path(session):
    return session.running.progress(_grid())["path"]


def _grid():
    return Grid(Decimal(0), Decimal(1))
