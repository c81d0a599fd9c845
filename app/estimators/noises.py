"""Which noise a release may add, and how large the weights under it may be."""

from dataclasses import dataclass

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise
from app.estimators.interface import UNIT_SCALE

FINE = 64
"""Fine weights count 1/64 micro-epsilon: the finest that the sampler's largest scale allows."""

FINE_SCALE = UNIT_SCALE * FINE
"""Laplace scale at which a weight of W costs W / 64 micro-epsilon; below 2**56."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedNoise:
    """A noise, and the weight that people can pay under it.

    Attributes:
        noise: For one query on central people.
        weight: What a person may weigh in that query.
    """

    noise: Noise
    weight: int

    @property
    def unit_variance(self) -> float:
        """Variance of the noise in a sum of values that weigh `weight` [range widths squared]."""
        return noise_variance(self.noise) / (self.weight * GRID_SIZE) ** 2


def noise_variance(noise: Noise) -> float:
    """Variance of the noise of one query.

    Args:
        noise: None, one discrete Laplace or one discrete Gaussian.

    Returns:
        Variance [query units squared].

    Raises:
        InternalFault: any other noise.

    Privacy: a public constant.
    """
    match noise:
        case NoNoise():
            return 0.0
        case DiscreteLaplace(scales=(scale,)):
            return 2 * scale**2
        case DiscreteGaussian(sigmas=(sigma,)):
            return sigma**2
        case _:
            raise InternalFault("There is no variance for this noise.")
