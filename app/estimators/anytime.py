r"""By how much noise that is lowered step by step is off at most, at all steps at once.

A step's interval holds with 95 %. That those of all steps hold does not: of ten tenths one misses in 24 % of
all runs, and an analyst may stop at the step that suits. What holds for all shares from the first one on also
holds for those that are looked at, whatever they were chosen by.

*Laplace.* Let :math:`X(u) = Z / b` at :math:`u = \ln b`, from share 1 (u = 0) back to the first share s1
(:math:`u = L = \ln(1/s1)`). By `app.mechanisms.refined_laplace` the noise Z stays as it is from b to
:math:`b' > b` with probability :math:`(b/b')^2` and else gets an independent Laplace of scale b' added: X
falls towards 0 and jumps with rate 2 by an independent J, a Laplace of scale 1, as X(u) itself is at every u.
Only a jump takes it above c. So the expected number of times that it does bounds the probability:

.. math:: P(\sup |X| > c) \le P(|X| > c) + 2 L\, P(|X| \le c < |X + J|)
          = e^{-c} + 2 L e^{-c} \big(\tfrac c2 + \tfrac14 (1 - e^{-2c})\big)
          \le e^{-c} \big(1 + L (c + \tfrac12)\big).

*Gaussian.* Noise at share s is :math:`B_s / s` of a Brownian motion, over its deviation
:math:`B_s / \sqrt s`, in :math:`\ln s` a stationary Ornstein-Uhlenbeck process. That it leaves [-c, c] within
L has about the probability :math:`\varphi(c) ((c - 1/c) L + 4/c)` [1], which is no bound: at its root for
s1 = .1 5.08 % do. The part that it misses falls as c rises. A hundredth is added to c, which is enough by the
process's own exit law, for risks of .045 to 1e-4 and first shares of 1e-6 to .5
(`tests/unit/estimators/test_anytime.py`).

*Many sums.* The noises of pieces are independent, and each begins at a share of its own, perhaps because of
what was published before. The j-th one misses its bound with a risk of at most :math:`6 / (\pi^2 j^2)` of the
whole, all of these together with at most the whole; beyond that nothing is asked of how they are combined, so
their bounds add up. What is not drawn again, values of people who weigh differently and reports, has a tenth
of the risk, the k-th step :math:`6 / (\pi^2 k^2)` of it: weights may differ from step to step.

References:
    [1] Miller, Siegmund, "Maximally selected chi square statistics", Biometrics 38 (1982),
        doi:10.2307/2529881, equation 6.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.core.epsilon import MICRO
from app.estimators import confidence
from app.estimators.roots import brentq

_OF_NOISE = 0.9
"""The part of the risk that noise has."""

_MORE = 0.01
"""What is added to the root of an approximation [standard deviations]."""

_MOST = 100.0
"""No risk that is shared out here has a larger root [standard deviations]."""


@lru_cache(maxsize=4096)
def laplace_scales(first: int, risk: float) -> float:
    """By how many scales refined Laplace noise is off at most, at all shares from the first one to 1.

    Args:
        first: [ppm].
        risk: That it is off by more at one of them, in (0, 1).

    Privacy: no data, no randomness.

    >>> round(laplace_scales(100_000, 0.05), 2)
    5.68
    """
    length, found = math.log(MICRO / first), -math.log(risk)
    # The logarithm rises by less than its argument: each round is nearer to the root from below.
    while (further := math.log1p(length * (found + 0.5)) - math.log(risk)) > found + 1e-12:
        found = further
    return found


@lru_cache(maxsize=4096)
def gaussian_deviations(first: int, risk: float) -> float:
    """By how many standard deviations refined Gaussian noise is off at most; see `laplace_scales`.

    >>> round(gaussian_deviations(100_000, 0.05), 2)
    2.85
    """
    length = math.log(MICRO / first)

    def excess(c: float) -> float:
        normal = -c * c / 2 - math.log(2 * math.pi) / 2
        return normal + math.log((c - 1 / c) * length + 4 / c) - math.log(risk)

    return brentq(excess, 1.0, _MOST) + _MORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What was drawn of an answer's noisy sums, step by step.

    Attributes:
        firsts: The share at which each sum was first drawn [ppm].
        places: Of each sum, from 1; another one for each sum that the answers to a question ever read.
        step: The number of this answer among those of its question, from 1.
        normal: Whether noise is Gaussian.
    """

    firsts: Sequence[int]
    places: Sequence[int]
    step: int
    normal: bool

    def always(self, noises: Iterable[float]) -> float:
        """What the noise of a combination of the sums is off by at most, at all steps.

        Args:
            noises: What the scale or the standard deviation of each sum comes to in it now; 0 of one that it
                does not read [any unit].
        """
        risk, bound = confidence.risk() * _OF_NOISE, gaussian_deviations if self.normal else laplace_scales
        return math.fsum(
            noise * bound(first, _shared(risk, place))
            for noise, first, place in zip(noises, self.firsts, self.places, strict=True)
            if noise
        )

    @property
    def risk(self) -> float:
        """That what is not drawn again is off by more at this step."""
        return _shared(confidence.risk() * (1 - _OF_NOISE), self.step)


def _shared(risk: float, place: int) -> float:
    """The part of a risk that a place of 1, 2, ... has; all of them together have the whole."""
    return risk * 6 / (math.pi * place) ** 2
