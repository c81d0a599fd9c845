"""What every plan has of an answer about the distribution of the values, or of what needs it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from app.accounting.measurement import Measurement, Workload, recorded
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace, as_document
from app.core.piece import Piece, Taken
from app.core.release import Charge, Used
from app.core.study import StudyDefinition
from app.estimators.anytime import Steps
from app.estimators.every_level import at_every_level
from app.estimators.found_range import FoundRange
from app.estimators.interface import Plan
from app.estimators.shares import Noisy
from app.estimators.weighing import Weighing
from app.services.shapes.questions import ShapeEstimator, ShapeQuestion
from app.services.shapes.trees import Grown, Tree
from app.services.statistics import says_nothing
from app.services.statistics.any_made import AnyMade
from app.services.statistics.crowds import Crowd

T = TypeVar("T")

Counts = Mapping[int, Sequence[int]]
"""What the people of each cohort that takes part add up to, by its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer with its noise.

    Attributes:
        body: The part of the body that depends on it.
        noise: For the ledger: what is needed to compute the price again.
        charges: Of each cohort.
        taken: What it does to pieces.
        apart: The sums that are kept of it.
    """

    body: Mapping[str, object]
    noise: str
    charges: Sequence[Charge]
    taken: Taken | None = None
    apart: Piece | None = None


class Scans(Protocol):
    """What an answer reads of people, and where it is drawn.

    Raises:
        CohortsChanged: a person left since the cohorts were read: the draft would be void.
    """

    async def summed_up(self) -> Counts:
        """What the plan of a question asks of each cohort; nothing, where it needs their sizes alone."""

    async def within(self, found: FoundRange) -> Counts:
        """The people of each cohort, and what their values add up to in a range."""

    async def grown(self, trees: Sequence[Tree]) -> Sequence[Grown]:
        """Draw all levels of trees, one scan a level. Draws entropy; nothing of it is published yet."""

    async def draw(self, made: Callable[..., T], *args: object) -> T:
        """Draw and read, in a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan(AnyMade, ShapeEstimator, ABC):
    """One question, priced, for one crowd.

    Attributes:
        crowd: Whom it was made for.
        costs: What each person of each group pays for all of it [the study's currency].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
    """

    crowd: Crowd
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

    def charges(self) -> Sequence[Charge]:
        """What it costs each cohort, see `Crowd.charges`."""
        return self.crowd.charges(self.costs)

    @property
    def used(self) -> Sequence[Used]:
        """The cohorts whose people are in it."""
        return self.crowd.used()

    def drawn_of_nothing(self) -> Mapping[str, object]:
        """What it says of numbers that are public; nothing, where it needs any sums."""
        return {}

    @abstractmethod
    async def answered(self, scans: Scans) -> Answered:
        """The answer, drawn and read. Draws entropy; nothing of it is published yet."""

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
    def anytime_half_width(self) -> float | None:
        """Half of an interval that holds at all steps, as a part of all people; None of other plans."""
        return None

    @property
    def of_mean(self) -> Plan | None:
        """The plan of a mean that the answer is one of."""
        return None

    @property
    def cells(self) -> Mapping[str, int]:
        """The people of each label, where what is read off such a mean is weighed by them."""
        return {}

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
        if not study.hides_people:
            return max(0.0, self.part_told)
        if question.size is None:
            return 0.0
        return says_nothing.width_of(self.predicted_error) / self.unit(study)


Drawn = TypeVar("Drawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShape(PricedPlan, Generic[Drawn]):
    """A plan of which all is drawn at once, and then read; it is also made for each label of an attribute."""

    parts_of_document: ClassVar[tuple[str, ...]] = ()
    """The fields of the answer that are null for a label without one."""

    @property
    def trees(self) -> tuple[Tree, ...]:
        """Trees of counts that the answer is read off."""
        return ()

    @property
    def is_midpoint(self) -> bool:
        """Whether it says the middle of the range, which would be nearer than any answer of its people."""
        return False

    @abstractmethod
    def noise_json(self) -> str:
        """The noise, for the ledger: what is needed to compute the price again."""

    @abstractmethod
    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Drawn:
        """Weigh what people add up to, add exact noise. Integers until it is in; draws entropy.

        Args:
            counts: For each cohort that takes part what `Scans.summed_up` says of it.
            grown: The levels of `trees`.
        """

    @abstractmethod
    def read(self, *drawn: Drawn) -> dict[str, object]:
        """The part of the body that depends on noise; that for all people may be read off all labels."""

    async def answered(self, scans: Scans) -> Answered:
        """See `PricedPlan`."""
        counts, grown = await scans.summed_up(), await scans.grown(self.trees)
        body, kept = await scans.draw(self._answered, counts, grown)
        noise = recorded(self.noise_json(), self.measured(), kept)
        return Answered(body=body, noise=noise, charges=self.charges(), apart=kept)

    def drawn_of_nothing(self) -> Mapping[str, object]:
        """See `PricedPlan`; compared with answers as they are stored, which have one level."""
        return self.read(self.noisy({}))

    def answer(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> dict[str, object]:
        """Draw and read. Arguments as of `noisy`."""
        body, _ = self._answered(counts, grown)
        return body

    def _answered(
        self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown]
    ) -> tuple[dict[str, object], Piece | None]:
        drawn = self.noisy(counts, grown)
        return at_every_level(lambda: self.read(drawn)), self.kept(drawn)

    def kept(self, drawn: Drawn) -> Piece | None:
        """The noisy sums in what is drawn that answers to other questions are read off, too."""
        return None

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, Any]]",
    ) -> Self:
        """What answers for all people beside labels; it charges for its own draws, if it has any.

        Args:
            study, question: What is asked.
            crowd: All people; those of labels without an answer take no part.
            labels: For each declared label its people and its plan, None without an answer.

        Raises:
            InternalFault: it has labels itself.
        """
        raise InternalFault("What has labels is not made for one.")


class Weighed(Protocol):
    """What reads noisy sums of people by what they weigh."""

    @property
    def workload(self) -> Workload:
        """What is measured."""

    @property
    def weighing(self) -> Weighing:
        """What people count for."""

    @property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """Of the sums."""

    @property
    def predicted_error(self) -> float:
        """Root mean square error, in the unit of the answer."""

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval, by which answers are compared."""


def measured_by(plan: Weighed, crowd: Crowd) -> Measurement:
    """What is measured of a crowd."""
    return Measurement.of_weights(
        plan.workload, plan.noise, plan.weighing.weights, crowd.groups, crowd.members
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedPlan(OneShape[Drawn]):
    """A plan of noisy sums by what people weigh, one weight for each group.

    Attributes:
        plan: Reads them; it has weights and noise, and says how near they come.
    """

    plan: Weighed

    @property
    def predicted_error(self) -> float:
        """Root mean square error, in the unit of the answer."""
        return self.plan.predicted_error

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval, by which answers are compared."""
        return self.plan.interval_width

    def unit(self, study: StudyDefinition) -> float:
        """Of parts of all people, as shares and ranks are."""
        return 1.0

    def noise_json(self) -> str:
        """See `OneShape`."""
        return json.dumps(as_document(self.plan.noise))

    def measured(self) -> list[Measurement]:
        """See `PricedPlan`."""
        return [measured_by(self.plan, self.crowd)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecesPlan(OneShape[Noisy]):
    """A plan of noisy sums that can be kept as pieces, and read together, see `app.services.shapes.steps`."""

    def stepped(self, steps: Steps) -> Self:
        """The same with how the noise of its pieces was drawn, in their order."""
        return self

    @abstractmethod
    def beside(self, pieces: Sequence[Piece], counts: Mapping[int, Sequence[int]]) -> list[Noisy]:
        """What is read of sums that are kept, and of people who are read anew; `counts` as in `noisy`."""
