r"""Whether a new answer is worth its price: in replace_one studies an answer is not replaced by a worse one.

Answers to one question (statistic, estimator and its parameters; share and cap aside) are compared by the
width that their plans predicted for the 95 % interval, so no noise decides which answer is the best. An
interval is for the mean of the people who were there. For the people of today it is wider: the means of n
people and of the m of today, one of the groups being a part of the other and all of them drawn
independently with a variance of at most :math:`W^2/4`, differ with a variance of at most
:math:`W^2/4 \cdot |1/n - 1/m|`. People may also leave because of their values: the mean of the m who stay
differs from that of all n by at most the part 1 - m/n of the range. So a former answer counts with

.. math:: w + W \max\big(1.96 \sqrt{|1/n - 1/m|},\; 2 (1 - m/n)\big).

People who withdraw, or who come, make former answers less good in this way, and never stand in the way of
a new one: what is refused is an answer that is worse because people cannot pay any more, or because the
question takes less of them.

Privacy: people, offers and what is left of them are public under replace_one, and plans depend on no raw
value. Under add_remove_one they are secret: there nothing is compared, a question is always answered, and
the newest answer stands.
"""

from app.core.errors import NoGain

WIDER = 1.5
"""A new answer whose interval is predicted to be this many times as wide as the best one's is refused."""

AS_GOOD = 1.05
"""Up to this many times as wide as the best one's, a newer interval is as good as that."""


def check(*, people: int, left_out: int, width: float, best: float | None, needed: bool) -> None:
    """Refuse an answer that is no gain.

    Args:
        people: Live contributions.
        left_out: Those of them that cannot pay.
        width: Predicted width of the new answer's interval [data's unit].
        best: The smallest width that a former answer has for the people of today; None: there is none.
        needed: Whether the answer must be better than every former one, not only not much worse.

    Raises:
        NoGain: more than half of the people cannot pay, or the interval is too wide.
    """
    if 2 * left_out > people:
        raise NoGain(f"{left_out} of {people} people cannot pay any more; allow_worse answers without them")
    if best is not None and (width * AS_GOOD >= best if needed else width > WIDER * best):
        raise NoGain(
            f"the interval would be {width:.3g} wide, and there is an answer with one of {best:.3g}; "
            "allow_worse makes this one too"
        )
