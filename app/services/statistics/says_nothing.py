r"""Whether an answer will say anything: else it is refused before anyone is charged.

An answer says nothing where its interval is *predicted* to be all that the number can be: of a mean the range
of the study, of a share 0 to 1; a count, where its predicted error exceeds the number of people that is
published or stated. The refusal says the least share that would do, and how many people would, spread over
trust and offers as those who are there. Both are looked for with the question's own plan: there is no second
formula. Bounds are never compared with: where a plan has but a bound, values may say more than that.

Privacy: depends on question and study; in replace_one studies on people and offers, which are public there;
in add_remove_one studies on the number of people that a question states or noisy answers have published, and
where there is none no answer is refused for this. So with and without a person refusals are the same but
through noisy answers that were paid for. Who is there, and what they sent, decides nothing.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from statistics import NormalDist

from app.core.epsilon import MICRO, epsilon_to_json
from app.core.errors import PrivacyRefusal, SaysNothing
from app.core.numbers import counted
from app.estimators.confidence import LEVEL
from app.estimators.interface import NotApplicable

MOST_PEOPLE = 10**9
"""More people are not looked for."""

WHOLE = 1.0
"""The part of all that a number can be from which on an interval says nothing."""

_HALF = NormalDist().inv_cdf((1 + LEVEL) / 2)
"""Half of an interval over the error, where no interval is predicted."""

Told = Callable[[int, float], float]
"""What the predicted interval takes up of all that the number can be, or of a count the predicted error over
the number: at a share [ppm], for this many times the people. 0 where nothing is known of how many there are.

Raises:
    PrivacyRefusal, NotApplicable: there is no such answer.
"""


def width_of(error: float) -> float:
    """The width of an interval where an error alone is predicted, in its unit."""
    return 2 * _HALF * error


INTERVAL = "its 95 % interval is predicted to be all that the number can be"
COUNTED = "its error is predicted to exceed the number of people that is published or stated"


def check(part: float, told: Told, *, share: int, people: float, why: str = INTERVAL) -> None:
    """Refuse an answer that will say nothing.

    Args:
        part: What it will tell.
        told: What others would tell.
        share: Of the question [ppm].
        people: Who are there, as far as is known.
        why: It says nothing then.

    Raises:
        SaysNothing: with what would do.
    """
    if part < WHOLE:
        return

    @cache
    def part_of(share: int, times: float) -> float:
        try:
            return told(share, times)
        except (PrivacyRefusal, NotApplicable):
            return math.inf

    shares = [*(one for one in _numbers(MICRO) if one > share), MICRO] if share < MICRO else []
    sizes = [one for one in _numbers(MOST_PEOPLE) if one > people]
    larger = _least_payable(shares, lambda one: part_of(one, 1.0))
    more = _least(sizes, lambda one: part_of(share, one / max(people, 1.0)))
    raise SaysNothing(_detail(larger, more, why), share=larger, people=more)


def _detail(share: int | None, people: int | None, why: str) -> str:
    would = [] if share is None else [f"a share of {epsilon_to_json(share):g}"]
    would += [] if people is None else [counted(people, "person", "people")]
    do = f"{' or '.join(would)} would do" if would else "no share and no number of people would do"
    return f"the answer would say nothing: {why}; {do}; allow_worse makes this one too"


def _numbers(most: int) -> list[int]:
    """Numbers of two significant digits, ascending."""
    found = list(range(1, 10))
    scale = 1
    while 10 * scale <= most:
        found += range(10 * scale, 100 * scale, scale)
        scale *= 10
    return [one for one in found if one <= most]


def _least_payable(shares: Sequence[int], part_of: Callable[[int], float]) -> int | None:
    """The first share that says something, where people may be unable to pay the largest ones.

    Other answers have taken of what people offer, so the largest share may say less than a smaller one, or be
    refused. Where it does not do, shares are looked at upwards until one does: as much larger as an interval
    is too wide, and by half at least.
    """
    if not shares or part_of(shares[-1]) < WHOLE:
        return _least(shares, part_of)
    low, times = 0, 1.5
    while low < len(shares):
        high = max(low, bisect_right(shares, shares[low] * times) - 1)
        found = part_of(shares[high])
        if found < WHOLE:
            return _least(shares[low : high + 1], part_of)
        low, times = high + 1, max(1.5, found if math.isfinite(found) else 1.5)
    return None


def _least(candidates: Sequence[int], part_of: Callable[[int], float]) -> int | None:
    """The first of these that says something, where all behind it do; None: none does.

    What the interval takes up is about inverse to a share, and to a number of people. So every other one that
    is looked at is guessed from the best one that was seen to do, and those between are halved.
    """
    low, high = 0, len(candidates) - 1
    if high < 0 or (part := part_of(candidates[high])) >= WHOLE:
        return None
    guesses = True
    while low < high:
        guess = bisect_left(candidates, candidates[high] * part / WHOLE, low, high - 1)
        place = guess if guesses else (low + high) // 2
        guesses = not guesses
        found = part_of(candidates[place])
        if found < WHOLE:
            high, part = place, found
        else:
            low = place + 1
    return candidates[high]
