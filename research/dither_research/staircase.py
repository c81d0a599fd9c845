r"""Discrete staircase noise on one query, exact: what two papers claim of it is not private.

With :math:`b = e^{-\epsilon}` the probability of z is proportional to :math:`b^{k(|z|)}`: k = 0 on the
inner step :math:`|z| < r`, and :math:`k = 1 + \lfloor (|z| - r) / D \rfloor` beyond. A move of the query by
1..D changes k by at most 1, and by exactly 1 somewhere: it costs exactly epsilon, *however small it is*.
So, unlike Laplace noise, staircase noise costs a person whose value is scaled down as much as a person
else, and two queries of one person cost two epsilons. The service cannot price it.

References:
    Geng, Viswanath, arXiv:1212.1186 (staircase noise; here on the integers).
"""

import math
from dataclasses import dataclass

from dither.device.exact import RandomBits, below, bernoulli_exp, geometric

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.mechanisms.hourglass import NARROWEST_STEP, optimal_share

_NARROWEST_DRAWN = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteStaircase:
    """Discrete staircase noise on one query.

    P(z) is proportional to exp(-epsilon k), k = 0 where |z| < step, and one more for every further
    `sensitivity` integers.

    Attributes:
        sensitivity: What costs one epsilon: a move of the query by 1..sensitivity.
        epsilon: Privacy loss for that move [micro-epsilon].
        step: Width of the inner step, 1..sensitivity.
    """

    sensitivity: int
    epsilon: int
    step: int

    @property
    def is_sound(self) -> bool:
        """Whether the parameters describe a distribution."""
        return 1 <= self.step <= self.sensitivity and self.epsilon >= 1


def staircase_step(sensitivity: int, epsilon: int) -> int:
    r"""The step width with the smallest variance.

    Args:
        sensitivity: D [units of the query].
        epsilon: Privacy loss of a move by D, at least 1 [micro-epsilon].

    Returns:
        gamma* D rounded to a whole unit, in 1..D, never below `NARROWEST_STEP` D.

    Privacy: any step is private; this one is chosen for accuracy, so floats do no harm.

    References:
        Geng, Viswanath, arXiv:1212.1186, the step for the l2 cost.

    >>> staircase_step(1000, 1_000_000)
    417
    """
    share = max(optimal_share(epsilon), NARROWEST_STEP)
    return min(max(round(share * sensitivity), 1), sensitivity)


def staircase(sensitivity: int, epsilon: int) -> DiscreteStaircase:
    """The staircase noise of the smallest variance for one query.

    Args:
        sensitivity: What may cost one person epsilon, at least 1 [units of the query].
        epsilon: At least 1 [micro-epsilon].
    """
    return DiscreteStaircase(
        sensitivity=sensitivity, epsilon=epsilon, step=staircase_step(sensitivity, epsilon)
    )


def staircase_variance(noise: DiscreteStaircase) -> float:
    r"""Variance of the noise, summed in closed form.

    For the best step and large D it is :math:`V^* D^2`,
    :math:`V^* = (A^2 + b) / (1 - b)^2` (A as in `optimal_share`).

    Args:
        noise: The distribution.

    Returns:
        Variance [units of the query, squared].

    Privacy: a public constant.
    """
    _check(noise)
    b, rest = math.exp(-noise.epsilon / MICRO), -math.expm1(-noise.epsilon / MICRO)
    size, step = noise.sensitivity, noise.step
    inner = 2 * _sum_of_squares(step - 1)
    # The block k >= 1 holds z = a + (k - 1) size, a in step..step + size - 1, on both sides.
    ones, twos = size * (2 * step + size - 1) // 2, _sum_of_squares(step + size - 1) - inner // 2
    second = b * (twos / rest + 2 * size * ones * b / rest**2 + size**3 * b * (1 + b) / rest**3)
    return (inner + 2 * second) / (2 * step - 1 + 2 * size * b / rest)


def draw_staircase(noise: DiscreteStaircase, bits: RandomBits) -> int:
    r"""One draw of discrete staircase noise.

    A coin that shows heads with probability b decides between the inner step and the blocks beyond; tails
    are taken with probability (2 r - 1) / (2 D), so that inner : beyond = (2 r - 1)(1 - b) : 2 D b. The
    number of the block is geometric, the place within it uniform.

    Output distribution: :math:`P(z) \propto b^{k(|z|)}` for every integer z, exactly.

    Args:
        noise: The distribution.
        bits: The source.

    Returns:
        The noise [units of the query].

    Raises:
        InternalFault: impossible parameters, or a step below 1/1024 of the sensitivity.

    Privacy: added to one integer query that a person moves by d it costs ceil(d / D) epsilon under either
        relation. Input domain: any integer query.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithms 1 and 2 (the coins).
    """
    _check(noise)
    size, inner = noise.sensitivity, 2 * noise.step - 1
    if noise.step * _NARROWEST_DRAWN < size:
        raise InternalFault("The step of a staircase is too narrow to be drawn.")
    while not bernoulli_exp(noise.epsilon, MICRO, bits):
        if (place := below(2 * size, bits)) < inner:
            return place - (noise.step - 1)
    block = geometric(noise.epsilon, MICRO, bits)
    place = below(2 * size, bits)
    magnitude = noise.step + block * size + place // 2
    return magnitude if place % 2 else -magnitude


def _check(noise: DiscreteStaircase) -> None:
    if not noise.is_sound:
        raise InternalFault("A staircase has impossible parameters.")


def _sum_of_squares(last: int) -> int:
    """1^2 + 2^2 + ... + last^2."""
    return last * (last + 1) * (2 * last + 1) // 6
