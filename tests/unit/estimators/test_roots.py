"""Brent's method, beside SciPy's to the last bit."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from app.estimators.roots import brentq

FUNCTIONS: dict[str, Callable[[float, float, float], float]] = {
    "cubic": lambda x, a, b: x**3 - a * x + b,
    "exponential": lambda x, a, b: math.expm1(min(a * x, 700)) - b,
    "flat at the root": lambda x, a, b: (x - b) ** 9,
    "steep at the root": lambda x, a, b: math.copysign(abs(x - b) ** 0.1, x - b),
    "tiny": lambda x, a, b: x * 1e-200 * a + b * 1e-200,
    "a step": lambda x, a, b: 1.0 if x > b else -1.0,
    "a line with a kink": lambda x, a, b: min(x - b, a * (x - b)),
}
TOLERANCES: tuple[dict[str, float], ...] = (
    {},
    {"xtol": 1e-6, "rtol": 1e-6},
    {"xtol": 5e-324, "rtol": 2**-50},
    {"xtol": 1e-9, "maxiter": 9},
)
NUMBERS = st.floats(-10, 10)


def _outcome(search: Callable[..., float], *arguments: object, **tolerances: float) -> object:
    try:
        return search(*arguments, **tolerances)
    except (ValueError, RuntimeError) as error:
        return type(error)


@given(st.sampled_from(sorted(FUNCTIONS)), st.sampled_from(TOLERANCES), NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_every_root_and_every_failure_is_that_of_scipy(
    name: str, tolerances: dict[str, float], a: float, b: float, first: float, last: float
) -> None:
    def of(x: float) -> float:
        return FUNCTIONS[name](x, a, b)

    expected = _outcome(optimize.brentq, of, first, last, **tolerances)
    found = _outcome(brentq, of, first, last, **tolerances)
    assert repr(found) == repr(expected)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        brentq(lambda x: math.nan, 0.0, 1.0)
