"""Local reports of simulated people: the product's randomizers, drawn by the million."""

import math

import numpy as np
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.optimal import TICKETS, UNIT, optimal_table
from dither.device.shapes import HYBRID_BITS, duchi_reach, hybrid_share, piecewise_shape

from app.core.epsilon import MICRO, amount_of
from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism
from app.mechanisms.local_reports import report_noise
from dither_research.people import Law
from dither_research.seeded import Floats, Random

_POOL = 100_000
_MOST_DRAWN = 8_000_000
"""Reports that are drawn one by one; beyond that sums are Normal with the exact means and variances."""


def randomize(mechanism: LocalMechanism, epsilon: int, delta: int, values: Floats, random: Random) -> Floats:
    """One report a value.

    Args:
        mechanism: The randomizer.
        epsilon: Of each report [micro-epsilon].
        delta: Of the study, Gaussian only [1e-12].
        values: float64 array in [0, 1].
        random: The source.

    Returns:
        float64 array of the same shape [range widths], with the law of the product's reports up to the
        width of a grid step.
    """
    match mechanism:
        case LocalMechanism.LAPLACE:
            return values + random.laplace(0, MICRO / epsilon, values.shape)
        case LocalMechanism.GAUSSIAN:
            sigma = gaussian_sigma(micro_mu2(epsilon, delta)) / GRID_SIZE
            return values + sigma * random.standard_normal(values.shape)
        case LocalMechanism.DUCHI:
            return _duchi(epsilon, values, random)
        case LocalMechanism.PIECEWISE:
            return _piecewise(epsilon, values, random)
        case LocalMechanism.HYBRID:
            return _hybrid(epsilon, values, random)
        case LocalMechanism.OPTIMAL:
            return _optimal(epsilon, values, random)


def _duchi(epsilon: int, values: Floats, random: Random) -> Floats:
    reach = duchi_reach(epsilon) / GRID_SIZE
    up = random.random(values.shape) < (reach + values - 0.5) / (2 * reach)
    return 0.5 + np.where(up, reach, -reach)


def _piecewise(epsilon: int, values: Floats, random: Random) -> Floats:
    shape = piecewise_shape(epsilon)
    window, drift = shape.window / GRID_SIZE, shape.drift / GRID_SIZE
    middle = 2 * drift * (values - 0.5)
    inside = random.random(values.shape) < shape.window * shape.inside / shape.total
    near = middle + window * (random.random(values.shape) - 0.5)
    # Uniform on both sides of the window, which is as wide as their gap.
    far = 2 * drift * random.random(values.shape) - drift
    far += np.where(far < middle, -window / 2, window / 2)
    report: Floats = 0.5 + np.where(inside, near, far)
    return report


def _hybrid(epsilon: int, values: Floats, random: Random) -> Floats:
    piecewise = random.random(values.shape) < hybrid_share(epsilon) / 2**HYBRID_BITS
    return np.where(piecewise, _piecewise(epsilon, values, random), _duchi(epsilon, values, random))


def _optimal(epsilon: int, values: Floats, random: Random) -> Floats:
    table = optimal_table(epsilon)
    if table is None:
        return _hybrid(epsilon, values, random)
    places = np.floor(values * table.steps + random.random(values.shape)).astype(int)
    # One ascending list holds the ends of all rows, each moved by its number.
    laws = [list(table.law(place).values()) for place in range(table.steps + 1)]
    ends = np.array([np.cumsum([float(share) for share in law]) for law in laws])
    ends[:, -1] = 1
    tickets = places + np.floor(random.random(values.shape) * TICKETS) / TICKETS
    moved = (ends + np.arange(table.steps + 1)[:, np.newaxis]).ravel()
    columns = np.searchsorted(moved, tickets, side="right") - places * len(table.reports)
    report: Floats = 0.5 + np.array(table.reports)[columns] * (UNIT / GRID_SIZE)
    return report


def report_sums(
    mechanism: LocalMechanism, epsilon: int, delta: int, law: Law, count: int, runs: int, random: Random
) -> tuple[Floats, Floats, Floats]:
    """Sums over a local group, for many runs.

    Args:
        mechanism, epsilon, delta: See `randomize`.
        law: Of one value.
        count: People.
        runs: Sums.
        random: The source.

    Returns:
        Sums of values, of reports and of squared reports, each float64 of shape (runs,) [range widths].
    """
    if count * runs <= _MOST_DRAWN:
        totals = np.zeros((3, runs))
        for run in range(runs):
            values = law.draw((count,), random)
            reports = randomize(mechanism, epsilon, delta, values, random)
            totals[:, run] = values.sum(), reports.sum(), (reports**2).sum()
        return totals[0], totals[1], totals[2]
    noise = report_noise(mechanism, amount_of(epsilon, delta))
    about_middle = law.variance + (law.mean - 0.5) ** 2
    of_report = noise.constant / GRID_SIZE**2 + noise.curvature * about_middle
    mean = np.array([law.mean, law.mean, law.variance + law.mean**2 + of_report])
    values = law.draw((_POOL,), random)
    reports = randomize(mechanism, epsilon, delta, values, random)
    spread = np.linalg.cholesky(np.cov([values, reports, reports**2]) + 1e-18 * np.eye(3))
    totals = count * mean[:, np.newaxis] + math.sqrt(count) * (spread @ random.standard_normal((3, runs)))
    return totals[0], totals[1], totals[2]
