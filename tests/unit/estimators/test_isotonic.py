"""Isotonic regression, beside SciPy's to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from app.estimators.isotonic import rising

VALUES = st.lists(st.floats(-10, 10) | st.sampled_from([0.0, -0.0, 0.1, 1.0]), min_size=1, max_size=40)


def _is_scipys(values: np.ndarray) -> None:
    found = rising(values)
    assert found.dtype == np.float64
    assert found.tobytes() == optimize.isotonic_regression(values).x.tobytes()


@given(VALUES)
def test_every_sequence_is_that_of_scipy(values: list[float]) -> None:
    _is_scipys(np.array(values))


def test_noisy_sums_are_those_of_scipy() -> None:
    source = np.random.default_rng(3)
    for bins in (1, 2, 9, 100, 1_000):
        for noise in (0.001, 0.1, 3.0):
            _is_scipys(np.linspace(0, 1, bins) + source.laplace(scale=noise, size=bins))


def test_of_nothing_there_is_nothing() -> None:
    assert rising(np.array([])).tolist() == []
