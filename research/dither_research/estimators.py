"""Every estimator of the papers, the service's and the baselines, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from app.core.study import Currency, Relation
from app.estimators.adpm import Adpm
from app.estimators.hourglass import Hourglass
from app.estimators.hybrid import Kvh, Pwh
from app.estimators.interface import Estimator
from app.estimators.optimal import Optimal
from app.estimators.registry import currencies_of
from app.estimators.threshold import Threshold
from app.estimators.transformed import Transformed
from app.estimators.uniform import Uniform
from dither_research.baselines.hybrid import FullLm, GroupSize, LmOnly, TcmOnly
from dither_research.baselines.ldpe import Ldpe
from dither_research.baselines.linear import Fme, Proportional, Stretching
from dither_research.baselines.ratio import Independent, Shifted
from dither_research.baselines.sampling import Sampling

_ALL: tuple[Estimator, ...] = (
    Uniform(),
    Optimal(),
    Adpm(),
    Kvh(),
    Pwh(),
    Proportional(),
    Threshold(),
    Ldpe(),
    Fme(),
    Sampling(),
    Stretching(),
    TcmOnly(),
    LmOnly(),
    GroupSize(),
    FullLm(),
    Transformed(),
    Hourglass(),
    Shifted(),
    Independent(),
)

ESTIMATORS: Mapping[str, Estimator] = MappingProxyType({estimator.name: estimator for estimator in _ALL})
"""In the order of the papers."""


def applicable(relation: Relation, noise: Currency = Currency.LAPLACE) -> tuple[Estimator, ...]:
    """The estimators that are private under a relation and can add this noise."""
    return tuple(
        estimator
        for estimator in ESTIMATORS.values()
        if estimator.relation is relation and noise in currencies_of(estimator)
    )
