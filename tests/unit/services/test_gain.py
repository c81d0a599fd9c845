"""What is a gain, at its limits."""

import pytest

from app.core.errors import NoGain
from app.services.statistics import gain


@pytest.mark.parametrize(
    ("left_out", "width", "best", "needed", "is_gain"),
    [
        (50, 10.0, None, False, True),
        (51, 10.0, None, False, False),
        (51, 10.0, None, True, False),
        (0, 10.0, None, True, True),
        # One that may be made anew is not much worse than the best one, one that must be better is so by a
        # part of it.
        (0, 15.0, 10.0, False, True),
        (0, 15.1, 10.0, False, False),
        (0, 9.5, 10.0, True, True),
        (0, 9.6, 10.0, True, False),
        (0, 10.0, 10.0, True, False),
    ],
)
def test_an_answer_is_a_gain_or_refused(
    left_out: int, width: float, best: float | None, needed: bool, is_gain: bool
):
    def check() -> None:
        gain.check(people=100, left_out=left_out, width=width, best=best, needed=needed)

    if is_gain:
        check()
        return
    with pytest.raises(NoGain, match="allow_worse"):
        check()
