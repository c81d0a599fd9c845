"""Steps of a question for shares by bin (of choices, a histogram, a distribution), or by coordinate.

They keep pieces as steps of means do, see `app.services.statistics.steps`, by the same rules: who pays what,
who joins a new piece, which one is closed. A piece has one noisy count a bin, or two noisy sums a coordinate,
each refined independently, at the price of `app.services.statistics.piece_noise`; of two bins it has the
count of the last one, and in questions that versions up to 1.0 began both, so that all pieces of a question
are alike. Weights of a piece are planned for each person's whole epsilon (`app.services.shapes.plans.weigh`,
`app.services.shapes.coordinates.weigh`) and for shares from that on with which it begins, see
`app.services.statistics.whole_plans`; those of newcomers as if they were asked alone. What counts say
together is read by `app.estimators.piece_shares`, what sums say by `app.estimators.combination`, beside
public people and reports, which are read anew.

Asked by the labels of an attribute, each label has pieces of its own. A person has one label, so only the
sums of this label's pieces move with their value, and they pay for these (`app.services.statistics.steps`
has the proof). Shares of all people are the mean of those of labels, by their people
(`app.estimators.label_shares`); coordinates of all people are the combination of all pieces, as means have
it. Both read what is noisy already.

A quantile is drawn by the exponential mechanism, a description has quartiles, and a mean over a found range
clips values at ends that are drawn: there is no noise that could be lowered later. They have noise of their
own each time, and so have covariances.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import cast

from app.core.cohort import Cohort, Cohorts
from app.core.epsilon import MICRO
from app.core.piece import LastStep, Piece, Taken
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.anytime import Steps
from app.estimators.choice_reports import report_noise
from app.estimators.every_level import at_every_level
from app.estimators.interface import Linear, NotApplicable
from app.estimators.piece_shares import combined_shares
from app.estimators.shares import Noisy, counts_of
from app.services.shapes import coordinates, plans
from app.services.shapes.kinds import noise_of_pieces
from app.services.shapes.labels import Label
from app.services.shapes.plans import ShapePlan
from app.services.shapes.priced_plan import Answered, PiecesPlan, Scans
from app.services.shapes.questions import COORDINATES, ShapeQuestion
from app.services.statistics.crowds import Crowd
from app.services.statistics.label_ledger import LabelLedger, places_of
from app.services.statistics.piece_ledger import PieceLedger, PieceStep, check_gain, next_number
from app.services.statistics.piece_noise import PieceNoise
from app.services.statistics.piece_sums import sums_of
from app.services.statistics.steps import step_number
from app.services.statistics.whole_plans import HALF_WAY, planned_share
from app.services.work import checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPieces(Label):
    """One label of a question by an attribute.

    Attributes:
        plan: Reads its pieces.
        pieces: These, sums as they were.
    """

    plan: PiecesPlan | None
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeStep(PieceStep):
    """A step of an answer of several numbers that can be taken.

    Attributes:
        crowd: All people.
        whole: Reads the pieces.
        labels: Of a question by an attribute, each with the pieces that it reads, and what reads them.
        off_labels: Whether all people are read off what is read of labels, and not off the pieces.
    """

    crowd: Crowd
    whole: PiecesPlan
    labels: tuple["LabelPieces", ...]
    off_labels: bool

    @property
    def for_all(self) -> PiecesPlan:
        """What answers for all people."""
        return self.whole

    @property
    def predicted_error(self) -> float:
        """Root mean square error, as a part of all people; of each coordinate in the data's unit."""
        return self.whole.predicted_error

    @property
    def interval_width(self) -> float:
        """Predicted width of an interval, as a part of all people; of each coordinate of the range."""
        return self.whole.interval_width

    async def answered(self, scans: Scans) -> Answered:
        """See `PricedPlan`."""
        body, taken = await scans.draw(self.take, await scans.summed_up())
        return Answered(body=body, noise=self.noise_json(taken), charges=self.charges, taken=taken)

    def take(self, counts: Mapping[int, Sequence[int]]) -> tuple[dict[str, object], Taken]:
        """Draw the noise and read the answer. Draws entropy; what it returns is not published yet.

        Args:
            counts: As of `OneShape.noisy`, for `used`.

        Returns:
            The part of the body that depends on them, and the pieces.
        """

        def exact(piece: Piece) -> list[int]:
            checkpoint()
            sums = [0] * len(piece.sums)
            for member in piece.members:
                # Before the sums by coordinate there is the number of people.
                for place, count in enumerate(counts[member.cohort_id][-len(sums) :]):
                    sums[place] += member.weight * count
            return sums

        pieces, taken = self.draw(exact)
        return at_every_level(lambda: self._read(pieces, counts)), taken

    def _read(self, pieces: Sequence[Piece], counts: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """What all pieces say; of a question by an attribute, those of each label besides."""
        groups: list[dict[str, object]] = []
        beside: list[Noisy] = []
        by_number = {piece.number: piece for piece in pieces}
        for label in self.labels:
            checkpoint()
            answer = None
            if label.plan is not None:
                drawn = label.plan.beside([by_number[piece.number] for piece in label.pieces], counts)
                answer = label.plan.read(*drawn)
                beside += drawn
            groups.append(label.shown(answer, self.whole, Relation.REPLACE_ONE))
        whole = self.whole.read(*(beside if self.off_labels else self.whole.beside(pieces, counts)))
        return {**whole, "groups": groups} if self.labels else whole


def plan_step(
    study: StudyDefinition,
    question: ShapeQuestion,
    cohorts: Sequence[Cohort],
    pieces: Sequence[Piece],
    before: LastStep | None,
) -> ShapeStep | None:
    """Plan the step of a question to its share.

    Args:
        study: A replace_one study.
        question: What is asked, for shares by bin or by coordinate; by the labels of an attribute, too.
        cohorts: The cohorts as they are now, each with an id of its own.
        pieces: Those of the question.
        before: Its last step.

    Returns:
        The step; None where no central person is in it: then all of the answer is free, or noise is.

    Raises:
        BudgetExhausted: no person can pay for more than there is.
        NotApplicable: no person can take part.
    """
    sums = len(pieces[0].sums) if pieces else _sums(study, question)
    noise = noise_of_pieces(question.estimator, study.noise, sums)
    here = Cohorts.of(cohorts)
    by_label = LabelLedger(study, here, pieces, question, noise)
    ledger = by_label.ledger
    if not ledger.taking_part or not any(here.column("count")):
        return None
    # 1. Weights for each person's whole epsilon.
    step = step_number(before)
    planner = _Planner(study, question, question.at_whole(), ledger, noise, sums, step, by_label.gone)
    everyone = planner.people(here)
    if everyone is None:
        return None
    # 2. The new pieces, and what reads all of them.
    labels: list[LabelPieces] = []
    if question.by:
        labels = by_label.each(
            lambda cell, places, *rest: planner.label({**question.where, **cell}, here.some(places), *rest)
        )
        kept = [piece for label in labels for piece in label.pieces]
    else:
        kept = [*ledger.kept, *planner.joined(here, everyone, ledger.kept, next_number(pieces))]
    finer = by_label.finer(kept)
    check_gain(question, before, finer, ledger.left_out)
    crowd = replace(everyone.crowd, dry=ledger.left_out)
    answered = [one.plan for one in labels if one.plan is not None]
    off_labels = bool(answered) and question.estimator != COORDINATES
    if off_labels:
        together = answered[0].of_labels(study, question, crowd, [(one.crowd, one.plan) for one in labels])
        whole = together.stepped(planner.drawn(kept, [piece.number for piece in kept]))
    else:
        whole = planner.reading(here, replace(everyone, crowd=crowd), kept, [piece.number for piece in kept])
    # 3. What that charges.
    taken = ledger.step(before, kept, finer)
    silent = {cohort.id for cohort in here if cohort.trust is Trust.LOCAL} - crowd.reported()
    taken["used"] = [one for one in taken["used"] if one.cohort_id not in silent]
    return ShapeStep(crowd=crowd, whole=whole, labels=tuple(labels), off_labels=off_labels, **taken)


@dataclass(frozen=True, slots=True, kw_only=True)
class _People:
    """All people of a question, or those of a label, and what one person of each group weighs.

    Attributes:
        crowd: They, with what they offer for their whole epsilon.
        weights: For each group [units of the pieces].
        linear: By coordinate, what weights rest on.
    """

    crowd: Crowd
    weights: Sequence[int]
    linear: Linear | None


@dataclass(frozen=True, slots=True)
class _Planner:
    """Plans the pieces of people, and what reads them.

    Attributes:
        study, question: What is asked.
        whole: The question for each person's whole epsilon.
        ledger: Of all people, and their pieces.
        noise: Of the pieces.
        sums: How many noisy ones each has.
        step: Of the question.
        gone: Numbers of pieces that may have been those of any label.
    """

    study: StudyDefinition
    question: ShapeQuestion
    whole: ShapeQuestion
    ledger: PieceLedger
    noise: PieceNoise
    sums: int
    step: int
    gone: Sequence[int]

    def people(
        self, cohorts: Sequence[Cohort], taking_part: Set[int] | None = None, tilt: int | None = None
    ) -> _People | None:
        """Weigh people; None where there is no piece.

        Args:
            cohorts: Of the people asked.
            taking_part: Ids of the central ones that take part, if not all who are in a piece or join one.
            tilt: If not that of the question [ppm].

        Raises:
            NotApplicable: no person can take part.
        """
        asked = self.whole if tilt is None else replace(self.whole, tilt=tilt)
        taking_part = self.ledger.taking_part if taking_part is None else taking_part
        crowd = Crowd.of(self.study, cohorts, self.whole, taking_part)
        if self.question.estimator != COORDINATES:
            share = planned_share(self.question.share, HALF_WAY)
            weights = plans.weigh(self.study, asked, crowd, share=share).weights
            return _People(crowd=crowd, weights=weights, linear=None)
        weighed = coordinates.weigh(self.study, asked, crowd, self.noise, first=self.question.share)
        return None if weighed is None else _People(crowd=crowd, weights=weighed[0], linear=weighed[1])

    def joined(
        self, cohorts: Cohorts, people: _People, kept: Sequence[Piece], number: int
    ) -> tuple[Piece, ...]:
        """The new pieces of those who join, the first of this number, beside those that are kept."""

        def weigh(joining: Set[int]) -> Iterator[tuple[int, int]]:
            weighed = people
            if kept and not (people.linear and people.linear.attached):
                # Newcomers weigh what they would if they were asked alone.
                newcomers = [cohort for cohort in cohorts if cohort.id in joining]
                alone = sum(cohort.count for cohort in newcomers)
                tilt = math.floor((self.question.tilt or 0) * math.sqrt(people.crowd.people / max(1, alone)))
                weighed = self.people(newcomers, joining, min(MICRO, tilt)) or people
            return weighed.crowd.by_cohort(weighed.weights)

        return self.ledger.join(number, weigh, self.sums, among=cohorts.column("id"))

    def label(
        self, where: Mapping[str, str], cohorts: Cohorts, kept: Sequence[Piece], number: int
    ) -> LabelPieces:
        """One label: its people, the pieces that it has and is to have, and what reads them."""
        crowd = self.ledger.unpaid(Crowd.of(self.study, cohorts, self.whole, self.ledger.taking_part))
        found = LabelPieces(where=where, crowd=crowd, plan=None, pieces=())
        try:
            people = self.people(cohorts)
            if people is None:
                return found
            pieces = (*kept, *self.joined(cohorts, people, kept, number))
            places = places_of(pieces, self.gone)
            plan = self.reading(cohorts, replace(people, crowd=crowd), pieces, places)
            return replace(found, plan=plan, pieces=pieces)
        except NotApplicable:
            return found

    def reading(
        self, cohorts: Cohorts, people: _People, pieces: Sequence[Piece], places: Sequence[int]
    ) -> PiecesPlan:
        """What reads the pieces of people, which have these places, see `app.estimators.anytime.Steps`.

        Raises:
            NotApplicable: there is nothing to read.
        """
        study, question, crowd = self.study, self.question, people.crowd
        sums = sums_of(cohorts, pieces, crowd.groups, people.weights, self.noise)
        drawn = self.drawn(pieces, places)
        if people.linear is not None:
            return coordinates.reading(study, self.whole, crowd, replace(sums, steps=drawn), people.linear)
        bins = len(question.starts) + 1
        reports = {
            place: report_noise(bins, group.epsilon)
            for place, group in enumerate(sums.groups)
            if group.trust is Trust.LOCAL and group.participates and group.count
        }
        tilt = (question.tilt or 0) / MICRO
        plan = combined_shares(
            bins, sums, reports, tilt=tilt, currency=study.noise, both=self.sums == bins == 2
        )
        return cast("type[ShapePlan]", question.shape).reading(question, crowd, plan).stepped(drawn)

    def drawn(self, pieces: Sequence[Piece], places: Sequence[int]) -> Steps:
        """How the noise of pieces was drawn, which have these places."""
        firsts = [piece.start for piece in pieces]
        return Steps(firsts=firsts, places=places, step=self.step, normal=self.noise.normal)


def _sums(study: StudyDefinition, question: ShapeQuestion) -> int:
    """How many noisy sums a piece has."""
    if question.estimator == COORDINATES:
        return 2 * study.dimension
    return counts_of(len(question.starts) + 1, study.relation)
