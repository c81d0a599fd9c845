r"""A mean for each label where labels are as secret as presence, and that of all people, for one epsilon.

Each declared label has the sums of `transformed` over its own people, all under independent noise of one
scale. The whole is the ratio of their sums: of K labels each of its sums has K draws.

*Privacy.* A neighbor has one person more or one fewer, in any label. Let person i offer a_i and have label l.
The queries of other labels do not weigh i, so with and without i their noisy sums have the same law, and for
every outcome y of all sums

.. math:: \Big|\ln \frac{p(y)}{p'(y)}\Big| = \Big|\ln \frac{p_l(y_l)}{p_l'(y_l)}\Big| \le a_i,

the price of `transformed`, the same for every label: parallel composition (McSherry, SIGMOD 2009,
doi:10.1145/1559845.1559850, theorem 4). `app.accounting.costs` finds it from the queries, of which a person
moves two, or three. A person who changes the label leaves one and joins another: two neighbors, and at most
:math:`2 a_i`, as one who withdraws and comes again pays; the ledger has both contributions.

*Read together.* Beside the intervals of a label there are wider ones, of which those of two labels, or those
of all K, hold at once with the level of one: each misses with a half, or a K-th, of its risk (union bound).
A difference of two labels, and a mean over known shares of all, lie between the sums of their ends.

*What shows.* Queries, noise, prices of offers, predicted errors and the number of answers follow from the
question and the declared labels. An empty label has a noisy ratio as any other one has, and no number of
people but the noisy one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.cohort import Groups
from app.core.errors import InternalFault
from app.core.noise import NoNoise, repeated
from app.core.plain import plain
from app.estimators.interface import Conclusion, Interval, Plan, Question, SparseQuery, made
from app.estimators.transformed import Transformed, joint_reader, reader


def labels_plan(
    groups: Groups, labels: Sequence[int], conditions: Sequence[Mapping[str, str]], question: Question
) -> Plan:
    """The plan of `transformed` for each label, and for all together.

    Args:
        groups: All groups, none with people of two labels, length G.
        labels: The number of each group's label, length G.
        conditions: Every declared label, as the answer names it.
        question: What is asked.

    Returns:
        A plan whose `details` have `groups`, one for each declared label. predicted_error is that of the
        whole.

    Raises:
        InternalFault: a group has no declared label.

    Privacy: costs every person what `transformed` costs, see the module.
    """
    count = len(conditions)
    if len(labels) != len(groups) or not set(labels) <= set(range(count)):
        raise InternalFault("A group has no declared label.")
    places: list[list[int]] = [[] for _ in conditions]
    for place, label in enumerate(labels):
        places[label].append(place)
    plans = [Transformed().plan(groups.some(own), question) for own in places]
    queries = [
        SparseQuery(size=len(groups), terms=tuple((own[place], a, b, c) for place, a, b, c in query.terms))
        for own, plan in zip(places, plans, strict=True)
        for query in plan.queries
    ]
    each, whole = len(queries) // count, whole_plan(question, count)
    joint = {number: joint_reader(question, number) for number in sorted({2, count})}

    def conclude(values: Sequence[int]) -> Conclusion:
        parts = [values[first : first + each] for first in range(0, len(values), each)]
        found = whole.conclude(values)
        shown = [
            _shown(where, plan.conclude(own), {number: read(own) for number, read in joint.items()})
            for where, plan, own in zip(conditions, plans, parts, strict=True)
        ]
        return replace(found, details={**found.details, "groups": shown})

    # Of a label what is published of it is expected, else a K-th of the people.
    if question.sizes:
        each_label = [
            Transformed().plan((), replace(question, expected_size=size)) for size in question.sizes
        ]
    else:
        each_label = [_expecting(question, 1 / count)] * count
    return replace(
        whole,
        queries=tuple(queries),
        noise=repeated(plans[0].noise, count),
        conclude=conclude,
        labels=tuple(map(made, each_label)),
    )


def whole_plan(question: Question, count: int) -> Plan:
    """The plan of the mean of all people, off the noisy sums of labels.

    Args:
        question: What is asked.
        count: How many labels there are, K.

    Returns:
        A plan without queries: its `conclude` takes the noisy sums of the labels, one label after the other.

    Privacy: post-processing of them.
    """
    read = reader(question, sums=count)
    # Independent noise adds up to the root of K times as much.
    alike = _expecting(question, 1 / math.sqrt(count))

    def conclude(values: Sequence[int]) -> Conclusion:
        each = len(values) // count
        return read([sum(values[place::each]) for place in range(each)])

    return Plan(
        queries=(),
        noise=NoNoise(),
        predicted_error=alike.predicted_error,
        conclude=conclude,
        spread=alike.spread,
    )


def _expecting(question: Question, part: float) -> Plan:
    """The plan of `transformed` where this part of the people is expected."""
    size = question.expected_size
    return Transformed().plan((), replace(question, expected_size=None if size is None else size * part))


def _shown(
    where: Mapping[str, str], found: Conclusion, joint: Mapping[int, tuple[Interval, Interval]]
) -> dict[str, object]:
    """The answer for one label, as the release says it, and with the wider intervals by number of labels."""
    shown: dict[str, object] = {"where": dict(where), **found.numbers(), **found.spread()}
    shown["together"] = [
        {
            "labels": number,
            "interval": plain(interval),
            "population_interval": plain(population),
        }
        for number, (interval, population) in joint.items()
    ]
    return shown | dict(found.details)
