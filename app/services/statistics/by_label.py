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
no cohort has members of two labels is checked, since it is what this rests on.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from app.core.cohort import Cohort, Cohorts
from app.core.errors import BudgetExhausted, InternalFault
from app.core.noise import NoNoise
from app.core.piece import LastStep, Piece
from app.core.release import AllUsed, Charges
from app.core.study import StudyDefinition, Trust
from app.estimators import registry
from app.estimators.combination import combination_plan
from app.estimators.interface import Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning, steps
from app.services.statistics.piece_ledger import PieceLedger, next_number
from app.services.statistics.piece_noise import NOISES
from app.services.statistics.piece_sums import sums_of
from app.services.statistics.questions import Resolved
from app.services.statistics.steps import Part, Step, Whole


def plan_by(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    pieces: Sequence[Piece],
    before: LastStep | None,
    among: Sequence[Estimator] | None = None,
) -> Step:
    """Plan the step of a question by an attribute to its share; see `statistics.steps.plan_step`.

    Returns:
        The step, with a part for each declared label. A label without people who can take part has none.

    Raises:
        BudgetExhausted: no person can pay for more than there is.
        NotApplicable: no estimator has an answer by labels.
    """
    # 1. What each label has paid, and can.
    names, noise = study.attributes.labels[resolved.by], NOISES[study.noise]
    people = Cohorts.of(cohorts)
    members = _members(study, resolved.by, people)
    of_labels = _of_labels(people, members, pieces)
    ledgers = [PieceLedger(people.some(members[name]), of_labels[name], resolved, noise) for name in names]
    # 2. The whole decides on the estimator and its parameters.
    taking_part = frozenset[int]().union(*(one.taking_part for one in ledgers))
    whole = _linear(study, people, resolved, question, taking_part, among)
    parameters = whole.question.parameters
    # 3. A step for each label.
    number, parts = next_number(pieces), []
    asked_of = replace(resolved, by="", estimator=whole.estimator.name, parameters=parameters)
    for name, ledger in zip(names, ledgers, strict=True):
        part = replace(asked_of, where={**resolved.where, resolved.by: name})
        own = ledger.cohorts
        asked = replace(question, people=sum(own.column("count")), together=len(names))
        try:
            step = steps.plan_from(study, ledger, part, asked, before, number=number, needed=False)
        except (BudgetExhausted, NotApplicable):
            step = None
        if step is None and Trust.CENTRAL not in own.column("trust"):
            step = _without_noise(study, own, part, asked, before)
        number += 0 if step is None else len(step.pieces) - len(ledger.pieces)
        parts.append(Part(where=part.where, cohorts=own, step=step))
    return _joined(people, resolved, parts, whole, before)


def _linear(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    taking_part: Set[int],
    among: Sequence[Estimator] | None,
) -> Whole:
    """The plan for all people, by an estimator whose answers are sums that can be read together."""
    found = steps.plan_whole(study, cohorts, resolved, question, taking_part, among)
    if found.weights is not None or isinstance(found.plan.noise, NoNoise):
        return found
    if resolved.estimator == registry.AUTO and among is None:
        plans = []
        for estimator in registry.applicable(study.relation, study.noise):
            try:
                plan = steps.plan_whole(study, cohorts, resolved, question, taking_part, [estimator])
            except NotApplicable:
                continue
            if plan.weights is not None:
                plans.append(plan)
        if plans:
            return min(plans, key=lambda one: one.plan.predicted_error)
    raise NotApplicable("This estimator has no answer by labels; adpm has one.")


def _without_noise(
    study: StudyDefinition,
    cohorts: Cohorts,
    resolved: Resolved,
    question: Question,
    before: LastStep | None,
) -> Step | None:
    """The answer of people who are public or sent reports, which costs nothing; None where there is none."""
    try:
        whole = steps.plan_whole(study, cohorts, resolved, question, set())
    except (BudgetExhausted, NotApplicable):
        return None
    if not isinstance(whole.plan.noise, NoNoise):
        return None
    used = sorted((cohort, count, 0) for cohort, count in cohorts.rows("id", "count"))
    return Step(
        estimator=whole.estimator,
        question=whole.question,
        plan=_read_freely(whole),
        before=before,
        noise=whole.noise,
        had={},
        pieces=(),
        finer=frozenset(),
        closed=frozenset(),
        used=AllUsed.of_rows(("cohort_id", "count", "offer"), used),
        charges=(),
        people=sum(cohorts.column("count")),
        left_out=0,
        epsilon_max=0,
        epsilon_max_total=0,
        share_used=0,
        silent=whole.people.silent,
    )


def _read_freely(whole: Whole) -> Plan:
    """A plan without noise, which needs no noisy sums."""
    return replace(whole.plan, conclude=lambda _: planning.answer(whole.plan, whole.people))


def _members(study: StudyDefinition, by: str, people: Cohorts) -> dict[str, list[int]]:
    """The places of the cohorts that have each label."""
    labels = study.attributes.labels[by]
    label_of = {segment: label for label in labels for segment in study.attributes.where({by: label})}
    members: dict[str, list[int]] = {label: [] for label in labels}
    for place, segment in enumerate(people.column("segment")):
        members[label_of[segment]].append(place)
    return members


def _of_labels(
    people: Cohorts, members: Mapping[str, Sequence[int]], pieces: Sequence[Piece]
) -> dict[str, list[Piece]]:
    """The pieces of each label: those that have living members of it.

    Raises:
        InternalFault: a piece has living members of a label and others.
    """
    ids = people.column("id")
    label_of = {ids[place]: label for label, places in members.items() for place in places}
    found: dict[str, list[Piece]] = {label: [] for label in members}
    for piece in pieces:
        labels = {label_of[cohort] for cohort in piece.column("cohort_id") if cohort in label_of}
        if len(labels) > 1:
            raise InternalFault("A noisy sum of one label has people of another one.")
        for label in labels:
            found[label].append(piece)
    return found


def _joined(
    cohorts: Cohorts,
    resolved: Resolved,
    parts: Sequence[Part],
    whole: Whole,
    before: LastStep | None,
) -> Step:
    """One step of all labels, which reads the whole."""
    made = [part.step for part in parts if part.step is not None]
    pieces = tuple(piece for step in made for piece in step.pieces)
    finer = frozenset[int]().union(*(step.finer for step in made))
    left_out = sum(_left_out(part) for part in parts)
    if (
        whole.weights is not None
        and not finer
        and (before is None or (left_out and before.share < resolved.share))
    ):
        raise BudgetExhausted("no person in this study can take part in such a release")
    charges = Charges.together([step.charges for step in made], ("cohort_id", "epsilon"))
    if len(set(charges.column("cohort_id"))) != len(charges):
        raise InternalFault("A cohort is charged for two labels.")
    if whole.weights is None:
        plan = _read_freely(whole)
    else:
        sums = sums_of(cohorts, pieces, whole.people.groups, whole.weights, whole.noise)
        plan = combination_plan(sums, whole.linear, whole.question)
    return Step(
        estimator=whole.estimator,
        question=whole.question,
        plan=replace(plan, labels=tuple(None if one.step is None else one.step.plan for one in parts)),
        before=before,
        noise=whole.noise,
        had={number: share for step in made for number, share in step.had.items()},
        pieces=pieces,
        finer=finer,
        closed=frozenset[int]().union(*(step.closed for step in made)),
        used=AllUsed.together([step.used for step in made], ("cohort_id", "count", "offer")),
        charges=charges,
        people=sum(cohorts.column("count")),
        left_out=left_out,
        epsilon_max=max((step.epsilon_max for step in made), default=0),
        epsilon_max_total=max((step.epsilon_max_total for step in made), default=0),
        share_used=max((step.share_used for step in made), default=0),
        silent=whole.people.silent,
        parts=tuple(parts),
    )


def _left_out(part: Part) -> int:
    if part.step is not None:
        return part.step.left_out
    return sum(count for trust, count in part.cohorts.rows("trust", "count") if trust is Trust.CENTRAL)
