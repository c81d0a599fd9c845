"""Reports of choices: the probabilities of all as exact ratios, draws, variances, and what may arrive."""

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from dither.device.choices import ONE, ChoiceRandomizer, ChoiceReports, choice_points
from dither.device.shapes import power_of_e

from app.core.epsilon import MICRO
from app.core.grid import Grid
from app.estimators.choice_reports import report_noise
from tests.client.bits import Seeded

EPSILONS = (1, 10_000, 500_000, 1_000_000, 2_345_678, 5_000_000, 20_000_000)
COUNTS = (2, 3, 5, 9)


def law(reports: ChoiceReports, true: int) -> dict[int, Fraction]:
    """The probability of every report of a choice."""
    if reports.is_single:
        total = reports.power + (reports.count - 1) * ONE
        return {
            1 << place: Fraction(reports.power if place == true else ONE, total)
            for place in range(reports.count)
        }
    found = {}
    for chosen in range(1 << reports.count):
        chance = Fraction(1)
        for place in range(reports.count):
            has, p = chosen >> place & 1, reports.kept if place == true else reports.other
            chance *= p if has else 1 - p
        found[chosen] = chance
    return found


def kinds() -> Iterator[ChoiceReports]:
    """Both kinds of reports, at many epsilons."""
    for epsilon, count in product(EPSILONS, COUNTS):
        yield ChoiceRandomizer(count).range(epsilon)


@pytest.mark.long
def test_no_report_is_more_than_e_to_the_epsilon_times_as_likely_of_another_choice():
    """Brute force over all pairs of choices and all reports, in exact ratios; the bound is reached."""
    seen = Counter(reports.is_single for reports in kinds())
    assert min(seen.values()) >= 5, "both kinds"
    for epsilon, count in product(EPSILONS, COUNTS):
        reports = ChoiceRandomizer(count).range(epsilon)
        laws = [law(reports, true) for true in range(count)]
        assert all(sum(one.values()) == 1 for one in laws)
        worst = max(max(one[report] for one in laws) / min(one[report] for one in laws) for report in laws[0])
        assert worst == Fraction(reports.power, ONE)
        # floor(2^128 e^epsilon) is not above the power, and not a 2^-126th below.
        assert math.log(worst) <= epsilon / MICRO * (1 + 1e-12)
        assert worst >= Fraction(power_of_e(2 * epsilon + 1), ONE) / Fraction(power_of_e(1), ONE) * (
            1 - Fraction(1, 2**100)
        )


def test_a_report_that_keeps_the_truth_more_often_would_be_found():
    """A control: unary encoding that keeps the true bit with e / (1 + e) costs twice the epsilon."""
    reports = ChoiceRandomizer(12).range(MICRO)
    assert not reports.is_single
    kept = 1 - reports.other
    ratio = kept / reports.other * (1 - reports.other) / (1 - kept)
    assert math.log(ratio) == pytest.approx(2)


@pytest.mark.parametrize(("count", "epsilon"), [(3, 10**6), (5, 3_000_000), (6, 200_000), (12, 10**6)])
def test_draws_have_their_law(count: int, epsilon: int):
    """Every choice in 40,000 reports, within five standard deviations; a false alarm in 10^5."""
    device, draws = ChoiceRandomizer(count), 40_000
    reports, points = device.range(epsilon), choice_points(count)
    stream = Seeded(count)
    drawn = [device.report(points[1], epsilon, stream) for _ in range(draws)]
    assert all(report in reports for report in drawn)
    for place in range(count):
        wanted = float(reports.kept if place == 1 else reports.other)
        found = sum(report >> place & 1 for report in drawn) / draws
        assert abs(found - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / draws)
    if not reports.is_single:
        # Bits are independent: the true one and another one.
        both = sum(report & 3 == 3 for report in drawn) / draws
        wanted = float(reports.kept * reports.other)
        assert abs(both - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / draws)


def test_the_stated_variances_are_those_of_the_law():
    """Brute force: mean and variance of each share that one report says, moved onto the plane."""
    for count, epsilon in product((2, 3, 6), (100_000, 1_000_000, 4_000_000)):
        reports, noise = ChoiceRandomizer(count).range(epsilon), report_noise(count, epsilon)
        chances = law(reports, 0)
        said = np.array([noise.shares([r >> k & 1 for k in range(count)], 1) for r in chances])
        p = np.array([float(chance) for chance in chances.values()])
        assert said.sum(axis=1) == pytest.approx(1)
        assert p @ said == pytest.approx(np.eye(count)[0], abs=1e-9)
        variances = p @ said**2 - (p @ said) ** 2
        assert variances == pytest.approx([noise.own] + [noise.others] * (count - 1))
        assert noise.total == pytest.approx(variances.sum())
        assert noise.own >= noise.others > 0


def test_a_device_takes_the_kind_with_the_smaller_variance():
    """The closed forms of the docstring, both of them, around the limit K = 1 + e + sqrt(2 + 2 e^2)."""
    for epsilon in (0.1, 0.5, 1, 2, 3):
        e = math.exp(epsilon)
        limit = 1 + e + math.sqrt(2 + 2 * e * e)
        for count in range(2, 50):
            single = (count - 1) * (2 * e + count - 2) / (e - 1) ** 2
            unary = (count - 1) / count * ((1 + e) ** 2 + 4 * (count - 1) * e) / (e - 1) ** 2
            reports = ChoiceRandomizer(count).range(round(epsilon * MICRO))
            assert reports.is_single == (single <= unary) == (count <= limit)
            smaller = report_noise(count, round(epsilon * MICRO)).total
            assert smaller == pytest.approx(min(single, unary), rel=1e-6)


def test_only_what_a_device_can_draw_is_a_report():
    single, unary = ChoiceRandomizer(3).range(2 * MICRO), ChoiceRandomizer(30).range(MICRO)
    assert (single.is_single, unary.is_single) == (True, False)
    assert [report for report in range(-2, 20) if report in single] == [1, 2, 4]
    assert all(report in unary for report in (0, 1, 3, (1 << 30) - 1))
    assert all(report not in unary for report in (-1, 1 << 30, 1 << 60))
    for epsilon in (0, -1):
        with pytest.raises(ValueError, match="positive epsilon"):
            ChoiceRandomizer(3).range(epsilon)


def test_choices_lie_where_the_grid_has_their_numbers():
    for count in (2, 3, 7, 50):
        grid = Grid(Fraction(0), Fraction(count - 1))
        assert choice_points(count) == tuple(grid.point(place, 0) for place in range(count))
