"""Limits go down, costs go up, and no digit is lost on the way."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.epsilon import (
    MAX_EPSILON,
    MICRO,
    delta_limit,
    epsilon_cost,
    epsilon_limit,
    epsilon_to_json,
    round_down_to_significant,
    share_of,
)

MICROS = st.integers(0, MAX_EPSILON)


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("1", MICRO),
        ("0.1234567", 123_456),
        ("0." + "9" * 30, 999_999),
        ("123456.9999999999999999999999", 123_456_999_999),
    ],
)
def test_a_limit_is_rounded_down_however_many_digits_it_has(text: str, micro: int) -> None:
    assert epsilon_limit(Decimal(text)) == micro


def test_a_delta_limit_is_rounded_down() -> None:
    assert delta_limit(Decimal("0.0000000000019999")) == 1


@given(st.fractions(0, 1000))
def test_a_cost_is_the_smallest_number_of_micros_that_covers_it(cost: Fraction) -> None:
    micro = epsilon_cost(cost)
    assert Fraction(micro, MICRO) >= cost > Fraction(micro - 1, MICRO)


@given(MICROS)
def test_three_significant_digits_are_kept_and_nothing_is_added(micro: int) -> None:
    rounded = round_down_to_significant(micro)
    assert rounded <= micro
    assert len(str(rounded).rstrip("0")) <= 3
    assert round_down_to_significant(rounded) == rounded
    assert micro - rounded < max(1, rounded // 100)


@given(MICROS, st.integers(1, MICRO))
def test_a_share_never_exceeds_the_part(micro: int, share: int) -> None:
    assert share_of(micro, share) * MICRO <= micro * share < (share_of(micro, share) + 1) * MICRO


@given(MICROS)
def test_json_loses_no_micro(micro: int) -> None:
    assert epsilon_limit(Decimal(repr(epsilon_to_json(micro)))) == micro
