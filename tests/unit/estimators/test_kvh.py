"""`kvh` against the paper's weight and error, and the variance it reads from local reports."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.cohort import Group, Reports
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace, NoNoise
from app.core.study import LocalMechanism, Trust
from app.estimators.hybrid import Kvh
from app.estimators.interface import UNIT_SCALE, NotApplicable
from app.estimators.reports import VARIANCE, estimated_variance, parse_variance, steering_variance
from app.mechanisms.local_reports import report_noise
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    public,
    query_values,
    replace_one,
)

HALF = GRID_SIZE // 2


def plan_for(groups, variance: object = "worst_case", **more):
    return Kvh().plan(groups, replace_one(groups, parameters={"variance": variance}, **more))


def central_share(plan, groups):
    """The weight of the central part: how far the answer moves when all central values do."""
    index = next(i for i, weight in enumerate(plan.queries[0].sum_weights) if weight)
    mass = sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, groups, strict=True))
    assert groups[index].count
    low, high = (plan.conclude([mass * point]).estimate for point in (HALF, HALF + HALF // 2))
    return (high - low) * 4


def noise_of_a_report(epsilon):
    return report_noise(LocalMechanism.LAPLACE, round(epsilon * 1e6)).worst / GRID_SIZE**2


@given(
    n_central=st.integers(20, 5000),
    n_local=st.integers(20, 5000),
    epsilon=st.sampled_from([0.3, 1.0, 4.0]),
    variance=st.floats(0.001, 0.25),
)
def test_the_central_weight_is_the_papers(n_central, n_local, epsilon, variance):
    """w* = c (v + sL2) / (v + c (n sT2 (1 - c) + sL2)); sT2 = 2 (m / (c n eps))^2, sL2 of one report."""
    groups = [central(epsilon, n_central), local(epsilon, [HALF] * n_local)]
    n = n_central + n_local
    c = n_central / n
    s_t, s_l = 2 / (c * n * epsilon) ** 2, noise_of_a_report(epsilon)
    expected = c * (variance + s_l) / (variance + c * (n * s_t * (1 - c) + s_l))
    plan = plan_for(groups, variance)
    assert central_share(plan, groups) == pytest.approx(expected, rel=1e-9)


@given(
    n_central=st.integers(20, 5000),
    n_local=st.integers(20, 5000),
    epsilon=st.sampled_from([0.3, 1.0, 4.0]),
    variance=st.floats(0.001, 0.25),
)
def test_the_predicted_error_is_the_papers_plus_sampling(n_central, n_local, epsilon, variance):
    """E_KVH is against the empirical mean; v / n more against the population's."""
    groups = [central(epsilon, n_central), local(epsilon, [HALF] * n_local)]
    n = n_central + n_local
    c = n_central / n
    v, s_t, s_l = variance, 2 / (c * n * epsilon) ** 2, noise_of_a_report(epsilon)
    empirical = ((1 - c) * v * s_l + c * n * (c * v + s_l) * s_t) / (
        n * (v + c * s_l) + (1 - c) * c * n**2 * s_t
    )
    predicted = about_population(plan_for(groups, variance))
    assert predicted**2 == pytest.approx(empirical + v / n, rel=1e-9)


def test_personal_local_epsilons_weigh_by_their_own_variance():
    """A report with noise variance r weighs in proportion to 1 / (v + r), checked by moving one report."""
    epsilons = [0.5, 1.0, 5.0]
    moved = []
    for raised in range(3):
        groups = [central(1.0, 50)] + [
            local(e, [HALF + (GRID_SIZE // 4 if i == raised else 0)]) for i, e in enumerate(epsilons)
        ]
        plan = plan_for(groups)
        moved.append(plan.conclude([50 * 10**6 * HALF]).estimate - 0.5)
    expected = [1 / (0.25 + noise_of_a_report(e)) for e in epsilons]
    for value, weight in zip(moved, expected, strict=True):
        assert value / moved[0] == pytest.approx(weight / expected[0], rel=1e-6)


def test_weights_sum_to_one():
    groups = [central(0.5, 40), central(2.0, 10), public(5), local(1.0, [7] * 30), local(3.0, [7] * 9)]
    plan = plan_for(groups, grid=WIDE_GRID)
    position = plan.conclude(query_values(plan, groups, [40 * 7, 10 * 7, 5 * 7, 0, 0]))
    assert position.estimate == pytest.approx(-20 + 80 * 7 / GRID_SIZE, abs=1e-9)


def test_central_people_all_pay_the_smallest_offer_and_public_ones_join_them():
    groups = [central(2.0, 40), central(0.5, 10), public(5), local(1.0, [7] * 30)]
    plan = plan_for(groups)
    assert plan.queries[0].sum_weights == (500_000, 500_000, 500_000, 0)
    assert plan.noise == DiscreteLaplace(scales=(UNIT_SCALE,))


def test_groups_that_cannot_pay_do_not_set_the_price():
    groups = [central(2.0, 40), central(0.5, 10, participates=False), local(1.0, [7] * 30)]
    assert plan_for(groups).queries[0].sum_weights == (2_000_000, 0, 0)


def test_without_central_people_the_reports_answer_alone():
    groups = [local(1.0, [HALF] * 400)]
    plan = plan_for(groups)
    assert plan.noise == NoNoise()
    assert plan.queries[0].sum_weights == (0,)
    conclusion = plan.conclude([0])
    assert conclusion.estimate == pytest.approx(0.5, abs=1e-12)
    assert conclusion.interval.coverage == "exact"
    deviation = math.sqrt(noise_of_a_report(1.0) / 400)
    assert conclusion.standard_error == pytest.approx(deviation, rel=1e-9)
    assert conclusion.interval.upper == pytest.approx(0.5 + 1.96 * deviation, rel=1e-3)


def test_without_local_people_it_is_the_central_mean():
    groups = [central(0.5, 40), central(2.0, 60)]
    plan = plan_for(groups)
    assert about_population(plan) == pytest.approx(math.sqrt(0.25 / 100 + 2 / 50**2), rel=1e-12)
    assert plan.conclude(query_values(plan, groups, [40 * HALF, 60 * HALF])).interval.coverage == "exact"


def test_public_people_and_reports_need_no_noise():
    groups = [public(10), local(1.0, [HALF] * 5)]
    plan = plan_for(groups)
    assert plan.noise == NoNoise()
    assert plan.conclude(query_values(plan, groups, [10 * HALF, 0])).estimate == pytest.approx(0.5)


def test_a_known_variance_of_zero_trusts_public_people_alone():
    groups = [public(1), local(1.0, [HALF] * 5)]
    plan = plan_for(groups, 0.0)
    assert plan.predicted_error == 0
    assert plan.conclude([GRID_SIZE // 4]).estimate == 0.25


def test_with_nobody_at_all_there_is_no_answer():
    for groups in ([], [central(1, 3, participates=False)], [local(1, [])]):
        with pytest.raises(NotApplicable):
            plan_for(groups)


def test_a_known_variance_is_in_the_datas_unit_and_never_above_the_worst_case():
    groups = [central(1.0, 100), local(1.0, [HALF] * 100)]
    unit, wide = plan_for(groups, 0.01), plan_for(groups, 0.01 * 80**2, grid=WIDE_GRID)
    assert wide.predicted_error == pytest.approx(80 * unit.predicted_error, rel=1e-12)
    assert plan_for(groups, 9.0).predicted_error == plan_for(groups).predicted_error


def test_an_estimate_steers_weights_and_predictions_but_intervals_keep_the_worst_case():
    groups = [central(1.0, 100), local(1.0, [HALF] * 100)]
    assert estimated_variance(groups[1:]) == 0
    steering = steering_variance(groups[1:])
    assert 0 < steering < 0.25
    estimated, known = plan_for(groups, "estimated"), plan_for(groups, steering)
    assert estimated.predicted_error == known.predicted_error
    assert central_share(estimated, groups) == pytest.approx(central_share(known, groups), rel=1e-12)
    mass = 100 * 10**6 * HALF
    wide, narrow = (plan.conclude([mass]).population_interval for plan in (estimated, known))
    assert wide.upper > narrow.upper


def test_the_fewer_the_reports_the_nearer_to_the_worst_case_is_what_steers():
    """Equal reports estimate 0; 100,000 of them say so, 10 do not."""
    few, many = ([local(1.0, [HALF] * count)] for count in (10, 100_000))
    assert estimated_variance(few) == estimated_variance(many) == 0
    assert steering_variance(few) > 0.24
    assert steering_variance(many) < 0.01
    assert steering_variance([]) == 0.25


def test_estimated_is_the_default():
    groups = [central(1.0, 100), local(1.0, [HALF] * 100)]
    default = Kvh().plan(groups, replace_one(groups))
    assert default.predicted_error == plan_for(groups, "estimated").predicted_error
    assert VARIANCE.default == "estimated"


# ---------------------------------------------------------------------------- estimated variance


@given(reports=st.lists(st.integers(-(2**34), 2**34), min_size=2, max_size=40))
def test_for_one_epsilon_it_is_the_sample_variance_minus_the_noise(reports):
    expected = float(np.var(np.array(reports) / GRID_SIZE, ddof=1)) - noise_of_a_report(1.0)
    assert estimated_variance([local(1.0, reports)]) == pytest.approx(
        min(max(expected, 0.0), 0.25), rel=1e-6, abs=1e-9
    )


@given(data=st.data(), epsilons=st.lists(st.sampled_from([0.5, 1.0, 2.0, 8.0]), min_size=2, max_size=8))
def test_for_personal_epsilons_it_is_the_stated_weighted_form(data, epsilons):
    reports = [data.draw(st.integers(-(2**33), 2**33)) for _ in epsilons]
    noise = np.array([noise_of_a_report(e) for e in epsilons])
    u = (0.25 + noise) ** -2.0
    u /= u.sum()
    x = np.array(reports) / GRID_SIZE
    raw = (np.sum(u * (x - np.sum(u * x)) ** 2) - np.sum(u * (1 - u) * noise)) / np.sum(u * (1 - u))
    groups = [local(e, [r]) for e, r in zip(epsilons, reports, strict=True)]
    assert estimated_variance(groups) == pytest.approx(min(max(float(raw), 0), 0.25), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("reports", [[], [5]])
def test_fewer_than_two_reports_leave_the_worst_case(reports):
    assert estimated_variance([local(1.0, reports)]) == 0.25


def test_nearly_exact_reports_lose_nothing_to_cancellation():
    """Values far from 0 that differ by a millionth of the range, at epsilon = 10^6."""
    step = GRID_SIZE // 1000
    reports = [GRID_SIZE - step * (i % 2) for i in range(1000)]
    expected = float(np.var([0.001 * (i % 2) for i in range(1000)], ddof=1))
    assert estimated_variance([local(1e6, reports)]) == pytest.approx(expected, rel=1e-2)


def test_reports_randomized_with_nothing_are_refused():
    with pytest.raises(InternalFault):
        plan_for([local(0.0, [HALF] * 3)])


@pytest.mark.parametrize("mechanism", [LocalMechanism.DUCHI, LocalMechanism.PIECEWISE, LocalMechanism.HYBRID])
def test_noise_that_depends_on_the_value_is_taken_off_the_variance_too(mechanism):
    """Exact second moments of data on {0.2, 0.5}: v = 0.0225; Duchi reports cannot tell."""
    noise = report_noise(mechanism, 4_000_000)
    points = [GRID_SIZE // 5, GRID_SIZE // 2]
    total = 10_000 * sum(points)
    squares = 10_000 * sum(int(noise.at(q)) + q * q for q in points)
    group = Group(
        trust=Trust.LOCAL,
        epsilon=4_000_000,
        count=20_000,
        reports=Reports(mechanism=mechanism, total=total, total_squares=squares),
    )
    expected = 0.25 if mechanism is LocalMechanism.DUCHI else 0.0225
    assert estimated_variance([group]) == pytest.approx(expected, rel=1e-3)


# ------------------------------------------------------------------------------------- parameter


@pytest.mark.parametrize(
    ("text", "value"),
    [("estimated", "estimated"), ("worst_case", "worst_case"), ("0", 0.0), ("0.25", 0.25), ("1e3", 1000.0)],
)
def test_variance_is_a_word_or_a_number(text, value):
    assert parse_variance(text) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "1_0", " 1", "known", "1e999", "0x1", "True"])
def test_anything_else_is_refused_with_a_reason(text):
    with pytest.raises(ValueError, match="must"):
        parse_variance(text)


@given(st.text(alphabet="0123456789.eE+-_ naif", max_size=12))
def test_no_text_makes_the_parser_fail_in_another_way(text):
    value: object = 0.0
    with suppress(ValueError):
        value = parse_variance(text)
    assert isinstance(value, float)
    assert math.isfinite(value)
    assert value >= 0


def test_a_parameter_that_was_not_parsed_is_a_fault():
    with pytest.raises(InternalFault):
        plan_for([public(1)], None)
