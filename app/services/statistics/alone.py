"""An answer for a mean with noise of its own, which is drawn from nothing that was kept; no database."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from app.accounting.measurement import recorded
from app.core.cohort import Cohort
from app.core.release import AllUsed
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.every_level import at_every_level
from app.estimators.interface import Estimator, Plan, Question
from app.services.statistics import combining, combining_secret, planning
from app.services.statistics.any_made import AnyMade
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.mean_drafts import said_of
from app.services.statistics.questions import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone(AnyMade):
    """An answer with noise of its own that can be made.

    Attributes:
        estimator, question, plan: What answers, and from what.
        crowd: Whom it was made for.
    """

    estimator: Estimator
    question: Question
    plan: Plan
    crowd: Crowd

    parts: ClassVar[tuple[()]] = ()

    @property
    def people(self) -> int:
        """All people."""
        return self.crowd.people

    @property
    def left_out(self) -> int:
        """The people who cannot pay."""
        return self.crowd.left_out

    def said(self, study: StudyDefinition, resolved: Resolved, cohorts: Sequence[Cohort]) -> Said:
        """Price, draw, read. Fails closed: whatever goes wrong, there is no answer. Draws entropy."""
        people, plan = self.crowd, self.plan
        charges = planning.charges(plan, people, study)
        values = planning.noisy(plan, people)
        if study.relation is Relation.ADD_REMOVE_ONE:
            apart = combining_secret.apart(resolved, plan, values)
        else:
            apart = combining.apart(study, resolved, people, plan, values, charges)
        most = planning.epsilon_max(study, self.estimator, self.question, charges.column("epsilon"))
        noise = planning.noise_json(plan, [] if apart is None else [apart])
        return replace(
            said_of(study, resolved, self, at_every_level(lambda: plan.conclude(values)), people),
            most=most,
            most_in_all=most,
            noise=recorded(noise, [planning.measured(plan, people)]),
            charges=charges,
            used=_used(people),
            apart=apart,
        )


def _used(people: Crowd) -> AllUsed:
    """Every cohort whose sums may be in the answer, in the order of ids."""
    # What a central group offers; local and public people need not have anything left.
    offers = [
        (epsilon if trust is Trust.CENTRAL else 0) if participates else None
        for trust, epsilon, participates in zip(
            *map(people.groups.column, ("trust", "epsilon", "participates")), strict=True
        )
    ]
    here = zip(*map(people.cohorts.column, ("id", "count")), people.places, strict=True)
    return AllUsed.of_rows(
        ("cohort_id", "count", "offer"),
        [
            (cohort, count, offer)
            for cohort, count, place in sorted(here)
            if (offer := offers[place]) is not None
        ],
    )
