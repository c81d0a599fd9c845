"""The smallest share whose answer is predicted to be as exact as is wanted; else nothing is spent.

Privacy: half-widths are predicted from what a plan shows: question and study, in replace_one studies people
and offers, which are public there, in add_remove_one studies numbers that are stated or published. So with
and without a person share and refusal are the same. Bounds are compared with nothing, see `Reading.of`.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from app.core.epsilon import MICRO
from app.core.errors import OutOfReach, PrivacyRefusal, ServiceError
from app.estimators.interface import NotApplicable

Predicted = Callable[[int], float | None]
"""Half of the interval at a share [ppm]; None where it is not predicted.

Raises:
    PrivacyRefusal, NotApplicable: there is no such answer.
"""


def smallest(predicted: Predicted, wanted: float, *, least: int) -> int:
    """The smallest share at which half of the interval is at most as wanted [ppm].

    It falls about as the inverse of the share, until people cannot pay a larger one any more. So shares are
    doubled until one does, and those between it and the last one that did not are halved: the share that is
    found does, and the one below it does not. Where half of the interval rises instead, the last share before
    that is looked for and tried, too.

    Args:
        predicted: By the question's own plan.
        wanted: [the statistic's unit].
        least: What the question has used already, at least 1 [ppm].

    Raises:
        OutOfReach: none does; says the best that one gives.
        PrivacyRefusal, NotApplicable: there is no answer at any share.
    """
    seen: list[float] = []
    refusals: list[ServiceError] = []

    def half_width(share: int) -> float:
        try:
            half = predicted(share)
        except (PrivacyRefusal, NotApplicable) as refusal:
            refusals.append(refusal)
            return math.inf
        seen.extend([] if half is None else [half])
        return math.inf if half is None else half

    def is_wider(width: float, share: int) -> bool:
        return half_width(share) > width

    low, high, last = least - 1, least, math.inf
    while (half := half_width(high)) > wanted:
        if half > last:
            before = _first(low, high, partial(is_wider, last)) - 1
            if half_width(before) <= wanted:
                high = before
                break
        if high == MICRO:
            if not seen and refusals:
                raise refusals[-1]
            raise OutOfReach(_detail(seen), half_width=min(seen, default=None))
        low, high, last = high, min(2 * high, MICRO), half
    return _first(low, high, lambda share: half_width(share) <= wanted)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first share above `low` from which on something holds that does at `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _detail(seen: Sequence[float]) -> str:
    best = f"the best is predicted to be {min(seen):.4g}" if seen else "none is predicted"
    return f"no share reaches this half-width: {best}"
