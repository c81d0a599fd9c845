"""Chains of refined Laplace noise: the law of every stage, and the joint law of two.

A chain starts with a draw of the first scale and is refined from stage to stage. Each stage alone is Laplace
noise of its own scale, and an independent draw is as well: only the joint law tells them apart.
"""

import math
from itertools import pairwise

import numpy as np
import pytest

from app.estimators.interface import UNIT_SCALE
from app.mechanisms.refined_laplace import refine_laplace
from tests.statistical import ALPHA, SAMPLE_SIZE
from tests.support.verdicts import chi_square_p_value, mean_p_value, shape_p_value, size_p_value

pytestmark = pytest.mark.statistical

SCALES = [12.0, 6.0, 1.5]
REACH = 12
"""Cells of the joint law: every integer up to here, and what lies beyond."""


def chain(source, scales, size=SAMPLE_SIZE):
    """A row a chain, a column a stage."""
    stages = [source.laplace(scales[0], size)]
    for scale, finer in pairwise(scales):
        last = stages[-1].tolist()
        stages.append(
            np.array([refine_laplace(noise, scale, finer, source.bits) for noise in last], dtype=np.int64)
        )
    return np.stack(stages, axis=1)


def joint_p_value(first, second, scale, finer):
    """Chi-square test of (Z1, Z2) = (Z2 + V, Z2), V being 0 or Laplace and independent of Z2."""
    p1, p2 = math.exp(-1 / scale), math.exp(-1 / finer)
    atom = p2 / p1 * ((1 - p1) / (1 - p2)) ** 2
    wide = np.arange(-40 * int(scale + 1), 40 * int(scale + 1) + 1)

    def law(p, z):
        return (1 - p) / (1 + p) * p ** np.abs(z).astype(np.float64)

    expected = np.zeros((2 * REACH + 1, 2 * REACH + 1))
    np.add.at(
        expected,
        (
            np.clip(np.broadcast_to(wide[:, None], (wide.size, wide.size)), -REACH, REACH) + REACH,
            np.clip(np.broadcast_to(wide[None, :], (wide.size, wide.size)), -REACH, REACH) + REACH,
        ),
        law(p2, wide)[None, :]
        * ((1 - atom) * law(p1, wide[:, None] - wide[None, :]) + atom * (wide[:, None] == wide[None, :])),
    )
    observed = np.zeros_like(expected)
    np.add.at(observed, (np.clip(first, -REACH, REACH) + REACH, np.clip(second, -REACH, REACH) + REACH), 1.0)
    return chi_square_p_value(observed.ravel(), expected.ravel() / expected.sum() * first.size)


def test_every_stage_has_its_own_law_and_any_two_are_the_second_and_something_independent(source):
    stages = chain(source, SCALES)
    for column, scale in zip(stages.T, SCALES, strict=True):
        assert shape_p_value(column, scale) > ALPHA
        assert size_p_value(column, scale) > ALPHA
    for place in range(len(SCALES) - 1):
        pair = stages[:, place], stages[:, place + 1]
        assert joint_p_value(*pair, SCALES[place], SCALES[place + 1]) > ALPHA
    # Also over all steps at once, and far out: what was taken away knows nothing of what is left.
    assert joint_p_value(stages[:, 0], stages[:, 2], SCALES[0], SCALES[2]) > ALPHA
    taken, left = stages[:, 0] - stages[:, 1], stages[:, 1]
    spread = float(np.var(taken)) * float(np.var(left))
    assert mean_p_value(taken * left, 0.0, spread) > ALPHA


def test_at_the_services_scale_every_stage_has_its_size(source):
    scales = [UNIT_SCALE, UNIT_SCALE / 2, UNIT_SCALE / 3]
    for column, scale in zip(chain(source, scales, SAMPLE_SIZE // 5).T, scales, strict=True):
        assert size_p_value(column, scale) > ALPHA


def test_control_an_independent_second_draw_is_caught(source):
    first, second = source.laplace(SCALES[0], SAMPLE_SIZE), source.laplace(SCALES[1], SAMPLE_SIZE)
    assert shape_p_value(second, SCALES[1]) > ALPHA
    assert joint_p_value(first, second, SCALES[0], SCALES[1]) < ALPHA


def test_control_a_chain_without_its_atom_is_caught(source):
    """Z2 shrunk in proportion has nearly the size of the second stage, and not its law."""
    first = source.laplace(SCALES[0], SAMPLE_SIZE)
    assert joint_p_value(first, np.round(first / 2).astype(np.int64), SCALES[0], SCALES[1]) < ALPHA
