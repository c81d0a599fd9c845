"""Numbers, grid points and epsilons, against fractions."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from dither.device.numbers import (
    GRID_SIZE,
    Grid,
    NotANumber,
    Number,
    epsilon_cost,
    epsilon_decimal,
    epsilon_limit,
    epsilon_text,
    parse_decimal,
    round_down_to_significant,
)
from hypothesis import example, given
from hypothesis import strategies as st

from app.core import epsilon as server_epsilon

BOUNDS = st.tuples(
    st.decimals(min_value=-(10**15), max_value=10**15, places=6),
    st.decimals(min_value=-(10**15), max_value=10**15, places=6),
).filter(lambda bounds: bounds[0] != bounds[1])


@st.composite
def number_texts(draw: st.DrawFn) -> str:
    """Texts that are numbers, and some that nearly are."""
    whole = draw(st.text("0123456789", max_size=32))
    fraction = draw(st.none() | st.text("0123456789", max_size=32))
    exponent = draw(st.none() | st.integers(min_value=-120, max_value=120))
    sign = draw(st.sampled_from(["", "-", "+"]))
    text = sign + whole + ("" if fraction is None else f".{fraction}")
    return text if exponent is None else f"{text}e{exponent}"


@given(text=number_texts())
@example(text="007.50e-07")
@example(text="-0")
@example(text="1\n")
@example(text=".5")
@example(text="+5")
@example(text="5.")
@example(text="-.")
def test_a_text_is_read_exactly(text: str) -> None:
    digits, exponent, power = text.lstrip("+-").partition("e")
    whole, _, rest = digits.partition(".")
    long = any(len(part) > 30 for part in (whole, rest)) or len(power.lstrip("+-")) > 2
    if not whole + rest or long or (exponent and not power[-1:].isdigit()) or text.endswith("\n"):
        with pytest.raises(NotANumber):
            Number.parse(text)
        return
    number = Number.parse(text)
    assert number.fraction == Fraction(text)
    assert parse_decimal(text) == (number.mantissa, number.exponent)
    # What is sent is JSON, and the service reads the same from it.
    assert parse_decimal(number.text) == (number.mantissa, number.exponent)
    assert json.loads(number.text, parse_float=Fraction, parse_int=Fraction) == number.fraction


@given(value=st.floats(min_value=-(10**20), max_value=10**20))
def test_a_float_is_the_shortest_text_that_reads_back_as_it(value: float) -> None:
    try:
        number = Number.parse(value)
    except NotANumber:
        assert 0 < abs(value) < 1e-99  # smaller than any number of this service
        return
    assert number == Number.parse(repr(value))
    assert float(number.fraction) == value


@given(bounds=BOUNDS, position=st.fractions(min_value=-1, max_value=2), places=st.integers(0, 25))
def test_a_grid_point_is_the_nearest_one(
    bounds: tuple[Decimal, Decimal], position: Fraction, places: int
) -> None:
    lower, upper = sorted(bounds)
    value = Fraction(lower) + position * (Fraction(upper) - Fraction(lower))
    mantissa = round(value * 10**places)
    exact = (Fraction(mantissa, 10**places) - Fraction(lower)) / (Fraction(upper) - Fraction(lower))
    expected = math.floor(exact * GRID_SIZE + Fraction(1, 2)) if 0 <= exact <= 1 else None
    assert Grid(lower, upper).point(mantissa, -places) == expected
    assert Grid(Fraction(lower), Fraction(upper)).point(mantissa, -places) == expected


@given(bounds=BOUNDS, numerator=st.integers(0, GRID_SIZE))
def test_every_grid_point_is_its_own(bounds: tuple[Decimal, Decimal], numerator: int) -> None:
    lower, upper = map(Fraction, sorted(bounds))
    value = lower + (upper - lower) * Fraction(numerator, GRID_SIZE)
    mantissa = value * 10**60
    if mantissa.denominator == 1:
        assert Grid(lower, upper).point(int(mantissa), -60) == numerator


@given(micro=st.integers(1, server_epsilon.MAX_EPSILON))
@example(micro=1)
@example(micro=999_999)
@example(micro=server_epsilon.MAX_EPSILON)
def test_an_epsilon_survives_the_wire(micro: int) -> None:
    assert epsilon_limit(epsilon_text(micro)) == micro == epsilon_cost(epsilon_decimal(micro))
    assert server_epsilon.epsilon_limit(Decimal(epsilon_text(micro))) == micro
    assert epsilon_limit(Decimal(str(server_epsilon.epsilon_to_json(micro)))) == micro


@given(micro=st.integers(1, server_epsilon.MAX_EPSILON))
def test_an_epsilon_keeps_its_first_three_digits(micro: int) -> None:
    text = str(micro)
    assert round_down_to_significant(micro) == int(text[:3] + "0" * (len(text) - 3))


@given(value=st.decimals(min_value=0, max_value=10**6, places=15))
def test_limits_round_down_and_costs_round_up(value: Decimal) -> None:
    micro = Fraction(value) * 10**6
    assert epsilon_limit(value) <= micro <= epsilon_cost(value)
    assert epsilon_cost(value) - epsilon_limit(value) == (micro.denominator != 1)
    assert epsilon_limit(value) == server_epsilon.epsilon_limit(value)


def test_a_limit_of_many_digits_is_never_rounded_up() -> None:
    assert epsilon_limit("0." + "9" * 30) == 999_999


class Indexed:
    """An integer of another library."""

    def __index__(self) -> int:
        return 34


class Float(float):
    """A float of another library, whose repr is not a number."""

    def __repr__(self) -> str:
        return f"Float({float.__repr__(self)})"


def test_numbers_of_other_libraries_are_numbers() -> None:
    assert Number.parse(Indexed()) == Number.parse(34)
    assert Number.parse(Float(0.1)) == Number.parse("0.1")


@pytest.mark.parametrize(
    "value", [True, False, None, b"1", [], 1j, Fraction(1, 2), "NaN", "-Infinity", "", "1e100"]
)
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(NotANumber):
        Number.parse(value)  # type: ignore[arg-type]  # wrong on purpose
