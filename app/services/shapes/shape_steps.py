"""Steps of a question for shares by bin (of choices, a histogram, a distribution), or by coordinate.

They keep pieces as steps of means do, see `app.services.statistics.steps`, by the same rules: who pays what,
who joins a new piece, which one is closed. A piece has one noisy count a bin, or two noisy sums a coordinate,
each refined independently, at the price of `app.services.statistics.piece_noise`. Weights of a piece are
planned for each person's whole epsilon (`app.services.shapes.shape_plans.weigh`,
`app.services.shapes.coordinates.weigh`), those of newcomers as if they were asked alone. What counts say
together is read by `app.estimators.piece_shares`, what sums say by `app.estimators.combination`, beside
public people and reports, which are read anew.

A quantile is drawn by the exponential mechanism, a description has quartiles, and a mean over a found range
clips values at ends that are drawn: there is no noise that could be lowered later. They have noise of their
own each time, and so does an answer by the labels of an attribute.
"""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from app.core.cohort import Cohort, Cohorts, Groups
from app.core.epsilon import MICRO
from app.core.piece import LastStep, Piece, Taken
from app.core.study import StudyDefinition, Trust
from app.estimators.choice_reports import report_noise
from app.estimators.interface import Linear
from app.estimators.piece_shares import combined_shares
from app.services.shapes import coordinates, shape_plans
from app.services.shapes.coordinates import CoordinatesPlan
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_plans import ShapePlan
from app.services.shapes.shape_questions import COORDINATES, ShapeQuestion
from app.services.statistics.piece_ledger import PieceLedger, PieceStep, check_gain, next_number
from app.services.statistics.piece_noise import BIN_NOISES, PieceNoise, of_coordinates
from app.services.statistics.piece_sums import sums_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeStep(PieceStep):
    """A step of an answer of several numbers that can be taken.

    Attributes:
        crowd: All people.
        whole: Reads the pieces.
        had_by_all: What all who are charged had given the question before [ppm].
        most, most_in_all: The largest charge to a person by it, and by all steps [the study's currency].
    """

    crowd: ShapeCrowd
    whole: ShapePlan | CoordinatesPlan
    most: int
    most_in_all: int
    had_by_all: int

    @property
    def predicted_error(self) -> float:
        """Root mean square error, as a part of all people; of each coordinate in the data's unit."""
        return self.whole.predicted_error

    @property
    def interval_width(self) -> float:
        """Predicted width of an interval, as a part of all people; of each coordinate of the range."""
        return self.whole.interval_width

    @property
    def share_before(self) -> int:
        """What the question had used [ppm]."""
        return 0 if self.before is None else self.before.share

    def take(self, counts: Mapping[int, Sequence[int]]) -> tuple[dict[str, object], str, Taken]:
        """Draw the noise and read the answer. Draws entropy; what it returns is not published yet.

        Args:
            counts: See `ShapePlan.answer`, `CoordinatesPlan.answer`, for `used`.

        Returns:
            The part of the body that depends on them, the noise for the ledger, and the pieces.
        """

        def exact(piece: Piece) -> list[int]:
            sums = [0] * len(piece.sums)
            for member in piece.members:
                # Before the sums by coordinate there is the number of people.
                for place, count in enumerate(counts[member.cohort_id][-len(sums) :]):
                    sums[place] += member.weight * count
            return sums

        pieces, taken = self.draw(exact)
        noise = {"mechanism": self.noise.mechanism, "pieces": [piece.sealed() for piece in taken.changed]}
        return self.whole.of_pieces(pieces, counts), json.dumps(noise, allow_nan=False), taken


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
        question: What is asked, for shares by bin or by coordinate.
        cohorts: The cohorts as they are now, each with an id of its own.
        pieces: Those of the question.
        before: Its last step.

    Returns:
        The step; None where no central person is in it: then all of the answer is free, or noise is.

    Raises:
        BudgetExhausted: no person can pay for more than there is.
        NotApplicable: no person can take part.
    """
    by_coordinate = question.estimator == COORDINATES
    noise = of_coordinates(study.noise, study.dimension) if by_coordinate else BIN_NOISES[study.noise]
    bins = len(question.starts) + 1
    ledger = PieceLedger(cohorts, pieces, question, noise)
    if not ledger.taking_part:
        return None
    # 1. Weights for each person's whole epsilon, those of newcomers as if they were asked alone.
    kept, finer = ledger.kept, ledger.finer
    whole = _at_whole(question)
    crowd = ShapeCrowd.of(cohorts, whole, taking_part=ledger.taking_part)
    of_all = _weigh(study, whole, crowd, noise)
    if of_all is None:
        return None
    weights, linear = of_all

    def weigh(joining: Set[int]) -> list[tuple[int, int]]:
        weighed = crowd, weights
        if kept and not (linear and linear.attached):
            newcomers = [cohort for cohort in cohorts if cohort.id in joining]
            alone = ShapeCrowd.of(newcomers, whole, taking_part=joining)
            tilt = math.floor((question.tilt or 0) * math.sqrt(crowd.people / max(1, alone.people)))
            asked = replace(whole, tilt=min(MICRO, tilt))
            if (own := _weigh(study, asked, alone, noise)) is not None:
                weighed = alone, own[0]
        return [
            (cohort.id, weight)
            for weight, members in zip(weighed[1], weighed[0].members, strict=True)
            for cohort in members
        ]

    # 2. The new pieces.
    sums_of_each = 2 * study.dimension if by_coordinate else bins
    everyone = ledger.cohorts.column("id")
    created = ledger.join(next_number(pieces), weigh, sums_of_each, among=everyone)
    kept, finer = [*kept, *created], finer | {piece.number for piece in created}
    check_gain(question, before, finer, ledger.left_out)
    # 3. The answer from all pieces.
    sums = sums_of(cohorts, kept, Groups.of(crowd.groups), weights, noise)
    charges = ledger.charges(kept, finer)
    costs = dict(zip(charges.column("cohort_id"), charges.column("epsilon"), strict=True))
    totals = [ledger.paid.get(cohort, 0) + cost for cohort, cost in costs.items()]
    had = 0 if before is None or not ledger.paid.keys() >= costs.keys() else before.share
    crowd = replace(crowd, dry=ledger.left_out)
    read: ShapePlan | CoordinatesPlan
    if linear is not None:
        read = coordinates.reading(study, whole, crowd, sums, linear)
    else:
        reports = {
            place: report_noise(bins, group.epsilon)
            for place, group in enumerate(sums.groups)
            if group.trust is Trust.LOCAL and group.participates and group.count
        }
        plan = combined_shares(bins, sums, reports, tilt=(question.tilt or 0) / MICRO, currency=study.noise)
        read = shape_plans.reading(study, question, crowd, plan)
    heard = crowd.reported()
    silent = {cohort.id for cohort in Cohorts.of(cohorts) if cohort.trust is Trust.LOCAL} - heard
    most = max(costs.values(), default=0)
    return ShapeStep(
        crowd=crowd,
        whole=read,
        before=before,
        noise=noise,
        had={piece.number: piece.share for piece in pieces},
        pieces=tuple(kept),
        finer=finer,
        closed=ledger.closed,
        used=[one for one in ledger.used(kept, finer, charges) if one.cohort_id not in silent],
        charges=charges,
        most=most,
        most_in_all=max(*totals, *ledger.paid.values(), 0),
        had_by_all=had,
    )


def _weigh(
    study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd, noise: PieceNoise
) -> tuple[Sequence[int], Linear | None] | None:
    """What one person of each group weighs; by coordinate, what that rests on, None if there is no piece."""
    if question.estimator == COORDINATES:
        return coordinates.weigh(study, question, crowd, noise)
    return shape_plans.weigh(study, question, crowd.groups, crowd.people).weights, None


def _at_whole(question: ShapeQuestion) -> ShapeQuestion:
    """A question for each person's whole epsilon."""
    cap = None if question.cap is None else question.cap * MICRO // question.share
    return replace(question, share=MICRO, cap=cap)
