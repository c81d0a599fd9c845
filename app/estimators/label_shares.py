r"""The shares of all people, off counts by bin that were made for each label of an attribute.

*replace_one.* Which part :math:`\pi_l` of the people has each label is public. So the shares of all people
are :math:`\sum_l \pi_l \hat f_l`, off the labels' shares on the plane (`app.estimators.shares`). Their
noise is the sum of the labels' noises times these parts, and a person of label l weighs :math:`\pi_l` times
what they weigh in it. These weights sum to one over all people, those of labels without an answer weigh
nothing, hence

.. math:: \sum_i (c_i - 1/n)^2 = \sum_l \pi_l^2 \sum_{i \in l} c_{li}^2 - 1/n.

A tilt moves the shares of label l by at most its own bias; leaving out m of n people moves those of all by at
most tilt m / n.

*add_remove_one.* The noisy counts of labels add up, with the noise of all labels.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from app.core.study import Relation
from app.estimators.shares import SharesPlan
from app.estimators.weighing import Weighing


def whole_of(labels: Sequence[tuple[int, SharesPlan]], people: int, tilt: float) -> SharesPlan:
    """The plan of the shares of all people.

    Args:
        labels: For each label with an answer its people and its plan, at least one; of one relation.
        people: replace_one: all people, those of labels without an answer too.
        tilt: The question's.

    Privacy: post-processing of the noisy counts.
    """
    own, first = [plan.weighing for _, plan in labels], labels[0][1]
    if first.weighing.relation is Relation.ADD_REMOVE_ONE:
        parts = tuple((1.0, plan) for _, plan in labels)
        return replace(first, weighing=replace(own[0], weights=()), parts=parts)
    answered = sum(count for count, _ in labels)
    shares, absent = [count / answered for count, _ in labels], people - answered
    squares = math.fsum(share**2 * one.squares for share, one in zip(shares, own, strict=True))
    equal = not absent and not any(one.uneven for one in own)
    bias = math.fsum(share * one.bias for share, one in zip(shares, own, strict=True))
    weighing = Weighing(
        relation=Relation.REPLACE_ONE,
        weights=(),
        squares=squares,
        uneven=0.0 if equal else max(squares - 1 / people, 0.0),
        largest=max(share * one.largest for share, one in zip(shares, own, strict=True)),
        bias=bias + tilt * absent / people,
        currency=own[0].currency,
    )
    reported = tuple(
        replace(group, weight=share * group.weight)
        for share, (_, plan) in zip(shares, labels, strict=True)
        for group in plan.reported
    )
    parts = tuple((share, plan) for share, (_, plan) in zip(shares, labels, strict=True))
    return SharesPlan(bins=first.bins, weighing=weighing, reported=reported, parts=parts)
