"""What local reports say beside their mean: how noisy they are, and how much the data vary."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from dither.device.randomizers import ReportNoise, randomizer
from numpy.typing import NDArray

from app.core.cohort import Group, Groups, Reports
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, Grid, NotANumber, parse_decimal
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import Parameter, Question
from app.mechanisms.local_reports import report_noise

ESTIMATED = "estimated"
WORST_CASE = "worst_case"

_PRIOR_DEVIATION = 0.2
"""How far the variance may well be from the worst case, before a report is seen [range width squared]."""


def parse_variance(text: str) -> object:
    """The parameter `variance`: a number (data units squared), worst_case or estimated.

    Raises:
        ValueError: anything else, or a negative number.

    >>> parse_variance("0.25"), parse_variance("estimated")
    (0.25, 'estimated')
    """
    if text in (ESTIMATED, WORST_CASE):
        return text
    try:
        mantissa, exponent = parse_decimal(text)
    except NotANumber:
        raise ValueError("must be a number, worst_case or estimated") from None
    if mantissa < 0:
        raise ValueError("must not be negative")
    return float(Fraction(mantissa) * Fraction(10) ** exponent)


VARIANCE = Parameter(
    name="variance",
    parse=parse_variance,
    default=ESTIMATED,
    description="Variance of the data: a number (data units squared), worst_case, or estimated "
    "from the local reports and the last release.",
)


def variances(local: Sequence[Group], question: Question) -> tuple[float, float]:
    """The variance that bounds errors, and the one that weights and predictions use.

    Args:
        local: Local groups with reports.
        question: What is asked; parameter `VARIANCE`.

    Returns:
        (bound, expected), both at most 1/4 [range width squared]. Known: the number twice. worst_case: 1/4
        twice. estimated: 1/4 and `steering_variance`, or what the last release says if that is less.

    Raises:
        InternalFault: the parameter was not parsed, or reports of a mechanism without a known variance.

    Privacy: post-processing of local reports and of what is published.
    """
    parameter = question.parameters.get(VARIANCE.name, VARIANCE.default)
    if isinstance(parameter, str):
        if parameter == WORST_CASE:
            return WORST_VARIANCE, WORST_VARIANCE
        published = WORST_VARIANCE if question.variance is None else question.variance
        return WORST_VARIANCE, min(steering_variance(local), published)
    if not isinstance(parameter, int | float):
        raise InternalFault("The parameter variance was not parsed.")
    known = min(float(Fraction(parameter) / question.grid.width**2), WORST_VARIANCE)
    return known, known


def noise_variance(group: Group, variance: float = WORST_VARIANCE) -> float:
    """Noise variance of one report of a local group, at the worst law of the data.

    Where reports about the middle of the range are the noisiest ones, the worst law with a variance of
    s2 has its mean there, and a mean square about it of s2; where those about the ends are, the worst
    law lives on the ends.

    Args:
        group: A local group with reports.
        variance: s2, bound on the variance of the data [range width squared].

    Returns:
        r, such that a report about the data's mean has a variance of at most s2 + r [range width squared].

    Raises:
        InternalFault: the group has no reports, or they were randomized with nothing.

    Privacy: a public constant of the randomizer.
    """
    noise = noise_of(group)
    constant = noise.constant / GRID_SIZE**2
    if (zoom := _reports(group).where.zoom) > 1:
        # What is moved into the range may all lie in its middle, whatever the variance of the data is.
        return constant + max(noise.curvature, 0.0) * WORST_VARIANCE / zoom**2
    return constant + noise.curvature * (variance if noise.curvature < 0 else WORST_VARIANCE)


def farthest(group: Group) -> float:
    """How far a report can lie from what the value of its owner adds on average, the value itself.

    An end of what counts of reports, seen from a value at the other end of the range. From a value in the
    middle it is half a width less.

    Args:
        group: A local group with reports.

    Returns:
        The distance [range widths].

    Raises:
        InternalFault: the group has no reports, or they were randomized with nothing.
    """
    reports = _reports(group)
    try:
        end = randomizer(reports.mechanism).range(group.epsilon).upper
    except ValueError as error:
        raise InternalFault("Reports were randomized with nothing.") from error
    end = end if reports.reach is None else min(end, GRID_SIZE + reports.reach)
    return end / (GRID_SIZE * reports.where.zoom)


def inside_range(groups: Sequence[Group], weights: NDArray[np.float64], grid: Grid) -> dict[str, object]:
    """What an answer says of the reporting range that reports in it were made in; nothing without any.

    Args:
        groups: All groups, length G.
        weights: Weight of one report of each group, shape (G,).
        grid: Of the study.

    Returns:
        Its ends in the data's unit, and how many of those who report inside it have values outside at most,
        if they are as those who answered the searches that found it.
    """
    local = [groups[index] for index in np.flatnonzero(weights).tolist()]
    inside = [(one.reports.inside, one.count) for one in local if one.reports and one.reports.inside]
    if not inside:
        return {}
    [found] = {found for found, _ in inside}
    people = sum(count for _, count in inside)
    lower, upper = found.ends(grid)
    return {
        "reporting_range": {
            "lower": lower,
            "upper": upper,
            "outside_at_most": found.outside,
            "people_outside_at_most": math.ceil(found.outside * people),
        }
    }


def stands_for(groups: Sequence[Group]) -> NDArray[np.float64]:
    """How many people a report of each group stands for, itself and those who were not heard, shape (G,)."""
    groups = Groups.of(groups)
    heard, silent = (np.array(groups.column(name), dtype=np.float64) for name in ("count", "silent"))
    return 1 + silent / np.maximum(heard, 1)


def noise_of(group: Group) -> ReportNoise:
    """What one report of a local group says, and how noisily [grid steps].

    Inside a reporting range that is a report over its zoom-th part, about the middle of that range.

    Raises:
        InternalFault: the group has no reports, or they were randomized with nothing.
    """
    reports = _reports(group)
    try:
        noise = report_noise(reports.mechanism, group.epsilon)
    except ValueError as error:
        raise InternalFault("Reports were randomized with nothing.") from error
    zoom = reports.where.zoom
    return replace(
        noise,
        constant=noise.constant / zoom**2,
        laplace=noise.laplace / zoom,
        gaussian=noise.gaussian / zoom,
    )


def estimated_variance(groups: Sequence[Group]) -> float:
    r"""The variance of the data, from local reports alone.

    With weights :math:`u_i \propto (1/4 + r_i)^{-2}` on reports of noise variance r_i, and their weighted
    mean :math:`\bar x`:

    .. math:: \hat v = \frac{\sum u_i (x_i - \bar x)^2 - \sum u_i (1 - u_i) r_i}{\sum u_i (1 - u_i)},

    which is unbiased before clipping. For one epsilon it is the sample variance minus the noise variance.
    Where the noise variance of a report depends on the value, :math:`r_i = k_i + c_i (x - 1/2)^2`, the mean
    square about the middle is :math:`\hat v + (\bar x - 1/2)^2` and the equation is solved for it.

    Args:
        groups: Local groups with reports.

    Returns:
        Variance, clipped to [0, 1/4] [range width squared]; 1/4 with fewer than two reports.

    Raises:
        InternalFault: reports of a mechanism without a known variance.

    Privacy: post-processing of local reports; spends no budget, draws no randomness.
    """
    return _estimate(groups)[0]


def steering_variance(groups: Sequence[Group]) -> float:
    r"""The estimated variance, drawn towards the worst case as far as it is uncertain.

    :math:`(\hat v A + B / 4) / (A + B)` with :math:`1 / B = 0.2^2` and

    .. math:: 1 / A = \frac{\sum u_i^2 (1/16 + r_i + 5 r_i^2)}{(\sum u_i (1 - u_i))^2},

    which bounds the variance of the estimate (Laplace reports have the heaviest tails of all randomizers
    here). A handful of reports may well give an estimate of 0, and weights made for 0 would put
    everything on people with exact values.

    Args:
        groups: Local groups with reports.

    Returns:
        Variance in [0, 1/4] [range width squared]; 1/4 with fewer than two reports.

    Privacy: post-processing of local reports; spends no budget, draws no randomness.
    """
    estimate, uncertainty = _estimate(groups)
    prior = _PRIOR_DEVIATION**2
    return (estimate * prior + WORST_VARIANCE * uncertainty) / (prior + uncertainty)


def _estimate(groups: Sequence[Group]) -> tuple[float, float]:
    """(estimated variance, bound on the variance of that estimate)."""
    if sum(group.count for group in groups) < 2:
        return WORST_VARIANCE, 1.0
    noise = [noise_variance(group) for group in groups]
    shapes = [(one.constant / GRID_SIZE**2, one.curvature) for one in map(noise_of, groups)]
    middles = [_middle(group) for group in groups]
    raw = [(WORST_VARIANCE + r) ** -2 for r in noise]
    total = sum(u * group.count for u, group in zip(raw, groups, strict=True))
    shares = [u / total for u in raw]
    # Sums about the middle of the range, in integers: nothing cancels in floats.
    middle = GRID_SIZE // 2
    moments = [_reports(group).moments(group.count, middle) for group in groups]
    mean = sum(u * first for u, (first, _) in zip(shares, moments, strict=True))
    squares = sum(u * second for u, (_, second) in zip(shares, moments, strict=True)) - mean**2
    spread = [u * (1 - u) * group.count for u, group in zip(shares, groups, strict=True)]
    excess = squares - sum(
        s * (constant + curvature * (mean - apart) ** 2)
        for s, (constant, curvature), apart in zip(spread, shapes, middles, strict=True)
    )
    seen = sum(s * (1 + curvature) for s, (_, curvature) in zip(spread, shapes, strict=True))
    if seen <= 1e-9 * sum(spread):
        return WORST_VARIANCE, 1.0
    uncertainty = sum(
        u * u * group.count * (1 / 16 + r + 5 * r * r)
        for u, r, group in zip(shares, noise, groups, strict=True)
    )
    return min(max(excess / seen, 0.0), WORST_VARIANCE), uncertainty / seen**2


def _reports(group: Group) -> Reports:
    if group.reports is None:
        raise InternalFault("A local group has no reports.")
    return group.reports


def _middle(group: Group) -> float:
    """How far the middle of what they report in lies from that of the range [range widths]."""
    where = _reports(group).where
    return where.start / GRID_SIZE + 1 / (2 * where.zoom) - 0.5
