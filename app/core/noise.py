"""What noise a release adds, as frozen data. `app.mechanisms` draws it, `app.accounting` prices it.

The meaning of an existing class never changes, since releases store it; new noise is a new class.
All sizes are in the integer units of the query the noise is added to.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.core.errors import InternalFault


@dataclass(frozen=True, slots=True, kw_only=True)
class NoNoise:
    """No noise: admissible only where nothing but public data and local reports takes part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Independent discrete Laplace noise, P(z) proportional to exp(-|z| / scale).

    Attributes:
        scales: One scale a query.
    """

    scales: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Independent discrete Gaussian noise, P(z) proportional to exp(-z^2 / (2 sigma^2)).

    Attributes:
        sigmas: One standard deviation a query.
    """

    sigmas: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hourglass:
    """Hourglass noise on a pair of queries (sum, complement); see app/mechanisms/hourglass.py.

    The noise is (h u + v, h u - v) with h = sensitivity / 2, and P(u, v) proportional to
    exp(-epsilon t), t the least integer of u's parity with t >= |u| and t h + step >= |v|.

    Attributes:
        sensitivity: What one person adds to the sum of both queries, exactly; even.
        epsilon: Privacy loss of adding or removing one person [micro-epsilon].
        step: Reach of the inner step, 0..sensitivity / 2.
    """

    sensitivity: int
    epsilon: int
    step: int

    @property
    def half(self) -> int:
        """h: the most that one person moves v by."""
        return self.sensitivity // 2

    @property
    def is_sound(self) -> bool:
        """Whether the parameters describe a distribution."""
        return (
            self.sensitivity >= 2
            and self.sensitivity % 2 == 0
            and 0 <= self.step <= self.half
            and self.epsilon >= 1
        )


MEASURED = "measured"
"""Where the ledger keeps, beside a release's noise, what it measured: see `app.accounting.measurement`."""

APART = "apart"
"""Where it keeps the sums that an answer with noise of its own leaves: see `app.core.piece`."""

OF_MEAN = "moments"
"""Where the noise of a description has that of its mean."""

Noise = NoNoise | DiscreteLaplace | DiscreteGaussian | Hourglass


def repeated(noise: Noise, times: int) -> Noise:
    """Independent noise of the same laws on several times as many queries.

    Raises:
        InternalFault: an hourglass, which is for one pair.
    """
    match noise:
        case NoNoise():
            return noise
        case DiscreteLaplace(scales=scales):
            return DiscreteLaplace(scales=scales * times)
        case DiscreteGaussian(sigmas=sigmas):
            return DiscreteGaussian(sigmas=sigmas * times)
        case _:
            raise InternalFault("This noise is for one pair of queries.")


def as_document(noise: Noise) -> dict[str, object]:
    """What the ledger says of a noise: the name of its class, and what that has."""
    return {"mechanism": type(noise).__name__, **asdict(noise)}


def from_document(document: Mapping[str, Any]) -> Noise:
    """The noise that `as_document` wrote.

    Raises:
        InternalFault: it is none of the classes of this module.
    """
    match document:
        case {"mechanism": "NoNoise"}:
            return NoNoise()
        case {"mechanism": "DiscreteLaplace", "scales": scales}:
            return DiscreteLaplace(scales=tuple(map(float, scales)))
        case {"mechanism": "DiscreteGaussian", "sigmas": sigmas}:
            return DiscreteGaussian(sigmas=tuple(map(float, sigmas)))
        case {"mechanism": "Hourglass", "sensitivity": sensitivity, "epsilon": epsilon, "step": step}:
            return Hourglass(sensitivity=int(sensitivity), epsilon=int(epsilon), step=int(step))
        case _:
            raise InternalFault("A release has noise that is not known.")
