"""How many more answers like one a study can give."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import PrivacyRefusal
from app.estimators.interface import Estimator, NotApplicable
from app.services.statistics.any_request import AnyRequest, AnySituation
from app.services.statistics.piece_ledger import PieceStep, priced
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
    request: AnyRequest,
    now: AnySituation[Any],
    made: Any,
    among: Sequence[Estimator] | None = None,
) -> int | None:
    """How many more answers to a question people can pay for before one is refused.

    Follows the ledger: all answers with noise of their own cost the same until a person drops out, then the
    question is planned anew.

    Args:
        request, now: The question, and what it is planned from.
        made: The next answer.
        among: What `auto` chooses among.

    Returns:
        The number, at least; 0 where the next one would be refused; None where answers cost nothing, or are
        not compared.

    Privacy: looks at offers and at what is left of them, which are public under replace_one, at no raw value.
    """
    if made.by_steps:
        return steps_left(made, now.cohorts, request.question.share) if request.is_gain(made, now.best) else 0

    def planned(rows: Sequence[Cohort], best: float | None) -> tuple[float, Priced]:
        alone = now.among(request, rows).alone(request, among)
        people, left_out, width = request.compared(alone)
        request.check(people, left_out, width, best)
        members = zip(alone.crowd.groups, alone.crowd.members, alone.costs, strict=True)
        return width, [(cohort, group.epsilon, cost) for group, own, cost in members for cohort in own]

    return count_left(now.cohorts, now.best, planned) if request.compares else None


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
