r"""One more step of a question's shares: who pays what, and the answer from all that is there by then.

A question of a replace_one study keeps *pieces*, see `app.core.piece`. Weights never change: those of a piece
are planned once, at most each person's whole epsilon and good for the shares from its first one to 1
(`app.services.statistics.whole_plans`), and a share s only sets the noise: Laplace noise of scale
:math:`b(s) = b(1) / s`, Gaussian noise of s times the precision at share 1. What a step charges a cohort is
the price at the new noise, rounded up, less what the piece has charged it: ten steps of .1 charge exactly
what one release of these weights at 1 does. They end with noise of exactly its law
(`app.mechanisms.refined_laplace`), or with its variance (`app.mechanisms.refined_gaussian`: there a step
draws independent noise for what it adds, and nothing has to be known of the noise before). A step to share s

1. refines every piece that has lost no member and whose cohorts can all pay the difference: the noise that is
   left is drawn given the published one, :math:`Z_1` = stored noisy sum - exact sum, which is right because
   the exact sum is that of the first draw; with Gaussian noise one more draw joins the sum of draws;
2. gives those who are in no such piece, and can pay, a new piece with independent noise, weighed for itself
   where the estimator weighs parts, see `_own_weights`;
3. leaves every other piece as it is for ever. Its sum stays usable. Its people have given it a share r (its
   `base` and its own), so they join a new piece of base r. It has used s - r of their weights where the
   question has used s: each of them pays the difference at every further step, as if no one had left;
4. combines all of them, with public people and reports, see `app.estimators.combination`.

A draft that is not published was never seen: the next attempt draws anew from the same stored sums, and what
is published is one draw given the one before. Rounding: a charge is at most one micro-epsilon (or 1e-6 of
mu^2) above the share of an epsilon, and never above the epsilon or a cap. For shares below .0149 Laplace
noise would outgrow the sampler; there weights count coarser units, rounded down.

Privacy: who is there, what they offer and what they have paid are public under replace_one, and nothing here
depends on a raw value but the sums that noise is drawn for. Two noisy sums of one piece, of the values and of
their squares, cost what the first one does (`app.accounting.prices`); they are refined independently.

That a piece has lost no member is read off the counts of its cohorts, by this invariant: **a cohort of a
piece whose count is unchanged has the same people.** Its count only falls. Who withdraws, or puts a value in
the place of another one, even the same, is taken out of it in the transaction that changes the row. Who
comes, or comes back with the same trust and epsilon, has the current epoch, which is folded later, into a
cohort that has been charged nothing; a cohort of a piece has been charged for it, since it weighs something.
The publication compares counts again with the rows locked, so no one leaves between the draw and the charge.

A value that was withdrawn cannot be computed from what is kept: the exact sum of its cohort has lost it, and
of a piece there is the noisy sum alone, which has it. Their difference is the value, weighed, and the noise
of the piece as it is now, which is stored nowhere: what the person was charged bounds what that tells. Were
the piece sharpened afterwards, the difference would be taken for noise, and the next answer would depend on
it: hence 3.

People may come because of what was published. Each piece is a mechanism of its own, about people whom no
other live piece holds, and they compose in parallel also then [1]. Its condition, for noise that is not pure:
no noise of a piece is drawn before its people are fixed. Only sealed epochs are folded, and steps see folded
cohorts only. Who joins a second piece, since the first one lost a member, pays for both: their charges add
up, as those of any answers do (`app.accounting.costs`).

*Labels.* A question by an attribute has one answer for each of its labels, and the whole off the same noisy
sums. Each label has pieces of its own, weighed for the people who have the label, who are public in a
replace_one study. The whole is the combination of the pieces of all labels (`app.estimators.combination`),
which costs nothing more: it reads what is noisy already.

Privacy. A neighbor is the same people with the same labels, and one value changed: that of a person in label
l. No exact sum of a piece of another label moves, so with independent noise the log-likelihood ratio of the
whole release, which is all pieces, is that of the pieces of l:

.. math:: \ln \frac{p(y)}{p'(y)} = \sum_k \ln \frac{p_k(y_k)}{p'_k(y_k)} = \ln \frac{p_l(y_l)}{p'_l(y_l)}
   \le \epsilon_l.

So a person is charged for the pieces of the own label only, which cost what one mean costs, whatever the
number of labels: parallel composition (McSherry, SIGMOD 2009, doi:10.1145/1559845.1559850, theorem 4). That
no cohort has members of two labels is checked, since it is what this rests on. By several attributes a label
is a cell: a combination of one label of each. A person is in one cell, so all of this holds for cells.

References:
    [1] Henzinger, Safavi, Vadhan, "Concurrent Composition for Differentially Private Continual Mechanisms",
        arXiv:2411.03299.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from operator import mul

from app.core.cohort import Cohort, Cohorts
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted
from app.core.noise import NoNoise
from app.core.piece import LastStep, Piece, Taken
from app.core.study import StudyDefinition, Trust
from app.estimators import registry
from app.estimators.anytime import Steps
from app.estimators.combination import combination_plan
from app.estimators.every_level import at_every_level
from app.estimators.interface import Conclusion, Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import Said
from app.services.statistics.label_ledger import LabelLedger, places_of
from app.services.statistics.mean_drafts import OfMean, labels_shown
from app.services.statistics.piece_ledger import PieceLedger, PieceStep, check_gain, next_number
from app.services.statistics.piece_noise import NOISES, PieceNoise
from app.services.statistics.piece_sums import sums_of
from app.services.statistics.questions import Resolved
from app.services.statistics.whole_plans import Whole, plan_people, plan_whole, weights_of
from app.services.work import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPart:
    """One label of a question by an attribute.

    Attributes:
        where: The labels of its people.
        crowd: Its people; those who cannot pay their part of this step are in `dry`.
        plan: Makes what answers for them, when it is first asked; None where they have no answer.
        pieces: The noisy sums that it reads, sums as they were.
    """

    where: Mapping[str, str]
    crowd: Crowd
    plan: Callable[[], Plan] | None = None
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanStep(PieceStep, OfMean):
    """A step of a mean that can be taken.

    Attributes:
        estimator, question, plan: What answers, and from what. The plan reads what `take` draws.
        crowd: All people; those who cannot pay their part of this step are in `dry`.
        parts: Of a question by an attribute: its labels.
    """

    estimator: Estimator
    question: Question
    plan: Plan
    crowd: Crowd
    parts: tuple[LabelPart, ...] = ()

    def said(self, resolved: Resolved, cohorts: Sequence[Cohort]) -> Said:
        """Draw and read: an answer that sharpens the one before it. Fails closed. Draws entropy."""
        conclusion, taken = take(self, cohorts)
        return self.said_of(
            resolved, conclusion, noise=self.noise_json(taken), charges=self.charges, taken=taken
        )


def plan_step(
    study: StudyDefinition,
    cohorts: Sequence[Cohort],
    resolved: Resolved,
    question: Question,
    pieces: Sequence[Piece],
    before: LastStep | None,
    among: Sequence[Estimator] | None = None,
) -> MeanStep | None:
    """Plan the step of a question to its share.

    Args:
        study: The study.
        cohorts: The cohorts as they are now, each with an id of its own.
        resolved: What was asked.
        question: What is asked, for estimators.
        pieces: Those of the question.
        before: Its last step.
        among: What `auto` chooses among.

    Returns:
        The step; None where the question is not answered by steps: in add_remove_one studies, where it would
        tell who came and left, and where the plan is no single linear query under noise of its currency. With
        `by` it has a part for each declared label, without an answer where no person can take part.

    Raises:
        BudgetExhausted: no person can pay for more than there is.
        NotApplicable: no estimator has an answer, or none by labels.
    """
    if study.hides_people:
        return None
    # 1. Refine what can be refined, and let join who can pay.
    people = Cohorts.of(cohorts)
    labels = LabelLedger(study, people, pieces, resolved, NOISES[study.noise])
    ledger, step = labels.ledger, step_number(before)
    # 2. Plan for each person's whole epsilon, and the shares that are asked.
    chosen = _linear if resolved.by else plan_whole
    whole = chosen(study, people, resolved, question, ledger.taking_part, among)
    weights, left_out = whole.weights, ledger.left_out
    # 3. New pieces of those who join, of each label its own.
    parts = labels.each(
        lambda cell, places, kept, number: _part(
            study, labels, resolved, whole, whole.people.some(study, places), cell, kept, number, step
        )
    )
    if resolved.by:
        left_out = sum(part.crowd.unable for part in parts)
        kept = [piece for part in parts for piece in part.pieces]
    elif weights is None:
        return None
    else:
        kept = [*ledger.kept, *joined(study, ledger, whole, weights, ledger.kept, next_number(pieces))]
    # 4. The answer from all pieces.
    finer = labels.finer(kept)
    if weights is None:
        plan = _read_freely(whole)
    else:
        check_gain(resolved, before, finer, left_out)
        plan = combined(whole, weights, people, kept, step, [piece.number for piece in kept])
    return MeanStep(
        estimator=whole.estimator,
        question=whole.question,
        plan=replace(plan, labels=tuple(part.plan for part in parts)),
        crowd=replace(whole.people, dry=left_out),
        parts=tuple(parts),
        **ledger.step(before, kept, finer),
    )


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


def joined(
    study: StudyDefinition,
    ledger: PieceLedger,
    whole: Whole,
    weights: Sequence[int],
    kept: Sequence[Piece],
    number: int,
) -> tuple[Piece, ...]:
    """The new pieces of those who join.

    Args:
        study: The study.
        ledger: Of its pieces, and perhaps of other people's.
        whole, weights: The plan for these people.
        kept: Their pieces so far.
        number: Of the first new one.
    """
    people = whole.people

    def weigh(cohorts: Set[int]) -> Iterator[tuple[int, int]]:
        if not kept or whole.linear.attached:
            return people.by_cohort(weights)
        places = [place for place, cohort in enumerate(people.cohorts.column("id")) if cohort in cohorts]
        alone = people.some(study, places)
        return alone.by_cohort(_own_weights(alone, people, whole.estimator, whole.question, whole.noise))

    return ledger.join(number, weigh, among=people.cohorts.column("id"))


def step_number(before: LastStep | None) -> int:
    """The number of a question's step, from 1, after the one before it."""
    return 1 if before is None else before.steps + 1


def combined(
    whole: Whole,
    weights: Sequence[int],
    cohorts: Cohorts,
    kept: Sequence[Piece],
    step: int,
    places: Sequence[int],
) -> Plan:
    """The plan that reads the pieces of some people together.

    Args:
        whole, weights, cohorts, kept: The people, what they weigh, and their pieces.
        step, places: Of the question's step, and of the pieces, see `app.estimators.anytime.Steps`.
    """
    sums = sums_of(cohorts, kept, whole.people.groups, weights, whole.noise)
    drawn = Steps(firsts=[piece.start for piece in kept], places=places, step=step, normal=whole.noise.normal)
    return combination_plan(replace(sums, steps=drawn), whole.linear, whole.question)


def is_answered(whole: Whole, kept: Sequence[Piece]) -> bool:
    """Whether `combined` has an answer, for which no plan need be made: else it raises `NotApplicable`."""
    groups = whole.people.groups
    heard = groups.able(Trust.LOCAL) if whole.linear.reports else ()
    return bool(kept or heard or groups.able(Trust.PUBLIC))


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
        pieces = (*kept, *joined(study, ledger, of_label, weights, kept, number))
        places = places_of(pieces, labels.gone)
    except (BudgetExhausted, NotApplicable):
        return part
    if not is_answered(of_label, pieces):
        return part
    plan = cache(lambda: combined(of_label, weights, people.cohorts, pieces, step, places))
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


def take(step: MeanStep, cohorts: Sequence[Cohort]) -> tuple[Conclusion, Taken]:
    """Draw the noise of a step and read the answer. Draws entropy; what it returns is not published yet.

    Args:
        step: The step.
        cohorts: Those that it was planned for.
    """
    here = Cohorts.of(cohorts)
    totals = dict(zip(here.column("id"), here.column("total"), strict=True))
    squares = dict(zip(here.column("id"), here.column("total_squares"), strict=True))

    def exact(piece: Piece) -> tuple[int, int]:
        weights, members = piece.column("weight"), piece.column("cohort_id")
        return (
            sum(map(mul, weights, map(totals.__getitem__, members))),
            sum(map(mul, weights, map(squares.__getitem__, members))),
        )

    pieces, taken = step.draw(exact)
    conclusion = read(step.plan, pieces, cohorts)
    if step.parts:
        by_number = {piece.number: piece for piece in pieces}
        labels = [_of_label(part, by_number) for part in step.parts]
        groups = labels_shown(labels, conclusion)
        conclusion = replace(conclusion, details={**conclusion.details, "groups": groups})
    return conclusion, taken


def read(plan: Plan, pieces: Sequence[Piece], cohorts: Sequence[Cohort]) -> Conclusion:
    """The answer of a plan that reads noisy sums which are there."""
    here = Cohorts.of(cohorts)
    trusts = here.column("trust")
    known = [place for place in here.not_central if trusts[place] is Trust.PUBLIC]
    totals, squares = here.column("total"), here.column("total_squares")
    values = [
        *(piece.first for piece in pieces),
        sum(totals[place] for place in known),
        *(piece.second for piece in pieces),
        sum(squares[place] for place in known),
    ]
    return at_every_level(lambda: plan.conclude(values))


def _of_label(
    part: LabelPart, pieces: Mapping[int, Piece]
) -> tuple[Mapping[str, str], int, int, Conclusion | None]:
    """Condition, people, those who are left out, and the answer of one label."""
    checkpoint()
    if part.plan is None:
        return part.where, part.crowd.people, part.crowd.people, None
    found = read(part.plan(), [pieces[piece.number] for piece in part.pieces], part.crowd.cohorts)
    return part.where, part.crowd.people, part.crowd.unable + part.crowd.silent, found


def _own_weights(
    alone: Crowd, people: Crowd, estimator: Estimator, question: Question, noise: PieceNoise
) -> Sequence[int]:
    r"""What people of a new piece weigh beside other pieces under `noise.unit`.

    The error of a combination of disjoint pieces is :math:`\sum_p c_p^2 (s \sum_i v_{ip}^2 + N_p) +
    t^2 TV^2`, v being the weights in one piece. Without a tilt each piece has the best weights for itself,
    whatever the others are: a plan for all people as if one noise were on all of them would have newcomers
    weigh far less than their epsilon buys. With a tilt pieces add up: of T equal pieces
    :math:`c^T M c = V / T + t^2 TV^2`, which is the error of one with a tilt of :math:`t \sqrt T`, over T.
    """
    tilt = min(1.0, question.tilt * math.sqrt(people.people / alone.people))
    try:
        plan = estimator.plan(alone.groups, replace(question, people=alone.people, tilt=tilt))
        found = weights_of(plan, noise)
    except NotApplicable:
        found = None
    # So few that they would not be asked alone weigh what they offer.
    return [noise.weight(group.epsilon, MICRO) for group in alone.groups] if found is None else found
