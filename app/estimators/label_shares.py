r"""The shares of all people, off counts by bin that were made for each label of an attribute.

*replace_one.* Which part :math:`\pi_l` of the people has each label is public. So the shares of all people
are :math:`\sum_l \pi_l \hat f_l`, off the labels' shares on the plane (`app.estimators.shares`). Their
noise is the sum of the labels' noises times these parts; what people weigh is in
`app.estimators.weighing.weigh_labels`.

*add_remove_one.* The noisy counts of labels add up, with the noise of all labels.
"""

from collections.abc import Sequence
from dataclasses import replace

from app.estimators.shares import SharesPlan
from app.estimators.weighing import weigh_labels


def whole_of(labels: Sequence[tuple[int, SharesPlan]], people: int, tilt: float) -> SharesPlan:
    """The plan of the shares of all people.

    Args:
        labels: For each label with an answer its people and its plan, at least one; of one relation.
        people: replace_one: all people, those of labels without an answer too.
        tilt: The question's.

    Privacy: post-processing of the noisy counts.
    """
    first = labels[0][1]
    if not first.weighing.is_public:
        every = tuple((1.0, plan) for _, plan in labels)
        return replace(first, weighing=replace(first.weighing, weights=()), parts=every)
    answered = sum(count for count, _ in labels)
    parts = [(count / answered, plan) for count, plan in labels]
    weighing = weigh_labels([(count, plan.weighing) for count, plan in labels], people, tilt)
    reported = tuple(
        replace(group, weight=share * group.weight) for share, plan in parts for group in plan.reported
    )
    # Of what a label reads off several noisy counts, each is a part of the whole.
    every = tuple((share * own, part) for share, plan in parts for own, part in plan.parts or ((1.0, plan),))
    return SharesPlan(bins=first.bins, weighing=weighing, reported=reported, parts=every, both=first.both)
