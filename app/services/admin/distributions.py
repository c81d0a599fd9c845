"""Distributions of epsilons: histograms with readable edges, and percentiles. Pure, in micro-epsilon."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from app.core.figures import Distribution, Percentile

MOST_BINS = 25

STEPS = (1, 2, 5)
"""A bin is one of these times a power of ten wide."""

MANTISSAS = (10, 15, 20, 30, 50, 70)
"""Tenths at which bins of personal epsilons begin, in every decade."""


def bins_up_to(largest: int) -> tuple[int, int]:
    """Width and number of equal bins from 0 that hold amounts up to `largest`.

    >>> bins_up_to(10_000_000)
    (500000, 20)
    """
    largest = max(largest, 1)
    power = 10 ** max(0, int(math.log10(largest)) - 2)
    while True:
        for step in STEPS:
            width = step * power
            if width * MOST_BINS >= largest:
                return width, -(-largest // width)
        power *= 10


def distribution(
    weighted: Iterable[tuple[int, int]], percents: Sequence[int], *, largest: int
) -> Distribution:
    """The distribution of amounts that are given as (amount, people).

    Args:
        weighted: In any order; amounts may repeat [micro-epsilon].
        percents: Which percentiles, in (0, 100].
        largest: What the bins reach up to [micro-epsilon].
    """
    ordered = sorted(weighted)
    width, bins = bins_up_to(largest)
    counts = [0] * bins
    cumulated: list[int] = []
    people = total = 0
    for amount, number in ordered:
        counts[min(amount // width, bins - 1)] += number
        people += number
        total += amount * number
        cumulated.append(people)
    percentiles = [
        Percentile(
            percent=percent, epsilon=ordered[bisect_right(cumulated, -(-people * percent // 100) - 1)][0]
        )
        for percent in percents
        if people
    ]
    return Distribution(width=width, counts=tuple(counts), percentiles=tuple(percentiles), total=total)


def epsilon_edges(smallest: int, largest: int) -> tuple[int, ...]:
    """Edges of bins of personal epsilons, six to a decade, around all from smallest to largest.

    >>> epsilon_edges(250_000, 900_000)
    (200000, 300000, 500000, 700000, 1000000)
    """
    decade = 10 ** (len(str(max(smallest, 10))) - 2)
    edges: list[int] = []
    while True:
        for mantissa in MANTISSAS:
            edge = mantissa * decade
            if edge <= smallest:
                edges = [edge]
            else:
                edges = edges or [0]
                edges.append(edge)
            if edge > largest:
                return tuple(edges)
        decade *= 10
