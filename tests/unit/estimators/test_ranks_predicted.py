"""What a quantile is predicted to miss by, beside the law of its draw on values as they are."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from app.estimators.ranks import CELLS, drawn_error

PEOPLE = 20_000
RNG = np.random.default_rng(5)
VALUES = {
    "incomes": np.minimum(RNG.lognormal(math.log(31_000), 0.7, PEOPLE) / 350_000, 1),
    "minutes": np.minimum(RNG.gamma(2, 14, PEOPLE) / 180, 1),
    "ages": np.clip(RNG.normal(42, 18, PEOPLE) / 120, 0, 1),
}


def realized(values: NDArray[np.float64], quantile: float, scale: float) -> float:
    """The error of a draw of a cell, by the law of the exponential mechanism."""
    cells = np.clip(np.ceil(values * CELLS).astype(int), 0, CELLS)
    upper = np.cumsum(np.bincount(cells, minlength=CELLS + 1)) / len(values)
    lower = np.concatenate([[0.0], upper[:-1]])
    off = np.maximum(np.maximum(lower - quantile, quantile - upper), 0)
    weights = np.exp(-off / scale)
    return math.sqrt(float(weights @ off**2 / weights.sum()))


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("scale", [0.01, 0.02, 0.05, 0.075, 0.1])
def test_predicted_over_realized_errors_of_a_median_are_near_one(values: NDArray[np.float64], scale: float):
    seen = realized(values, 0.5, scale)
    assert 0.8 <= drawn_error(scale, 0.5) / seen <= 1.3
    # The control: what holds for any data is no prediction.
    log = math.log(CELLS / 2)
    assert scale * math.sqrt(log * log + 2 * log + 2) / seen > 1.3


def test_the_error_of_a_small_draw_is_that_of_laplace_noise_and_of_a_large_one_that_of_any_cell():
    assert drawn_error(1e-4, 0.25) == pytest.approx(math.sqrt(2) * 1e-4)
    assert drawn_error(1e6, 0.5) < 0.5
