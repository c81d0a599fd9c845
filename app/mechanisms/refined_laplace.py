r"""Less discrete Laplace noise in place of more: one published draw is sharpened, and paid once.

Notation: DLap(p) has :math:`P(z) = \frac{1 - p}{1 + p} p^{|z|}` with :math:`p = e^{-1/b}`. For scales
b2 < b1, hence p2 < p1, let V be 0 with probability

.. math:: a_0 = \frac{p_2}{p_1} \Big( \frac{1 - p_1}{1 - p_2} \Big)^2

and otherwise an independent draw of DLap(p1). Then DLap(p2) + V is DLap(p1): the characteristic function of
DLap(p) is :math:`\varphi = (1 - p)^2 / (1 - 2 p \cos t + p^2)`, and with r = p2 / p1

.. math:: 1 - 2 p_2 \cos t + p_2^2 = r (1 - 2 p_1 \cos t + p_1^2) + (1 - r)(1 - p_1 p_2),

so the quotient of the two functions is :math:`a_0 + (1 - a_0) \varphi_1`. This module draws the other way:
Z2 from its law given Z1 = Z2 + V. The pair (Z1, Z2) then has the law of (Z2 + V, Z2).

Privacy of a chain: let x be the exact integer, and let x + Z1, ..., x + Zk be published one after the other.
P(Z1 = z1) P(Z2 = z2 | z1) is P(Z2 = z2) P(V = z1 - z2), and so on: the probability of a chain of answers is
that of its last answer alone times factors of differences of answers, in which x cancels. That also holds
where a scale is chosen after the former answers are seen. So the loss of the whole chain is that of its
last answer: a refinement is charged the price of the new answer less what was charged for the former one.
Two conditions, which the caller must hold:

- x is the same integer for both answers: the same weights, and no member of any cohort lost or replaced. With
  another x' the difference x - x' would be mixed into Z1, and the second answer would tell of it.
- Z1 is the last draw of the chain. Refining one draw twice gives two answers that are not a chain.

References:
    Koufogiannis, Han, Pappas, "Gradual release of sensitive data under differential privacy",
    arXiv:1504.00429 (continuous Laplace).
    "Lossless multiple release", arXiv:2505.22449 (the discrete law and its conditional).
"""

from fractions import Fraction
from functools import lru_cache
from math import isfinite

from dither.device.exact import RandomBits, geometric

from app.core.errors import InternalFault
from app.mechanisms.laplace import MAX_SCALE

_STEP = 64
"""Bits by which a comparison that is not decided yet is refined."""


def refine_laplace(noise: int, scale: float, finer: float, bits: RandomBits) -> int:
    r"""Noise of a smaller scale, given the noise that was published.

    With :math:`r = p_2 / p_1`, :math:`q = p_1 p_2` and z = `noise` >= 0 (mirrored otherwise), the law of the
    result u given z has an atom and three geometric pieces; times :math:`1 - p_2^2` their probabilities are

    - u < 0: :math:`(1 - r) q`, and -u - 1 is geometric with ratio q;
    - 0 <= u <= z: :math:`(1 - r^{z+1}) (1 - q)`, and u is geometric with ratio r, given that it is at most z;
    - u > z: :math:`r^z (1 - r) q`, and u - z - 1 is geometric with ratio q;
    - the atom u = z: :math:`r^{z+1} (1 - p_1^2)`.

    They follow from P(Z2 = u) P(V = z - u) over P(Z1 = z), and sum to :math:`1 - p_2^2`. The piece is chosen
    by a uniform real whose bits are drawn until rational bounds of these numbers decide; nothing is rounded.
    A geometric variable below z + 1 is the remainder of a geometric one by z + 1, since it has no memory.

    Args:
        noise: z1 = published noisy integer - exact integer [units of the query].
        scale: b1, what `noise` was drawn with (or refined to) [the same].
        finer: b2, 0 < b2 < b1 <= 2**56 [the same].
        bits: The source.

    Returns:
        z2, to be added to the same exact integer: exactly DLap(e^{-1/b2}) over both draws, and z1 - z2 is
        independent of z2 [units of the query].

    Raises:
        InternalFault: scales out of range or not descending, no entropy.

    Privacy: with the conditions above, both answers together cost what an answer with `finer` costs.
    """
    if not (isfinite(scale) and 0 < finer < scale <= MAX_SCALE):
        raise InternalFault("A refined scale must be smaller than the one before it.")
    if noise < 0:
        return -refine_laplace(-noise, scale, finer, bits)
    rate, finer_rate = 1 / Fraction(scale), 1 / Fraction(finer)
    both, between = rate + finer_rate, finer_rate - rate
    match _piece(noise, rate, finer_rate, bits):
        case 0:
            return -1 - geometric(both.numerator, both.denominator, bits)
        case 1:
            return geometric(between.numerator, between.denominator, bits) % (noise + 1)
        case 2:
            return noise + 1 + geometric(both.numerator, both.denominator, bits)
        case _:
            return noise


def _piece(noise: int, rate: Fraction, finer_rate: Fraction, bits: RandomBits) -> int:
    """0, 1, 2: the piece below 0, up to `noise`, beyond it; 3: the atom."""
    drawn, width = 0, 0
    while True:
        # More bits of the uniform real, and bounds that are finer than it.
        drawn, width = drawn << _STEP | bits(_STEP), width + _STEP
        pieces, total = _weights(noise, rate, finer_rate, width + _STEP)
        # The real lies in [drawn, drawn + 1) / 2**width; a piece is chosen once all of it lies inside.
        first, last = drawn * total.lower, (drawn + 1) * total.upper
        lower = upper = 0
        for place, piece in enumerate(pieces):
            if first >= upper << width and last <= (lower + piece.lower) << width:
                return place
            lower, upper = lower + piece.lower, upper + piece.upper
        if first >= upper << width:
            return len(pieces)


class _Bounds:
    """A real number in [lower, upper] / 2**width, at most 1; products and complements round outwards."""

    __slots__ = ("lower", "upper", "width")

    def __init__(self, lower: int, upper: int, width: int) -> None:
        self.lower, self.upper, self.width = lower, upper, width

    def __mul__(self, other: "_Bounds") -> "_Bounds":
        return _Bounds(
            self.lower * other.lower >> self.width,
            -(-self.upper * other.upper >> self.width),
            self.width,
        )

    def complement(self) -> "_Bounds":
        """One less this."""
        one = 1 << self.width
        return _Bounds(one - self.upper, one - self.lower, self.width)


def _weights(
    noise: int, rate: Fraction, finer_rate: Fraction, width: int
) -> tuple[tuple[_Bounds, ...], _Bounds]:
    """Bounds of the three pieces, and of the total."""
    q, r, total = _of_rates(rate, finer_rate, width)
    below, power = r.complement() * q, exp_bounds((finer_rate - rate) * noise, width)
    return (below, (r * power).complement() * q.complement(), power * below), total


@lru_cache(maxsize=64)
def _of_rates(rate: Fraction, finer_rate: Fraction, width: int) -> tuple[_Bounds, _Bounds, _Bounds]:
    """Bounds of q, of r, and of the total: they depend on the two scales alone, which are public."""
    p1, p2 = exp_bounds(rate, width), exp_bounds(finer_rate, width)
    return p1 * p2, exp_bounds(finer_rate - rate, width), (p2 * p2).complement()


def exp_bounds(x: Fraction, width: int) -> _Bounds:
    r"""Bounds on :math:`e^{-x}`.

    Args:
        x: At least 0.
        width: Bits after the binary point.

    Returns:
        Integers lower <= 2**width e^{-x} <= upper, a few units apart.

    Cost: the exponential series of x / 2**k below 1/2, then k squarings with the k bits more that they need.
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    fine = width + halvings + 8
    # Read once: a Fraction answers for its parts by a call each time.
    numerator, denominator = x.numerator, x.denominator << halvings
    # Partial sums of an alternating series with falling terms lie on either side of its limit in turn.
    lower = upper = 1 << fine
    term_lower = term_upper = 1 << fine
    k = 0
    while term_upper > 1:
        k += 1
        term_lower = term_lower * numerator // (denominator * k)
        term_upper = -(-term_upper * numerator // (denominator * k))
        if k % 2:
            lower, upper = lower - term_upper, upper - term_lower
        else:
            lower, upper = lower + term_lower, upper + term_upper
    # What is left out is at most the last term, on either side.
    value = _Bounds(max(0, lower - term_upper), min(1 << fine, upper + term_upper), fine)
    for _ in range(halvings):
        value = value * value
    surplus = fine - width
    return _Bounds(value.lower >> surplus, -(-value.upper >> surplus), width)
