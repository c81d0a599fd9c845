"""What central people can pay for, in the currency of their study."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.accounting.gaussian import effective_variance
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.estimators.interface import UNIT_SCALE, Question
from app.estimators.noises import FINE, FINE_SCALE, PricedNoise

GAUSSIAN_UNIT = FINE * MICRO // 2
"""The weight that is worth an epsilon of one under Gaussian noise."""

GAUSSIAN_SIGMA = math.sqrt(2) * GRID_SIZE * GAUSSIAN_UNIT
"""The noise of one query in a study with Gaussian noise; below 2**56."""

_WORTH = effective_variance(GAUSSIAN_SIGMA) / (MICRO * GRID_SIZE**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """A noise, and what each person can weigh under it.

    Attributes:
        noise: For one query on central people. At the question's share, where it is louder, its variance is
            2 (2**GRID_BITS * unit)^2.
        unit: The weight that one epsilon buys there under Laplace noise, and what is as good under Gaussian
            noise.
        limits: The most that one person of each central group can weigh; 0 for who cannot pay at all.
    """

    noise: Noise
    unit: float
    limits: tuple[int, ...]


def purse(offers: Sequence[int], question: Question, *, fine: bool = True) -> Purse:
    r"""The noise of a study, and the limits that it sets.

    Gaussian noise of sigma costs a person who moves the query by D :math:`\mu^2 = D^2 / \sigma^2`, so an
    offer of mu^2 buys the weight mu sigma. The mean with the smallest error minimizes
    :math:`s2 \sum w_i^2 + W^2 \eta^2` with :math:`w_i \le \mu_i \eta`. That is the problem of Laplace noise,
    :math:`s2 \sum w_i^2 + 2 W^2 \eta'^2` with :math:`w_i \le \epsilon_i \eta'`, for offers of
    :math:`\epsilon_i = \sqrt 2 \mu_i` and :math:`\eta' = \eta / \sqrt 2`: one closed form serves both.

    Args:
        offers: Of the central groups that take part.
        question: What is asked.
        fine: Laplace noise: whether weights count 1/64 micro-epsilon, or whole ones.

    Returns:
        Noise and limits. Without central people no noise.

    Privacy: offers are public under replace_one; no data, no randomness. `app.accounting` prices what comes
        of it by itself.
    """
    if not offers:
        return Purse(noise=NoNoise(), unit=1, limits=())
    if question.currency.is_gaussian:
        noise = DiscreteGaussian(sigmas=(GAUSSIAN_SIGMA,))
        unit = GAUSSIAN_UNIT * question.louder
        return Purse(noise=noise, unit=unit, limits=tuple(map(gaussian_weight, offers)))
    unit = MICRO * question.louder
    if fine:
        limits = tuple(offer * FINE for offer in offers)
        return Purse(noise=DiscreteLaplace(scales=(FINE_SCALE,)), unit=FINE * unit, limits=limits)
    return Purse(noise=DiscreteLaplace(scales=(UNIT_SCALE,)), unit=unit, limits=tuple(offers))


def gaussian_weight(mu2: int) -> int:
    """The largest weight whose price under `GAUSSIAN_SIGMA` is at most mu^2 [1e-6].

    >>> gaussian_weight(0), gaussian_weight(2_000_000) - GAUSSIAN_UNIT * 2 in (-1, 0)
    (0, True)
    """
    return math.isqrt(math.floor(mu2 * _WORTH))


def equal_price(offers: Sequence[int], question: Question) -> PricedNoise:
    """The noise under which all central people weigh the same, with the weight they can all pay.

    Args:
        offers: Of the central groups that take part.
        question: What is asked.
    """
    found = purse(offers, question, fine=False)
    return PricedNoise(noise=found.noise, weight=min(found.limits, default=1))
