"""Correlation and lines of two numbers: the price of a covariance, coverage, a control; see `test_laws`."""

import json
import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Currency, Relation, StudyDefinition
from app.estimators import second_moments
from app.estimators.expected import GUESS, ExpectedValues
from app.services.shapes import covariances
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.covariances import PairPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.questions import CORRELATION, COVARIANCE
from app.services.shapes.shown import shown_off
from app.services.statistics.questions import PAIR, Ask
from app.services.statistics.reading import Reading
from dither_research.label_audit import BY_REGION
from tests.unit.services.test_covariances import (
    GAUSSIAN,
    HOUSEHOLD,
    SECRET,
    SECRET_GAUSSIAN,
    WIDTHS,
    cohort,
    drawn,
)

MIDDLE = GRID_SIZE // 2
STUDIES = [HOUSEHOLD, GAUSSIAN, SECRET, SECRET_GAUSSIAN]


def plan_of(
    study: StudyDefinition, people: list[Cohort], statistic: str = CORRELATION, **asked: Any
) -> PairPlan:
    found: Any = made(study, people, statistic, **asked)
    assert isinstance(found, PairPlan)
    return found


def made(
    study: StudyDefinition,
    people: list[Cohort],
    statistic: str = CORRELATION,
    *,
    spreads: tuple[float, float] = (GUESS.spread_in_pair, GUESS.spread_in_pair),
    **asked: Any,
) -> Any:
    tilt = None if study.relation is Relation.ADD_REMOVE_ONE else 0
    given: dict[str, Any] = {"share": MICRO, "tilt": tilt, "parameters": {PAIR: "income,age"}} | asked
    ask = Ask(statistic=statistic, **given)
    return shape_kinds.make(study, replace(resolve(study, ask), spreads=spreads), people)


def sums_of(points: np.ndarray, study: StudyDefinition) -> tuple[int, ...]:
    """What the database says of people at these grid points, shape (n, 2)."""
    first, second = (column.astype(np.int64) for column in points.T)
    if study.relation is Relation.REPLACE_ONE and study.noise is Currency.GAUSSIAN:
        own, other = first - MIDDLE, second - MIDDLE
        columns = [first, second, (own * other) >> 30, (own * own) >> 30, (other * other) >> 30]
    else:
        both = []
        for p in (first, second):
            square = (p * p) >> 30
            both.append((GRID_SIZE - 2 * p + square, 2 * (p - square), square))
        columns = [(one * other) >> 30 for one in both[0] for other in both[1]]
    return len(points), *(int(column.sum()) for column in columns)


def true(points: np.ndarray) -> dict[str, float]:
    """Of income and age, as the analyst sees them."""
    x, y = (points / GRID_SIZE * np.array(WIDTHS) + np.array([0, 18])).T
    slope, intercept = np.polyfit(x, y, 1)
    turned = float(np.polyfit(y, x, 1)[0])
    return {
        "correlation": float(np.corrcoef(x, y)[0, 1]),
        "slope": float(slope),
        "intercept": float(intercept),
        "turned": turned,
        "middle": float(intercept + 4500 * slope),
        "prediction": float(intercept + 6300 * slope),
    }


def read(answer: Any) -> dict[str, Any]:
    """The same numbers of an answer, each with its intervals."""
    on_age, on_income = answer["lines"]
    (middle,) = [one for one in on_income["band"] if one["at"] == 4500]
    ends = {"lower": middle["lower"], "upper": middle["upper"]}
    predicted = predicted_off(answer, 6300)
    return {
        "correlation": answer,
        "slope": on_income["slope"],
        "intercept": on_income["intercept"],
        "turned": on_age["slope"],
        "middle": middle | {"interval": ends, "population_interval": ends},
        "prediction": predicted | {"population_interval": predicted["interval"]},
    }


def predicted_off(answer: Any, at: float) -> Any:
    """Where the line of age on income is at an income, as a release of a correlation says it."""
    ask = Ask(statistic="regression", of="age", parameters={"on": "income", "at": str(at)})
    release = {"estimator": CORRELATION, "statistic": CORRELATION, "measures": ["income", "age"], **answer}
    shown = shown_off(json.dumps(release).encode(), Reading.of(HOUSEHOLD, ask), HOUSEHOLD)
    return json.loads(shown)["prediction"]


def real_error(plan: PairPlan, study: StudyDefinition, points: np.ndarray) -> float:
    """Root mean square of 400 draws, before anything is clipped."""
    sums, truth = {1: sums_of(points, study)}, true(points)["correlation"]
    errors = []
    for _ in range(400):
        seen, _ = plan.plan.seen(plan.noisy(sums)[0])  # type: ignore[attr-defined]
        both, first, second = seen.moments
        errors.append(both / math.sqrt(first * second) - truth)
    return math.sqrt(np.mean(np.square(errors)))


def least_of(study: StudyDefinition) -> StudyDefinition:
    return replace(study, epsilon_min=MICRO, epsilon_max=MICRO)


@pytest.mark.parametrize("study", STUDIES)
def test_it_costs_a_covariance_or_a_micro_less(study: StudyDefinition):
    """Of three sums products are rounded down, which costs a covariance a part of a micro more."""
    for offer in (MICRO, MICRO // 3, 12_347, 9 * MICRO):
        people = [cohort(1, offer, 50), cohort(2, MICRO, 20)]
        ours, other = (plan_of(study, people, name) for name in (CORRELATION, COVARIANCE))
        charged = {one.cohort_id: one.epsilon for one in ours.charges()}
        dearer = {one.cohort_id: one.epsilon for one in other.charges()}
        assert charged.keys() == dearer.keys()
        assert all(0 <= dearer[one] - charged[one] <= 1 for one in charged)
        assert 0 <= other.most - ours.most <= 1
        if study.hides_people or study.noise is Currency.GAUSSIAN:
            assert charged == dearer


def test_by_labels_it_costs_one_and_the_whole_is_read_off_all(monkeypatch):
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    rng = np.random.default_rng(2)
    for study in STUDIES:
        own = replace(study, attributes=BY_REGION.attributes)
        people = [replace(cohort(one, MICRO, 300), segment=one - 1) for one in (1, 2)]
        points = [drawn(rng, 300), drawn(rng, 300)]
        plan = made(own, people, by="region")
        assert isinstance(plan, LabelsPlan)
        (alone,) = {one.epsilon for one in plan_of(own, people[:1]).charges()}
        assert {one.epsilon for one in plan.charges()} == {alone}
        answer: Any = plan.answer({one: sums_of(points[one - 1], own) for one in (1, 2)})
        for found, truth in [
            (answer, true(np.concatenate(points))),
            *zip(answer["groups"], map(true, points), strict=False),
        ]:
            for name, one in read(found).items():
                assert one["estimate"] == pytest.approx(truth[name], rel=1e-5), name


@pytest.mark.long
@pytest.mark.parametrize("offers", [(MICRO, MICRO), (MICRO, 3 * MICRO)], ids=["one epsilon", "1 and 3"])
@pytest.mark.parametrize("study", STUDIES)
def test_intervals_cover_and_those_of_a_sixth_do_not(study: StudyDefinition, offers: tuple[int, int]):
    """120 draws: at most 23 of any kind miss, and of a sixth more where all offer the same.

    At 5 % more than 23 miss in one of ten million runs; a sixth holds in about a third.
    Values do not go with offers, so that a tilt of 0 holds.
    """
    secret = study.relation is Relation.ADD_REMOVE_ONE
    times = 1 if study.noise is Currency.LAPLACE else 0.1
    offers = tuple(round(times * one) for one in offers)  # type: ignore[assignment]
    study = replace(study, epsilon_min=offers[0], epsilon_max=offers[1])
    if secret and study.noise is Currency.GAUSSIAN:
        study = replace(
            study, epsilon_min=MICRO // 2, epsilon_max=MICRO if len(set(offers)) > 1 else MICRO // 2
        )
        offers = study.amount(study.epsilon_min), study.amount(study.epsilon_max)
    rng = np.random.default_rng(5)
    people = [cohort(1, offers[0], 4000), cohort(2, offers[1], 2000)]
    plan = plan_of(study, people, tilt=0)
    missed: dict[str, int] = {}
    everyone = true(drawn(rng, 400_000))
    for _ in range(120):
        points = [drawn(rng, one.count) for one in people]
        truth = true(np.concatenate(points))
        answer: Any = plan.answer(
            {one.id: sums_of(own, study) for one, own in zip(people, points, strict=True)}
        )
        for name, one in read(answer).items():
            for kind, value in (("interval", truth[name]), ("population_interval", everyone[name])):
                if name in ("middle", "prediction") and kind == "population_interval":
                    continue
                lower, upper = one[kind]["lower"], one[kind]["upper"]
                assert lower <= one["estimate"] <= upper
                missed[f"{name} {kind}"] = missed.get(f"{name} {kind}", 0) + (not lower <= value <= upper)
            lower, upper = one["interval"]["lower"], one["interval"]["upper"]
            near = abs(one["estimate"] - truth[name]) <= (upper - lower) / 12
            missed[f"a sixth of {name}"] = missed.get(f"a sixth of {name}", 0) + (not near)
    for name, count in missed.items():
        if name.startswith("a sixth"):
            assert count > 23 or offers[0] < offers[1], (name, missed)
        else:
            assert count <= 23, (name, missed)


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("kind", ["one point", "one income", "an end", "few", "none"])
def test_whatever_the_people_all_numbers_are_finite_and_in_their_intervals(study: StudyDefinition, kind: str):
    rng = np.random.default_rng(7)
    points = {
        "one point": np.full((300, 2), MIDDLE),
        "one income": np.stack([np.full(300, MIDDLE), rng.integers(0, GRID_SIZE, 300)], axis=1),
        "an end": np.zeros((300, 2)),
        "few": drawn(rng, 2),
        "none": np.zeros((0, 2)),
    }[kind]
    if kind == "none" and study.relation is Relation.REPLACE_ONE:
        return
    study = least_of(study)
    people = [cohort(1, study.least, len(points))] if len(points) else []
    plan = plan_of(study, people)
    for _ in range(5):
        answer: Any = plan.answer({1: sums_of(points, study)} if people else {})
        assert_finite(answer)
        for one in read(answer).values():
            for name in ("interval", "population_interval"):
                assert one[name]["lower"] <= one["estimate"] <= one[name]["upper"]
        assert -1 <= answer["interval"]["lower"] <= answer["interval"]["upper"] <= 1
        ends = answer["r_squared_interval"]
        assert 0 <= ends["lower"] <= answer["r_squared"] <= ends["upper"] <= 1


def assert_finite(value: Any) -> None:
    if isinstance(value, dict):
        for one in value.values():
            assert_finite(one)
    elif isinstance(value, list):
        for one in value:
            assert_finite(one)
    elif isinstance(value, float):
        assert math.isfinite(value)


@pytest.mark.parametrize("study", STUDIES)
def test_numbers_that_go_together_exactly_have_a_correlation_of_one(study: StudyDefinition, monkeypatch):
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    x = np.random.default_rng(8).integers(0, GRID_SIZE, 50_000)
    for other, sign in ((x, 1), (GRID_SIZE - x, -1)):
        points = np.stack([x, other], axis=1)
        answer: Any = plan_of(study, [cohort(1, 9 * MICRO, 50_000)]).answer({1: sums_of(points, study)})
        assert answer["estimate"] == pytest.approx(sign, abs=1e-6)
        assert max(sign * answer["interval"]["lower"], sign * answer["interval"]["upper"]) == 1
        assert answer["r_squared_interval"]["upper"] == 1


@pytest.mark.parametrize("study", STUDIES)
def test_a_prediction_off_the_band_holds_that_of_a_band_of_more_points(study: StudyDefinition, monkeypatch):
    """The same sums, read at 41 places: at those of both the same, at the others somewhat wider."""
    rng, study = np.random.default_rng(6), least_of(study)
    for shift in (0, -0.44):
        points = np.clip(drawn(rng, 3000) + round(shift * GRID_SIZE) * np.array([1, 0]), 0, GRID_SIZE)
        plan = plan_of(study, [cohort(1, study.least, 3000)])
        sums = plan.noisy({1: sums_of(points, study)})
        answer: Any = plan.read(sums)
        with monkeypatch.context() as patched:
            patched.setattr(second_moments, "POINTS", 41)
            finer: Any = plan.read(sums)
        exact = {one["at"] for one in answer["lines"][1]["band"]}
        assert answer["means"][0] in exact
        for point in finer["lines"][1]["band"]:
            found = predicted_off(answer, point["at"])
            ends = found["interval"]["lower"], found["interval"]["upper"]
            width = point["upper"] - point["lower"]
            assert found["estimate"] == pytest.approx(point["estimate"], abs=1e-9 * width)
            assert ends[0] <= point["lower"] + 1e-9 * width
            assert ends[1] >= point["upper"] - 1e-9 * width
            assert ends[1] - ends[0] <= width * (1 + (1e-9 if point["at"] in exact else 0.5))


@pytest.mark.parametrize("study", [SECRET, SECRET_GAUSSIAN])
def test_no_coefficient_of_secret_noise_is_larger_wherever_the_means_are(study: StudyDefinition):
    """Over a grid of means as far off as they can be; at one corner each is about as large as it may be."""
    rng, study = np.random.default_rng(3), least_of(study)
    plan = plan_of(study, [cohort(1, study.least, 3000)])
    seen, _ = plan.plan.seen(plan.noisy({1: sums_of(drawn(rng, 3000), study)})[0])  # type: ignore[attr-defined]
    x, y = (
        np.clip(0.5 + mean + near * np.linspace(-1, 1, 21), 0, 1)
        for mean, near in zip(seen.means, seen.near, strict=True)
    )
    i = np.array([0, 0.5, 1])
    of_x, of_y = i[:, None, None, None] - x[:, None], i[None, :, None, None] - y
    for a, b, c in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, -0.7, 0), (1, -0.3, -0.6), (-2, 3, 1)]:
        squares = [
            np.array([m * m, m * (m - 1), (1 - m) ** 2]).reshape(*shape)
            for m, shape in ((x, (3, 1, 21, 1)), (y, (1, 3, 1, 21)))
        ]
        largest = np.abs(a * of_x * of_y + b * squares[0] + c * squares[1]).max(axis=(2, 3)).ravel()
        allowed = np.array(seen.noises(a, b, c, 0.0, 0.0))
        assert (largest <= allowed * (1 + 1e-12)).all()
        assert (allowed / largest).min() < 1.05
    for slope, place in product((-2, 0.6, 5), (-0.5, 0.5)):
        away = seen.means[0] - place
        of_squares = np.array([x * x, x * (x - 1), (1 - x) ** 2]).reshape(3, 1, 21, 1)
        residuals = of_y - slope * of_x
        largest = of_x * of_y - slope * of_squares + (x[:, None] - 0.5 - place) * residuals
        largest = np.abs(largest).max(axis=(2, 3)).ravel()
        allowed = np.array(seen.noises(1, -slope, 0, -slope * away, away))
        assert (largest <= allowed * (1 + 1e-12)).all()
        assert (allowed / np.maximum(largest, 1e-12)).min() < 1.1


@pytest.mark.parametrize("study", [HOUSEHOLD, GAUSSIAN])
def test_no_coefficient_of_public_noise_is_larger_wherever_the_means_are(study: StudyDefinition):
    """Of both numbers, in the sum of g at one place beside the range: written down from what g is."""
    rng = np.random.default_rng(4)
    plan = plan_of(study, [cohort(1, study.least, 3000)])
    seen, _ = plan.plan.seen(plan.noisy({1: sums_of(drawn(rng, 3000), study)})[0])  # type: ignore[attr-defined]
    x, y = (mean + near * np.linspace(-1, 1, 21) for mean, near in zip(seen.means, seen.near, strict=True))
    for slope, place in product((-2, 0, 0.6, 5), (-seen.far, seen.far)):
        # (y - m_y - slope (x - m_x)) (x - place), of which the squares have -slope.
        of_x = np.abs(slope * (x[:, None] + place) - y).max()
        of_y = abs(place)
        away = seen.means[0] - place
        allowed = seen.noises(1, -slope, 0, -slope * away, away)
        assert of_x <= allowed[0] * (1 + 1e-12)
        assert of_y <= allowed[1] * (1 + 1e-12)


def rated(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.rint(np.clip(2 + rng.normal(0, 1.1, n), 0, 4)) / 4


def incomes(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.minimum(rng.lognormal(7.6, 0.55, n), 9000) / 9000


def minutes(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.clip(rng.normal(45, 15, n), 0, 120) / 120


def yes(rng: np.random.Generator, n: int) -> np.ndarray:
    return (rng.random(n) < 0.4).astype(float)


def even(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n)


@pytest.mark.parametrize(
    "kinds",
    [(yes, yes), (yes, rated), (yes, even), (rated, rated), (even, even), (incomes, minutes)],
    ids=lambda kinds: " and ".join(kind.__name__ for kind in kinds),
)
def test_a_guess_predicts_ordinary_pairs_to_within_half_and_twice_and_more_of_skewed_ones(kinds):
    """It is as far off as the guess is from the spreads themselves, which is exact for these people.

    A root mean square of 400 draws errs by 4 to 7 %, and the correlation that is lost to noise in
    the variances makes skewed pairs of a secret study err 1.2 times more: bounds that are four
    such errors away fail once in 2,000 runs of all six.
    """
    rng = np.random.default_rng(11)
    guesses = [ExpectedValues(two=kind is yes) for kind in kinds]
    spreads = guesses[0].spread_in_pair, guesses[1].spread_in_pair
    low, high = (0.3, 0.6) if incomes in kinds else (0.7, 2.2)
    for study, size in ((HOUSEHOLD, None), (least_of(SECRET), 3000.0)):
        plan = plan_of(study, [cohort(1, MICRO, 3000)], spreads=spreads, expected_size=size)
        values = np.stack([kind(rng, 3000) for kind in kinds], axis=1)
        for one, guess in zip(values.T, guesses, strict=True):
            # What a refusal is decided for, but for an eighth more.
            assert one.var() < 1.125 * guess.most
        guessed = math.sqrt(math.prod(values.var(axis=0)) / math.prod(spreads))
        assert low < guessed < high
        points = np.rint(values * GRID_SIZE).astype(np.int64)
        assert 0.65 < plan.predicted_error / real_error(plan, study, points) / guessed < 1.3


def test_a_published_mean_or_variance_takes_the_place_of_a_guess():
    guess, told = ExpectedValues(two=True), ExpectedValues(two=True, mean=0.1)
    assert (guess.spread, guess.spread_in_pair, guess.most) == (3 / 16, 3 / 16, 1 / 4)
    assert told.spread == told.spread_in_pair == told.most == pytest.approx(0.09)
    assert (GUESS.spread, GUESS.spread_in_pair, GUESS.most) == (1 / 48, 1 / 25, 1 / 12)
    for two in (True, False):
        one = ExpectedValues(two=two, variance=0.24)
        assert one.spread == one.spread_in_pair == one.most == 0.24


@pytest.mark.parametrize("spread", [(1.0, 1.0), (0.5, 0.5), (0.5, 0.7)], ids=str)
def test_errors_are_as_predicted(spread: tuple[float, float]):
    """Of independent numbers that are spread evenly: 400 draws, the mean of whose squares errs by 7 %."""
    rng = np.random.default_rng(9)
    expected = (spread[0] ** 2 / 12, spread[1] ** 2 / 12)
    for study, size in ((HOUSEHOLD, None), (GAUSSIAN, None), (least_of(SECRET), 3000.0)):
        plan = plan_of(study, [cohort(1, MICRO, 3000)], spreads=expected, expected_size=size)
        points = np.rint((0.5 + (rng.random((3000, 2)) - 0.5) * spread) * GRID_SIZE).astype(np.int64)
        assert 0.6 < real_error(plan, study, points) / plan.predicted_error < 1.5
