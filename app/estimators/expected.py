r"""The values that errors are predicted for, and what a variance and a standard deviation miss by.

The error of a variance depends on where the mean is, that of a standard deviation above all on the variance:
with noise sigma in a variance v it is about :math:`\sigma / 2 \sqrt v`, and up to :math:`\sqrt \sigma` where
noise hides it. So it is predicted for the values that published answers tell of.

*Before anything is published a guess is all there is.* Values that are half 0 and half 1 have the variance
1/4 and an error of about sigma; values that are all equal have an estimate of :math:`\sqrt{\sigma / 2}` or
more (`app.estimators.moments.spread`), and at least that error. A plan is the same for both, since it reads
no value. If its number P lay within .8 and 1.3 times both errors, the larger one would be at most 1.625
times the smaller; it is :math:`1 / \sqrt{2 \sigma}` times, which is more for each sigma below .18. So no
plan can promise that. The guess is a middle: values spread evenly over one half of the range. In a range
from 0 to 1, which no and yes have, it is that a quarter is 1: what a standard deviation of yes and no misses
by is predicted within .9 and 1.2 of what is seen where a fifth to four fifths say yes. A variance
that it predicts, where the number of people is public, is .79 to 1.12 times what is seen, whatever the
values are, since its noise has the variance :math:`1 + 4 m^2` of that of a mean, m being from 0 to 1/2 and
1/4 in the guess. Where the number is secret, the coefficients of three noises have a root sum of squares
from .408 (uniform values) to 1 (at an end), 2.45 times as much: again no number is within .8 and 1.3 of
both, and the guess has .582.

*Of a pair* the noise of a correlation is divided by both standard deviations: from 1/80 for incomes and
minutes to 1/4 for two questions of yes and no. The guess is a fifth of either range, or that of yes and no,
which is within .4 and 2 times of ratings, of yes and no, of evenly spread values, and of incomes most of
which lie in a third of their range. Whether a correlation says anything is asked of `most`, so no guess
refuses what evenly spread values have.

Privacy: post-processing of what is published; no data, no randomness. Weights, prices and intervals do not
depend on it.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

WORST_VARIANCE = 0.25
"""Largest variance of data in a range of width 1."""

_PLACES = np.array([NormalDist().inv_cdf((place + 0.5) / 128) for place in range(128)])
_NOISE = _PLACES / math.sqrt(float(np.mean(_PLACES**2)))
"""Quantiles of a Normal law, of variance 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedValues:
    """What values are expected to be like.

    Attributes:
        mean: Position in the range, in [0, 1]; None where none is published.
        variance: [range width squared]; None where none is published.
        two: Whether the range is from 0 to 1, that of no and yes.
    """

    mean: float | None = None
    variance: float | None = None
    two: bool = False

    @property
    def place(self) -> float:
        """Their mean, or the guess: a quarter of the range off the middle."""
        return 0.25 if self.mean is None else self.mean

    @property
    def spread(self) -> float:
        """Their variance, or the guess: of even values in half of the range, or of a quarter of yes."""
        return self._expected(1 / 48, self.place)

    @property
    def spread_in_pair(self) -> float:
        """The same of one number of a pair: a guess is a standard deviation of a fifth of the range."""
        return self._expected(1 / 25, self.place)

    @property
    def most(self) -> float:
        """Their variance, or that of even values in the whole range, or of as many yes as no."""
        return self._expected(1 / 12, 0.5)

    def _expected(self, guess: float, place: float) -> float:
        """Their variance, or a guess, for which this place is that of an unknown mean."""
        if self.variance is not None:
            return max(0.0, min(self.variance, self._allowed(0.5)))
        return self._allowed(place) if self.two else min(guess, self._allowed(place))

    def _allowed(self, place: float) -> float:
        """The largest variance with their mean, or with this one where it is unknown."""
        mean = place if self.mean is None else self.mean
        return mean * (1 - mean)


GUESS = ExpectedValues()


def missed(variance: float, drawn: float, noise: float) -> tuple[float, float]:
    """What the estimates of a variance, and of a standard deviation, are expected to miss by.

    An estimate lies in [0, 1/4], and is at least half of the noise (`app.estimators.moments.spread`).

    Args:
        variance: That there is [range width squared].
        drawn: Standard deviation of the error before that, of all that varies [the same].
        noise: Of noise alone, as answers state it [the same].

    Returns:
        Root mean square errors [range width squared; range widths].

    >>> missed(0.09, 0.0006, 0.0006)
    (0.0006, 0.001)
    """
    seen = np.clip(variance + drawn * _NOISE, min(noise / 2, WORST_VARIANCE), WORST_VARIANCE)
    errors = seen - variance, np.sqrt(seen) - math.sqrt(variance)
    of_variance, of_root = (math.sqrt(float(np.mean(one**2))) for one in errors)
    return of_variance, of_root
