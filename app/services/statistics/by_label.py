r"""A question by an attribute: one answer for each of its labels, and the whole off the same noisy sums.

Each label has pieces of its own (`app.services.statistics.steps`), weighed for the people who have the label,
who are public in a replace_one study. The whole is the combination of the pieces of all labels
(`app.estimators.combination`), which costs nothing more: it reads what is noisy already.

Privacy. A neighbor is the same people with the same labels, and one value changed: that of a person in label
l. No exact sum of a piece of another label moves, so with independent noise the log-likelihood ratio of the
whole release, which is all pieces, is that of the pieces of l:

.. math:: \ln \frac{p(y)}{p'(y)} = \sum_k \ln \frac{p_k(y_k)}{p'_k(y_k)} = \ln \frac{p_l(y_l)}{p'_l(y_l)}
   \le \epsilon_l.

So a person is charged for the pieces of the own label only, which cost what one mean costs, whatever the
number of labels: parallel composition (McSherry, SIGMOD 2009, doi:10.1145/1559845.1559850, theorem 4). That
no cohort has members of two labels is checked, since it is what this rests on. By several attributes a label
is a cell: a combination of one label of each. A person is in one cell, so all of this holds for cells.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cache

from app.core.cohort import Cohort, Cohorts
from app.core.errors import BudgetExhausted
from app.core.noise import NoNoise
from app.core.piece import LastStep, Piece
from app.core.study import StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning, steps
from app.services.statistics.crowds import Crowd
from app.services.statistics.label_ledger import LabelLedger, places_of
from app.services.statistics.piece_ledger import PieceLedger, check_gain
from app.services.statistics.piece_noise import NOISES
from app.services.statistics.questions import Resolved
from app.services.statistics.steps import LabelPart, MeanStep
from app.services.statistics.whole_plans import Whole, plan_people, plan_whole


def plan_by(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    pieces: Sequence[Piece],
    before: LastStep | None,
    among: Sequence[Estimator] | None = None,
) -> MeanStep:
    """Plan the step of a question by an attribute to its share; see `statistics.steps.plan_step`.

    Returns:
        The step, with a part for each declared label. A label without people who can take part has none.

    Raises:
        BudgetExhausted: no person can pay for more than there is.
        NotApplicable: no estimator has an answer by labels.
    """
    # 1. What people have paid, and can.
    people = Cohorts.of(cohorts)
    labels = LabelLedger(study, people, pieces, resolved, NOISES[study.noise])
    ledger = labels.ledger
    # 2. The whole decides on the estimator and its parameters.
    whole = _linear(study, people, resolved, question, ledger.taking_part, among)
    # 3. A plan, and new pieces, for each label.
    step = steps.step_number(before)
    parts = labels.each(
        lambda cell, places, kept, number: _part(
            study, labels, resolved, whole, whole.people.some(study, places), cell, kept, number, step
        )
    )
    # 4. One step of all labels, which reads the whole.
    read = [piece for part in parts for piece in part.pieces]
    finer = labels.finer(read)
    left_out = sum(part.crowd.unable for part in parts)
    if whole.weights is None:
        plan = _read_freely(whole)
    else:
        check_gain(resolved, before, finer, left_out)
        places = [piece.number for piece in read]
        plan = steps.combined(whole, whole.weights, people, read, step, places)
    plan = replace(plan, labels=tuple(part.plan for part in parts))
    return steps.step_of(ledger, whole, before, read, finer, plan, left_out=left_out, parts=tuple(parts))


def _linear(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    taking_part: Set[int],
    among: Sequence[Estimator] | None,
) -> Whole:
    """The plan for all people, by an estimator whose answers are sums that can be read together."""
    found = plan_whole(study, cohorts, resolved, question, taking_part, among)
    if found.weights is not None or isinstance(found.plan.noise, NoNoise):
        return found
    if resolved.estimator == registry.AUTO and among is None:
        plans = []
        for estimator in registry.applicable(study.relation, study.noise):
            try:
                plan = plan_whole(study, cohorts, resolved, question, taking_part, [estimator])
            except NotApplicable:
                continue
            if plan.weights is not None:
                plans.append(plan)
        if plans:
            return min(plans, key=lambda one: one.plan.predicted_error)
    raise NotApplicable("This estimator has no answer by labels; adpm has one.")


def _part(
    study: StudyDefinition,
    labels: LabelLedger,
    resolved: Resolved,
    whole: Whole,
    people: Crowd,
    cell: Mapping[str, str],
    kept: Sequence[Piece],
    number: int,
    step: int,
) -> LabelPart:
    """One label: its people, the pieces that it has and is to have, and the plan that reads them.

    Args:
        study, labels, resolved: Of the question.
        whole: The plan for all people.
        people: Who have the label.
        cell: The label, or one of each attribute.
        kept: Its pieces, as they will be.
        number: Of a new piece.
        step: Of the question.

    Returns:
        The label, whose plan is made when it is read: what a question by labels costs, and what its whole
        errs by, is seen off the pieces alone.
    """
    ledger, asked_of = labels.ledger, replace(resolved, by="", estimator=whole.estimator.name)
    together = study.attributes.size(resolved.by)
    question = replace(whole.question, people=sum(people.cohorts.column("count")), together=together)
    trusts, counts = people.cohorts.column("trust"), people.cohorts.column("count")
    central = Trust.CENTRAL in trusts
    without = sum(count for trust, count in zip(trusts, counts, strict=True) if trust is Trust.CENTRAL)
    part = LabelPart(where={**resolved.where, **cell}, crowd=replace(people, dry=without))
    try:
        if _settled(ledger, whole, people):
            of_label = replace(whole, people=people, question=question)
        else:
            of_label = plan_people(study, people, asked_of, question)
        if of_label.weights is None:
            # People who are public or sent reports are answered without noise, which costs nothing.
            free = not central and isinstance(of_label.plan.noise, NoNoise)
            return replace(part, plan=cache(lambda: _read_freely(of_label))) if free else part
        weights = of_label.weights
        pieces = (*kept, *steps.joined(study, ledger, of_label, weights, kept, number))
        places = places_of(pieces, labels.gone)
    except (BudgetExhausted, NotApplicable):
        return part
    if not steps.is_answered(of_label, pieces):
        return part
    plan = cache(lambda: steps.combined(of_label, weights, people.cohorts, pieces, step, places))
    return replace(part, plan=plan, pieces=pieces, crowd=ledger.unpaid(people))


def _settled(ledger: PieceLedger, whole: Whole, people: Crowd) -> bool:
    """Whether a label needs no plan of its own.

    Weights of pieces never change, so a plan weighs those who join, people who are public, and reports. What
    else it says is the same for all labels of a study without local people.
    """
    central = set(whole.people.groups.column("trust")) == {Trust.CENTRAL}
    return (
        whole.weights is not None
        and central
        and ledger.joining.keys().isdisjoint(people.cohorts.column("id"))
    )


def _read_freely(whole: Whole) -> Plan:
    """A plan without noise, which needs no noisy sums."""
    return replace(whole.plan, conclude=lambda _: planning.answer(whole.plan, whole.people))
