"""An answer for a mean with noise of its own, which is drawn from nothing that was kept; no database."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

from app.accounting.measurement import recorded
from app.core.cohort import Cohort
from app.core.release import Used
from app.core.study import StudyDefinition
from app.estimators.every_level import at_every_level
from app.estimators.interface import Estimator, Plan, Question
from app.services.statistics import planning
from app.services.statistics.any_made import AnyMade
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.kept_sums import kept_of
from app.services.statistics.mean_drafts import OfMean
from app.services.statistics.questions import Resolved


@dataclass(frozen=True, kw_only=True)
class Alone(AnyMade, OfMean):
    """An answer with noise of its own that can be made.

    Attributes:
        study: Which one was asked.
        estimator, question, plan: What answers, and from what.
        crowd: Whom it was made for.
    """

    study: StudyDefinition
    estimator: Estimator
    question: Question
    plan: Plan
    crowd: Crowd

    parts: ClassVar[tuple[()]] = ()

    @classmethod
    def of(
        cls,
        study: StudyDefinition,
        crowd: Crowd,
        resolved: Resolved,
        question: Question,
        among: Sequence[Estimator] | None = None,
    ) -> Self:
        """Plan an answer; arguments and errors as of `planning.choose`."""
        estimator, plan, question = planning.choose(study, crowd, resolved, question, among)
        return cls(study=study, estimator=estimator, question=question, plan=plan, crowd=crowd)

    @cached_property
    def costs(self) -> Sequence[int]:
        """What each person of each group pays [the study's currency]."""
        return planning.costs(self.plan, self.crowd, self.study)

    @cached_property
    def most(self) -> int:
        """The largest charge to a person [the study's currency], see `planning.epsilon_max`."""
        return planning.epsilon_max(self.study, self.estimator, self.question, self.costs)

    @property
    def most_in_all(self) -> int:
        """The same: it sharpens no other answer."""
        return self.most

    @property
    def used(self) -> Sequence[Used]:
        """The cohorts whose people are in it."""
        return self.crowd.used()

    def said(self, resolved: Resolved, cohorts: Sequence[Cohort]) -> Said:
        """Price, draw, read. Fails closed: whatever goes wrong, there is no answer. Draws entropy."""
        people, plan = self.crowd, self.plan
        charges = planning.charges_of(self.costs, people)
        values = planning.noisy(plan, people)
        apart = kept_of(self.study, resolved, people, plan, values, charges)
        return self.said_of(
            resolved,
            at_every_level(lambda: plan.conclude(values)),
            noise=recorded(planning.noise_json(plan), [planning.measured(plan, people)], apart),
            charges=charges,
            apart=apart,
        )
