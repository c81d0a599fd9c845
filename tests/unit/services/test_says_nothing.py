"""What would do where an answer says nothing: the least that does, for few plans of it."""

import math
from collections.abc import Callable

import pytest

from app.core.epsilon import MICRO
from app.core.errors import SaysNothing
from app.estimators.interface import NotApplicable
from app.services.statistics import says_nothing

pytestmark = pytest.mark.refuses

SHARES = [*(one for one in says_nothing._numbers(MICRO) if one > 10_000), MICRO]

WIDTHS: dict[str, Callable[[float, float], float]] = {
    "noise alone": lambda x, least: least / x,
    "its variance": lambda x, least: math.sqrt(least / x),
    "noise and people": lambda x, least: 0.5 * least / x + 0.5,
    "cut off at all that there is": lambda x, least: min(1.0, least / x),
    "a step": lambda x, least: 0.001 if x > least else 1.0,
    "hardly anything": lambda x, least: 0.999 if x > least else 1.0,
}


@pytest.mark.parametrize("kind", WIDTHS)
def test_the_least_share_that_does_is_found(kind: str):
    for least in SHARES:
        looked = list[int]()

        def told(share: int, times: float, least: int = least, looked: list[int] = looked) -> float:
            assert times == 1 or share == 10_000
            if times != 1:
                raise NotApplicable("more people would not do")
            looked.append(share)
            return WIDTHS[kind](share, least)

        with pytest.raises(SaysNothing) as refused:
            says_nothing.check(1.0, told, share=10_000, people=1)
        assert refused.value.share == min((one for one in SHARES if told(one, 1) < 1), default=None)
        looked_at = len(looked) - len(SHARES)
        assert looked_at <= (5 if kind == "noise alone" else 2 * math.log2(len(SHARES)) + 2)


@pytest.mark.parametrize("beyond", [1.0, math.inf, 5.0])
@pytest.mark.parametrize("least", [10_500, 110_000, 250_000, 590_000])
def test_a_share_that_does_is_found_where_people_cannot_pay_the_largest_ones(least: int, beyond: float):
    def told(share: int, times: float) -> float:
        return beyond if times != 1 or share > 900_000 else min(1.0, least / share)

    with pytest.raises(SaysNothing) as refused:
        says_nothing.check(1.0, told, share=10_000, people=1)
    assert refused.value.share == min(one for one in SHARES if one > least)


def test_refused_ones_do_not_do():
    def told(share: int, times: float) -> float:
        if share < 300_000 and times < 50:
            raise NotApplicable("not yet")
        return 0.2

    with pytest.raises(SaysNothing) as refused:
        says_nothing.check(1.0, told, share=10_000, people=100)
    assert (refused.value.share, refused.value.people) == (300_000, 5_000)
