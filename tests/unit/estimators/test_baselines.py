"""The baselines of both papers against their formulas, and where the printed forms are wrong."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import check_charges
from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.core.study import Relation
from app.estimators.adpm import Adpm
from app.estimators.hybrid import Kvh, Pwh
from app.estimators.interface import NotApplicable
from app.estimators.threshold import Threshold
from app.estimators.uniform import Uniform
from dither_research.baselines.hybrid import FullLm, GroupSize, LmOnly, TcmOnly
from dither_research.baselines.ldpe import Ldpe
from dither_research.baselines.linear import Fme, Proportional, Stretching
from dither_research.baselines.sampling import Sampling, inclusion_thresholds, plan_costs
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    public,
    query_values,
    replace_one,
)
from tests.support.profiles import reports

HALF = GRID_SIZE // 2

profiles = st.lists(st.tuples(st.integers(1_000, 10**8), st.integers(1, 500)), min_size=1, max_size=12)


def plan_for(estimator, groups, **more):
    return estimator.plan(groups, replace_one(groups, **more))


def costs_of(plan, groups):
    return plan_costs(plan, Relation.REPLACE_ONE, groups)


def shares(plan, groups):
    """Weight of one person of each group, from what the plan does to values moved a little."""
    base = query_values(plan, groups, [g.count * HALF for g in groups])
    start = plan.conclude(base).estimate
    found = []
    for raised in range(len(groups)):
        sums = [g.count * HALF + (GRID_SIZE // 8 if i == raised else 0) for i, g in enumerate(groups)]
        found.append((plan.conclude(query_values(plan, groups, sums)).estimate - start) * 8)
    return found


# ---------------------------------------------------------------- proportional, stretching, threshold


@given(profile=profiles)
def test_proportional_weighs_by_epsilon_and_charges_all_of_it(profile):
    groups = [central(e / 1e6, c) for e, c in profile]
    plan = plan_for(Proportional(), groups)
    assert costs_of(plan, groups) == [e for e, _ in profile]
    total = sum(e * c for e, c in profile) / 1e6
    squares = sum(c * (e / 1e6) ** 2 for e, c in profile)
    expected = math.sqrt(0.25 * squares + 2) / total
    assert about_population(plan) == pytest.approx(expected, rel=1e-9)


def test_on_data_that_vary_less_than_the_worst_case_adpm_can_lose_to_proportional():
    """Uniform data, n = 5000, epsilons 0.1 and 0.15 halved: (MSE - 1/(12 n)) n^2 = 156.6 against 144.7."""
    n = 5000
    groups = [central(0.1, n // 2), central(0.15, n // 2)]
    scaled = []
    for estimator in (Adpm(), Proportional()):
        weights = np.array(plan_for(estimator, groups).queries[0].sum_weights) / 1e6
        mass = float(weights.sum()) * n / 2
        error = float(np.sum(weights**2)) * n / 2 / mass**2 / 12 + 2 / mass**2
        scaled.append((error - 1 / (12 * n)) * n**2)
    assert scaled == pytest.approx([156.6, 144.7], abs=0.1)


def test_stretching_has_the_papers_bias():
    """Half at 0.01, half at 0.1: every value moves 45 % of the way to the middle on average."""
    n = 10**6
    groups = [central(0.01, n // 2), central(0.1, n // 2)]
    plan = plan_for(Stretching(), groups)
    assert about_population(plan) ** 2 == pytest.approx(0.225**2 + 200 / n**2, rel=1e-9)
    ones = query_values(plan, groups, [g.count * GRID_SIZE for g in groups])
    conclusion = plan.conclude(ones)
    assert conclusion.estimate == pytest.approx(1 - 0.225, rel=1e-9)
    assert conclusion.interval.upper == 1
    assert conclusion.interval.lower <= conclusion.estimate
    assert conclusion.interval.coverage == "worst_case"


def test_stretching_alike_people_is_the_plain_mean():
    groups = [central(0.5, 100)]
    plan, plain = plan_for(Stretching(), groups), plan_for(Uniform(), groups)
    assert plan.predicted_error == plain.predicted_error
    assert "shrinkage" not in plan.conclude([5]).details


@given(profile=profiles, known=st.integers(0, 50))
def test_threshold_takes_the_best_epsilon_offered(profile, known):
    groups = [central(e / 1e6, c) for e, c in profile] + [public(known)]
    plan = plan_for(Threshold(), groups)
    tries = [0.25 / known] if known else []
    for t, _ in profile:
        m = known + sum(c for e, c in profile if e >= t)
        tries.append(0.25 / m + 2 / (m * t / 1e6) ** 2)
    assert about_population(plan) ** 2 == pytest.approx(min(tries), rel=1e-9)
    costs = costs_of(plan, groups)
    level = max(costs)
    assert all(cost == (level if e >= level else 0) for cost, (e, _) in zip(costs, profile, strict=False))


# ------------------------------------------------------------------------------------- fme and ldpe


def test_fme_needs_a_strict_inequality_for_its_first_example():
    """n - 1 people at epsilon 1 / sqrt n, one at 1: without it the first threshold would bind."""
    n = 10_000
    groups = [central(1 / math.sqrt(n), n - 1), central(1.0, 1)]
    weights = plan_for(Fme(), groups).queries[0].sum_weights
    assert weights == (10_000 * 64, 1_000_000 * 64)


@given(profile=profiles, known=st.integers(0, 3))
def test_fme_caps_at_the_first_threshold_that_is_passed(profile, known):
    """Person by person, by the definition; 300 people at most."""
    people = sorted(e for e, c in profile for _ in range(min(c, 25)))
    n = len(people) + known
    cap = None
    for k in range(n):
        epsilon = people[k] / 1e6 if k < len(people) else math.inf
        if 1 / math.sqrt(n - k) < epsilon:
            cap = 1e6 / math.sqrt(n - k)
            break
    groups = [central(e / 1e6, min(c, 25)) for e, c in profile] + [public(known)]
    weights = plan_for(Fme(), groups).queries[0].sum_weights
    for (e, _), weight in zip(profile, weights, strict=False):
        assert weight == pytest.approx(64 * (e if cap is None else min(e, cap)), abs=1)


@given(profile=profiles)
def test_ldpe_weighs_every_epsilon_by_its_own_precision(profile):
    """One query and one noise for each distinct epsilon; V_g = 1 / (4 n_g) + 2 / (epsilon_g n_g)^2."""
    groups = [central(e / 1e6, c) for e, c in profile]
    plan = plan_for(Ldpe(), groups)
    sizes: dict[int, int] = {}
    for e, c in profile:
        sizes[e] = sizes.get(e, 0) + c
    assert len(plan.queries) == len(sizes)
    precisions = {e: 1 / (0.25 / c + 2 / (e / 1e6 * c) ** 2) for e, c in sizes.items()}
    total = sum(precisions.values())
    assert about_population(plan) ** 2 == pytest.approx(1 / total, rel=1e-9)
    assert costs_of(plan, groups) == [e for e, _ in profile]
    if about_population(plan) > 1e-3:
        for (e, _), share in zip(profile, shares(plan, groups), strict=True):
            assert share == pytest.approx(precisions[e] / sizes[e] / total, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("n", "f", "epsilon"), [(1000, 0.7, 0.1), (200, 0.5, 1.0), (50, 0.1, 3.0)])
def test_remark_2_is_an_identity(n, f, epsilon):
    """LDPE with public people errs exactly as Theorem 1(B), R / (4 n (f + (1 - f) R)): to 1e-12."""
    n1 = round(f * n)
    big = 1 + 8 / (epsilon**2 * n1)
    expected = big / (4 * n * (f + (1 - f) * big))
    plan = plan_for(Ldpe(), [central(epsilon, n1), public(n - n1)])
    assert about_population(plan) ** 2 == pytest.approx(expected, rel=1e-12)


def test_ldpe_with_public_people_only_needs_no_noise():
    plan = plan_for(Ldpe(), [public(3), public(1)])
    assert plan.noise == NoNoise()
    assert plan.conclude(query_values(plan, [public(3), public(1)], [0, GRID_SIZE])).estimate == 0.25


@pytest.mark.parametrize("estimator", [Proportional(), Stretching(), Fme(), Threshold(), Ldpe(), Sampling()])
def test_with_nobody_to_ask_there_is_no_answer(estimator):
    for groups in ([], [central(1, 3, participates=False)], [local(1, [5])]):
        with pytest.raises(NotApplicable):
            plan_for(estimator, groups)


# ------------------------------------------------------------------------------------------ sampling


@given(profile=profiles)
def test_everybody_is_sampled_as_often_as_they_can_pay_for(profile):
    """The exact price is at most the offer, and as near to it as multiples of 2^-48 allow."""
    groups = [central(e / 1e6, c) for e, c in profile]
    plan = plan_for(Sampling(), groups)
    costs = costs_of(plan, groups)
    check_charges(costs, groups)
    top = max(e for e, _ in profile) // 2 * 2
    assert plan.inclusion is not None
    for (e, _), cost, p in zip(profile, costs, plan.inclusion, strict=True):
        assert (p * 2**48).denominator == 1
        assert (p == 1) == (e >= top)
        if 1e-5 < p < 1 - 1e-5:
            assert cost >= min(e, top) * (1 - 1e-6) - 5


def test_the_private_form_samples_more_than_the_printed_one():
    """(e^eps - 1) / (e^t - 1) is not all that an offer buys once the values are centered."""
    offers = np.array([0.05, 0.5, 1.0])
    ours = np.array(inclusion_thresholds(offers, 1.0)) / 2**48
    printed = np.expm1(offers) / math.expm1(1.0)
    assert np.all(ours[:2] > printed[:2] * 1.2)
    assert ours[2] == 1


def test_sampling_predicts_its_worst_case():
    """(P / 4 + 2 / t^2) / P^2 with P the expected size; public people are always in."""
    groups = [central(0.5, 300), central(2.0, 100), public(10)]
    plan = plan_for(Sampling(), groups, grid=WIDE_GRID)
    assert plan.inclusion is not None
    size = float(300 * plan.inclusion[0] + 110)
    assert plan.inclusion[1:] == (1, 1)
    assert plan.predicted_error == pytest.approx(80 * math.sqrt(0.25 * size + 2 / 4) / size, rel=1e-9)


def printed_sampling_loss(ask, top, others):
    """Largest loss of somebody asking `ask` in the published form: mean of the sample + Lap(1 / (m t)).

    `others` people at `top` are always in, all at the lower end. Densities on a fine grid.
    """
    p = math.expm1(ask) / math.expm1(top)
    outputs = np.linspace(-40, 40, 400_001) / (top * others)

    def density(value):
        without, with_ = others * top, (others + 1) * top
        left_out = without * np.exp(-np.abs(outputs) * without)
        taken = with_ * np.exp(-np.abs(outputs - value / (others + 1)) * with_)
        return (1 - p) * left_out + p * taken

    low, high = density(0.0), density(1.0)
    return float(np.max(np.abs(np.log(low / high))))


@pytest.mark.parametrize(("top", "others", "loss"), [(0.1, 1, 0.0655), (0.1, 10, 0.05216)])
def test_the_published_sampling_mechanism_is_not_private(top, others, loss):
    """A user asking 0.05 loses more: the noise depends on the size of the sample."""
    found = printed_sampling_loss(0.05, top, others)
    assert found == pytest.approx(loss, rel=2e-3)
    assert found > 0.05
    offers = np.array([0.05])
    (threshold,) = inclusion_thresholds(offers, top)
    groups = [central(0.05, 1), central(top, others)]
    costs = costs_of(plan_for(Sampling(), groups), groups)
    assert costs[0] <= 50_000
    assert Fraction(threshold, 2**48) > 0


# ------------------------------------------------------------------------------------------- hybrid


MIXED = [central(0.5, 40), central(2.0, 10), public(5), reports(1.0, 300), reports(3.0, 45)]


def test_the_hybrid_baselines_weigh_as_they_should():
    by_size = plan_for(GroupSize(), MIXED)
    assert by_size.queries[0].sum_weights == (500_000, 500_000, 500_000, 0, 0)
    assert by_size.conclude([0]).interval.coverage == "exact"
    variance = 0.25 / 400 + 2 / (400 * 0.5) ** 2 + (300 * 2 / 1 + 45 * 2 / 9) / 400**2
    assert about_population(by_size) ** 2 == pytest.approx(variance, rel=1e-9)
    curator = plan_for(TcmOnly(), MIXED)
    assert about_population(curator) == about_population(plan_for(Uniform(), MIXED))
    sent = plan_for(LmOnly(), MIXED)
    assert sent.noise == NoNoise()
    assert about_population(sent) ** 2 == pytest.approx(0.25 / 345 + (600 + 10) / 345**2, rel=1e-9)
    with pytest.raises(NotApplicable):
        plan_for(LmOnly(), [central(1.0, 5)])
    with pytest.raises(NotApplicable):
        plan_for(TcmOnly(), [reports(1.0, 5)])


def test_full_lm_errs_as_if_everybody_had_sent_a_report_and_costs_what_it_really_costs():
    """E_F = sL2 / n; one number of the variance of n_T costs each of them epsilon / sqrt(n_T)."""
    groups = [central(1.0, 100), reports(1.0, 300)]
    plan = plan_for(FullLm(), groups)
    assert about_population(plan) ** 2 == pytest.approx(0.25 / 400 + 2 / 400, rel=1e-9)
    assert costs_of(plan, groups) == [100_000, 0]
    assert plan.conclude([0]).interval.coverage == "exact"


@given(epsilon=st.floats(1e-5, 1e5), people=st.integers(1, 10**6))
def test_full_lm_never_costs_more_than_is_offered(epsilon, people):
    groups = [central(epsilon, people)]
    check_charges(costs_of(plan_for(FullLm(), groups), groups), groups)


def test_pwh_weighs_by_noise_alone():
    """w = sL2 / (sL2 + (1 - c) n sT2)."""
    n_central, n_local, epsilon = 50, 950, 1.0
    groups = [central(epsilon, n_central), reports(epsilon, n_local)]
    s_l, s_t = 2 / epsilon**2, 2 / (n_central * epsilon) ** 2
    expected = s_l / (s_l + n_local * s_t)
    (weight, _) = plan_for(Pwh(), groups).queries[0].sum_weights
    plan = plan_for(Pwh(), groups)
    low, high = (plan.conclude([weight * n_central * q]).estimate for q in (HALF, HALF + GRID_SIZE // 4))
    assert (high - low) * 4 == pytest.approx(expected, rel=1e-9)


def against_dataset(plan, n, v=0.25):
    """Mean square error about the mean of the n values; homogeneous data."""
    return about_population(plan) ** 2 - v / n


@pytest.mark.long
def test_the_corrected_condition_for_pwh_has_no_mismatch_in_10_000_settings():
    """R(PWH) > 1 if and only if c >= y / (2 + y) or n < (1 - c)(2 + y) / (c (y (1 - c) - 2 c)).

    y = epsilon^2 v / m^2, v = 1/4 here. The printed condition, that of the plain weight c, is the control.
    """
    rng = np.random.default_rng(1)
    printed_wrong = 0
    for _ in range(10_000):
        n_central = int(rng.integers(2, 400))
        n_local = int(rng.integers(1, 4000))
        epsilon = round(float(np.exp(rng.uniform(-2, 3))), 4)
        n = n_central + n_local
        c, y = n_central / n, epsilon**2 / 4
        pwh = against_dataset(plan_for(Pwh(), [central(epsilon, n_central), reports(epsilon, n_local)]), n)
        e_t = (1 - c) / (c * n) * 0.25 + 2 / (n_central * epsilon) ** 2
        better = min(e_t, 2 / epsilon**2 / n) / pwh
        drop = y * (1 - c) - 2 * c
        condition = c >= y / (2 + y) or (drop > 0 and n < (1 - c) * (2 + y) / (c * drop))
        if abs(better - 1) > 1e-9:
            assert (better > 1) == condition
            gap = 2 * c - y
            printed = y >= 2 or c <= y / 2 or (gap > 0 and n < 2 * (1 + c) / (c * gap))
            printed_wrong += (better > 1) != printed
    assert printed_wrong > 1000


def test_the_improvement_of_kvh_approaches_17_eighths_and_does_not_reach_it():
    """Worst-case data, epsilon = 1, c = 1/9: the limit of many people is 2 + y/2, y = epsilon^2 / 4."""
    best = 0.0
    for n_central in (10**3, 10**5, 10**7):
        n = 9 * n_central
        groups = [central(1.0, n_central), reports(1.0, n - n_central)]
        plan = plan_for(Kvh(), groups, parameters={"variance": "worst_case"})
        e_t = 8 / 9 / n_central * 0.25 + 2 / n_central**2
        best = min(e_t, 2 / n) / against_dataset(plan, n)
        assert best < 17 / 8
    assert best == pytest.approx(17 / 8, abs=1e-4)


def test_the_salaries_peak_just_above_two():
    """n = 252,540, range 2,349,033, standard deviation 53,254; c from 0.1 to 10 %, epsilon from 0.1 to 10."""
    n, v = 252_540, (53_254 / 2_349_033) ** 2
    peak = 0.0
    for c in np.geomspace(0.001, 0.1, 25):
        n_central = round(float(c) * n)
        share = n_central / n
        for epsilon in np.geomspace(0.1, 10, 25):
            e = round(float(epsilon) * 1e6) / 1e6
            groups = [central(e, n_central), reports(e, n - n_central)]
            plan = plan_for(Kvh(), groups, parameters={"variance": v})
            e_t = (1 - share) / n_central * v + 2 / (n_central * e) ** 2
            peak = max(peak, min(e_t, 2 / e**2 / n) / against_dataset(plan, n, v))
    assert 2.01 <= peak <= 2.03
