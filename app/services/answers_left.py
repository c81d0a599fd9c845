"""How many more answers like one a study can give."""

from collections.abc import Sequence
from dataclasses import replace

from app.accounting.costs import group_costs
from app.core.cohort import Cohort
from app.core.errors import PrivacyRefusal
from app.core.study import StudyDefinition
from app.estimators.interface import Estimator, NotApplicable, Question
from app.services import gain, planning
from app.services.questions import Resolved

MOST_STEPS = 20
"""Times that people drop out before the rest is not followed."""


def answers_left(
    study: StudyDefinition,
    resolved: Resolved,
    cohorts: Sequence[Cohort],
    question: Question,
    estimator: Estimator,
    *,
    best: float | None,
) -> int | None:
    """How many more answers to this question people can pay for before one is refused.

    Follows the ledger: all answers cost the same until a person drops out, then the estimator plans anew.

    Args:
        study: A replace_one study.
        resolved: The question.
        cohorts: The cohorts as they are now.
        question: The same for estimators.
        estimator: That answers.
        best: The smallest width that a former answer has, see `app.services.gain`.

    Returns:
        The number, at least; 0 where the next one would be refused, None where answers cost nothing.

    Privacy: looks at offers and at what is left of them, which are public under replace_one, at no raw value.
    """
    given = 0
    for _ in range(MOST_STEPS):
        people = planning.crowd(study, cohorts, resolved)
        try:
            _, plan, _ = planning.choose(study, people, resolved, question, among=[estimator])
            width = planning.interval_width(study, plan)
            gain.check(people=people.people, left_out=people.left_out, width=width, best=best, needed=False)
        except (NotApplicable, PrivacyRefusal):
            break
        best = width if best is None else min(best, width)
        costs = group_costs(plan.queries, plan.noise, study.relation, people.groups, study.noise)
        priced = [
            (cohort, group.epsilon, cost)
            for group, members, cost in zip(people.groups, people.members, costs, strict=True)
            for cohort in members
        ]
        last = [1 + (one.epsilon - one.spent - offer) // cost for one, offer, cost in priced if cost]
        if not last:
            return None
        times = min(last)
        given += times
        cohorts = [replace(one, spent=one.spent + times * cost) for one, _, cost in priced]
    return given
