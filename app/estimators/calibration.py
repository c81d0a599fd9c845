"""What central people can pay for, under either noise."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, ndtr

from app.core.cohort import Group
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.estimators.interface import UNIT_SCALE, NotApplicable, Parameter, Question
from app.estimators.noises import FINE, FINE_SCALE, PricedNoise

BEST = "best"
LAPLACE = "laplace"
GAUSSIAN = "gaussian"

_GAUSSIAN_UNIT = FINE * MICRO // 2
_SIGMA = math.sqrt(2) * GRID_SIZE * _GAUSSIAN_UNIT
"""The noise of a Gaussian currency; below 2**56."""

_MARGIN = 1e-9
"""Part of every Gaussian limit that is left unused: more than the error of doubles here and in the price."""


def parse_noise(text: str) -> object:
    """The parameter `noise`: laplace, gaussian or best.

    Raises:
        ValueError: anything else.
    """
    if text not in (BEST, LAPLACE, GAUSSIAN):
        raise ValueError("must be best, laplace or gaussian")
    return text


NOISE = Parameter(
    name="noise",
    parse=parse_noise,
    default=BEST,
    description="Noise to add: laplace, gaussian (in studies with a delta), or the one that errs less.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """A noise, and what each person can weigh under it.

    Attributes:
        noise: For one query on central people; its variance is 2 (2**GRID_BITS * unit)^2.
        unit: The weight that one epsilon buys under Laplace noise, and what is as good under another.
        limits: The most that one person of each central group can weigh; 0 for who cannot pay at all.
    """

    noise: Noise
    unit: int
    limits: tuple[int, ...]


def currencies(central: Sequence[Group], question: Question) -> list[Currency]:
    r"""The noises that may be added, each with the limits it sets.

    Gaussian noise of sigma costs a person who moves the query by D the (epsilon, delta) of :math:`\mu = D /
    \sigma`. So an offer of (epsilon, delta) buys a weight of mu(epsilon, delta) sigma, and the mean with the
    smallest error is that of Laplace noise with offers of :math:`\sqrt 2 \mu` instead of epsilon.

    Args:
        central: The central groups that take part.
        question: What is asked; parameter `NOISE`.

    Returns:
        At least one currency, Laplace first. Without central people one that adds no noise.

    Raises:
        NotApplicable: Gaussian noise was asked for and no person central has a delta for it.

    Privacy: offers are public under replace_one; no data, no randomness.

    References:
        Balle, Wang, arXiv:1805.06530v2, theorem 8 (mu).
    """
    if not central:
        return [Currency(noise=NoNoise(), unit=1, limits=())]
    asked = question.parameters.get(NOISE.name, NOISE.default)
    found = []
    if asked != GAUSSIAN:
        limits = tuple(group.epsilon * FINE for group in central)
        found.append(Currency(noise=DiscreteLaplace(scales=(FINE_SCALE,)), unit=FINE * MICRO, limits=limits))
    if asked != LAPLACE and 0 < question.delta < DELTA_UNIT:
        offers = np.array([group.epsilon for group in central], dtype=np.float64) / MICRO
        able = np.array([group.delta >= question.delta for group in central])
        bought = np.floor(
            largest_mu(offers, question.delta / DELTA_UNIT) * (math.sqrt(2) * (1 - _MARGIN) * _GAUSSIAN_UNIT)
        )
        limits = tuple(int(weight) for weight in np.where(able, bought, 0).tolist())
        noise = DiscreteGaussian(sigmas=(_SIGMA,), delta=question.delta)
        if any(limits):
            found.append(Currency(noise=noise, unit=_GAUSSIAN_UNIT, limits=limits))
    if not found:
        raise NotApplicable("Gaussian noise needs people with a delta.")
    return found


def equal_prices(central: Sequence[Group], question: Question) -> list[PricedNoise]:
    """The noises under which all central people weigh the same, each with the weight they can all pay.

    Args:
        central: The central groups that take part.
        question: What is asked; parameter `NOISE`.

    Returns:
        At least one price, Laplace first.

    Raises:
        NotApplicable: Gaussian noise was asked for and a person central has no delta for it.
    """
    if not central:
        return [PricedNoise(noise=NoNoise(), weight=1)]
    prices = []
    for currency in currencies(central, question):
        least = min(currency.limits)
        match currency.noise:
            case DiscreteLaplace():
                noise = DiscreteLaplace(scales=(UNIT_SCALE,))
                prices.append(PricedNoise(noise=noise, weight=least // FINE))
            case _ if least > 0:
                prices.append(PricedNoise(noise=currency.noise, weight=least))
            case _:
                pass
    if not prices:
        raise NotApplicable("Gaussian noise needs people who all have a delta.")
    return prices


def largest_mu(epsilons: NDArray[np.float64], delta: float) -> NDArray[np.float64]:
    r"""The largest L2 sensitivity / sigma that is (epsilon, delta)-differentially private, for many epsilons.

    Bisects :math:`\Phi(\mu / 2 - \epsilon / \mu) - e^\epsilon \Phi(-\mu / 2 - \epsilon / \mu) = \delta`,
    whose left side rises with mu, in the form :math:`\varphi(a)(R(a) - R(a + \mu))`, a = epsilon / mu -
    mu / 2, R Mills' ratio.

    Args:
        epsilons: float64 array of shape (K,), above 0 [1].
        delta: In (0, 1) [1].

    Returns:
        float64 array of shape (K,), to about 1e-12 relative, rounded to neither side [1].

    Privacy: public constants. `app.accounting` prices what comes of it by itself.

    References:
        Balle, Wang, arXiv:1805.06530v2, theorem 8.
    """
    # mu lies between these: alone the first term would need a smaller one, and no epsilon a larger one.
    low = np.full_like(epsilons, 1e-12)
    high = np.sqrt(2 * epsilons) + 2 * math.sqrt(2 * math.log(2 / delta)) + 10.0
    for _ in range(90):
        middle = np.sqrt(low * high)
        a = epsilons / middle - middle / 2
        density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        first = np.where(a > 0, density * _mills(np.maximum(a, 0)), ndtr(-a))
        reached = first - density * _mills(np.maximum(a + middle, 0)) >= delta
        high = np.where(reached, middle, high)
        low = np.where(reached, low, middle)
    return low


def _mills(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """(1 - Phi(x)) / phi(x), x at least 0."""
    ratio: NDArray[np.float64] = math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
    return ratio
