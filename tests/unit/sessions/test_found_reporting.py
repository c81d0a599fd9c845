"""A reporting range off two searches: where it lies, what it holds, and the variance of its reports."""

import math
from collections.abc import Callable
from fractions import Fraction
from uuid import uuid4

import numpy as np
import pytest
from dither.device.numbers import inside_range
from dither.device.randomizers import randomizer
from dither.device.response import respond
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binom

from app.core.cohort import Group, Reports
from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import NoNoise
from app.core.reporting_range import Reported, ReportingRange
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators.interface import Question
from app.estimators.linear import linear_plan
from app.estimators.reports import estimated_variance, farthest, noise_of, noise_variance
from app.sessions.found_reporting import around, found, outside
from app.sessions.response import Tally
from app.sessions.search import Search, Target, advance, make_rules
from app.sessions.searched import Round, Searched

Points = NDArray[np.int64]

EPSILON = 10**6
MECHANISMS = ["hybrid", "optimal", "piecewise", "duchi", "laplace"]


def searched(quantile: float, points: Points, rounds: int = 8) -> Search:
    """A finished search among people who each answer one round with epsilon 4."""
    rules = make_rules(
        target=Target.QUANTILE,
        epsilon=4 * EPSILON,
        participants=points.size,
        rounds=rounds,
        quantile=quantile,
    )
    search = Search(rules=rules)
    for own in np.array_split(points, rounds):
        answers = [respond(int(point <= search.threshold), 2, 4 * EPSILON) for point in own]
        search = advance(search, Tally(positives=sum(answers), answers=len(answers)))
    return search


@pytest.mark.parametrize("low", [0, 1, GRID_SIZE // 3, GRID_SIZE - 5])
@pytest.mark.parametrize("width", [0, 1, 1000, GRID_SIZE // 10, GRID_SIZE // 2 - 1])
def test_a_range_holds_what_was_found_and_is_hardly_wider(low: int, width: int) -> None:
    high = min(low + width, GRID_SIZE)
    where = around(low, high)
    assert where is not None
    part = GRID_SIZE // where.zoom
    assert 0 <= where.start <= low <= high <= where.start + part <= GRID_SIZE
    assert 2 * part <= max(3 * (high - low), GRID_SIZE >> 19)


def test_nothing_smaller_holds_more_than_half_the_range() -> None:
    assert around(5, GRID_SIZE // 2 + 6) is None


def test_a_point_inside_is_a_point_of_the_grid_of_the_range_exactly() -> None:
    where = Reported(start=12_345_678, zoom=10)
    last = where.start + GRID_SIZE // 10
    for point in (where.start, where.start + 1, last - 1, last):
        raw = inside_range(point, where.start, where.zoom)
        assert 0 <= raw <= GRID_SIZE
        assert where.start + Fraction(raw, where.zoom) == point
        assert where.to_raw(point) == raw
    assert inside_range(0, where.start, where.zoom) == 0
    assert inside_range(GRID_SIZE, where.start, where.zoom) == inside_range(last, where.start, where.zoom)


def narrow(mechanism: str, points: Points, where: Reported | None, epsilon: int = EPSILON) -> Group:
    """People who report these points, with real reports."""
    inside = None if where is None else ReportingRange.of(where, outside=0.1, searches=("a", "b"))
    device, reports = randomizer(mechanism), []
    for point in map(int, points):
        moved = point if where is None else inside_range(point, where.start, where.zoom)
        reports.append(device.report(moved, epsilon))
    return Group(
        trust=Trust.LOCAL,
        epsilon=epsilon,
        count=len(reports),
        reports=Reports(
            mechanism=LocalMechanism(mechanism),
            total=sum(reports),
            total_squares=sum(one * one for one in reports),
            inside=inside,
        ),
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_reports_inside_have_the_law_of_the_whole_range_times_the_range(mechanism: str) -> None:
    """Their mean is exactly what the value says, and the variance is that of others over zoom squared."""
    rng, where = np.random.default_rng(3), Reported(start=GRID_SIZE // 3, zoom=10)
    points = rng.integers(where.start, where.start + GRID_SIZE // 10, 4000)
    group, whole = narrow(mechanism, points, where), narrow(mechanism, points, None)
    assert noise_of(group).constant == pytest.approx(noise_of(whole).constant / 100)
    assert farthest(group) == pytest.approx(farthest(whole) / 10)
    assert group.reports is not None
    mean = float(group.reports.position(group.count)) / group.count
    deviation = (noise_variance(group) / group.count) ** 0.5
    # Farther off in one run of 500,000.
    assert abs(mean - points.mean() / GRID_SIZE) <= 5 * deviation
    first, second = group.reports.moments(group.count, int(points.mean()))
    seen = second / group.count - (first / group.count) ** 2
    assert seen <= 1.2 * (noise_variance(group) + points.var() / GRID_SIZE**2)
    if mechanism != "duchi":
        assert estimated_variance([group]) == pytest.approx(points.var() / GRID_SIZE**2, abs=0.01)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_range_ten_times_too_wide_costs_a_fiftieth_of_todays_variance_once_it_is_found(
    mechanism: str,
) -> None:
    """Searches by 12,000 people each, and a mean of reports of others: its variance by the real law.

    Of 3,000 each, one draw of 150 found a zoom of 8, the least that a fiftieth needs; all of 6,000 found 10.
    """
    rng = np.random.default_rng(11)
    points = rng.integers(GRID_SIZE // 2, GRID_SIZE // 2 + GRID_SIZE // 10, 24_400)
    halves = points[:12_000], points[12_000:24_000]
    searches = [searched(q, own) for q, own in zip((0.03, 0.97), halves, strict=True)]
    range_ = found(searches, (uuid4(), uuid4()))
    assert range_.outside < 0.4
    reporting = points[24_000:]
    groups = [narrow(mechanism, reporting, where) for where in (range_.where, None)]
    small, whole = (noise_variance(group) for group in groups)
    assert small <= whole / 50
    lower, upper = (end * GRID_SIZE for end in range_.ends(Grid(Fraction(0), Fraction(1))))
    question = Question(
        relation=Relation.REPLACE_ONE, grid=Grid(Fraction(0), Fraction(1)), cap=1, floor=1, people=400
    )
    for group in groups:
        plan = linear_plan([group], question, weights=[0], noise=NoNoise(), report_weights=[1 / 400])
        conclusion = plan.conclude([0])
        truth = reporting if group is groups[1] else np.clip(reporting, lower, upper)
        assert abs(conclusion.estimate - truth.mean() / GRID_SIZE) <= 5 * conclusion.standard_error
        assert ("reporting_range" in conclusion.details) is (group is groups[0])


def test_outside_is_at_most_both_tails_each_at_the_risk_of_one_round_of_all() -> None:
    """Exact binomial bounds by root finding, of the rounds beside the range; those inside say less."""
    where, epsilon = Reported(start=GRID_SIZE // 4, zoom=2), EPSILON
    told = [(where.start - 1, 130), (where.start, 140), (GRID_SIZE // 2, 200), (GRID_SIZE * 3 // 4, 270)]
    rounds = [Round(threshold=at, positives=yes, answers=400, epsilon=epsilon) for at, yes in told]
    ends = outside(where, Searched(people=1, reporting=0, rounds=tuple(rounds), announced=6))
    risk, truth = 0.05 / 12, math.e / (1 + math.e)

    def fraction(tail: Callable[[float], float]) -> float:
        return (brentq(lambda chance: tail(chance) - risk, 0, 1) - 1 + truth) / (2 * truth - 1)

    below = fraction(lambda chance: binom.cdf(130, 400, chance))
    above = 1 - fraction(lambda chance: binom.sf(269, 400, chance))
    assert 0 < below < below + above < 1
    assert ends == pytest.approx(below + above, rel=1e-9)


def test_outside_is_bounded_at_every_end_that_searches_choose() -> None:
    """In 60 ranges of 400 people each; the bound fails in 5 of 100 at most, and is far from that."""
    rng, missed = np.random.default_rng(5), 0
    for _ in range(60):
        points = (rng.lognormal(0, 0.5, 400) / 20 * GRID_SIZE).clip(0, GRID_SIZE).astype(int)
        order = rng.permutation(400)
        searches = [searched(0.05, points[order[:200]]), searched(0.9, points[order[200:]])]
        try:
            range_ = found(searches, (uuid4(), uuid4()))
        except InvalidRequest:
            continue
        last = range_.where.start + GRID_SIZE // range_.where.zoom
        missed += ((points < range_.where.start) | (points > last)).mean() > range_.outside
    assert missed <= 8
