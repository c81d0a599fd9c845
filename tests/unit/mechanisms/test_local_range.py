"""Which reports an honest device can send."""

import math
from fractions import Fraction
from pathlib import Path

import pytest
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.randomizers import GAUSSIAN_TAIL, LAPLACE_TAIL, laplace_range, randomizer
from dither.device.shapes import HALF, duchi_reach, piecewise_shape

from app.core.cohort import Group, Reports, report_reach
from app.core.epsilon import round_down_to_significant
from app.core.grid import GRID_SIZE, REPORT_LIMIT
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators import registry
from app.mechanisms.local_reports import drawn_at_most
from tests.support.groups import central, micro, query_values, replace_one
from tests.support.reports import report_range, report_scale

MICRO_DELTA = 10**6


@pytest.mark.parametrize("mechanism", LocalMechanism)
@pytest.mark.parametrize("epsilon", [1, 1000, 600_000, 1_000_000, 20_000_000, 10**12])
def test_a_range_lies_about_the_grid_and_within_the_limit(mechanism, epsilon):
    allowed = randomizer(mechanism).range(epsilon)
    assert allowed.lower + allowed.upper == GRID_SIZE
    assert -REPORT_LIMIT <= allowed.lower < 0
    assert GRID_SIZE < allowed.upper <= REPORT_LIMIT
    for end in (allowed.lower, allowed.upper):
        assert end in allowed
    assert allowed.lower - 1 not in allowed
    assert allowed.upper + 1 not in allowed


@pytest.mark.parametrize("epsilon", [1, 1000, 1_000_000, 10**12])
def test_duchis_reports_are_two(epsilon):
    allowed = report_range(LocalMechanism.DUCHI, epsilon)
    assert allowed.only == {allowed.lower, allowed.upper}
    assert HALF not in allowed
    assert allowed.lower + 1 not in allowed
    assert allowed.upper - HALF == duchi_reach(epsilon)


def test_hybrid_reports_are_duchis_up_to_the_threshold_and_piecewise_ones_beyond():
    assert report_range(LocalMechanism.HYBRID, 609_352) == report_range(LocalMechanism.DUCHI, 609_352)
    for epsilon in (609_353, 1_000_000, 50_000_000):
        allowed = report_range(LocalMechanism.HYBRID, epsilon)
        assert allowed == report_range(LocalMechanism.PIECEWISE, epsilon)
        duchi = report_range(LocalMechanism.DUCHI, epsilon)
        assert duchi.lower in allowed
        assert duchi.upper in allowed


def test_piecewise_reports_reach_as_far_as_the_window_is_moved():
    shape = piecewise_shape(1_000_000)
    allowed = report_range(LocalMechanism.PIECEWISE, 1_000_000)
    assert allowed.upper - HALF == shape.drift + shape.reach
    assert allowed.upper - allowed.lower + 1 == shape.window + 2 * shape.drift


def test_less_epsilon_reaches_further():
    for mechanism in LocalMechanism:
        widths = [report_range(mechanism, epsilon, MICRO_DELTA).upper for epsilon in (10**5, 10**6, 10**7)]
        assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("epsilon", [1, 999, 10**6, 10**9])
@pytest.mark.parametrize("dimension", [1, 2, 64])
def test_honest_noise_lies_outside_with_a_probability_below_2_to_the_minus_64(epsilon, dimension):
    reach = -laplace_range(epsilon, dimension=dimension).lower
    scales = Fraction(reach * epsilon, dimension * GRID_SIZE * 10**6)
    assert scales >= (LAPLACE_TAIL if epsilon * 2 > dimension else 62)  # the limit of a report cuts here
    assert math.log2(2 * dimension) - float(scales) / math.log(2) < -64
    mu2 = max(1, micro_mu2(epsilon, MICRO_DELTA))
    sigmas = -randomizer("gaussian").range(mu2).lower / gaussian_sigma(mu2)
    assert sigmas >= GAUSSIAN_TAIL
    assert 1 - sigmas**2 / 2 / math.log(2) < -64


@pytest.mark.parametrize("epsilon", [1, 7, 1_000, 123_000, 2_000_000])
def test_a_report_is_drawn_with_no_more_than_explains_it(epsilon):
    mechanism = LocalMechanism.LAPLACE
    edge = report_range(mechanism, epsilon).upper
    for report in (edge, edge + 1):
        drawn = drawn_at_most(randomizer(mechanism), report, 4_000_000)
        assert (drawn >= epsilon) is (report == edge)
        assert report not in report_range(mechanism, drawn + 1)
        explained = round_down_to_significant(drawn)
        assert drawn == 0 or report in report_range(mechanism, explained)
    assert drawn_at_most(randomizer(mechanism), GRID_SIZE, epsilon) == epsilon


def test_a_gaussian_report_belongs_to_the_whole_offer():
    """What is left of an offer would be another sigma: a report is made with all of it, or refused."""
    device = randomizer("gaussian")
    edge = device.range(50_000).upper
    assert drawn_at_most(device, edge, 50_000) == 50_000
    assert drawn_at_most(device, edge + 1, 50_000) == 0


@pytest.mark.parametrize(("epsilon", "people"), [(1_000, 2_000), (10**6, 1_000), (10**5, 1_000)])
def test_one_forged_report_moves_a_mean_as_the_threat_model_says(epsilon, people):
    laplace, hybrid = randomizer("laplace"), randomizer("hybrid")
    sent = laplace.range(epsilon).upper
    widths = [
        end / GRID_SIZE / people for end in (sent, counted(epsilon, people), hybrid.range(epsilon).upper)
    ]
    error = math.sqrt(2 / people) * 10**6 / epsilon
    row = f"| {epsilon / 10**6:g} | {people:,} | " + " | ".join(f"{width:.3g}" for width in (*widths, error))
    assert row in Path("docs/threat-model.md").read_text()


def counted(epsilon: int, people: int) -> int:
    """The outermost Laplace report that counts among so many."""
    reach = report_reach(randomizer("laplace"), epsilon, people)
    assert reach is not None
    return GRID_SIZE + reach


def honest_and(forged: int | None, count: int, epsilon: float) -> Group:
    """Local people whose reports and squares come out as expected, and one report more."""
    point, scale = Fraction(284, 1000) * GRID_SIZE, report_scale(micro(epsilon))
    reports = [] if forged is None else [forged]
    return Group(
        trust=Trust.LOCAL,
        epsilon=micro(epsilon),
        count=count + len(reports),
        reports=Reports(
            mechanism=LocalMechanism.LAPLACE,
            total=round(count * point) + sum(reports),
            total_squares=round(count * (point**2 + 2 * Fraction(scale) ** 2)) + sum(r * r for r in reports),
        ),
    )


def estimate(groups: list[Group]) -> float:
    """What `optimal` says without noise."""
    optimal = registry.get("optimal", Relation.REPLACE_ONE)
    plan = optimal.plan(groups, registry.for_estimator(optimal, replace_one(groups)))
    sums = [0 if group.trust is Trust.LOCAL else group.count * GRID_SIZE * 284 // 1000 for group in groups]
    return plan.conclude(query_values(plan, groups, sums)).estimate


@pytest.mark.parametrize(
    ("trust", "people", "epsilon", "offered"),
    [
        ("local", 2_000, 0.001, 0.001),
        ("local", 1_000, 0.1, 0.1),
        ("local", 1_000, 1, 1),
        ("central", 2_000, 1, 0.001),
        ("central", 2_000, 1, 1),
    ],
)
def test_one_forged_report_moves_optimal_as_the_threat_model_says(trust, people, epsilon, offered):
    edge = report_range(LocalMechanism.LAPLACE, micro(offered)).upper
    inner = counted(micro(offered), people + 1 if trust == "local" else 1)
    others = [central(epsilon, people)] if trust == "central" else []
    count = 0 if others else people
    without = [*others, honest_and(None, count + 1, offered)]
    forged = [[*others, honest_and(report, count, offered)] for report in (inner, edge)]
    answers = " | ".join(f"{estimate(groups):.4f}" for groups in (without, *forged))
    row = f"| {people:,} {trust}, epsilon {epsilon:g} | {offered:g} | {answers} |"
    assert row in Path("docs/threat-model.md").read_text()
