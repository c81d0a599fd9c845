"""The two parts of a hybrid study: who gave values to the curator, and who sent reports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.cohort import Group
from app.core.study import Trust
from app.estimators.calibration import equal_prices
from app.estimators.interface import Question
from app.estimators.linear import participants
from app.estimators.noises import PricedNoise


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The two parts of a hybrid study: indices of groups, and how many people there are."""

    central: tuple[int, ...]
    known: tuple[int, ...]
    local: tuple[int, ...]
    people: int
    reports: int

    @classmethod
    def of(cls, groups: Sequence[Group]) -> "Parts":
        """The parts of a study's groups."""
        central = participants(groups, Trust.CENTRAL)
        known = [*central, *participants(groups, Trust.PUBLIC)]
        local = participants(groups, Trust.LOCAL)
        return cls(
            central=tuple(central),
            known=tuple(known),
            local=tuple(local),
            people=sum(groups[index].count for index in known),
            reports=sum(groups[index].count for index in local),
        )

    def prices(self, groups: Sequence[Group], question: Question) -> list[PricedNoise]:
        """The noises that all central people can pay."""
        return equal_prices([groups[index] for index in self.central], question)

    def weights(self, groups: Sequence[Group], price: PricedNoise) -> list[int]:
        """The price's weight on each central or public person."""
        weights = [0] * len(groups)
        for index in self.known:
            weights[index] = price.weight
        return weights

    def equal_reports(self, groups: Sequence[Group], share: float) -> NDArray[np.float64]:
        """A share of the whole weight, spread evenly over all reports."""
        weights = np.zeros(len(groups))
        weights[list(self.local)] = share / self.reports if self.reports else 0.0
        return weights
