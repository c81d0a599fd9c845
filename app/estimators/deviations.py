r"""How far the weights of people in an answer are from 1/n, and what a tilt makes of that.

An answer puts c_i on person i, all of which sum to one, and is about the mean of the n people who are there.
Let P and N be how much those of them weigh above and below 1/n, and lambda what people weigh who have left:
:math:`P + \lambda = N`. The error is P times the mean of the first, plus lambda times that of those who left,
less N times that of the second. A tilt D bounds how far the means of those who are there differ; who has left
may have done so because of the value, and differs by up to the whole range:

.. math:: |bias| \le D P + \lambda = \frac12 \Big(D \sum_{there} |c_i - 1/n| +
          (2 - D) \sum_{left} c_i\Big),

since the first sum is :math:`P + N = 2 P + \lambda`.

*Samples.* A device that reports k of d measures draws them without looking at its values
(`dither.device.measures`). So of the S people with the same offer those m who reported one measure are, given
m, a uniform sample without replacement, each of them with :math:`c`, and with :math:`C = m c / S`

.. math:: \sum_{heard} c\, x_i = C \sum_{all\ S} x_i + m c (\bar x_{heard} - \bar x_S).

The first part weighs every one of the S people with C, heard or not: a tilt has to bound that alone. So
a person of a sample counts with C in place of c or 0 in the bias, S of them. The second part has mean 0
whatever the values are, and by Cochran, Sampling Techniques, theorem 2.2, the variance
:math:`m^2 c^2 (1/m - 1/S) \frac{S}{S - 1} \sigma_S^2`. As :math:`m c^2 - S C^2 = m^2 c^2 (1/m - 1/S)`, the
sum of squares of c and 0 over the S people has it already, but for S / (S - 1), which is added.

Where offers are heard with different probabilities, or some people are always, weights that are equal among
those who are heard are not fair: it is not enough to compare those with each other.

Privacy: no data; who is there, who has left and what they weigh is public under replace_one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_EQUAL = 1e-9
"""What weights differ by, as a part of 1/n, where they differ by rounding alone."""


def tilts_of(tilt: float, absent: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What a deviation of each group counts in twice the bias, shape (G,) [range widths].

    Args:
        tilt: D, in [0, 1] [range widths].
        absent: Whether the people of a group have left, shape (G,).
    """
    return np.where(absent, 2 - tilt, tilt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviations:
    """The weights of people in an answer, beside 1/n for each.

    Attributes:
        people: n, those who are there.
        missing: Those of them who are in no group. They weigh 0.
        sizes: People in each group, shape (G,).
        person: The weight of one of them, shape (G,).
        due: What it is compared with: 1/n, or 0 for people who have left, shape (G,).
        off: How far it is from 1/n, or from 0 for people who have left, shape (G,); 0 for empty groups, and
            where nothing but rounding is in it.
        bias: The most that this moves the answer by, within a tilt [range widths].
        drawn: What sampling adds to the squares of weights, for values that are as they are, shape (G,).
    """

    people: float
    missing: float
    sizes: NDArray[np.float64]
    person: NDArray[np.float64]
    due: NDArray[np.float64]
    off: NDArray[np.float64]
    bias: float
    drawn: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        sizes: NDArray[np.float64],
        person: NDArray[np.float64],
        *,
        people: float = 0.0,
        tilt: float = 0.0,
        absent: NDArray[np.bool_] | None = None,
        silent: NDArray[np.float64] | None = None,
    ) -> "Deviations":
        """Compare weights with 1/n.

        Args:
            sizes: People in each group, shape (G,).
            person: The weight of one of them, shape (G,).
            people: n, if more than those of the groups who are there.
            tilt: In [0, 1] [range widths].
            absent: Groups of people who have left, shape (G,); None where all are there.
            silent: People who are missing from each group by a draw, shape (G,): it is a uniform sample of
                both together. They are among the n people. None where no group is one.
        """
        # Where none have left, one number stands for all groups.
        here: NDArray[np.float64] | float = 1.0
        tilts: NDArray[np.float64] | float = tilt
        if absent is not None and absent.any():
            here, tilts = np.where(absent, 0.0, 1.0), tilts_of(tilt, absent)
        unheard = 0.0 if silent is None else float(silent.sum())
        present = float(np.sum(sizes * here)) + unheard
        everyone = max(people, present)
        missing = everyone - present + unheard
        due = np.broadcast_to(here / everyone, person.shape)
        off = np.abs(person - due)
        off[(off <= _EQUAL / everyone) | (sizes == 0)] = 0.0
        # A tilt is about all people of a sample, who count alike.
        every, apart, drawn = sizes, off, np.zeros_like(sizes) if silent is None else silent
        if unheard:
            every = sizes + drawn
            heard = np.divide(sizes, every, out=np.ones_like(sizes), where=drawn > 0)
            apart = np.where(drawn > 0, np.abs(person * heard - due), off)
            apart[apart <= _EQUAL / everyone] = 0.0
            drawn = sizes * person**2 * (1 - heard) / np.maximum(every - 1, 1)
        return cls(
            people=everyone,
            missing=missing,
            sizes=sizes,
            person=person,
            due=due,
            off=off,
            bias=(float(np.dot(every * tilts, apart)) + tilt * (missing - unheard) / everyone) / 2,
            drawn=drawn,
        )

    @property
    def equal(self) -> bool:
        """Whether each person weighs 1/n."""
        return not self.missing and not self.off.any()

    @property
    def farthest(self) -> float:
        """The largest deviation of one person."""
        return max(float(self.off.max(initial=0.0)), 1 / self.people if self.missing else 0.0)

    @property
    def largest(self) -> float:
        """The largest weight of one person."""
        return float(self.person[self.sizes > 0].max(initial=0.0))

    def about_dataset(self, variance: float | NDArray[np.float64] = 1.0) -> float:
        """The variance of the answer about the mean of those who are there, noise aside.

        Args:
            variance: That of one value, of all people or of each group, shape (G,); who is in no group has
                the largest one.
        """
        most = variance if isinstance(variance, float) else float(np.max(variance, initial=0.0))
        squares = float(np.dot(self.sizes * variance, self.off**2)) + most * self.missing / self.people**2
        return squares + float(np.sum(self.drawn * variance))

    def moved(self, shrinkage: float) -> NDArray[np.float64]:
        """Sums of (a c_i - 1/n)^2 over each group, and over those who are in none, shape (G + 1,).

        Args:
            shrinkage: a, in [0, 1].
        """
        rest = 1 - shrinkage
        away = np.where(self.off > 0, shrinkage * (self.person - self.due), 0.0)
        squares = self.sizes * (away - rest * self.due) ** 2 + shrinkage**2 * self.drawn
        return np.append(squares, self.missing / self.people**2)

    def about_population(self, variance: float | NDArray[np.float64] = 1.0) -> float:
        """The same about the mean of the population: nothing of it is known."""
        return float(np.dot(self.sizes * variance, self.person**2))


def uneven_at_most(cap: float, floor: float) -> float:
    r"""The most that people who weigh between two ends count differently, in total variation.

    A part theta of them at c and the others at f have
    :math:`\theta (1 - \theta) (c - f) / (\theta c + (1 - \theta) f)`, the most at
    :math:`\theta = \sqrt f / (\sqrt c + \sqrt f)`: :math:`(\sqrt c - \sqrt f) / (\sqrt c + \sqrt f)`. For a
    given total weight the deviations :math:`\sum |a_i - \bar a|` are convex in the weights, so that no
    others have more.

    Args:
        cap, floor: The ends, cap above 0 [the same].

    >>> uneven_at_most(4, 1), uneven_at_most(2, 2)
    (0.3333333333333333, 0.0)
    """
    return (math.sqrt(cap) - math.sqrt(floor)) / (math.sqrt(cap) + math.sqrt(floor))
