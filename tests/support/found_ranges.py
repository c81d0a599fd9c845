"""Means over ranges that are found first, in this process: a crowd of known values and its cohorts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.found_range import FoundRange
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.found_plans import FoundPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.questions import ExpectedRange
from app.services.statistics.questions import Ask


@dataclass(frozen=True)
class FoundCase:
    """A planned question, and the data that it is answered from.

    Attributes:
        plan: The plan.
        points: The values of each cohort [grid steps].
    """

    plan: FoundPlan
    points: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(
        cls,
        values: Sequence[NDArray[np.float64]],
        *,
        upper: float,
        lower: float = 0,
        epsilons: Sequence[float] = (1,),
        relation: Relation = Relation.REPLACE_ONE,
        tilt: float = 0.0,
        by: str = "",
        expected: ExpectedRange | None = None,
        **parameters: str,
    ) -> "FoundCase":
        """One cohort for each array of values, with an epsilon each; `by` label each is a label.

        Planned as if a range of the `expected` width had been found last.
        """
        secret = relation is Relation.ADD_REMOVE_ONE
        study = StudyDefinition(
            slug="study",
            title="A question",
            lower=Decimal(str(lower)),
            upper=Decimal(str(upper)),
            relation=relation,
            trust=frozenset(Trust),
            epsilon_min=round(min(epsilons) * MICRO),
            epsilon_max=round(max(epsilons) * MICRO),
            default_share=MICRO,
            tilt=round(tilt * MICRO),
            attributes=Attributes.of(
                {by: [f"label {number}" for number in range(len(values))]} if by else {}
            ),
        )
        points = tuple(
            np.floor((one - lower) / (upper - lower) * GRID_SIZE + 0.5).astype(np.int64) for one in values
        )
        cohorts = [
            Cohort(
                id=number,
                trust=Trust.CENTRAL,
                epsilon=round(epsilon * MICRO),
                carried=0,
                spent=0,
                count=len(mine),
                total=int(mine.sum()),
                total_squares=0,
                segment=number - 1 if by else 0,
            )
            for number, (mine, epsilon) in enumerate(zip(points, epsilons, strict=True), start=1)
        ]
        size: dict[str, Any] = {"expected_size": float(sum(map(len, points)))} if secret else {}
        ask = Ask(parameters={"range": "found", **parameters}, by=by, **size)
        plan = shape_kinds.make(study, replace(resolve(study, ask), expected=expected), cohorts)
        assert isinstance(plan, FoundPlan)
        return cls(plan=plan, points=points)

    @property
    def counts(self) -> dict[int, list[int]]:
        """The people of each cohort by bin."""
        inner = np.array(self.plan.edges[1:-1])
        bins = len(inner) + 1
        return {
            number: np.bincount(np.searchsorted(inner, mine, side="right"), minlength=bins).tolist()
            for number, mine in enumerate(self.points, start=1)
        }

    def sums(self, found: FoundRange) -> dict[int, tuple[int, int]]:
        """What each cohort adds up to in a range."""
        return {
            number: (len(mine), int((np.clip(mine, found.low, found.high) - found.low).sum()))
            for number, mine in enumerate(self.points, start=1)
        }

    def clipped_mean(self, found: FoundRange, places: Sequence[int] | None = None) -> float:
        """The mean of all values, or of those of some cohorts, moved into a range [data's unit]."""
        points = self._of(places)
        mean = float(np.clip(points, found.low, found.high).mean())
        grid = self.plan.study.grid
        return float(grid.lower) + mean / GRID_SIZE * float(grid.width)

    def outside(self, found: FoundRange, places: Sequence[int] | None = None) -> float:
        """The part of the people, or of those of some cohorts, outside of a range."""
        points = self._of(places)
        return float(((points < found.low) | (points > found.high)).mean())

    def _of(self, places: Sequence[int] | None) -> NDArray[np.int64]:
        return np.concatenate(self.points if places is None else [self.points[place] for place in places])
