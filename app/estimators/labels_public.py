r"""The mean of all people off the noisy sums of each label, where labels are public (replace_one).

Label l has :math:`n_l` people of the n whose labels have an answer, and a weighted mean with the weights
:math:`c_{li}`, which sum to one over its people. The mean of all is the sum of those of labels times their
part of the people, :math:`\pi_l = n_l / n`: a linear estimate with the weights :math:`\pi_l c_{li}` and the
labels' noises times :math:`\pi_l`. So error, intervals and the effect of a tilt are those of
`app.estimators.linear`, which counts the people of labels without an answer as people who weigh nothing. A
label in which people ask for little privacy counts for no more than its people (post-stratification).

Of K labels of one size the noise has the variance of K times that of one sum of all people.

The mean square of all people is read off those of labels in the same way, with the same weights, where each
label has its own (`app.estimators.moments`).
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from operator import mul

import numpy as np

from app.core.cohort import Group
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, NoNoise
from app.estimators.interface import Plan, Question
from app.estimators.linear import combine
from app.estimators.moments import with_both


def whole_plan(labels: Sequence[tuple[Sequence[Group], Plan | None]], question: Question) -> Plan:
    """The plan of the mean of all people.

    Args:
        labels: For each label its groups, and its plan of one query on sums of values, or of that and of the
            sums of squares, the same for all labels; None of a label without an answer. One of them has one.
        question: What is asked of all people.

    Returns:
        A plan without queries: its `conclude` takes the noisy values of the labels' plans, one after the
        other; it has a variance where they do.

    Privacy: post-processing of them.
    """
    answered = [plan for _, plan in labels if plan is not None]
    total = sum(group.count for groups, plan in labels if plan is not None for group in groups)
    units, people = list[Fraction](), list[float]()
    laplaces, of_squares = list[tuple[float, int]](), list[tuple[float, int]]()
    normal, normal_squares = 0.0, 0.0
    for groups, plan in labels:
        if plan is None:
            people += [0.0] * len(groups)
            continue
        weights, sizes = plan.queries[0].sum_weights, [group.count for group in groups]
        # What one unit of the label's sum adds to the mean of all.
        unit = Fraction(sum(sizes), total * GRID_SIZE * sum(map(mul, weights, sizes)))
        units.append(unit)
        people += [float(unit * GRID_SIZE * weight) for weight in weights]
        match plan.noise:
            case NoNoise():
                pass
            case DiscreteLaplace(scales=scales):
                laplaces.append((float(unit) * scales[0], 1))
                of_squares.append((float(unit) * scales[-1], 1))
            case DiscreteGaussian(sigmas=sigmas):
                normal += (float(unit) * sigmas[0]) ** 2
                normal_squares += (float(unit) * sigmas[-1]) ** 2
            case _:
                raise InternalFault("There is no sum of labels under this noise.")
    groups, each = [group for groups, _ in labels for group in groups], len(answered[0].queries)
    plan = combine(
        groups,
        question,
        queries=(),
        noise=NoNoise(),
        person=np.array(people),
        laplaces=laplaces,
        normal=normal,
        read=lambda values: sum(map(mul, units, values[::each]), Fraction()),
    )
    if plan.conclude_within is None or not all(one.has_variance for one in answered):
        return plan

    def moments(values: Sequence[int]) -> tuple[float, float]:
        first, second = (sum(map(mul, units, values[place::each]), Fraction()) for place in range(2))
        return float(first - Fraction(1, 2)), float(second)

    return with_both(
        replace(plan, conclude_within=None, by_parts=True),
        plan.conclude_within,
        groups,
        question,
        person=np.array(people),
        laplaces=tuple(laplaces),
        of_squares=tuple(of_squares),
        normals=(normal, normal_squares),
        moments=moments,
    )
