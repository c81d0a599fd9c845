r"""Where the values begin: a minimum read off all rounds of a search, not off the last interval alone.

A round is believed where its yes are more than people who all say no would give, so a search by itself ends
about where that many people are, far above the minimum of values that thin out. But rounds above tell how
fast the part F of people at or below a point grows, and rounds below how little of it there is.

*Model.* From the minimum m on F rises on a straight line to a head h within a width w, and beyond m + w it is
anything from h on: there a round fits at its own estimate or at h, so that only the first people count.
A part l of the answers may be yes whatever was asked, for people who do not follow the protocol. A round with
z yes of n answers has the likelihood :math:`p^z (1 - p)^{n - z}` with

.. math:: p = l + (1 - l) (1 - q + (2 q - 1) F(t)),

q the probability of the truth. The estimate is the median of m under the weights below: an even one over the
range, and more for large heads, for narrow rises and for honest answers. They were chosen by measuring: over
uniform values, incomes, ages, values at one point or two, and liars, from 300 to 10,000 people.

The model serves the estimate alone. What a search states about its interval does not depend on it.

Privacy: post-processing of local answers.

References:
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Proposition 2.1: whatever is
    computed from private answers is as private.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy

from app.sessions.response import truth_probability

HEADS = (0.25, 0.5, 1.0)
"""The part of people among whom F is a line."""

LIES = ((0.0, 0.8), (0.02, 0.1), (0.05, 0.1))
"""(part of answers that are yes whatever is asked, its weight)."""

_CELLS = 6
"""Places of the minimum between neighboring thresholds."""

_LEAST = 1e-9
"""A yes or no is never less probable: rounds of different people may contradict each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The answers of one round.

    Attributes:
        threshold: "Is yours at most this?", as a part of the range, in (0, 1).
        positives, answers: How many said yes, of how many.
    """

    threshold: float
    positives: int
    answers: int


@lru_cache(maxsize=1024)
def onset(rounds: tuple[Seen, ...], epsilon: int) -> float:
    """The median of the minimum, as a part of the range.

    It is kept: a finished search is read again and again.

    Args:
        rounds: With answers.
        epsilon: Of one answer [micro-epsilon].
    """
    ends = [0.0, *sorted({seen.threshold for seen in rounds}), 1.0]
    edges = np.concatenate(
        [np.linspace(start, end, _CELLS, endpoint=False) for start, end in pairwise(ends)] + [[1.0]]
    )
    sizes = np.diff(edges)
    place = ((edges[:-1] + edges[1:]) / 2)[:, np.newaxis, np.newaxis]
    halvings = np.arange(len(rounds) + 2)
    # Everyone at one point is a rise narrower than any cell, weighed as one of 2^-9.
    width = np.append(0.5**halvings, 0.5**64)[:, np.newaxis]
    steepness = np.append(halvings / 3, 3.0)[:, np.newaxis]
    head = np.array(HEADS)
    weights = np.log(sizes)[:, np.newaxis, np.newaxis] + steepness * math.log(2) + 2 * np.log(head)
    truth = truth_probability(epsilon)
    logarithms = []
    for lie, weight in LIES:
        total = weights + math.log(weight)
        for seen in rounds:
            rate = (seen.positives / seen.answers - lie) / (1 - lie)
            measured = min(max((rate - 1 + truth) / (2 * truth - 1), 0.0), 1.0)
            beyond = seen.threshold - place
            rise = np.maximum(beyond, 0.0) / width
            part = np.where(rise < 1, head * rise, np.maximum(head, measured))
            chance = np.clip(lie + (1 - lie) * (1 - truth + (2 * truth - 1) * part), _LEAST, 1 - _LEAST)
            total = total + seen.positives * np.log(chance)
            total += (seen.answers - seen.positives) * np.log1p(-chance)
        logarithms.append(scipy.special.logsumexp(total, axis=(1, 2)))
    likelihood = np.logaddexp.reduce(logarithms)
    masses = np.exp(likelihood - likelihood.max())
    below = np.append(0.0, np.cumsum(masses))
    return float(np.interp(below[-1] / 2, below, edges))
