"""The chi-square test of a noisy table: what it is without noise, what noise hides, what a tilt may do."""

import numpy as np
import pytest
import scipy.special

from app.core.study import Relation
from app.estimators import independence
from app.estimators.independence import TABLES, _p_value, p_value
from app.estimators.shares import SharesPlan
from app.estimators.weighing import Weighing

PEOPLE = 400


def of(counts: list[list[int]], *, scale: float = 0.0, bias: float = 0.0, on_plane: bool = True) -> float:
    table = np.array(counts, dtype=np.float64)
    return _p_value(
        table / table.sum(),
        float(table.sum()),
        [scale],
        gaussian=False,
        on_plane=on_plane,
        bias=bias,
    )


@pytest.mark.parametrize("counts", [[[120, 80], [90, 110]], [[60, 30, 40], [50, 70, 30], [40, 40, 40]]])
def test_without_noise_it_is_pearsons_test(counts: list[list[int]]):
    table = np.array(counts, dtype=np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    classic = scipy.special.chdtrc(freedom, ((table - expected) ** 2 / expected).sum())
    # Five standard deviations of as many simulated tables, and what a lattice differs by from its limit.
    assert of(counts) == pytest.approx(classic, abs=5 * np.sqrt(classic * (1 - classic) / TABLES) + 0.01)


def test_it_is_the_same_each_time_and_never_zero():
    dependent = [[200, 0], [0, 200]]
    assert of(dependent) == of(dependent) == 1 / (TABLES + 1)
    assert of([[100, 100], [100, 100]]) == 1.0


def test_noise_hides_dependence_and_a_tilt_explains_it():
    dependent = [[120, 80], [80, 120]]
    assert of(dependent) < 0.001
    assert of(dependent, scale=20 / PEOPLE) > 0.01, "the residual is 20 people, and the noise as large"
    assert of(dependent, bias=0.2) > 0.9
    one, two, three = (of(dependent, bias=bias) for bias in (0.0, 0.02, 0.05))
    assert one < two < three


def test_a_tilt_moves_no_residual_further_than_it_is_given():
    """Brute force: every pair of cells between which mass moves, on tables of random margins."""
    random = np.random.default_rng(1)
    bias = 0.07
    for _ in range(40):
        table = random.dirichlet(np.ones(6)).reshape(2, 3) * (1 - bias) + bias / 6
        given = independence._moved(table.sum(axis=1), table.sum(axis=0), bias)
        assert isinstance(given, np.ndarray)
        for up in range(6):
            for down in range(6):
                moved = table.ravel().copy()
                step = min(bias, moved[down])
                moved[up] += step
                moved[down] -= step
                other = moved.reshape(2, 3)
                change = residuals(other) - residuals(table)
                assert (np.abs(change) <= given + 1e-12).all()


def residuals(table: np.ndarray) -> np.ndarray:
    found: np.ndarray = table - np.outer(table.sum(axis=1), table.sum(axis=0))
    return found


def test_of_a_secret_number_of_people_that_is_lost_it_says_nothing():
    weighing = Weighing(relation=Relation.ADD_REMOVE_ONE, weights=(10**6,), cap=10**6, floor=10**6)
    plan = SharesPlan(bins=4, weighing=weighing)
    lost, few = [-(10**6), 0, 10**6, -(10**6)], [3 * 10**6, -(10**6), 0, 2 * 10**6]
    assert p_value(plan, [(lost, ())], 2) == 1.0
    assert p_value(plan, [(few, ())], 2) > 0.05
    sure = [400 * 10**6, 0, 0, 400 * 10**6]
    assert p_value(plan, [(sure, ())], 2) == 1 / (TABLES + 1)
