"""A study in memory whose question is answered step by step: people join, leave, pay for other questions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from uuid import UUID

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import square
from app.core.piece import LastStep, Piece, Taken
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.interface import Conclusion, Plan, Question
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.steps import MeanStep, plan_step, take

STUDY = StudyDefinition(
    slug="minutes",
    title="Minutes",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.REPLACE_ONE,
    trust=frozenset(Trust),
    epsilon_min=1,
    epsilon_max=4 * MICRO,
    default_share=MICRO // 10,
)


GAUSSIAN_STUDY = replace(STUDY, delta=1_000_000)
"""The same with Gaussian noise: epsilons of its cohorts are 1e-6 of mu^2."""


def cohort_of(
    number: int, epsilon: int, values: Sequence[int], trust: Trust = Trust.CENTRAL, *, segment: int = 0
) -> Cohort:
    """A cohort of people with these grid points, who have paid nothing yet."""
    return Cohort(
        id=number,
        trust=trust,
        epsilon=epsilon,
        carried=0,
        spent=0,
        count=len(values),
        total=sum(values),
        total_squares=sum(many * square(value) for value, many in Counter(values).items()),
        segment=segment,
    )


@dataclass(kw_only=True)
class History:
    """What the ledger would hold of one question, by the rules of `app.store`.

    Attributes:
        estimator, tilt: Of the question.
        values: Grid points of the people of each cohort who are there, by its id.
        cohorts: The cohorts, by id.
        pieces: Of the question, by number.
        before: Its last step.
        steps: Every step that was published.
    """

    study: StudyDefinition = STUDY
    estimator: str = "uniform"
    tilt: int | None = None
    values: dict[int, list[int]] = field(default_factory=dict)
    cohorts: dict[int, Cohort] = field(default_factory=dict)
    pieces: dict[int, Piece] = field(default_factory=dict)
    before: LastStep | None = None
    steps: list[MeanStep] = field(default_factory=list)

    def join(self, epsilon: int, values: Sequence[int], trust: Trust = Trust.CENTRAL) -> int:
        """People who are folded into a cohort of their own; its id."""
        number = len(self.cohorts) + 1
        self.values[number] = list(values)
        self.cohorts[number] = cohort_of(number, epsilon if trust is Trust.CENTRAL else 0, values, trust)
        return number

    def leave(self, cohort_id: int) -> None:
        """One person leaves, and takes their part of the sums along."""
        cohort, value = self.cohorts[cohort_id], self.values[cohort_id].pop()
        self.cohorts[cohort_id] = replace(
            cohort,
            count=cohort.count - 1,
            total=cohort.total - value,
            total_squares=cohort.total_squares - square(value),
        )

    def spend(self, cohort_id: int, amount: int) -> None:
        """Another question takes this much of each member's epsilon [micro-epsilon]."""
        cohort = self.cohorts[cohort_id]
        assert 0 <= amount <= cohort.epsilon - cohort.spent
        self.cohorts[cohort_id] = replace(cohort, spent=cohort.spent + amount)

    @property
    def live(self) -> list[Cohort]:
        """Cohorts as the service reads them."""
        return [cohort for cohort in self.cohorts.values() if cohort.count]

    def plan(self, share: int, cap: int | None = None) -> MeanStep | None:
        """The next step to a share [ppm], with a cap [micro-epsilon]."""
        resolved, question = self._asked(share, cap)
        return plan_step(self.study, self.live, resolved, question, list(self.pieces.values()), self.before)

    def plan_fresh(self, share: int) -> tuple[Plan, Crowd]:
        """An answer with noise of its own, at the full price of a share [ppm]; and whom it is planned for."""
        resolved, question = self._asked(share, None)
        people = Crowd.of(self.study, self.live, resolved)
        return planning.choose(self.study, people, resolved, question)[1], people

    def _asked(self, share: int, cap: int | None) -> tuple[Resolved, Question]:
        resolved = resolve(
            self.study, Ask(estimator=self.estimator, share=share, epsilon=cap, tilt=self.tilt)
        )
        return resolved, resolved.question(self.study, people=sum(cohort.count for cohort in self.live))

    def publish(self, step: MeanStep, share: int) -> tuple[Conclusion, Taken]:
        """Draw a step and keep what it leaves."""
        conclusion, taken = take(step, self.live)
        for charge in step.charges:
            self.spend(charge.cohort_id, charge.epsilon)
        self.pieces |= {piece.number: piece for piece in taken.changed}
        self.before = LastStep(
            release=UUID(int=len(self.steps) + 1), share=max(share, taken.share_before), epoch=1
        )
        self.steps.append(step)
        return conclusion, taken

    def ask(self, share: int, cap: int | None = None) -> Taken:
        """Plan, draw and keep the next step."""
        step = self.plan(share, cap)
        assert step is not None
        return self.publish(step, share)[1]

    def charged(self) -> dict[int, int]:
        """What all steps have charged each cohort [micro-epsilon]."""
        sums: dict[int, int] = {}
        for step in self.steps:
            for charge in step.charges:
                sums[charge.cohort_id] = sums.get(charge.cohort_id, 0) + charge.epsilon
        return sums
