"""Who offers how much, measured in front of an answer: price, what it says, and that both cost one share."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.measurement import Measurement
from app.core.cohort import Cohort
from app.core.epsilon import MICRO, share_of
from app.core.errors import InternalFault, SaysNothing
from app.core.grid import GRID_SIZE
from app.core.noise import MEASURED
from app.core.study import Relation, Study, StudyDefinition, StudyState, Trust
from app.estimators.interface import NotApplicable
from app.services.shapes import kinds
from app.services.statistics import offered, planning
from app.services.statistics.any_question import AnyQuestion
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.levels import Level, Numbered, first_deviations
from app.services.statistics.offered import Offered, asked_first
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.release_request import MeanSituation, ReleaseRequest
from dither_research.histories import STUDY as PUBLIC
from dither_research.histories import cohort_of
from tests.unit.services.test_levels import NOW, RANGE, STUDY

GAUSSIAN = replace(RANGE, delta=10**6)
WIDE = replace(PUBLIC, relation=Relation.ADD_REMOVE_ONE, epsilon_min=MICRO, epsilon_max=10 * MICRO)
STUDIES = pytest.mark.parametrize(
    "study", [STUDY, RANGE, WIDE, GAUSSIAN], ids=["list", "range", "wide", "mu"]
)
ASKS = [Ask(), Ask(share=MICRO), Ask(share=MICRO // 2, epsilon=MICRO // 3)]


@pytest.fixture
def _without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "draw", lambda noise, queries: [0] * queries)


def open_question(study: StudyDefinition, ask: Ask) -> Resolved:
    question = resolve(study, ask).leveled(study, ())
    assert question.asks_first
    return question


def person(study: StudyDefinition, number: int, epsilon: float, spent: float = 0.0) -> Cohort:
    cohort = cohort_of(number, study.amount(round(epsilon * MICRO)), [GRID_SIZE // 3])
    return replace(cohort, spent=round(cohort.epsilon * spent))


def grid(study: StudyDefinition) -> list[tuple[float, float]]:
    """Offers at and between levels, with the part of them that is spent."""
    least, most = study.epsilon_min / MICRO, study.epsilon_max / MICRO
    return list(itertools.product((least, 1.7 * least, 4 * least, most), (0.0, 0.85, 1.0)))


def sums(one: Offered) -> np.ndarray:
    sizes = [count * GRID_SIZE for count in one.crowd.groups.column("count")]
    return np.array([query.value([0] * len(sizes), sizes, [0] * len(sizes)) for query in one.queries], object)


def loss(one: Offered, moved: np.ndarray) -> float:
    """Of one who moves the cells by that [the study's currency, exact for Laplace noise]."""
    noise: Any = one.noise
    if hasattr(noise, "sigmas"):
        return (
            sum((float(move) / sigma) ** 2 for move, sigma in zip(moved, noise.sigmas, strict=True)) * MICRO
        )
    return sum(abs(float(move)) / scale for move, scale in zip(moved, noise.scales, strict=True)) * MICRO


@STUDIES
@pytest.mark.parametrize("ask", ASKS, ids=["default", "whole", "cap"])
def test_one_person_more_moves_one_cell_and_pays_what_that_costs(study: StudyDefinition, ask: Ask) -> None:
    """Brute force: every crowd of at most two people of a small grid, and one more."""
    question = open_question(study, ask)
    for size in (0, 1, 2):
        for others in itertools.combinations_with_replacement(grid(study), size):
            people = [person(study, number, *one) for number, one in enumerate(others, 1)]
            before = Offered.of(study, question, people)
            for more in grid(study):
                one = person(study, 9, *more)
                after = Offered.of(study, question, [*people, one])
                moved = sums(after) - sums(before)
                assert np.count_nonzero(moved) <= 1
                paid = {charge.cohort_id: charge.epsilon for charge in after.crowd.charges(after.costs)}
                price = paid.pop(9, 0)
                assert price >= loss(after, moved) * (1 - 1e-12)
                assert paid == {c.cohort_id: c.epsilon for c in before.crowd.charges(before.costs)}
                assert (after.noise, after.weights, max(after.costs)) == (
                    before.noise,
                    before.weights,
                    max(before.costs),
                )
                due = min(share_of(one.epsilon, question.share), question.cap or one.epsilon)
                assert (price > 0) is (one.epsilon - one.spent >= due)
                assert price <= share_of(one.epsilon, question.share) // 5


@STUDIES
@pytest.mark.parametrize("ask", ASKS, ids=["default", "whole", "cap"])
def test_with_the_answer_at_whatever_level_it_costs_at_most_the_share(
    study: StudyDefinition, ask: Ask
) -> None:
    question = open_question(study, ask)
    people = [person(study, number, *one) for number, one in enumerate(grid(study), 1)]
    first = Offered.of(study, question, people)
    paid = {charge.cohort_id: charge.epsilon for charge in first.crowd.charges(first.costs)}
    for level in first.levels:
        rest = replace(question, level=Level.of(study, level, level)).rest
        crowd = Crowd.of(study, people, rest)
        _, plan, _ = planning.choose(study, crowd, rest, rest.question(study, people=None))
        charged = {one.cohort_id: one.epsilon for one in planning.charges(plan, crowd, study)}
        assert max(charged.values()) > 0
        for one in people:
            due = min(share_of(one.epsilon, question.share), question.cap or one.epsilon)
            total = paid.get(one.id, 0) + charged.get(one.id, 0)
            assert total <= due
            assert one.spent + total <= one.epsilon
        assert max(first.costs) + max(charged.values()) <= question.most_taken(study)


@given(
    share=st.integers(1, MICRO),
    cap=st.none() | st.integers(1, 10 * MICRO),
    amount=st.integers(1, 10 * MICRO),
)
def test_a_question_is_its_first_part_and_the_rest(share: int, cap: int | None, amount: int) -> None:
    question: AnyQuestion = replace(
        open_question(RANGE, Ask()), share=share, cap=cap, level=Level.of(RANGE, MICRO // 10, 4 * MICRO)
    )
    parts = [question.first.offer(amount), question.rest.offer(amount)]
    whole = question.offer(amount)
    assert min(parts) >= 0
    assert whole - 1 <= sum(parts) <= whole
    assert question.rest.rest == question.rest, "only once"


@STUDIES
@pytest.mark.usefixtures("_without_noise")
def test_without_noise_it_is_how_many_offer_at_least_that(study: StudyDefinition) -> None:
    offers = np.array([one for one, _ in grid(study)] * 3)
    people = [person(study, number, one) for number, one in enumerate(offers, 1)]
    for one in Offered.of(study, open_question(study, Ask()), people).drawn():
        assert one.least == one.most
        assert one.people == pytest.approx(np.sum(offers * MICRO >= one.least))


@STUDIES
def test_numbers_scatter_as_is_said_of_them(study: StudyDefinition) -> None:
    """Of 2,000 draws a standard deviation errs by less than 12 % in 999 of 1,000 runs."""
    one = Offered.of(study, open_question(study, Ask()), [person(study, 1, 1)])
    drawn = [one.drawn() for _ in range(2_000)]
    for place, told in enumerate(drawn[0]):
        assert told.least is not None
        assert told.deviation == one.deviations[told.least] > 0
        real = np.std([numbers[place].people for numbers in drawn])
        assert real == pytest.approx(told.deviation, rel=0.12)


@pytest.mark.usefixtures("_without_noise")
def test_public_people_offer_all_and_pay_nothing() -> None:
    known = cohort_of(1, 0, [5] * 7, Trust.PUBLIC)
    heard = replace(cohort_of(2, MICRO, [5] * 3, Trust.LOCAL), reported=1)
    one = Offered.of(STUDY, open_question(STUDY, Ask()), [known, heard, person(STUDY, 3, 1)])
    assert [round(one.people) for one in one.drawn()] == [8, 8, 8, 8, 7, 7]
    assert [charge.cohort_id for charge in one.crowd.charges(one.costs)] == [3]
    assert [(used.cohort_id, used.offer > 0) for used in one.crowd.used()] == [(1, False), (3, True)]


@pytest.mark.usefixtures("_without_noise")
def test_a_share_that_buys_no_weight_says_nothing() -> None:
    assert Offered.of(STUDY, open_question(STUDY, Ask(share=4)), [person(STUDY, 1, 4)]).drawn() == []


def said(**more: Any) -> Said:
    return Said(
        estimator="auto",
        version=1,
        parameters={},
        numbers={},
        people=0,
        left_out={},
        width=0.0,
        noise='{"mechanism": "NoNoise"}',
        **more,
    )


@STUDIES
def test_the_ledger_has_what_the_charges_are_the_price_of(study: StudyDefinition) -> None:
    people = [person(study, number, *one) for number, one in enumerate(grid(study), 1)]
    one = Offered.of(study, open_question(study, Ask()), people)
    own = said(charges=[*one.crowd.charges(one.costs)][:1], used=[*one.crowd.used()][:1], most=5)
    level = Level.of(study, one.levels[1], one.levels[1])
    found = one.before(own, one.drawn(), replace(level, size=12.0))
    [part] = json.loads(found.noise)[MEASURED]
    due = Measurement.of_document(part).costs(study.relation, study.noise)
    assert due == {charge.cohort_id: charge.epsilon for charge in one.crowd.charges(one.costs)}
    both = {charge.cohort_id: charge.epsilon for charge in found.charges}
    twice = own.charges[0].cohort_id
    assert both == due | {twice: 2 * due[twice]}
    assert [used.cohort_id for used in found.used] == [used.cohort_id for used in one.crowd.used()]
    assert found.most == 5 + max(one.costs)
    [number] = [told.people for told in one.drawn() if told.least == level.least]
    assert found.details["noisy_count"] != number, "other noise"
    shown: Any = found.details["offered"]
    [own_number] = [told["noisy_count"] for told in shown if told["least_epsilon"] * MICRO == level.least]
    assert found.details["noisy_count"] == own_number
    wide = Level.of(study, one.levels[0], one.levels[-1])
    apart = one.before(own, one.drawn(), replace(wide, size=12.0))
    assert apart.details["noisy_count"] == 12.0, "of people who weigh differently what it is planned for"


def request_of(ask: Ask, published: Sequence[Numbered] = ()) -> tuple[ReleaseRequest, MeanSituation]:
    study = Study(id=1, definition=WIDE, state=StudyState.OPEN, created_at=NOW)
    request = ReleaseRequest.of(study, ask)
    request = replace(request, question=request.question.leveled(WIDE, published), published=published)
    people = [cohort_of(1, MICRO, [GRID_SIZE // 3] * 1000)]
    question = request.question.question(WIDE, people=None)
    crowd = Crowd.of(WIDE, people, request.question)
    now = MeanSituation(
        epoch=1, cohorts=people, best=None, pieces=(), before=None, people=crowd, question=question
    )
    return request, now


@pytest.mark.usefixtures("_without_noise")
def test_the_answer_is_about_those_for_whom_it_is_best() -> None:
    request, now = request_of(Ask())
    _, chosen, made = asked_first(request, now)
    assert chosen.question.level is not None
    assert chosen.question.level.least == MICRO
    lucky = 0.75 * first_deviations(WIDE, MICRO // 50, None)[MICRO]
    assert 0 < lucky < 100
    assert chosen.question.level.size == pytest.approx(1000 - lucky), "the number that is chosen by is lucky"
    assert made.most == share_of(MICRO, MICRO // 10 * 4 // 5)


def test_what_refuses_it_does_so_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_: object, **__: object) -> list[int]:
        raise AssertionError("drawn")

    def refused(self: MeanSituation, *_: object) -> Any:
        raise NotApplicable("There is none.")

    monkeypatch.setattr(offered, "draw", drawn)
    request, now = request_of(Ask())
    monkeypatch.setattr(MeanSituation, "alone", refused)
    with pytest.raises(NotApplicable):
        asked_first(request, now)


@pytest.mark.usefixtures("_without_noise")
def test_a_refusal_behind_it_is_a_fault_and_does_not_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, seen = MeanSituation.alone, list[int]()

    def once(self: MeanSituation, *arguments: Any) -> Any:
        seen.append(1)
        if len(seen) > 1:
            raise SaysNothing("It would say nothing.", share=None, people=None)
        return alone(self, *arguments)

    monkeypatch.setattr(MeanSituation, "alone", once)
    request, now = request_of(Ask())
    with pytest.raises(InternalFault, match="no plan at its level"):
        asked_first(request, now)


@pytest.mark.parametrize(
    ("ask", "published"),
    [
        (Ask(least_epsilon=MICRO), ()),
        (Ask(), [Numbered(least=4 * MICRO, most=4 * MICRO, people=1000.0)]),
        (Ask(), [Numbered(least=one * MICRO, most=one * MICRO, people=0.0) for one in (1, 2, 4, 8)]),
    ],
    ids=["stated", "known", "measured"],
)
def test_who_knows_does_not_ask(ask: Ask, published: list[Numbered]) -> None:
    assert not resolve(WIDE, ask).leveled(WIDE, published).asks_first


def test_a_count_says_nothing_of_higher_levels() -> None:
    counted = [Numbered(least=MICRO, most=MICRO, people=300.0)]
    assert resolve(WIDE, Ask()).leveled(WIDE, counted).asks_first
    assert not kinds.resolve(WIDE, Ask(statistic="count")).leveled(WIDE, ()).asks_first, "all take part"
    one = replace(WIDE, epsilon_max=MICRO)
    assert not resolve(one, Ask()).leveled(one, ()).asks_first, "all offer the same"
