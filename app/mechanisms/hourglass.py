r"""Hourglass noise on a pair of queries (sum, complement), exact.

One person at q adds q to the first query and N - q to the second, N = 2 h: together exactly N. Seen as
u = (first + second) / N and v = (first - second) / 2 a person moves u by exactly 1 and v by at most h. The
noise lives on the same integers, with :math:`b = e^{-\epsilon}` and

.. math:: P(u, v) \propto b^{t(u, v)}, \quad t(u, v) = \min \{ j \ge |u| : j = u \bmod 2, |v| \le j h + r \}.

Adding or removing one person changes t by exactly 1: if j is admissible at (u, v) then j + 1 is at
(u +- 1, v'), because :math:`|v'| \le |v| + h`; and the parity of t is that of u. So the loss is exactly
epsilon. Staircase noise on each query on its own would cost two epsilons, because the person moves both.

The set t <= j is a double cone cut off at |u| = j: an hourglass. With step r = gamma* N both marginals of
first and second reach the variance of the best one-dimensional staircase.

References:
    Kulesza, Suresh, Wang, "Mean estimation in the add-remove model of differential privacy",
    arXiv:2312.06658v2 (the hourglass mechanism; version 1 has Laplace noise on the pair of queries, algorithm
    3). The noise on integers and its proof are stated here in full.
"""

import math

from dither.device.exact import RandomBits, below, bernoulli_exp, geometric

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import Hourglass

NARROWEST_STEP = 1 / 64
"""The recommended step never gets narrower than this share of the sensitivity. The best one does beyond
epsilon = 11.8, but by then the noise has a standard deviation of 1 % of what one person adds, and drawing it
takes 1 / (4 * share) attempts."""

_NARROWEST_DRAWN = 1024


def optimal_share(epsilon: int) -> float:
    r"""gamma*, in (0, 1/2): the step of staircase noise with the smallest variance, by its sensitivity.

    :math:`\gamma^* = \frac{b (1 + 2 b)}{2 (A^2 + A b + b^2)}` with :math:`A^3 = b (1 + b) / 2`, which is
    the published :math:`-\frac{b}{1-b} + \frac{(b - 2b^2 + 2b^4 - b^5)^{1/3}}{2^{1/3} (1-b)^2}` without
    its cancellation at small epsilon.

    Args:
        epsilon: At least 1 [micro-epsilon].

    References:
        Geng, Viswanath, arXiv:1212.1186, the step for the l2 cost.
    """
    b = math.exp(-epsilon / MICRO)
    if b == 0:
        return 0.0
    root = math.cbrt(b * (1 + b) / 2)
    return b * (1 + 2 * b) / (2 * (root * root + root * b + b * b))


def hourglass_step(sensitivity: int, epsilon: int) -> int:
    """The step with the smallest variance of both queries: gamma* times the sensitivity.

    Args:
        sensitivity: N, what one person adds to both queries together; even, at least 2 [query units].
        epsilon: At least 1 [micro-epsilon].

    Returns:
        r in 0..N/2, rounded to a whole unit, never below `NARROWEST_STEP` N.

    Privacy: any step is private; this one is chosen for accuracy.
    """
    share = max(optimal_share(epsilon), NARROWEST_STEP)
    return min(round(share * sensitivity), sensitivity // 2)


def hourglass(sensitivity: int, epsilon: int) -> Hourglass:
    """The hourglass noise of the smallest variance for a pair of queries.

    Args:
        sensitivity: N, what one person adds to both queries together; even, at least 2 [query units].
        epsilon: Cost of adding or removing one person, at least 1 [micro-epsilon].
    """
    return Hourglass(sensitivity=sensitivity, epsilon=epsilon, step=hourglass_step(sensitivity, epsilon))


def hourglass_moments(noise: Hourglass) -> tuple[float, float]:
    r"""Variance of the noise of either query, and the covariance of the two, in closed form.

    :math:`\mathrm{Var} = h^2 \mathrm{Var}(u) + \mathrm{Var}(v)` and
    :math:`\mathrm{Cov} = h^2 \mathrm{Var}(u) - \mathrm{Var}(v)`: the latter is nearly 0 at the best step.

    Args:
        noise: The distribution.

    Returns:
        (variance, covariance) [query units, squared].

    Raises:
        InternalFault: impossible parameters.

    Privacy: public constants.
    """
    _check(noise)
    half, step = noise.half, noise.step
    b, rest = math.exp(-noise.epsilon / MICRO), -math.expm1(-noise.epsilon / MICRO)

    def total(first: int, values: tuple[int, int, int, int]) -> float:
        """`first` at t = 0 plus the sum over t >= 1 of f(t) b^t, f the cubic with these f(1), .., f(4)."""
        f1, f2, f3, f4 = values
        # Newton's form in binomials of t - 1; sum_t C(t - 1, k) b^t = b^(k + 1) / (1 - b)^(k + 1).
        differences = (f1, f2 - f1, f3 - 2 * f2 + f1, f4 - 3 * f3 + 3 * f2 - f1)
        odds = b / rest
        return first + sum(difference * odds ** (k + 1) for k, difference in enumerate(differences))

    def cells(t: int) -> int:
        return (8 * t - 4) * half + 4 * step + 2

    def squares_of_u(t: int) -> int:
        return 2 * t * t * (2 * (t * half + step) + 1) + 4 * half * ((t - 2) * (t - 1) * t // 3)

    def squares_of_v(t: int) -> int:
        outer, inner = _sum_of_squares(t * half + step), _sum_of_squares((t - 2) * half + step)
        return 4 * outer + (t - 1) * 2 * (outer - inner)

    mass = total(2 * step + 1, (cells(1), cells(2), cells(3), cells(4)))
    u_squares = total(0, (squares_of_u(1), squares_of_u(2), squares_of_u(3), squares_of_u(4)))
    v_squares = total(
        2 * _sum_of_squares(step), (squares_of_v(1), squares_of_v(2), squares_of_v(3), squares_of_v(4))
    )
    of_u, of_v = half * half * u_squares / mass, v_squares / mass
    return of_u + of_v, of_u - of_v


def draw_hourglass(noise: Hourglass, bits: RandomBits) -> tuple[int, int]:
    r"""One draw of hourglass noise for both queries.

    There are 2 r + 1 pairs (u, v) with t = 0 and (8 t - 4) h + 4 r + 2 with any t >= 1, so

    .. math:: (1 - b)^2 P(t) \propto (2 r + 1)(1-b)^2,\ (4 h + 4 r + 2) b (1 - b) \cdot (1 - b) b^{t - 1},
        \ 8 h b^2 \cdot (t - 1) b^{t - 2} (1 - b)^2

    in three parts: t = 0, t - 1 geometric, t - 2 the sum of two geometrics. Two coins that show heads with
    probability b choose the part (none, one or both heads), which is then taken with probability
    2 r + 1, 2 h + 2 r + 1 or 8 h in 8 h. Within one t all pairs are equally likely.

    Output distribution: (h u + v, h u - v) with :math:`P(u, v) \propto b^{t(u, v)}`, exactly.

    Args:
        noise: The distribution.
        bits: The source.

    Returns:
        Noise of the first and of the second query [query units].

    Raises:
        InternalFault: impossible parameters, or a step below 1/1024 of the sensitivity.

    Privacy: added to a pair of integer queries whose sum every person moves by exactly `sensitivity`, each
        by something of the same sign, it costs epsilon under adding or removing one person. Input domain:
        such pairs only; `app.accounting.costs` refuses others.

    References:
        Canonne, Kamath, Steinke, arXiv:2004.00010, algorithms 1 and 2 (the coins).
    """
    _check(noise)
    half, step = noise.half, noise.step
    if (step + 1) * _NARROWEST_DRAWN < half:
        raise InternalFault("The step of an hourglass is too narrow to be drawn.")
    t = _draw_t(noise, bits)
    u, v = _place(below(_cells(noise, t), bits), t, half, step)
    return half * u + v, half * u - v


def _draw_t(noise: Hourglass, bits: RandomBits) -> int:
    """The level t of a draw."""
    half, step, epsilon = noise.half, noise.step, noise.epsilon
    while True:
        ticket = below(8 * half, bits)
        if ticket < 2 * step + 1:
            heads = bernoulli_exp(epsilon, MICRO, bits) + bernoulli_exp(epsilon, MICRO, bits)
        elif ticket < 2 * half + 2 * step + 1:
            heads = bernoulli_exp(epsilon, MICRO, bits) + bernoulli_exp(epsilon, MICRO, bits)
            if heads == 0:
                continue
        elif bernoulli_exp(epsilon, MICRO, bits) and bernoulli_exp(epsilon, MICRO, bits):
            heads = 2
        else:
            continue
        return heads + sum(geometric(epsilon, MICRO, bits) for _ in range(heads))


def _cells(noise: Hourglass, t: int) -> int:
    """How many pairs (u, v) have this t."""
    if t == 0:
        return 2 * noise.step + 1
    return (8 * t - 4) * noise.half + 4 * noise.step + 2


def _place(index: int, t: int, half: int, step: int) -> tuple[int, int]:
    """The pair (u, v) with this t and this index among them."""
    reach = t * half + step
    if t == 0:
        return 0, index - reach
    edge = 2 * reach + 1
    if index < 2 * edge:
        sign, offset = divmod(index, edge)
        return (t if sign else -t), offset - reach
    row, offset = divmod(index - 2 * edge, 4 * half)
    u = 2 * row - (t - 2)
    side, depth = divmod(offset, 2 * half)
    magnitude = reach - depth
    return u, (magnitude if side else -magnitude)


def _check(noise: Hourglass) -> None:
    if not noise.is_sound:
        raise InternalFault("An hourglass has impossible parameters.")


def _sum_of_squares(last: int) -> int:
    """1^2 + 2^2 + ... + last^2; the same cubic for a negative end, which only enters times 0."""
    return last * (last + 1) * (2 * last + 1) // 6
