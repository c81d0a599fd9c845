"""Distributions of epsilons: histograms with readable edges, and percentiles. Pure, in micro-epsilon."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

MOST_BINS = 25

STEPS = (1, 2, 5)
"""A bin is one of these times a power of ten wide."""

MANTISSAS = (10, 15, 20, 30, 50, 70)
"""Tenths at which bins of personal epsilons begin, in every decade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How an amount is spread over people.

    Attributes:
        width: Width of a bin [micro-epsilon]; bin k holds amounts in [k width, (k + 1) width), and the
            last one its upper edge too.
        counts: People in each bin.
        percentiles: Percent -> the smallest amount that so many percent of people do not exceed
            [micro-epsilon]; empty where there is nobody.
        total: Sum over all people [micro-epsilon].
    """

    width: int
    counts: tuple[int, ...]
    percentiles: Mapping[int, int]
    total: int

    def to_json(self) -> dict[str, object]:
        """For the table of figures."""
        return {
            "width": self.width,
            "counts": list(self.counts),
            "percentiles": {str(percent): amount for percent, amount in self.percentiles.items()},
            "total": self.total,
        }


def bins_up_to(largest: int, most: int = MOST_BINS) -> tuple[int, int]:
    """Width and number of equal bins from 0 that hold amounts up to `largest`.

    >>> bins_up_to(10_000_000)
    (500000, 20)
    """
    largest = max(largest, 1)
    power = 10 ** max(0, int(math.log10(largest)) - 2)
    while True:
        for step in STEPS:
            width = step * power
            if width * most >= largest:
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
    percentiles = {}
    if people:
        for percent in percents:
            rank = -(-people * percent // 100)
            percentiles[percent] = ordered[bisect_right(cumulated, rank - 1)][0]
    return Distribution(width=width, counts=tuple(counts), percentiles=percentiles, total=total)


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
