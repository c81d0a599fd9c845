"""A headline is never more certain than its interval."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.numbers import headline


def number(text: str) -> float:
    return float(text.replace(",", ""))


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.floats(1e-6, 1e9))
def test_what_is_shown_covers_the_interval_and_has_two_digits_of_it(
    estimate: float, below: float, above: float
):
    lower, upper = estimate - below, estimate + above
    half = (upper - lower) / 2
    if half < 1e-9 * max(1.0, abs(lower), abs(upper)):
        return
    shown = headline(estimate, lower, upper)
    slack = 1e-12 * max(abs(lower), abs(upper), 1)
    assert number(shown.lower) <= lower + slack
    assert upper - slack <= number(shown.upper)
    assert number(shown.upper) - number(shown.lower) <= 2 * half * 1.2 + slack
    assert abs(number(shown.estimate) - estimate) <= half / 10 + slack


def test_rounding_says_no_more_than_is_known():
    assert headline(57.3141, 0, 120) == ("57", "0", "120")
    assert headline(-0.01, -3, 3) == ("0.0", "-3.0", "3.0")
    assert headline(51234.5, 48000, 55000) == ("51,200", "48,000", "55,000")
    assert headline(12.5, 12.5, 12.5) == ("12.5", "12.5", "12.5")


def test_an_estimate_far_nearer_to_one_end_is_not_shown_outside_its_interval():
    assert headline(79.6, 76.7, 826_445.4) == ("100", "0", "826,500")
    assert headline(-79.6, -826_445.4, -76.7) == ("-100", "-826,500", "0")
    # At an end of the range there is nothing to keep it in, and a few digits are all that is tried.
    assert headline(55 / 3, 55 / 3, 40) == ("18", "18", "40")
    assert headline(55 / 3 + 1e-9, 55 / 3, 40).estimate == "18.333"
