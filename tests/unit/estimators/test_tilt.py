"""Tilt: what unequal weights may add to an error where epsilon and value go together."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.cohort import Group, Reports
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism, Trust
from app.estimators import registry
from app.estimators.accuracy import worst_square_error
from app.estimators.affine import AffineProblem
from app.estimators.interface import NotApplicable
from app.estimators.optimal import saturation
from app.estimators.solver import Constrained, solve
from dither_research.estimators import ESTIMATORS
from tests.support import untilted
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    public,
    query_values,
    replace_one,
)

REPLACE_ONE = sorted(
    name for name, estimator in ESTIMATORS.items() if estimator.relation.value == "replace_one"
)

epsilons = st.floats(1e-2, 10) | st.sampled_from([0.1, 1.0])
any_group = (
    st.builds(central, epsilons, st.integers(1, 1000), participates=st.booleans())
    | st.builds(public, st.integers(1, 100))
    | st.builds(local, epsilons, st.lists(st.integers(0, GRID_SIZE), min_size=1, max_size=4))
)
any_groups = st.lists(any_group, min_size=1, max_size=5)


@pytest.mark.parametrize("tilt", [0.05, 0.3, 1.0])
def test_a_tilt_widens_both_intervals_by_the_distance_of_the_weights_from_equal_ones(tilt):
    """`proportional` weighs the same at every tilt: TV of weights 1:3 among 3 + 1 people, one left out."""
    groups = [central(1.0, 300), central(3.0, 100), central(2.0, 50, participates=False)]
    plain = ESTIMATORS["proportional"].plan(groups, replace_one(groups))
    tilted = ESTIMATORS["proportional"].plan(groups, replace_one(groups, tilt=tilt))
    n, weights = 450, np.array([1 / 600, 3 / 600, 0.0])
    variation = float(np.dot([300, 100, 50], np.abs(weights - 1 / n))) / 2
    middle = query_values(plain, groups, [g.count * GRID_SIZE // 2 for g in groups])
    before, after = plain.conclude(middle), tilted.conclude(middle)
    for part in ("interval", "population_interval"):
        wider = getattr(after, part).upper - getattr(before, part).upper
        assert wider == pytest.approx(min(tilt * variation, 1 - getattr(before, part).upper))
        assert getattr(after, part).coverage == "worst_case"
    assert tilted.predicted_error**2 - plain.predicted_error**2 == pytest.approx((tilt * variation) ** 2)
    assert (before.estimate, before.standard_error) == (after.estimate, after.standard_error)


def test_equal_weights_have_no_tilt():
    groups = [central(1.0, 300), central(3.0, 100)]
    one, other = (ESTIMATORS["uniform"].plan(groups, replace_one(groups, tilt=tilt)) for tilt in (0.0, 1.0))
    assert one.predicted_error == other.predicted_error
    assert one.conclude([10**20]) == other.conclude([10**20])
    assert other.conclude([10**20]).interval.coverage == "exact"


@pytest.mark.parametrize("name", [name for name in REPLACE_ONE if name != "sampling"])
@given(groups=any_groups, tilt=st.floats(0, 1), high=st.integers(0, 2**5 - 1))
def test_within_its_tilt_the_answer_without_noise_is_in_its_interval(name, groups, tilt, high):
    """Some groups say the upper end, all others the lower end plus 1 - tilt: differences are at most tilt."""
    estimator = ESTIMATORS[name]
    question = registry.for_estimator(estimator, replace_one(groups, grid=WIDE_GRID, tilt=tilt))
    values = [1.0 if high >> index & 1 else 1 - tilt for index in range(len(groups))]
    told = [
        local(group.epsilon / 1e6, [int(value * GRID_SIZE)] * group.count) if group.reports else group
        for group, value in zip(groups, values, strict=True)
    ]
    try:
        plan = estimator.plan(told, question)
    except NotApplicable:
        return
    sums = [0 if g.reports else int(v * GRID_SIZE) * g.count for g, v in zip(told, values, strict=True)]
    conclusion = plan.conclude(query_values(plan, told, sums))
    people = sum(group.count for group in told)
    mean = sum(value * group.count for value, group in zip(values, told, strict=True)) / people
    assert conclusion.interval.lower - 1e-6 <= -20 + 80 * mean <= conclusion.interval.upper + 1e-6


@given(
    kinds=st.lists(st.tuples(st.floats(0, 0.25), st.floats(0, 0.3)), min_size=1, max_size=3),
    noise=st.floats(0, 0.3),
    shrinkage=st.floats(0, 1),
    bias=st.floats(0, 1),
    tilt=st.floats(0, 1),
)
def test_the_worst_error_is_that_of_the_worst_distance_of_the_mean(kinds, noise, shrinkage, bias, tilt):
    variances, squares = (np.array(column) for column in zip(*kinds, strict=True))
    bias *= tilt
    squares = shrinkage**2 * squares
    found = worst_square_error(squares, noise, variances, shrinkage=shrinkage, bias=bias, tilt=tilt)
    distance = np.linspace(0, 0.5, 5001)
    nearer = np.maximum(distance - tilt, 0) if bias or len(set(variances)) > 1 else distance
    spread = np.minimum(variances[:, None], 0.25 - nearer**2).T @ squares + shrinkage**2 * noise
    tried = spread + (shrinkage * bias + (1 - shrinkage) * distance) ** 2
    assert found >= float(tried.max()) - 1e-12
    assert found <= float(tried.max()) + 1e-4


def test_people_within_the_tilt_never_err_more_than_the_worst_error():
    """Two kinds of people with any two means within the tilt, each drawn as widely as possible."""
    for heavy, share, shrinkage, tilt in itertools.product((0.2, 0.6), (0.3, 0.8), (0.5, 0.9), (0.05, 0.4)):
        counts, n = np.array([6.0, 14.0]), 20
        weights = np.array([share / 6, (1 - share) / 14])
        bias = tilt * float(np.dot(counts, np.abs(weights - 1 / n))) / 2
        from_population = counts * (shrinkage * weights) ** 2
        from_dataset = counts * (shrinkage * weights - 1 / n) ** 2
        for first in np.linspace(-0.5, 0.5, 41):
            for second in np.linspace(max(-0.5, first - tilt), min(0.5, first + tilt), 9):
                means = np.array([first, second])
                off = shrinkage * float(np.dot(counts * weights, means)) - float(np.dot(counts, means)) / n
                for moved in (from_population, from_dataset):
                    square = float(np.dot(moved, 0.25 - means**2)) + shrinkage**2 * heavy / 10 + off**2
                    bound = worst_square_error(
                        moved, heavy / 10, np.full(2, 0.25), shrinkage=shrinkage, bias=bias, tilt=tilt
                    )
                    assert square <= bound + 1e-12


@given(groups=any_groups)
def test_a_shrunk_answer_predicts_more_with_a_tilt(groups):
    for shrinkage in ("none", "noise", "minimax"):
        predicted = []
        for tilt in (0.0, 0.1, 1.0):
            question = replace_one(groups, tilt=tilt, parameters={"shrinkage": shrinkage})
            try:
                plan = ESTIMATORS["optimal"].plan(
                    groups, registry.for_estimator(ESTIMATORS["optimal"], question)
                )
            except NotApplicable:
                return
            predicted.append(about_population(plan))
        assert all(math.isfinite(error) for error in predicted)
        assert predicted[0] <= predicted[1] * (1 + 1e-9)


# ------------------------------------------------------------------------------------- the weights


@st.composite
def profiles(draw):
    """Central people, public ones, reports, people who are in none of these, a tilt and a variance."""
    size = st.integers(1, 500)
    central_people = draw(st.lists(st.tuples(st.floats(0.01, 30), size), max_size=6))
    reports = draw(st.lists(st.tuples(st.floats(0.01, 100), size), max_size=4))
    known = draw(st.sampled_from([0, 0, 1, 40]))
    if not central_people and not reports:
        known = known or 3
    others = draw(st.sampled_from([0, 0, 7, 400]))
    tilt = draw(st.sampled_from([1e-4, 0.01, 0.1, 0.3, 1.0]))
    return central_people, known, reports, others, tilt, draw(st.sampled_from([0.25, 0.25, 0.01, 1e-4]))


def columns(rows):
    return tuple(np.array([row[place] for row in rows], dtype=np.float64) for place in (0, 1))


def of_profile(profile):
    central_people, known, reports, others, tilt, variance = profile
    people = known + others + sum(count for _, count in (*central_people, *reports))
    offers, counts = columns(central_people)
    noises, told = columns(reports)
    problem = AffineProblem(
        offers, counts, public=float(known), noises=noises, reports=told, tilt=tilt, people=float(people)
    )
    return problem.solve(variance), people


@pytest.mark.parametrize("seed", range(40))
def test_no_weights_err_less_than_those_of_the_solver(seed):
    """A general conic solver, which knows nothing of levels, finds the same minimum of J over all weights."""
    random = np.random.default_rng(seed)
    central_people = [(float(e), int(n)) for e, n in _kinds(random, 0.01, 30, 7)]
    reports = [(float(r), int(n)) for r, n in _kinds(random, 0.01, 100, 5)]
    known = int(random.choice([0, 0, 40])) or 3 * (not central_people and not reports)
    others, tilt = int(random.choice([0, 0, 400])), float(random.choice([1e-4, 0.01, 0.1, 0.3, 1.0]))
    variance = float(random.choice([0.25, 0.25, 0.01, 1e-4]))
    solution, people = of_profile((central_people, known, reports, others, tilt, variance))
    assert_optimal(solution, central_people, known, reports, people, tilt, variance, np.ones(len(reports)))


@pytest.mark.parametrize("seed", range(40))
def test_no_weights_err_less_where_reports_stand_for_those_who_were_not_heard(seed):
    random = np.random.default_rng(seed)
    central_people = [(float(e), int(n)) for e, n in _kinds(random, 0.01, 30, 4)]
    reports = [(float(r), int(n)) for r, n in _kinds(random, 0.01, 100, 5)] or [(1.0, 30)]
    known, others = int(random.choice([0, 0, 40])), int(random.choice([0, 0, 400]))
    tilt, variance = float(random.choice([0.01, 0.1, 0.3, 1.0])), float(random.choice([0.25, 0.01]))
    stands = random.uniform(1, 8, len(reports))
    offers, counts = columns(central_people)
    noises, told = columns(reports)
    people = known + others + float(counts.sum() + told @ stands)
    solution = AffineProblem(
        offers,
        counts,
        public=float(known),
        noises=noises,
        reports=told,
        tilt=tilt,
        people=people,
        stands=stands,
    ).solve(variance)
    assert_optimal(solution, central_people, known, reports, people, tilt, variance, stands)


def assert_optimal(solution, central_people, known, reports, people, tilt, variance, stands):
    found = variance * solution.squares + solution.noise + solution.bias**2
    offers, counts = columns(central_people)
    noises, told = columns(reports)
    sizes = np.concatenate((counts, [known] * bool(known), told))
    due = np.concatenate((np.ones(sizes.size - told.size), stands)) * sizes / people
    costs = np.concatenate((np.full(sizes.size - told.size, variance), variance + noises))
    epsilons = np.concatenate((offers, np.full(sizes.size - offers.size, np.inf)))
    shares = solve(
        Constrained(
            counts=sizes,
            costs=costs,
            epsilons=epsilons,
            caps=[],
            tilt=tilt,
            people=float(people),
            stands=due * people / sizes,
        )
    )
    each = shares / sizes
    eta = float((each[: offers.size] / offers).max(initial=0.0))
    away = float(np.abs(shares - due).sum()) / 2 + (1 - float(due.sum())) / 2
    best = float(np.dot(costs, shares * each)) + 2 * eta**2 + (tilt * away) ** 2
    assert best * (1 - 1e-6) <= found <= best * (1 + 1e-7)


def _kinds(random, low, high, most):
    size = int(random.integers(0, most))
    values = np.exp(random.uniform(math.log(low), math.log(high), size))
    return zip(values, random.integers(1, 500, size), strict=True)


@given(profile=profiles())
def test_the_weights_sum_to_one_and_no_person_exceeds_their_bound(profile):
    central_people, known, reports, _, _, _ = profile
    solution, _ = of_profile(profile)
    offers, counts = columns(central_people)
    level = solution.eta * np.minimum(offers, solution.tau)
    total = float(np.dot(level, counts)) + solution.public * known
    total += float(np.dot(solution.reports, columns(reports)[1]))
    assert total == pytest.approx(1, rel=1e-7)


@given(profile=profiles())
def test_a_tilt_of_nearly_nothing_leaves_the_weights_as_they_were(profile):
    central_people, known, reports, others, _, variance = profile
    tiny, _ = of_profile((central_people, known, reports, others, 1e-9, variance))
    plain, _ = of_profile((central_people, known, reports, others, 0.0, variance))
    assert tiny.squares == pytest.approx(plain.squares, rel=1e-4)
    assert tiny.noise == pytest.approx(plain.noise, rel=1e-4)


@given(
    offers=st.lists(st.tuples(st.floats(0.5, 5), st.integers(2000, 5000)), min_size=1, max_size=5),
    reports=st.lists(st.tuples(st.floats(0.1, 5), st.integers(2000, 5000)), max_size=3),
)
def test_a_tilt_of_one_weighs_large_crowds_nearly_equally(offers, reports):
    """Noise costs a large crowd little, and the bias of more than a little inequality is worth more."""
    groups = [central(offer, count) for offer, count in offers]
    groups += [
        Group(
            trust=Trust.LOCAL,
            epsilon=1_000_000,
            count=count,
            reports=Reports(mechanism=LocalMechanism.LAPLACE, total=0, total_squares=0),
        )
        for _, count in reports
    ]
    plain = ESTIMATORS["group_size" if reports else "uniform"].plan(groups, replace_one(groups))
    for name in ("optimal", *(() if reports else ("adpm",))):
        estimator = ESTIMATORS[name]
        question = replace_one(groups, tilt=1.0, parameters={"shrinkage": "none", "variance": "worst_case"})
        plan = estimator.plan(groups, registry.for_estimator(estimator, question))
        assert 0.98 * plain.predicted_error <= plan.predicted_error <= plain.predicted_error * (1 + 1e-9)


@pytest.mark.parametrize("tilt", [0.01, 0.1, 1.0])
@given(groups=any_groups)
def test_a_tilt_lowers_the_point_from_which_on_privacy_is_free(tilt, groups):
    asked = {"shrinkage": "none"}
    points = [saturation(groups, replace_one(groups, tilt=at, parameters=asked)) for at in (0.0, tilt)]
    if not any(group.trust is Trust.LOCAL for group in groups) and points[0] is not None:
        assert points[1] is not None
        assert points[1] <= points[0] + 1


@given(groups=any_groups, tilt=st.sampled_from([0.05, 0.5]))
def test_the_constrained_solver_agrees_where_no_constraint_binds(groups, tilt):
    estimator = ESTIMATORS["optimal"]
    errors = []
    for more in ({}, {"group_variance": {"public": 0.25}}):
        parameters = {"shrinkage": "none", "variance": "worst_case", **more}
        question = replace_one(groups, tilt=tilt, parameters=parameters)
        try:
            plan = estimator.plan(groups, registry.for_estimator(estimator, question))
        except NotApplicable:
            return
        errors.append(plan.predicted_error)
    assert errors[1] == pytest.approx(errors[0], rel=1e-4, abs=1e-6)


@given(groups=any_groups, tilt=st.sampled_from([0.05, 0.5]))
def test_kvh_and_pwh_weigh_by_the_same_search(groups, tilt):
    """With one offer for all, `kvh` for the worst variance is `optimal`, at every tilt."""
    alike = [central(1.0, 5), *(g for g in groups if g.trust is Trust.LOCAL), central(1.0, 90)]
    known = {"variance": "worst_case", "shrinkage": "none"}
    question = replace_one(alike, tilt=tilt, parameters=known)
    errors = {
        name: ESTIMATORS[name].plan(alike, registry.for_estimator(ESTIMATORS[name], question)).predicted_error
        for name in ("kvh", "optimal", "pwh")
    }
    assert errors["kvh"] == pytest.approx(errors["optimal"], rel=1e-6)
    assert errors["pwh"] >= errors["optimal"] * (1 - 1e-9)


# ------------------------------------------------------------------------------------ without a tilt


def test_without_a_tilt_all_answers_are_those_of_before():
    """Vectors made by the code of commit 83ddbf1, which knew no tilt, with `tests.support.untilted`."""
    stored = json.loads(untilted.VECTORS.read_text())
    made = [untilted.answers(seed) for seed in range(untilted.PROFILES)]
    assert len(made) == len(stored)
    for now, before in zip(made, stored, strict=True):
        assert now == approximately(before)


def approximately(document: Any, within: float = 1e-13) -> Any:
    """The same charges and names; floats to 13 digits, since Python 3.12 adds them up more exactly.

    Ends of intervals to 8: the vectors have quantiles that were inverted numerically, to 5e-7 of a level, and
    by now those have closed forms.
    """
    match document:
        case dict():
            return {
                name: approximately(value, 1e-8 if name == "intervals" else within)
                for name, value in document.items()
            }
        case list() if any(isinstance(item, dict | list) for item in document):
            return [approximately(item, within) for item in document]
        case list() | float():
            return pytest.approx(document, rel=within, abs=0)
        case _:
            return document
