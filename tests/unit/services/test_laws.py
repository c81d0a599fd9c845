"""The laws that every statistic of several numbers keeps, each said once: a new one brings a line of `CASES`.

Sums are what the database would add up: its own expressions, evaluated here for one person after the other.
"""

from bisect import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.accounting.gaussian import effective_variance
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.grid import GRID_SIZE
from app.core.measures import Measures
from app.core.noise import DiscreteGaussian, Noise
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.interface import NoContributions
from app.services.shapes import coordinates, counts, covariances, kinds, plans
from app.services.shapes.kinds import AnyPlan
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.questions import ShapeQuestion
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY, cohort_of

Array = np.ndarray[Any, Any]
PUBLIC, SECRET = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE
ENDS = (
    0,
    1,
    GRID_SIZE // 4,
    GRID_SIZE // 2 - 1,
    GRID_SIZE // 2,
    3 * GRID_SIZE // 4,
    GRID_SIZE - 1,
    GRID_SIZE,
)
"""Grid points at which what a person moves is the most, and others."""

NUMBERS: dict[str, Any] = {"measures": Measures(["income:0:9000", "age:18:98"]), "dimension": 2}
CHOICES: dict[str, Any] = {"measures": Measures(['party:["a","b","c"]', 'sex:["f","m"]']), "dimension": 2}
POLL: dict[str, Any] = {"choices": ("a", "b", "c"), "lower": Decimal(0), "upper": Decimal(2)}


def shares_of(bins: Sequence[int]) -> Callable[[Array], Array]:
    """The true shares by the cells of a histogram with these numbers of bins."""
    return lambda x: np.histogramdd(x, bins, [(0, 1)] * len(bins))[0].ravel() / len(x)


def both_of(x: Array) -> tuple[Array, list[float]]:
    """Income and age, and the means of both."""
    values = x * np.array([9000, 80]) + np.array([0, 18])
    return values, values.mean(axis=0).tolist()


def covariance_of(x: Array) -> list[float]:
    values, means = both_of(x)
    return [float(np.cov(values.T, bias=True)[0, 1]), *means]


def correlation_of(x: Array) -> list[float]:
    values, means = both_of(x)
    of, on = values.T
    correlation, slope = float(np.corrcoef(of, on)[0, 1]), [*np.polyfit(of, on, 1)]
    return [correlation, correlation**2, *slope, slope[1] + 4500 * slope[0], np.polyfit(on, of, 1)[0], *means]


def read_correlation(answer: Any) -> list[float]:
    turned, line = answer["lines"]
    middle = (line["band"][0]["at"] + line["band"][-1]["at"]) / 2
    (point,) = [one for one in line["band"] if one["at"] == middle]
    numbers = [line["slope"], line["intercept"], point, turned["slope"]]
    shown = [answer["estimate"], answer["r_squared"], *(one["estimate"] for one in numbers)]
    return [*shown, *answer["means"]]


def all_of(name: str, number: str) -> Callable[[Any], list[float]]:
    return lambda answer: [one[number] for one in answer[name]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A statistic.

    Attributes:
        statistic, parameters: What is asked.
        terms: Of the study.
        points: Of each number of a record.
        read: Numbers of an answer; None where its sums are not drawn at once.
        true: The same of records, shape (n, d) [parts of the range].
    """

    statistic: str
    parameters: dict[str, str] = field(default_factory=dict)
    terms: dict[str, Any] = field(default_factory=dict)
    points: Sequence[Sequence[int]] = (ENDS,)
    read: Callable[[Any], Any] | None = None
    true: Callable[[Array], Any] = len


THIRDS: Sequence[int] = (0, GRID_SIZE // 2, GRID_SIZE)
OF_BOTH: dict[str, Any] = {
    "parameters": {"measures": "income,age"},
    "terms": NUMBERS,
    "points": (ENDS, ENDS),
}
COORDINATES: dict[str, Any] = {
    "terms": {"dimension": 2},
    "points": (ENDS, ENDS),
    "read": all_of("coordinates", "estimate"),
    "true": lambda x: x.mean(axis=0),
}

CASES = [
    Case(statistic="histogram", parameters={"bins": "4"}, read=all_of("bins", "share"), true=shares_of([4])),
    Case(statistic="histogram", parameters={"bins": "2"}, read=all_of("bins", "share"), true=shares_of([2])),
    Case(
        statistic="shares", terms=POLL, points=(THIRDS,), read=all_of("choices", "share"), true=shares_of([3])
    ),
    Case(
        statistic="table",
        parameters={"measures": "party,sex"},
        terms=CHOICES,
        points=(THIRDS, (0, GRID_SIZE)),
        read=all_of("cells", "share"),
        true=shares_of([3, 2]),
    ),
    Case(statistic="count", read=lambda answer: answer["estimate"]),
    Case(
        statistic="covariance",
        **OF_BOTH,
        read=lambda answer: [answer["estimate"], *answer["means"]],
        true=covariance_of,
    ),
    Case(statistic="correlation", **OF_BOTH, read=read_correlation, true=correlation_of),
    Case(statistic="mean", **COORDINATES),
    Case(statistic="variance", **COORDINATES),
    Case(statistic="mean", parameters={"range": "found"}),
    Case(statistic="quantile", parameters={"q": "0.9"}),
    Case(statistic="describe"),
]
DRAWN = [case for case in CASES if case.read is not None]


def named(case: Case) -> str:
    return " ".join([case.statistic, *case.parameters.values()])


every = pytest.mark.parametrize("case", CASES, ids=named)
drawn_at_once = pytest.mark.parametrize("case", DRAWN, ids=named)
in_both_currencies = pytest.mark.parametrize("delta", [0, 1_000_000], ids=["laplace", "gaussian"])
in_both_relations = pytest.mark.parametrize("relation", Relation)


def study_of(case: Case, relation: Relation, delta: int, offer: int = MICRO) -> StudyDefinition:
    """A study in which all offer alike [micro-epsilon]."""
    terms = {"epsilon_min": offer, "epsilon_max": offer, "relation": relation, "delta": delta}
    regions = Attributes.of({"region": ["north", "south"]})
    return replace(STUDY, attributes=regions, **case.terms | terms)


def question_of(case: Case, study: StudyDefinition, by: str = "") -> ShapeQuestion:
    tilt = 0 if study.relation is PUBLIC and case.statistic != "count" else None
    ask = Ask(statistic=case.statistic, parameters=case.parameters, share=MICRO, tilt=tilt, by=by)
    return kinds.resolve(study, ask)


def people(study: StudyDefinition, number: int, count: int, **other: Any) -> Cohort:
    made = cohort_of(number, study.least, [GRID_SIZE // 2] * count)
    return replace(made, **other)


def made(case: Case, study: StudyDefinition, *cohorts: Cohort, by: str = "") -> AnyPlan:
    return kinds.make(study, question_of(case, study, by), cohorts)


def summed(question: ShapeQuestion, record: Sequence[int]) -> list[int]:
    """What the database says of one person."""
    if question.summed:
        names = {"c": SimpleNamespace(vector=(None, *record), value=record[0])}
        return [1, *(eval(one, names) for one in question.summed)]
    if not question.shape.counts_bins:
        return []
    if question.axes:
        sizes = [len(labels) for _, labels in question.axes]
        places = [point * (size - 1) // GRID_SIZE for point, size in zip(record, sizes, strict=True)]
        cell = int(np.ravel_multi_index(places, sizes))
    else:
        cell = bisect(question.starts, record[0])
    return [int(cell == place) for place in range(len(question.starts) + 1)]


def added(rows: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


@pytest.fixture
def _without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plans, counts, coordinates, covariances):
        monkeypatch.setattr(module, "draw", lambda noise, queries: [0] * queries)


def exact(plan: Any, sums: list[int]) -> Array:
    drawn = plan.noisy({1: sums})
    return np.array(drawn[0] if isinstance(drawn, tuple) else [drawn], dtype=float)


def loss(noise: Noise, moves: Array) -> float:
    """The largest loss over moves, shape (m, J), of sums under noise [epsilon, or mu^2]."""
    if isinstance(noise, DiscreteGaussian):
        each = np.array([float(1 / effective_variance(sigma)) for sigma in noise.sigmas])
        return float((moves**2 @ each).max())
    scales: Any = noise
    return float((np.abs(moves) @ (1 / np.array(scales.scales))).max())


def priced_right(cost: int, worst: float) -> bool:
    """To the micro that it is rounded up to, and one more for what is rounded before."""
    return worst * MICRO - 1e-3 <= cost <= worst * MICRO + 2


@in_both_relations
@in_both_currencies
@drawn_at_once
@pytest.mark.usefixtures("_without_noise")
def test_a_person_pays_what_the_worst_neighbor_moves_all_sums_by(case: Case, relation: Relation, delta: int):
    """Brute force over records on a grid, replaced by each other or coming, through the code that draws."""
    study = study_of(case, relation, delta)
    question, others = question_of(case, study), 300
    records = [summed(question, record) for record in product(*case.points)]
    few = made(case, study, people(study, 1, others))
    if question.public:
        assert not few.charges()
        return
    before = added([records[0]] * others)
    if relation is PUBLIC:
        sums = np.array([exact(few, added([before, own])) for own in records])
        moves = (sums[:, None] - sums[None]).reshape(-1, sums.shape[1])
    else:
        more = made(case, study, people(study, 1, others + 1))
        assert more.measured() == few.measured(), "they do not depend on who is there"
        moves = np.array([exact(more, added([before, own])) - exact(few, before) for own in records])
    (measured,) = few.measured()
    assert not isinstance(measured.noise, tuple)
    (charge,) = few.charges()
    worst = loss(measured.noise, moves)
    assert priced_right(charge.epsilon, worst)
    assert not priced_right(charge.epsilon - 3, worst), "the control"


@in_both_relations
@in_both_currencies
@drawn_at_once
@pytest.mark.usefixtures("_without_noise")
def test_without_noise_it_is_what_numpy_has(case: Case, relation: Relation, delta: int):
    study = study_of(case, relation, delta)
    question, records = question_of(case, study), [*product(*case.points)] * 6
    records += [*product(*case.points)][:3] * 7
    plan: Any = made(case, study, people(study, 1, len(records)))
    answer = plan.answer({1: added([summed(question, record) for record in records])})
    points = np.array(records, dtype=float)
    assert case.read is not None
    assert case.read(answer) == pytest.approx(case.true(points / GRID_SIZE), rel=1e-5)


@in_both_relations
@in_both_currencies
@every
def test_it_charges_the_offer_and_no_more_and_the_ledger_can_tell(case: Case, relation: Relation, delta: int):
    for offer in (MICRO, MICRO // 4, 120_000):
        study = study_of(case, relation, delta, offer)
        plan = made(case, study, people(study, 1, 400), people(study, 2, 100, spent=1))
        charged = {one.cohort_id: one.epsilon for one in plan.charges()}
        if question_of(case, study).public:
            assert (charged, plan.most) == ({}, 0)
            continue
        assert charged.keys() == {1}, "who cannot pay all of it pays nothing"
        assert 0.97 * study.least < charged[1] <= study.least
        assert charged[1] <= plan.most <= study.least
        told: dict[int, int] = {}
        for measured in plan.measured():
            for cohort, cost in measured.costs(relation, study.noise).items():
                told[cohort] = told.get(cohort, 0) + cost
        assert told == charged


@in_both_currencies
@every
def test_public_people_are_in_it_and_pay_nothing(case: Case, delta: int):
    study = study_of(case, PUBLIC, delta)
    known = people(study, 2, 100, trust=Trust.PUBLIC, epsilon=0)
    plan = made(case, study, people(study, 1, 400), known)
    assert {one.cohort_id for one in plan.charges()} == (set() if question_of(case, study).public else {1})
    assert {one.cohort_id for one in plan.used} == {1, 2}
    alone = made(case, study, known)
    assert (alone.charges(), alone.most) == ((), 0)


@in_both_currencies
@every
def test_who_cannot_pay_is_left_out_and_without_any_it_is_refused(case: Case, delta: int):
    study = study_of(case, PUBLIC, delta)
    poor = people(study, 2, 30, spent=1)
    plan = made(case, study, people(study, 1, 400), poor)
    if question_of(case, study).public:
        assert plan.crowd.people == 430
        return
    assert (plan.crowd.people, plan.crowd.unable, plan.crowd.left_out) == (430, 30, 30)
    for cohorts, refusal in (([poor], BudgetExhausted), ([], NoContributions)):
        with pytest.raises(refusal):
            made(case, study, *cohorts)


@in_both_currencies
@every
def test_nothing_but_sums_says_who_is_there_where_that_is_secret(case: Case, delta: int):
    study = study_of(case, SECRET, delta)
    none, one, many = (
        made(case, study, *([people(study, 1, count)] if count else [])) for count in (0, 1, 9)
    )
    for other in (one, many):
        assert (other.most, other.predicted_error) == (none.most, none.predicted_error)
        assert other.interval_width == none.interval_width
        assert [part.noise for part in other.measured()] == [part.noise for part in many.measured()]
    assert 0 < none.most <= study.least


@in_both_relations
@in_both_currencies
@every
def test_a_person_of_any_label_pays_for_it_and_no_more_than_the_offer(
    case: Case, relation: Relation, delta: int
):
    study = study_of(case, relation, delta)
    cohorts = [replace(people(study, place, 400), segment=place % 2) for place in (1, 2)]
    plan, alone = made(case, study, *cohorts, by="region"), made(case, study, *cohorts)
    charged = {one.cohort_id: one.epsilon for one in plan.charges()}
    assert all(0.97 * study.least < cost <= study.least for cost in charged.values())
    if question_of(case, study).adds_up and isinstance(plan, LabelsPlan):
        assert charged == {one.cohort_id: one.epsilon for one in alone.charges()}
        assert plan.most == alone.most


def test_each_estimator_has_its_line():
    assert {question_of(case, study_of(case, PUBLIC, 0)).estimator for case in CASES} == {*kinds.ESTIMATORS}
