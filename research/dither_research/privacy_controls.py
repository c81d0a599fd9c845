"""Planted bugs and published forms that are not private: what the privacy audit must catch.

Their noise is simulated: no person is answered with it.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
from dither.device.gaussian import epsilon_at

from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.mechanisms.gaussian import draw_gaussian
from dither_research.privacy_audit import (
    STEPS,
    WIDE_STEPS,
    Cells,
    Subject,
    cells,
    gaussian_moments_subject,
    moments_subject,
)
from dither_research.seeded import Floats, Random, draw_noise, seeded
from dither_research.staircase import staircase

EPSILON = 1.0
FINE_STEPS = np.linspace(-2, 3, 51)

RATIO_STEPS = np.linspace(-8, 8, 161)
"""Cells of a log-likelihood ratio."""


def controls() -> Iterator[Subject]:
    """Every control; each claims what its authors, or its careless programmer, would."""
    yield _control("half the noise", EPSILON, _laplace(scale=0.5, shift=1.0))
    yield _control("missing clamp", EPSILON, _laplace(scale=1.0, shift=2.0))
    yield _control("rescaled sums, unscaled noise (range 1/2)", EPSILON, _laplace(scale=0.5, shift=1.0))
    yield _control("subsampled mean, its size in the noise", SAMPLED_CLAIM, _sampled_mean, effort=200)
    yield _control("staircase after shrinkage", EPSILON / 2, _staircases(1, 0.5))
    yield _control("staircase on each coordinate", EPSILON, _staircases(2, 0.5))
    yield _hybrid_minimum()
    yield moments_subject("second moment about the end of the range", 0, planted=True)
    yield gaussian_moments_subject("second moment with a twelfth of the sigma", 12, planted=True)
    yield _gaussian("mu charged in place of mu^2", answers=1, mu=2.0, mu2=2.0, delta=0.2)
    yield _gaussian("mu^2 of one answer charged for four", answers=4, mu=1.0, mu2=1.0)
    yield _control("K-means with half the sensitivity", EPSILON, _clusters)
    yield _control(
        "K-means of two rounds with the printed noise", SESSION_CLAIM, _printed_clusters, effort=10
    )
    yield _control("K-means, an extra report", EPSILON, _extra_report, effort=5)
    yield _control("K-means, k-ary answers over the binary denominator", EPSILON, _wrong_denominator)
    yield _control("budget_split with an extra round", EPSILON, _yes_or_no(answers=3, rounds=2), effort=3)
    yield _control("user_split that asks twice", EPSILON, _yes_or_no(answers=2, rounds=1))
    yield _control("floating-point noise, off the grid", EPSILON, _floating_point)


def _control(
    name: str, claimed: float, outputs: Callable[[int, Random], tuple[Cells, Cells]], *, effort: int = 1
) -> Subject:
    return Subject(
        name=name,
        claimed=claimed,
        planted=True,
        effort=effort,
        outputs=lambda draws: outputs(draws, seeded(name)),
    )


def _laplace(*, scale: float, shift: float) -> Callable[[int, Random], tuple[Cells, Cells]]:
    noise = DiscreteLaplace(scales=(scale * GRID_SIZE,))

    def outputs(draws: int, random: Random) -> tuple[Cells, Cells]:
        unit = np.array([shift * GRID_SIZE])
        first, second = (draw_noise(noise, queries=1, runs=draws, random=random).T for _ in range(2))
        return cells(first, unit, STEPS), cells(second + unit, unit, STEPS)

    return outputs


def _gaussian(name: str, *, answers: int, mu: float, mu2: float, delta: float = 0.02) -> Subject:
    """Answers of a mu each, claimed to be less than they are together, at a delta that draws can show."""
    sigma = GRID_SIZE / mu

    def outputs(draws: int) -> tuple[Cells, Cells]:
        unit = np.array([float(GRID_SIZE)])
        first, second = (
            np.array(draw_gaussian(sigma, draws * answers), dtype=np.float64)
            .reshape(draws, answers)
            .mean(axis=1, keepdims=True)
            for _ in range(2)
        )
        return cells(first, unit, FINE_STEPS), cells(second + GRID_SIZE, unit, FINE_STEPS)

    claimed = epsilon_at(Fraction(mu2) * MICRO, round(delta * DELTA_UNIT)) / MICRO
    return Subject(name=name, claimed=claimed, delta=delta, planted=True, outputs=outputs)


SAMPLED_CLAIM = 0.25
SAMPLED_THRESHOLD = 0.5


def _sampled_mean(draws: int, random: Random) -> tuple[Cells, Cells]:
    """The published sampling mechanism with one other person, at 1.

    The noise of the mean of m people has scale 1 / (m t), which tells whether she was sampled. Her true loss
    is 22 % above her epsilon; what an event on this output shows of it takes millions of draws.
    """
    inclusion = math.expm1(SAMPLED_CLAIM) / math.expm1(SAMPLED_THRESHOLD)
    results = []
    for value in (0.0, 1.0):
        included = random.random(draws) < inclusion
        size = np.where(included, 2, 1)
        mean = np.where(included, (value + 1) / 2, 1.0)
        noisy = mean + random.laplace(size=draws) / (size * SAMPLED_THRESHOLD)
        results.append(np.digitize(noisy, np.linspace(-8, 9, 137)).astype(np.int64))
    return results[0], results[1]


def _staircases(dimensions: int, share: float) -> Callable[[int, Random], tuple[Cells, Cells]]:
    """Staircase noise for a displacement of 1, on outputs that move by less: the loss does not shrink."""
    noise = staircase(GRID_SIZE, MICRO)

    def outputs(draws: int, random: Random) -> tuple[Cells, Cells]:
        def noises() -> Floats:
            return np.concatenate(
                [draw_noise(noise, queries=1, runs=draws, random=random) for _ in range(dimensions)]
            ).T

        # A step's edge lies within the displacement: the cells are cut where the density falls.
        edge = noise.step / GRID_SIZE
        steps = np.sort([edge + k + side for k in (-2, -1, 0, 1) for side in (0.0, share)])
        unit = np.full(dimensions, float(GRID_SIZE))
        shift = share * GRID_SIZE
        return cells(noises(), unit, steps), cells(noises() + shift, unit, steps)

    return outputs


def _hybrid_minimum() -> Subject:
    """Amplification by the smaller of the two sensitivities, as printed (Theorem 8.1), for a local person.

    UC salaries with 1 % central people, epsilon 1, delta 1e-7; the larger one is what local people move
    the answer by per unit of the noise that hides them.
    """
    ratio, delta = 0.25, 1e-7
    printed = epsilon_at(MICRO * Fraction(ratio / 100) ** 2, round(delta * DELTA_UNIT)) / MICRO

    def outputs(draws: int, random: Random) -> tuple[Cells, Cells]:
        unit = np.array([ratio])
        first, second = (random.standard_normal((draws, 1)) for _ in range(2))
        return cells(first, unit, WIDE_STEPS), cells(second + ratio, unit, WIDE_STEPS)

    return Subject(
        name="amplification by the smaller sensitivity",
        claimed=printed,
        delta=delta,
        planted=True,
        outputs=lambda draws: outputs(draws, seeded("amplification by the smaller sensitivity")),
    )


def _clusters(draws: int, random: Random) -> tuple[Cells, Cells]:
    """One round of private K-means in one dimension: a point moves from one cluster to the other.

    Two counts and two sums move by 1 each, and the noise is for a sum of moves of 2.
    """
    scale = 2 / EPSILON
    shift = np.array([1.0, 1.0, 1.0, 1.0])
    results = []
    for displaced in (0.0, 1.0):
        noisy = random.laplace(scale=scale, size=(draws, 4)) + displaced * shift
        ratio = (np.abs(noisy) - np.abs(noisy - shift)).sum(axis=1) / scale
        results.append(np.digitize(ratio, RATIO_STEPS).astype(np.int64))
    return results[0], results[1]


SESSION_CLAIM = 2.0


def _printed_clusters(draws: int, random: Random) -> tuple[Cells, Cells]:
    """A whole session of central people with the printed b_T = (d + 1) tau / epsilon, d = 1.

    It is right for a person who is added. A value that is replaced moves two counts and two sums by 1 each.
    """
    rounds = 2
    scale = 2 * rounds / SESSION_CLAIM
    results = []
    for displaced in (0.0, 1.0):
        noisy = random.laplace(scale=scale, size=(draws, 4 * rounds)) + displaced
        ratio = (np.abs(noisy) - np.abs(noisy - 1)).sum(axis=1) / scale
        results.append(np.digitize(ratio, RATIO_STEPS).astype(np.int64))
    return results[0], results[1]


def _extra_report(draws: int, random: Random) -> tuple[Cells, Cells]:
    """One round of local K-means: an answer, and the report drawn again for a retry."""
    share = EPSILON / 2
    results = []
    for value in (0.0, 1.0):
        reports = value + random.laplace(scale=1 / share, size=(draws, 2))
        answers = _responses(int(value), 2, math.exp(share) / (1 + math.exp(share)), draws, random)
        parts = np.digitize(reports, [0.0, 1.0])
        results.append((answers + 2 * parts[:, 0] + 6 * parts[:, 1]).astype(np.int64))
    return results[0], results[1]


def _wrong_denominator(draws: int, random: Random) -> tuple[Cells, Cells]:
    """One round of local K-means with four centers: the truth with e^epsilon / (e^epsilon + 1), not + 3."""
    share = EPSILON / 2
    results = []
    for value in (0.0, 1.0):
        report = np.digitize(value + random.laplace(scale=1 / share, size=draws), [0.0, 1.0])
        answers = _responses(int(value), 4, math.exp(share) / (1 + math.exp(share)), draws, random)
        results.append((answers + 4 * report).astype(np.int64))
    return results[0], results[1]


def _yes_or_no(*, answers: int, rounds: int) -> Callable[[int, Random], tuple[Cells, Cells]]:
    """More answers than the rounds that epsilon was split over."""
    truth = math.exp(EPSILON / rounds) / (1 + math.exp(EPSILON / rounds))

    def outputs(draws: int, random: Random) -> tuple[Cells, Cells]:
        results = []
        for value in (0, 1):
            given = [_responses(value, 2, truth, draws, random) for _ in range(answers)]
            results.append(np.stack(given, axis=1) @ 2 ** np.arange(answers))
        return results[0], results[1]

    return outputs


def _responses(category: int, categories: int, truth: float, draws: int, random: Random) -> Cells:
    """Randomized response by floating-point numbers: no person is protected by it."""
    lies = (category + random.integers(1, categories, draws)) % categories
    return np.where(random.random(draws) < truth, category, lies).astype(np.int64)


def _floating_point(draws: int, random: Random) -> tuple[Cells, Cells]:
    """A float mean of 0 or 1 plus float noise: the low bits of the sum tell which (Mironov, CCS 2012)."""
    first, second = (
        np.ldexp(value + random.laplace(scale=1 / EPSILON, size=draws), 53) for value in (0.0, 1.0)
    )
    return (first != np.rint(first)).astype(np.int64), (second != np.rint(second)).astype(np.int64)
