"""Noise that is looked at again and again: against its own laws, and an analyst who stops at will."""

import math

import numpy as np
import pytest
import scipy

from app.core.epsilon import MICRO
from app.estimators.anytime import Steps, gaussian_deviations, laplace_scales

FIRSTS = (1, 50_000, 100_000, 500_000, MICRO)
RISKS = (0.045, 0.01, 1e-4)


def leaves_laplace(c: float, length: float, cells: int = 250) -> float:
    """The probability that refined Laplace noise is ever above c scales, from its generator on a grid.

    In ln b it falls to 0 with rate 1 and jumps by a Laplace of scale 1 with rate 2. Cells of [0, c] hold |X|.
    """
    edges = np.linspace(0, c, cells + 1)
    width, middles = c / cells, (edges[:-1] + edges[1:]) / 2
    rates = np.zeros((cells, cells))
    for number, middle in enumerate(middles):
        from_here = _between(edges[:-1] - middle, edges[1:] - middle)
        from_here += _between(-edges[1:] - middle, -edges[:-1] - middle)
        rates[number] += 2 * from_here
        rates[number, number] -= 2
        if number:
            rates[number, number - 1] += middle / width
            rates[number, number] -= middle / width
    stays = (np.exp(-edges[:-1]) - np.exp(-edges[1:])) @ scipy.sparse.linalg.expm_multiply(
        rates * length, np.ones(cells)
    )
    return 1 - float(stays)


def _between(low, high):
    """What a Laplace of scale 1 has between two ends."""
    return _below(high) - _below(low)


def _below(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


def leaves_gaussian(c: float, length: float, cells: int = 1200) -> float:
    """The probability that an Ornstein-Uhlenbeck process in ln s leaves [-c, c], by its generator on a grid.

    The process is reversible: symmetric about its own density, so that eigenvalues say it.
    """
    points = np.linspace(-c, c, cells + 1)[1:-1]
    step = 2 * c / cells
    density = np.exp(-(points**2) / 2)
    between = np.exp(-((points[:-1] + points[1:]) ** 2) / 8)
    outer = np.exp(-((np.array([-c, c]) + points[[0, -1]]) ** 2) / 8)
    diagonal = -(np.append(outer[0], between) + np.append(between, outer[1])) / density / (2 * step**2)
    beside = between / np.sqrt(density[:-1] * density[1:]) / (2 * step**2)
    values, vectors = scipy.linalg.eigh_tridiagonal(
        diagonal, beside, select="i", select_range=(cells - 61, cells - 2)
    )
    start = vectors.T @ np.sqrt(density * step / math.sqrt(2 * math.pi))
    # What the first eigenvalues leave out has been gone long before; at length 0 it is the tail itself.
    decayed = float(np.sum(start**2 * np.exp(values * length)))
    return 1 - decayed


@pytest.mark.parametrize("first", FIRSTS)
@pytest.mark.parametrize("risk", RISKS)
def test_bounds_hold_for_the_exact_laws_and_are_not_much_wider_than_they_must_be(first, risk):
    length = math.log(MICRO / first)
    c = laplace_scales(first, risk)
    assert math.exp(-c) * (1 + length * (c + 0.5)) == pytest.approx(risk, rel=1e-9)
    if first == MICRO:
        assert c == pytest.approx(-math.log(risk))
        assert 2 * scipy.stats.norm.sf(gaussian_deviations(first, risk)) < risk
        return
    # The grid itself is off by less than a hundredth.
    assert 0.3 * risk < leaves_laplace(c, length) <= risk * 1.01
    assert 0.5 * risk < leaves_gaussian(gaussian_deviations(first, risk), length) <= risk


@pytest.mark.parametrize("normal", [False, True])
def test_the_risks_of_all_sums_and_steps_together_are_at_most_a_twentieth(normal):
    def of(place):
        return Steps(firsts=[MICRO], places=[place], step=place, normal=normal)

    tail = (lambda c: 2 * scipy.stats.norm.sf(c)) if normal else (lambda c: math.exp(-c))
    total = sum(tail(of(place).always([1.0])) + of(place).risk for place in range(1, 5000))
    assert (0.02 if normal else 0.0499) < total <= 0.05
    both = Steps(firsts=[MICRO, 1000], places=[1, 2], step=3, normal=normal)
    apart = [
        Steps(firsts=[first], places=[place], step=3, normal=normal).always([noise])
        for first, place, noise in ((MICRO, 1, 0.5), (1000, 2, 2.0))
    ]
    assert both.always([0.5, 2.0]) == pytest.approx(sum(apart))
    assert both.always([0.5, 0.0]) == pytest.approx(apart[0])
