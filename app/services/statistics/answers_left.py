"""How many more answers like one a study can give."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from app.accounting.costs import group_costs
from app.core.cohort import Cohort, Group
from app.core.epsilon import MICRO
from app.core.errors import PrivacyRefusal
from app.core.study import StudyDefinition
from app.estimators.interface import Estimator, NotApplicable, Question
from app.services.statistics import gain, planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_ledger import PieceStep, priced
from app.services.statistics.questions import Resolved
from app.services.work import checkpoint

MOST_STEPS = 20
"""Times that people drop out before the rest is not followed."""

Priced = Sequence[tuple[Cohort, int, int]]
"""Cohorts, with what one of their people offers, and is charged."""


def steps_left(step: PieceStep, cohorts: Sequence[Cohort], share: int) -> int | None:
    """How many more steps like one a question can take before it has used all, or a person cannot pay.

    Args:
        step: The next one.
        cohorts: The cohorts as they are now.
        share: What it uses in all [ppm].

    Returns:
        The number, at least; None where there is no step that costs anything.
    """
    before = 0 if step.before is None else step.before.share
    if not step.charges or share <= before:
        return None
    costs = {charge.cohort_id: charge.epsilon for charge in step.charges}
    left = {row.id: row.epsilon - row.spent - costs.get(row.id, 0) for row in cohorts}
    live = [piece for piece in step.pieces if piece.refinable and piece.number not in step.closed]
    more = -(-(MICRO - share) // (share - before))

    def cannot_pay(steps: int) -> bool:
        """Whether the last of these further steps costs a person too much; then all that follow do."""
        further = min(MICRO, share + steps * (share - before))
        due = Counter[int]()
        for piece in live:
            checkpoint()
            finer = priced(replace(piece, share=further - piece.base), step.noise)
            for now, then in zip(piece.members, finer.members, strict=True):
                due[now.cohort_id] += then.charged - now.charged
        return any(cost > left[cohort] for cohort, cost in due.items())

    return 1 + bisect_left(range(1, more + 1), True, key=cannot_pay)


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
        question: What is asked, for estimators.
        estimator: The one that answers.
        best: The smallest width that a former answer has, see `app.services.statistics.gain`.

    Returns:
        The number, at least; 0 where the next one would be refused, None where answers cost nothing.

    Privacy: looks at offers and at what is left of them, which are public under replace_one, at no raw value.
    """

    def planned(cohorts: Sequence[Cohort], best: float | None) -> tuple[float, Priced]:
        people = Crowd.of(study, cohorts, resolved)
        _, plan, _ = planning.choose(study, people, resolved, question, among=[estimator])
        width = planning.interval_width(study, plan)
        gain.check(people=people.people, left_out=people.unable, width=width, best=best, needed=False)
        costs = group_costs(plan.queries, plan.noise, study.relation, people.groups, study.noise)
        return width, priced_members(people.groups, people.members, costs)

    return count_left(cohorts, best, planned)


def priced_members(
    groups: Sequence[Group], members: Sequence[Sequence[Cohort]], costs: Sequence[int]
) -> Priced:
    """Each cohort, what one of its people offers, and what that person is charged."""
    return [
        (cohort, group.epsilon, cost)
        for group, of_group, cost in zip(groups, members, costs, strict=True)
        for cohort in of_group
    ]


def count_left(
    cohorts: Sequence[Cohort],
    best: float | None,
    planned: Callable[[Sequence[Cohort], float | None], tuple[float, Priced]],
) -> int | None:
    """How many more answers there are of those that a plan makes, see `answers_left`.

    Args:
        cohorts: The cohorts as they are now.
        best: The smallest width that a former answer has.
        planned: Plans an answer for cohorts beside the best width so far: its width, and what it charges.
            NotApplicable or a PrivacyRefusal ends the count.
    """
    given = 0
    for _ in range(MOST_STEPS):
        checkpoint()
        try:
            width, charged = planned(cohorts, best)
        except (NotApplicable, PrivacyRefusal):
            break
        best = width if best is None else min(best, width)
        last = [1 + (one.epsilon - one.spent - offer) // cost for one, offer, cost in charged if cost]
        if not last:
            return None
        times = min(last)
        given += times
        cohorts = [replace(one, spent=one.spent + times * cost) for one, _, cost in charged]
    return given
