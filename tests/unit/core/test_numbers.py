"""Numbers from text: exact, or refused."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.grid import NotANumber
from app.core.numbers import JsonNumber, to_decimal, to_integer

REFUSED = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1e-400",
    "",
    " 1",
    "1 ",
    "+",
    ".",
    "+-1",
    "1_0",
    "0x1",
    "１",
    "9" * 31,
]


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=9))
def test_a_decimal_is_exact(number: Decimal) -> None:
    assert to_decimal(format(number, "f")) == number
    assert Fraction(to_decimal(format(number, "f"))) == Fraction(number)


@pytest.mark.parametrize("text", ["-0", "-0.0", "0e5", "-0.000e-9"])
def test_minus_zero_is_zero(text: str) -> None:
    assert str(to_decimal(text)) == "0"
    assert to_integer(text) == 0


def test_sixty_digits_are_not_rounded() -> None:
    text = "1" * 30 + "." + "2" * 30
    assert str(to_decimal(text)) == text


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_finite_number_of_a_sensible_length_is_refused(text: str) -> None:
    for parse in (to_decimal, to_integer):
        with pytest.raises(NotANumber):
            parse(text)


@given(st.integers(-(10**25), 10**25))
def test_an_integer_is_exact_in_every_spelling(number: int) -> None:
    for text in (str(number), f"{number}.0", f"{number}.000e0", f"{number}0e-1", f"{number}e0"):
        assert to_integer(text) == number


@pytest.mark.parametrize("text", ["0.5", "1e-1", "-3.000000000000000000001", "12e-2"])
def test_what_is_no_integer_is_refused(text: str) -> None:
    with pytest.raises(NotANumber):
        to_integer(text)


def test_a_json_number_is_text() -> None:
    assert JsonNumber("1.0") == "1.0"
    assert JsonNumber("1.0") != JsonNumber("1.00")
