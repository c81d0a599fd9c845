"""Gaussian and hourglass noise, and randomized answers: shape, size, and controls that must fail.

A sample of SAMPLE_SIZE sees a scale error of 5 % (see the package): the mean of z^2 / sigma^2 of Gaussian
noise has a standard error of sqrt(2 / n) = 0.6 %, and 5 % of sigma move it by 10 %. The mean level of an
hourglass at epsilon = 1 moves by about 5 % of itself with epsilon, 8 standard errors or more.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from dither.device.response import respond
from scipy import stats

from app.core.noise import DiscreteGaussian, Hourglass
from app.mechanisms.hourglass import hourglass, hourglass_moments
from tests.statistical import ALPHA, SAMPLE_SIZE, SMALLEST_SCALE_ERROR, Z
from tests.support.verdicts import (
    chi_square_p_value,
    gaussian_size,
    hourglass_mass,
    hourglass_places,
    hourglass_size,
)

pytestmark = pytest.mark.statistical

ERRORS = [1 - SMALLEST_SCALE_ERROR, 1 + SMALLEST_SCALE_ERROR]
SIZE = 2**30

# --------------------------------------------------------------------------------------- Gaussian

SIGMAS = [3.0, 400.5, 2.0**50]


def gaussian(sigma):
    return DiscreteGaussian(sigmas=(sigma,))


def gaussian_shape(samples, sigma):
    edges = np.unique(np.floor(stats.norm.ppf(np.arange(1, 100) / 100, scale=sigma)))
    if sigma < 1000:
        z = np.arange(-40 * int(sigma + 1), 40 * int(sigma + 1) + 1)
        weights = np.exp(-(z**2) / (2 * sigma**2))
        below = np.cumsum(weights)[np.searchsorted(z, edges)] / weights.sum()
    else:
        below = stats.norm.cdf((edges + 0.5) / sigma)
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * samples.size
    observed = np.bincount(np.searchsorted(edges, samples), minlength=edges.size + 1)
    return chi_square_p_value(observed, expected)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_noise_has_the_stated_shape_and_size(source, sigma):
    samples = source.draws(gaussian(sigma), SAMPLE_SIZE)[:, 0]
    assert gaussian_shape(samples, sigma) > ALPHA
    assert gaussian_size(samples, sigma) > ALPHA


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("error", ERRORS)
def test_control_gaussian_noise_of_another_size_is_caught(source, sigma, error):
    samples = source.draws(gaussian(sigma * error), SAMPLE_SIZE)[:, 0]
    assert gaussian_size(samples, sigma) < ALPHA


@pytest.mark.parametrize("sigma", SIGMAS)
def test_control_laplace_noise_of_the_same_size_is_caught(source, sigma):
    samples = source.laplace(sigma / math.sqrt(2), SAMPLE_SIZE)
    assert gaussian_shape(samples, sigma) < ALPHA


# --------------------------------------------------------------------------------------- hourglass

HOURGLASSES = [
    Hourglass(sensitivity=64, epsilon=1_500_000, step=20),
    hourglass(SIZE, 500_000),
    hourglass(SIZE, 2_000_000),
]


def hourglass_shape(samples, noise):
    """Cells: t, u and the side of v. Within them draws are even, which the last cells check: v in four."""
    t, u, v = hourglass_places(samples, noise)
    reach = t * noise.half + noise.step
    total = sum(hourglass_mass(noise, level) for level in range(4000))
    last = math.ceil(10 / (noise.epsilon / 1e6))
    observed: list[float] = []
    expected: list[float] = []
    for level in range(last):
        for row in range(-level, level + 1, 2):
            inside = (t == level) & (u == row)
            share = math.exp(-level * noise.epsilon / 1e6) / total
            width = 2 * (level * noise.half + noise.step) + 1 if abs(row) == level else 4 * noise.half
            for low, high in ((0.0, 0.5), (0.5, 1.0)):
                if abs(row) == level:
                    depth = (v + reach + 0.5) / (2 * reach + 1)
                else:
                    depth = (reach - np.abs(v) + 0.5) / noise.sensitivity / 2 + np.where(v > 0, 0.5, 0.0)
                observed.append(float(np.sum(inside & (depth >= low) & (depth < high))))
                odd = width % 2  # the middle cell of an odd width belongs to the upper half
                expected.append(share * (width + (odd if low else -odd)) / 2)
    observed.append(samples.shape[0] - sum(observed))
    expected.append(1 - sum(expected))
    return chi_square_p_value(np.array(observed), np.array(expected) * samples.shape[0])


@pytest.mark.parametrize("noise", HOURGLASSES, ids=str)
def test_hourglass_noise_has_the_stated_shape_and_size(source, noise):
    samples = source.draws(noise, SAMPLE_SIZE)
    assert hourglass_shape(samples, noise) > ALPHA
    assert hourglass_size(samples, noise) > ALPHA


@pytest.mark.parametrize("noise", HOURGLASSES, ids=str)
@pytest.mark.parametrize("error", ERRORS)
def test_control_an_hourglass_of_another_price_is_caught(source, noise, error):
    samples = source.draws(replace(noise, epsilon=round(noise.epsilon * error)), SAMPLE_SIZE)
    assert hourglass_size(samples, noise) < ALPHA


@pytest.mark.parametrize("noise", HOURGLASSES, ids=str)
def test_control_an_hourglass_with_another_step_is_caught(source, noise):
    samples = source.draws(replace(noise, step=noise.step // 2), SAMPLE_SIZE)
    assert hourglass_shape(samples, noise) < ALPHA


def test_control_an_hourglass_on_one_side_only_is_caught(source):
    samples = np.abs(source.draws(HOURGLASSES[1], SAMPLE_SIZE))
    whole = samples[(samples.sum(1) % SIZE) == 0]
    assert hourglass_shape(whole, HOURGLASSES[1]) < ALPHA


@pytest.mark.parametrize(
    ("epsilon", "most"), [(1_000_000, 0.96), (2_000_000, 0.85), (4_000_000, 0.53), (8_000_000, 0.11)]
)
def test_hourglass_noise_is_smaller_than_laplace_noise_of_the_same_price(source, epsilon, most):
    """Its mean square against discrete Laplace noise on each query; tolerance by the samples' own spread."""
    size = SAMPLE_SIZE
    noise = hourglass(SIZE, epsilon)
    squares = source.draws(noise, size).astype(np.float64) ** 2
    laplace = 2 * (SIZE / (epsilon / 1e6)) ** 2
    for column in squares.T:
        tolerance = Z * float(column.std()) / math.sqrt(size) / laplace
        assert float(column.mean()) / laplace < most + tolerance
        assert abs(float(column.mean()) - hourglass_moments(noise)[0]) / laplace < tolerance
        assert tolerance < 0.1


# --------------------------------------------------------------------------------------- answers


def answers(source, epsilon, categories=4):
    drawn = [respond(1, categories, epsilon, source.bits) for _ in range(SAMPLE_SIZE)]
    return np.bincount(drawn, minlength=categories)


@pytest.mark.parametrize(("epsilon", "fits"), [(1_000_000, True), (900_000, False), (1_100_000, False)])
def test_answers_follow_the_channel_and_ten_percent_more_or_less_are_caught(source, epsilon, fits):
    weights = np.exp([0.0, 1.0, 0.0, 0.0])
    expected = weights / weights.sum() * SAMPLE_SIZE
    assert (chi_square_p_value(answers(source, epsilon), expected) > ALPHA) == fits
