r"""What those who only see the output of a hybrid release can learn: less than the curator.

A hybrid estimate is :math:`\sum_g a_g \sum_{i \in g} x_i + Y_T + \sum_h v_h \sum_{i \in h} (x_i + Y_i)`: a
person of central group g moves it by a_g range widths, one of local group h by v_h, and all of its Gaussian
noise protects all people. Only the noise of a coalition, who know what they added, does not count. With
s'^2 the variance of the rest, a person who moves the estimate by w widths has :math:`\mu = w / s'`, and
epsilon' is the exact epsilon of Gaussian noise (`dither.device.gaussian`).

The published theorem takes the *smaller* of the two sensitivities for all people: its case distinction is
the wrong way round. For w above c, which is where the estimator works, the stated loss of central people
would be a fraction of the true one. Here both sides are computed from their own sensitivity; for one number
take the larger.

The statement is about the continuous law of the estimate. A release publishes it as one double, coarser by
orders of magnitude than the lattice of its central sum, so that the parts cannot be read off its last digits;
the exact rational number would give them away and must not be published.

References:
    Avent, Dubey, Korolova, "The Power of the Hybrid Model for Mean Estimation", PoPETs 2020, theorem 8.1,
    with the larger of the two sensitivities and the analytic formula instead of sqrt(2 ln(1.25 / delta)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from dither.device.gaussian import epsilon_at

from app.core.epsilon import MICRO
from app.core.errors import InternalFault

_SLACK = 1e-9
"""Share of the noise's variance that is left out of account: more than rounding and discreteness take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPart:
    """Local people whose reports weigh the same.

    Attributes:
        people: How many.
        weight: v_h, weight of one report in the estimate [1].
        sigma: Standard deviation of the Gaussian noise in one report [range widths].
    """

    people: int
    weight: float
    sigma: float

    @property
    def variance(self) -> float:
        """What one report's noise adds to the variance of the estimate [range widths squared]."""
        return (self.weight * self.sigma) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Amplified:
    """Epsilons against those who only see the estimate, at the given delta [micro-epsilon].

    Attributes:
        central: One a central group.
        local: One a local group.
    """

    central: tuple[int, ...]
    local: tuple[int, ...]


def amplify(
    *,
    central_weights: Sequence[float],
    central_sigma: float,
    local: Sequence[LocalPart],
    delta: int,
    coalition_share: Fraction = Fraction(0),
) -> Amplified:
    r"""The guarantees of a hybrid Gaussian release against output-viewing adversaries.

    For a central group :math:`\mu = a_g / s'`, for a local one :math:`\mu = v_h / s'`, with
    :math:`s'^2 = s_T^2 + \sum_h (\text{honest people of } h) v_h^2 \sigma_h^2`. The coalition is that share
    of all local people, rounded up, whose noise matters most; never with the person in question in it, who
    does not attack herself.

    Args:
        central_weights: a_g, weight of one person's value in the estimate, one a central group [1].
        central_sigma: Standard deviation of the curator's noise in the estimate, 0 for none [range widths].
        local: The local groups.
        delta: In 1..10^12 - 1 [1e-12].
        coalition_share: Share of the local people who pool what they know, in [0, 1].

    Returns:
        One epsilon a group, rounded up. For a coalition of all local people, central people have what the
        curator's noise alone gives them.

    Raises:
        InternalFault: a number out of range, or a person whom no noise protects.

    Privacy: reads public parameters of a release only; nothing is charged by it.
    """
    if central_sigma < 0 or not 0 <= coalition_share <= 1:
        raise InternalFault("There is no amplification for these parameters.")
    coalition = math.ceil(coalition_share * sum(part.people for part in local))
    order = sorted(range(len(local)), key=lambda index: local[index].variance, reverse=True)
    ends = dict(zip(order, accumulate(local[index].people for index in order), strict=True))

    def beyond(attackers: int) -> float:
        """Noise variance of all but those many local people whose noise matters most."""
        return sum(
            min(max(ends[index] - attackers, 0), local[index].people) * local[index].variance
            for index in order
        )

    honest, honest_but_one = beyond(coalition), beyond(coalition + 1)

    def others(index: int) -> float:
        """What is left of the noise for a person of a local group: her own always is."""
        inside = ends[index] <= coalition
        return honest_but_one + local[index].variance if inside else honest

    def cost(weight: float, rest: float) -> int:
        if weight == 0:
            return 0
        variance = (central_sigma**2 + rest) * (1 - _SLACK)
        if not (variance > 0 and math.isfinite(variance) and math.isfinite(weight)):
            raise InternalFault("No noise protects these people.")
        try:
            return epsilon_at(MICRO * Fraction(weight) ** 2 / Fraction(variance), delta)
        except ValueError as error:
            raise InternalFault("There is no amplification for these parameters.") from error

    return Amplified(
        central=tuple(cost(weight, honest) for weight in central_weights),
        local=tuple(cost(part.weight, others(index)) for index, part in enumerate(local)),
    )
