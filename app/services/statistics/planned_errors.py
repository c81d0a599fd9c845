"""What plans predict that the numbers of a release miss by, beside them and in what is read off several.

Post-processing: a plan depends on no raw value, and where it is secret who is there on the question alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.estimators.interface import Plan
from app.services.statistics.questions import SD, VARIANCE


def of_answer(shown: Mapping[str, Any], plan: Plan, width: float) -> dict[str, Any]:
    """An answer for a mean that says what it, its variance and sd, and its labels are planned to miss by.

    Args:
        shown: As a release shows it.
        plan: What it was made with.
        width: Of the range [data's unit].
    """
    labels = {"groups": of_labels(shown["groups"], plan.labels, width)} if plan.labels else {}
    return {**of_spread(shown, plan), **labels, "predicted_error": min(plan.predicted_error, width)}


def of_spread(shown: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """An answer for a mean whose variance and sd, where it has them, say what they are planned to miss by."""
    read = [name for name in (VARIANCE, SD) if shown.get(name) is not None]
    if not read or plan.spread is None:
        return dict(shown)
    variance = plan.spread()
    errors = {VARIANCE: variance.error, SD: variance.root.error}
    return {**shown, **{name: {**shown[name], "predicted_error": errors[name]} for name in read}}


def of_labels(
    groups: Sequence[Mapping[str, Any]], plans: Sequence[Callable[[], Plan] | None], width: float
) -> list[dict[str, Any]]:
    """The answers for labels, each with what it is planned to miss by.

    Args:
        groups: As a release shows them, length K.
        plans: Make that of each, length K; None of one without an answer.
        width: Of the range [data's unit].
    """
    missing = {"predicted_error": None, "predicted_bias": None}
    found = [None if plan is None else plan() for plan in plans]
    return [
        {**group, **missing}
        if plan is None
        else {**of_answer(group, plan, width), "predicted_bias": plan.bias}
        for group, plan in zip(groups, found, strict=True)
    ]


def weighted(parts: Sequence[tuple[float, float, float]], width: float) -> float:
    """Of a weighted sum of answers about disjoint people: noise is independent, and biases may all add up.

    Args:
        parts: Of each its weight, its error, and the part of that which is bias [data's unit].
        width: Of the range [data's unit].

    Returns:
        Root mean square error, at most that of the ends of the range [data's unit].
    """
    drawn = math.fsum(weight**2 * max(0.0, error**2 - bias**2) for weight, error, bias in parts)
    biased = math.fsum(abs(weight) * bias for weight, _, bias in parts)
    return min(math.hypot(math.sqrt(drawn), biased), largest([weight for weight, _, _ in parts], width))


def largest(weights: Sequence[float], width: float) -> float:
    """The most that a weighted sum of answers can be off by, where each lies in the range [as the width].

    Args:
        weights: Of each.
        width: Of the range [data's unit].
    """
    return math.fsum(map(abs, weights)) * width
