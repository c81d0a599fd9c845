"""What every plan has of an answer about the distribution of the values, or of what needs it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.accounting.measurement import Measurement
from app.core.errors import InternalFault
from app.core.release import Charge, Used
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import Plan
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_questions import ShapeQuestion
from app.services.shapes.shape_trees import Grown, Tree
from app.services.statistics import says_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan(ABC):
    """One question, priced, for one crowd.

    Attributes:
        crowd: Whom it was made for.
        costs: What each person of each group pays for all of it [the study's currency].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
    """

    crowd: ShapeCrowd
    costs: tuple[int, ...]
    most: int

    @property
    def most_in_all(self) -> int:
        """The largest charge to a person, which is all that they pay: it sharpens no other answer."""
        return self.most

    @property
    def for_all(self) -> "PricedPlan":
        """What answers for all people, if labels are asked for besides."""
        return self

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids.

        Raises:
            InternalFault: a cohort is in two groups, for example of two labels.
        """
        charges = [
            Charge(cohort_id=cohort.id, epsilon=cost)
            for cost, members in zip(self.costs, self.crowd.members, strict=True)
            if cost
            for cohort in members
        ]
        if len({charge.cohort_id for charge in charges}) != len(charges):
            raise InternalFault("A cohort is charged twice.")
        return tuple(sorted(charges, key=lambda charge: charge.cohort_id))

    @property
    def used(self) -> Sequence[Used]:
        """The cohorts whose people are in it."""
        return self.crowd.used()

    @abstractmethod
    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger."""

    @property
    @abstractmethod
    def predicted_error(self) -> float:
        """Root mean square error, in the unit of the answer."""

    @property
    @abstractmethod
    def interval_width(self) -> float:
        """Predicted width of the interval, by which answers are compared."""

    @property
    def half_width(self) -> float | None:
        """Half of the interval, in the unit of the answer; None where it is not predicted so."""
        return None

    @property
    def of_mean(self) -> Plan | None:
        """The plan of a mean that the answer is one of."""
        return None

    @property
    def statistics(self) -> tuple[str, ...]:
        """What can be read off the answer, where that is not what was asked alone."""
        return ()

    @property
    def joined(self) -> str:
        """What its summary says of people who are joined in."""
        return ""

    @property
    def one_report_moves(self) -> float | None:
        """How far one local report can move the answer; None without reports in it."""
        return None

    def shown(self) -> dict[str, Any]:
        """What plans of its kind alone say, by the names of `PlannedEstimator`."""
        return {}

    @property
    def part_told(self) -> float:
        """What the predicted interval takes up of all that the number can be, where people are public."""
        return self.interval_width

    def unit(self, study: StudyDefinition) -> float:
        """All that the number can be, in the unit of its predicted error."""
        return float(study.grid.width)

    def told(self, study: StudyDefinition, question: ShapeQuestion) -> float:
        """What an interval takes up of all that its number can be, see `says_nothing.Told`."""
        if study.relation is Relation.REPLACE_ONE:
            return max(0.0, self.part_told)
        if question.size is None:
            return 0.0
        return says_nothing.width_of(self.predicted_error) / self.unit(study)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShape(PricedPlan):
    """A plan that is also made for each label of an attribute."""

    @property
    def trees(self) -> tuple[Tree, ...]:
        """Trees of counts that the answer is read off."""
        return ()

    @property
    @abstractmethod
    def parts_of_document(self) -> tuple[str, ...]:
        """The fields of the answer that are null for a label without one."""

    @abstractmethod
    def noise_json(self) -> str:
        """The noise, for the ledger: what is needed to compute the price again."""

    @abstractmethod
    def answer(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> dict[str, object]:
        """Add exact noise to what people add up to, read the result. Draws entropy.

        Args:
            counts: For each cohort that takes part what `shape_sums.summed_up` says of it.
            grown: The levels of `trees`.

        Returns:
            The part of the body that depends on them.
        """
