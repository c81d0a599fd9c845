r"""Randomized response: the truth or one of k - 1 lies, binary where k = 2.

:math:`P(\text{truth}) = p = \frac{e^\epsilon}{e^\epsilon + k - 1}` and each lie has
:math:`q = \frac{1}{e^\epsilon + k - 1}`, exactly. Devices draw with `dither.device.response`; here the
service reads what they sent.

References:
    Warner, JASA 60 (1965), doi:10.1080/01621459.1965.10480775 (k = 2).
    Kairouz, Bonawitz, Ramage, arXiv:1602.07387v3, equation 2 (any k).
    Wang, Blocki, Li, Jha, arXiv:1705.04421, section 3 (counting through it).
"""

import math
from dataclasses import dataclass

from app.core.epsilon import MICRO
from app.core.errors import InternalFault


@dataclass(frozen=True, slots=True, kw_only=True)
class KaryChannel:
    """The channel of one answer.

    Attributes:
        categories: k, at least 2.
        epsilon: Cost of one answer, at least 1 [micro-epsilon].
    """

    categories: int
    epsilon: int

    def __post_init__(self) -> None:
        if self.categories < 2 or self.epsilon < 1:
            raise InternalFault("A randomized answer needs two categories and some epsilon.")

    @property
    def truth(self) -> float:
        """p, probability of the truth."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon / MICRO))

    @property
    def lie(self) -> float:
        """q, probability of each lie."""
        return math.exp(-self.epsilon / MICRO) * self.truth

    @property
    def contrast(self) -> float:
        """The difference p - q, without cancellation at small epsilon."""
        return -math.expm1(-self.epsilon / MICRO) * self.truth


def response_variance(channel: KaryChannel, share: float) -> float:
    """Variance of one category's estimated count, for each answer.

    Args:
        channel: The channel.
        share: Share of the answers whose truth is this category, in [0, 1].

    Returns:
        Mean variance of (answer is the category) over people, divided by (p - q)^2 [1].

    Privacy: a public constant.
    """
    p, q = channel.truth, channel.lie
    return (share * p * (1 - p) + (1 - share) * q * (1 - q)) / channel.contrast**2
