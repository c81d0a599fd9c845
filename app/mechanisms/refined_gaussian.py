r"""More discrete Gaussian noise of one sum, drawn apart: answers are sharpened by averaging, and paid once.

A sum x is published again and again, the j-th time as :math:`x + Z_j` with independent discrete Gaussian
noise of parameter :math:`\sigma_j`. Let V be the variance that a share of one is worth, and let the j-th draw
use the part :math:`d_j` of it (parts per million; they add up to the share D):

.. math:: \sigma_j^2 - 9 \ge \frac{V \cdot 10^6}{d_j}.

Price: by `app.accounting.gaussian` a person who moves x by :math:`\Delta` loses
:math:`\mu^2 = \sum_j \Delta^2 / (\sigma_j^2 - 9) \le \Delta^2 D / (10^6 V)` by all draws, however D was
divided up, also where parts are chosen after former answers are seen: V and :math:`\Delta` are fixed at the
first draw, and what is charged is checked before the next one is seen. So ten steps of a tenth cost what one
answer at share 1 does, and a step is charged the difference, each of the two rounded up.

Accuracy: precisions add up. :math:`Y = \sum_j d_j (x + Z_j)` is an integer and all that has to be kept: Y / D
has the mean x and, since the parts are the precisions up to a factor, the smallest variance that an average
has. It is

.. math:: \frac{1}{D^2} \sum_j d_j^2 \sigma_j^2 \le \frac{10^6 V}{D} + 9

but for the rounding of each sigma to the next integer, which at the :math:`\sigma > 2^{50}` of the service
adds less than one part in :math:`10^{14}`. One draw of the same share has :math:`10^6 V / D + 9`: it is never
better by more than that. No sampler has to know the former noise: what is published is the average, which
is post-processing of the draws.

Condition: x is the same integer in all draws, else Y / D is the mean of no one dataset. The price would hold.

References:
    Dong, Roth, Su, "Gaussian Differential Privacy", arXiv:1905.02383, corollary 3.3 (mu^2 adds up).
    Smith, Thakurta, arXiv:2210.17520 (also where parts are chosen adaptively).
    Koufogiannis, Han, Pappas, arXiv:1504.00429 (the same for continuous Gaussian noise).
"""

import math
from fractions import Fraction

from dither.device.exact import RandomBits, discrete_gaussian
from dither.device.gaussian import DISCRETE_LOSS, SMALLEST_SIGMA

from app.core.epsilon import MICRO
from app.core.errors import InternalFault


def part_sigma(variance: Fraction, part: int) -> int:
    """The smallest admissible whole sigma of a draw that uses a part of what a share of one is worth.

    Args:
        variance: V, what a share of one is worth: see `app.accounting.gaussian.effective_variance` [units
            of the sum, squared].
        part: d, at least 1 [ppm].

    Returns:
        sigma, with sigma^2 - 9 at least V 10^6 / d [units of the sum].

    Raises:
        InternalFault: a part or a variance that is not positive.
    """
    if part <= 0 or variance <= 0:
        raise InternalFault("A draw must use a part of a share.")
    least = math.ceil(variance * MICRO / part + DISCRETE_LOSS)
    return max(1 + math.isqrt(least - 1), SMALLEST_SIGMA)


def more_gaussian(noisy: int, exact: int, variance: Fraction, part: int, bits: RandomBits) -> int:
    """The weighted noisy sum Y with one more draw in it.

    Args:
        noisy: Y so far; 0 before the first draw [units of the sum times ppm].
        exact: x, the same integer as in all former draws [units of the sum].
        variance: V [units of the sum, squared].
        part: d, what the draw uses of it [ppm].
        bits: The source.

    Returns:
        Y + d (x + Z), Z discrete Gaussian of parameter `part_sigma`, exactly; of any size.

    Raises:
        InternalFault: no entropy, or see `part_sigma`.

    Privacy: costs a person who moves x by D what D^2 d / (10^6 V) is in mu^2, see the module's docstring.
    """
    return noisy + part * (exact + discrete_gaussian(part_sigma(variance, part), bits))
