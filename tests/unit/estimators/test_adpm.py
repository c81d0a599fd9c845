"""`adpm` against the paper's two-group formulas, a general solver, and its own edge cases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.noise import DiscreteLaplace, NoNoise
from app.estimators.adpm import Adpm, adpm_plan, saturation, saturation_point
from app.estimators.interface import UNIT_SCALE, NotApplicable
from app.estimators.uniform import Uniform
from tests.support.adpm_oracle import solve_weights
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    micro,
    public,
    query_values,
    replace_one,
)


def closed_form(epsilons, variance=0.25):
    """Weights min(epsilon, tau) / S of single people, infinity for public ones."""
    epsilons = np.asarray(epsilons, dtype=float)
    finite = np.isfinite(epsilons)
    tau = saturation_point(
        epsilons[finite], np.ones(finite.sum()), public=bool((~finite).any()), variance=variance
    )
    if not finite.any():
        return np.full(epsilons.size, 1 / epsilons.size)
    kept = np.minimum(epsilons, tau)
    return kept / kept.sum()


def worst_case_mse(weights, epsilons, variance=0.25):
    eta = max(w / e for w, e in zip(weights, epsilons, strict=True) if w > 0)
    return variance * float(np.sum(np.square(weights))) + 2 * eta**2


def plan_for(groups, **more):
    return Adpm().plan(groups, replace_one(groups, **more))


# ------------------------------------------------------------------------------------- oracles


@pytest.mark.parametrize("seed", range(60))
def test_weights_equal_a_general_solver_on_random_profiles(seed):
    """To 1e-9 relative, including public people and repeated epsilons; the solver is polished."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 41))
    epsilons = np.exp(rng.uniform(-4, rng.choice([-2, 0, 3, 6]), n))
    if seed % 3 == 0:
        epsilons[: n // 3] = epsilons[0]
    if seed % 4 == 0 and n > 1:
        epsilons[-int(rng.integers(1, n)) :] = np.inf
    variance = 0.25 if seed % 2 else float(rng.uniform(1e-3, 0.25))
    ours, solver = closed_form(epsilons, variance), solve_weights(epsilons, variance)
    np.testing.assert_allclose(ours, solver, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "epsilons",
    [[0.7], [np.inf], [np.inf, np.inf], [0.3] * 9, [1e-3, 1e3], [0.01, np.inf], [5.0, 5.0, np.inf]],
)
def test_weights_equal_a_general_solver_on_edge_profiles(epsilons):
    np.testing.assert_allclose(closed_form(epsilons), solve_weights(np.array(epsilons)), rtol=1e-9)


def two_groups(n, share, first, second, variance=0.25):
    """Table I with 8 = 2 W^2 / s2 in general: weights of one person of each group, and R, r."""
    big = math.inf if share == 0 else 1 + 2 / variance / (first**2 * n * share)
    ratio = second / first
    q = min(ratio, big)
    w1 = 1 / (n * (share + (1 - share) * q))
    return w1, q * w1, big, ratio


@given(
    n=st.integers(2, 10_000),
    percent=st.integers(1, 99),
    first=st.floats(1e-3, 10),
    ratio=st.floats(1, 1e4) | st.just(math.inf),
    variance=st.sampled_from([0.25, 1 / 12, 0.01]),
)
def test_two_groups_get_the_weights_of_table_one(n, percent, first, ratio, variance):
    n1 = max(1, n * percent // 100)
    n2 = n - n1
    second = first * ratio
    w1, w2, _, _ = two_groups(n, n1 / n, first, second, variance)
    finite = [(first, n1)] + ([(second, n2)] if math.isfinite(second) else [])
    tau = saturation_point(
        np.array([e for e, _ in finite]),
        np.array([float(c) for _, c in finite]),
        public=math.isinf(second),
        variance=variance,
    )
    total = n1 * min(first, tau) + n2 * min(second, tau)
    assert min(first, tau) / total == pytest.approx(w1, rel=1e-9)
    assert min(second, tau) / total == pytest.approx(w2, rel=1e-9)


@pytest.mark.parametrize(
    ("n", "n1", "first", "second"),
    [
        (1000, 700, 0.1, 0.15),
        (1000, 700, 0.1, 0.2142),
        (1000, 700, 0.1, 0.2143),
        (1000, 700, 0.1, 10.0),
        (5000, 2500, 0.1, 0.15),
        (100, 10, 1.0, 1.0),
        (100, 50, 2.0, 1000.0),
    ],
)
def test_two_groups_have_the_error_of_theorem_one(n, n1, first, second):
    """Case (A), r <= R: (f R + (1-f) r^2) / (4 n (f + (1-f) r)^2); case (B): R / (4 n (f + (1-f) R))."""
    f = n1 / n
    _, _, big, r = two_groups(n, f, first, second)
    if r <= big:
        expected = (f * big + (1 - f) * r * r) / (4 * n * (f + (1 - f) * r) ** 2)
    else:
        expected = big / (4 * n * (f + (1 - f) * big))
    groups = [central(first, n1), central(second, n - n1)]
    assert expected < 0.25
    # Rounding tau to a micro moves the error in the second order only.
    assert about_population(plan_for(groups)) == pytest.approx(math.sqrt(expected), rel=1e-8)


def test_public_people_beside_central_ones_are_case_b_of_theorem_one():
    n, n1, first = 1000, 700, 0.1
    f = n1 / n
    big = 1 + 8 / (first**2 * n * f)
    plan = plan_for([central(first, n1), public(n - n1)])
    expected = big / (4 * n * (f + (1 - f) * big))
    assert about_population(plan) == pytest.approx(math.sqrt(expected), rel=1e-8)


def test_the_second_group_saturates_at_r_times_the_first_epsilon():
    """n = 1000, f = .7, epsilon 0.1: .2142857..., whatever more the others offer."""
    for second in (0.3, 1.0, 1000.0):
        groups = [central(0.1, 700), central(second, 300)]
        plan = plan_for(groups)
        assert plan.queries[0].sum_weights == (100_000, 214_285)
        assert saturation(groups) == 214_286
    assert saturation([central(0.1, 700), central(0.2, 300)]) is None
    assert saturation([central(0.1, 700), public(300)]) == 214_286


# -------------------------------------------------------------------------------- properties

profiles = st.lists(st.tuples(st.integers(1_000, 10**9), st.integers(1, 500)), min_size=1, max_size=30)


@given(profile=profiles, publics=st.integers(0, 20))
def test_tau_is_the_root_of_its_equation(profile, publics):
    """sum over epsilon < tau of epsilon (tau - epsilon) = 8; below 8 at the top where nobody saturates."""
    epsilons = np.array([e / 1e6 for e, _ in profile])
    counts = np.array([float(c) for _, c in profile])
    tau = saturation_point(epsilons, counts, public=publics > 0)
    if math.isinf(tau):
        assert publics == 0
        top = epsilons.max()
        assert float(np.sum(counts * epsilons * (top - epsilons))) < 8 * (1 + 1e-9)
    else:
        bound = epsilons < tau
        total = float(np.sum((counts * epsilons * (tau - epsilons))[bound]))
        # tau - epsilon cancels where the two nearly agree.
        rounding = 1e-14 * tau * float(np.sum((counts * epsilons)[bound]))
        assert total == pytest.approx(8, rel=1e-9, abs=rounding)


@given(profile=profiles, publics=st.integers(0, 20))
def test_nobody_weighs_more_than_they_offered_and_the_rest_stays_with_them(profile, publics):
    groups = [central(e / 1e6, c) for e, c in profile] + [public(publics)]
    plan = plan_for(groups)
    weights = plan.queries[0].sum_weights
    top = saturation(groups)
    for group, weight in zip(groups[:-1], weights[:-1], strict=True):
        assert 0 <= weight <= group.epsilon
        assert top is None or weight <= top


@given(profile=profiles, seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_no_other_weights_have_a_smaller_worst_case_error(profile, seed):
    """Random feasible competitors, and small moves away from the optimum."""
    rng = np.random.default_rng(seed)
    epsilons = np.repeat([e / 1e6 for e, _ in profile[:8]], [min(c, 3) for _, c in profile[:8]])
    best = closed_form(epsilons)
    least = worst_case_mse(best, epsilons)
    for step in (1.0, 0.1, 0.001):
        other = np.abs(best * (1 + step * rng.normal(size=best.size)))
        other /= other.sum()
        assert worst_case_mse(other, epsilons) >= least * (1 - 1e-12)


@given(profile=profiles)
def test_splitting_and_reordering_groups_changes_nothing(profile):
    whole = [central(e / 1e6, 2 * c) for e, c in profile]
    split = [central(e / 1e6, c) for e, c in [*profile[::-1], *profile]]
    one, two = plan_for(whole), plan_for(split)
    assert about_population(two) == pytest.approx(about_population(one), rel=1e-9)
    half = len(profile)
    # The order of summation may move tau by a unit in the last place, across a whole micro.
    for a, b in zip(one.queries[0].sum_weights, two.queries[0].sum_weights[half:], strict=True):
        assert abs(a - b) <= 1 + 1e-9 * a


@given(profile=profiles, more=st.integers(1, 10**9))
def test_offering_more_never_hurts(profile, more):
    groups = [central(e / 1e6, c) for e, c in profile]
    raised = [*groups[:-1], central((profile[-1][0] + more) / 1e6, profile[-1][1])]
    # 1e-5: tau, at least the smallest epsilon of 1,000 micro, is rounded to a whole micro.
    assert about_population(plan_for(raised)) <= about_population(plan_for(groups)) * (1 + 1e-5)


@given(profile=profiles)
def test_adpm_never_predicts_more_than_the_plain_mean_or_the_midpoint(profile):
    groups = [central(e / 1e6, c) for e, c in profile]
    ours = about_population(plan_for(groups))
    assert ours <= 0.5
    assert ours <= about_population(Uniform().plan(groups, replace_one(groups))) * (1 + 1e-5)


# -------------------------------------------------------------------------------- edge cases


def test_only_public_people_are_averaged_without_noise():
    groups = [public(3), public(5)]
    plan = plan_for(groups)
    assert plan.noise == NoNoise()
    assert len(set(plan.queries[0].sum_weights)) == 1
    assert plan.conclude(query_values(plan, groups, [0, 5 << 30])).estimate == 5 / 8


def test_one_public_person_is_not_worse_than_the_midpoint():
    groups = [public(1)]
    plan = plan_for(groups)
    assert about_population(plan) == 0.5
    assert plan.predicted_error == 0
    assert plan.conclude(query_values(plan, groups, [1 << 28])).estimate == 0.25


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 1e6])
def test_one_central_person_is_answered_with_the_midpoint(epsilon):
    """J = 1/4 + 2 / epsilon^2 > 1/4 for every epsilon: asking a single person never pays."""
    groups = [central(epsilon)]
    plan = plan_for(groups, grid=WIDE_GRID)
    assert plan.noise == NoNoise()
    assert set(plan.queries[0].sum_weights) == {0}
    assert plan.predicted_error == 40
    conclusion = plan.conclude([0])
    assert conclusion.estimate == 20
    assert (conclusion.interval.lower, conclusion.interval.upper) == (-20, 60)
    assert (conclusion.population_interval.lower, conclusion.population_interval.upper) == (-20, 60)


def test_equal_epsilons_weigh_equally_and_pay_in_full():
    groups = [central(0.5, 300), central(0.5, 200)]
    plan = plan_for(groups)
    assert plan.queries[0].sum_weights == (500_000, 500_000)
    assert saturation(groups) is None
    expected = math.sqrt(0.25 / 500 + 2 / (500 * 0.5) ** 2)
    assert about_population(plan) == pytest.approx(expected, rel=1e-12)


def test_where_nobody_saturates_weights_are_the_epsilons():
    groups = [central(0.010, 50), central(0.011, 50)]
    assert saturation(groups) is None
    weights = adpm_plan([central(0.10, 500), central(0.105, 500)], replace_one([])).queries[0].sum_weights
    assert weights == (100_000, 105_000)


def test_huge_epsilons_neither_overflow_nor_lose_the_small_ones():
    groups = [central(0.001, 10_000), central(1e6, 10_000)]
    tau = saturation_point(np.array([0.001, 1e6]), np.array([1e4, 1e4]), public=False)
    assert tau == pytest.approx((1e4 * 1e-6 + 8) / 10, rel=1e-12)
    assert plan_for(groups).queries[0].sum_weights == (1000, math.floor(tau * 1e6))
    wild = saturation_point(np.array([0.001, 1e150]), np.array([1.0, 1.0]), public=True)
    assert wild == pytest.approx(8000.001, rel=1e-12)


def test_groups_that_cannot_pay_or_offer_nothing_get_no_weight():
    groups = [central(0.5, 1000, participates=False), central(0.2, 1000), central(0.0, 10)]
    plan = plan_for(groups)
    assert plan.queries[0].sum_weights == (0, 200_000, 0)
    assert plan.noise == DiscreteLaplace(scales=(UNIT_SCALE,))


@pytest.mark.parametrize(
    "groups",
    [[], [central(1, 5, participates=False)], [local(1, [3, 4])], [central(0.0, 9)], [central(1, 0)]],
)
def test_with_nobody_to_ask_there_is_no_answer(groups):
    with pytest.raises(NotApplicable):
        plan_for(groups)


def test_a_constant_is_read_from_public_people_alone():
    """A known variance of 0 leaves only the noise to be avoided."""
    groups = [central(1.0, 100), public(1)]
    plan = adpm_plan(groups, replace_one(groups), variance=0.0)
    assert plan.queries[0].sum_weights[0] == 0
    assert plan.noise == NoNoise()
    assert plan.predicted_error == 0
    alone = [central(1.0, 100), central(2.0, 100)]
    assert adpm_plan(alone, replace_one(alone), variance=0.0).queries[0].sum_weights == (10**6, 2 * 10**6)


def test_the_midpoint_rule_compares_with_the_width_and_not_with_the_variance_bound():
    """With s2 = 0.01 and J = 0.1 the answer is worth asking for: J < W^2 / 4, though J > s2."""
    groups = [central(0.1, 60)]
    question = replace_one(groups)
    error = math.sqrt(0.01 / 60 + 2 / 6**2)
    plan = adpm_plan(groups, question, variance=0.01)
    assert plan.queries[0].sum_weights == (100_000,)
    assert 0.01 < error**2 < 0.25
    assert about_population(plan) == pytest.approx(error, rel=1e-12)


def test_a_known_variance_moves_the_saturation_point_by_two_over_it():
    tau = saturation_point(np.array([0.1]), np.array([700.0]), public=True, variance=0.04)
    assert tau == pytest.approx(0.1 + 2 / 0.04 / 70, rel=1e-12)


def test_the_answer_is_clipped_to_the_range():
    groups = [central(1.0, 100)]
    plan = plan_for(groups, grid=WIDE_GRID)
    far = 10**30
    assert plan.conclude([far]).estimate == 60
    assert plan.conclude([-far]).estimate == -20


def test_errors_scale_with_the_width_of_the_range():
    groups = [central(0.3, 400), central(2.0, 100), public(3)]
    unit, wide = plan_for(groups), plan_for(groups, grid=WIDE_GRID)
    assert wide.predicted_error == pytest.approx(80 * unit.predicted_error, rel=1e-12)
    assert wide.queries == unit.queries


def test_a_hundred_thousand_distinct_epsilons_meet_their_equation():
    epsilons = np.exp(np.random.default_rng(5).uniform(-4, 2, 100_000))
    tau = saturation_point(epsilons, np.ones(epsilons.size), public=False)
    below = epsilons[epsilons < tau]
    assert math.fsum(below * (tau - below)) == pytest.approx(2 / 0.25, rel=1e-9)


def test_the_charge_is_at_most_the_published_saturation_point():
    rng = np.random.default_rng(8)
    for _ in range(50):
        groups = [central(float(np.exp(rng.uniform(-3, 2))), count) for count in range(5, 50, 5)]
        top = saturation(groups)
        weights = plan_for(groups).queries[0].sum_weights
        assert top is not None
        assert max(weights) <= top
        assert max(weights) in (0, top - 1, top, max(g.epsilon for g in groups))


def test_offers_are_whole_micros():
    assert micro(0.1) == 100_000
