"""Is the noise discrete Laplace of the stated scale? Shape and size, each with controls that must fail."""

import numpy as np
import pytest

from app.estimators.interface import UNIT_SCALE
from tests.statistical import ALPHA, SAMPLE_SIZE, SMALLEST_SCALE_ERROR
from tests.support.verdicts import repeats_p_value, shape_p_value, size_p_value

pytestmark = pytest.mark.statistical

SCALES = [0.7, 3.0, 1000.5, UNIT_SCALE]


@pytest.mark.parametrize("scale", SCALES)
def test_noise_has_the_shape_and_the_size_of_discrete_laplace(source, scale):
    samples = source.laplace(scale, SAMPLE_SIZE)
    assert shape_p_value(samples, scale) > ALPHA
    assert size_p_value(samples, scale) > ALPHA
    assert repeats_p_value(samples, scale) > ALPHA


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("error", [-SMALLEST_SCALE_ERROR, SMALLEST_SCALE_ERROR])
def test_control_too_little_and_too_much_noise_are_caught(source, scale, error):
    """|z| of a small scale is mostly 0, so an error of the scale shows there as well."""
    samples = source.laplace(scale * (1 + error), SAMPLE_SIZE)
    assert size_p_value(samples, scale) < ALPHA


@pytest.mark.parametrize("scale", SCALES)
def test_control_draws_that_follow_themselves_are_caught(source, scale):
    samples = np.repeat(source.laplace(scale, SAMPLE_SIZE // 2), 2)
    assert repeats_p_value(samples, scale) < ALPHA


@pytest.mark.parametrize("scale", SCALES[2:])
def test_control_draws_that_come_four_times_are_caught(source, scale):
    """In any order; a small scale has too few cells for that."""
    samples = np.tile(source.laplace(scale, SAMPLE_SIZE // 4), 4)
    assert shape_p_value(samples, scale) < ALPHA


@pytest.mark.parametrize("scale", SCALES[1:])
def test_control_another_shape_of_the_right_size_is_caught(source, scale):
    """A rounded Normal with the same mean absolute value."""
    sigma = scale * np.sqrt(np.pi / 2)
    samples = np.rint(source.people.normal(0, sigma, SAMPLE_SIZE)).astype(np.int64)
    assert shape_p_value(samples, scale) < ALPHA


def test_control_noise_without_its_middle_is_caught(source):
    """Clamping to non-zero values: off by one in the sampler's sign handling."""
    samples = source.laplace(3.0, SAMPLE_SIZE)
    assert shape_p_value(samples[samples != 0], 3.0) < ALPHA


def test_control_signs_that_are_not_fair_are_caught(source):
    samples = np.abs(source.laplace(1000.5, SAMPLE_SIZE))
    assert shape_p_value(samples, 1000.5) < ALPHA
