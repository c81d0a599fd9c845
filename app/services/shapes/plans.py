"""Shares by bin (histograms, distributions, choices): from cohorts to a plan, from counts to an answer."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from app.accounting.measurement import priced_at
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.piece import Piece
from app.core.study import StudyDefinition, Trust
from app.estimators import shares, tree_levels
from app.estimators.anytime import Steps
from app.estimators.bin_shares import BinShares, Share
from app.estimators.choice_reports import Reported, report_noise
from app.estimators.interface import Interval, NoContributions
from app.estimators.label_shares import whole_of
from app.estimators.searched_ranks import Beside
from app.estimators.shares import Noisy, SharesPlan
from app.estimators.weighing import Weighing, weigh_public, weigh_secret
from app.mechanisms.draw import draw
from app.services.shapes.parameters import read_bins
from app.services.shapes.parts import Part, part_of
from app.services.shapes.priced_plan import OneShape, PiecesPlan, Weighed, WeighedPlan
from app.services.shapes.questions import BY_BINS, DESCRIBE, HISTOGRAM, QUARTILES, SHARES, ShapeQuestion
from app.services.shapes.trees import Grown
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePlan(WeighedPlan[Noisy], PiecesPlan):
    """Shares by bin or choice, priced, for one crowd.

    Attributes:
        plan: Of the shares, parts of all people.
        question: What is asked; it names bins.
    """

    counts_bins = keeps = labels_add_up = many_numbers = True

    plan: SharesPlan
    question: ShapeQuestion

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "ShapePlan":
        """See `ShapeEstimator`."""
        bins = len(question.starts) + 1
        weighing = weigh(study, question, part_of(crowd, part), part)
        reported = tuple(
            Reported(
                people=crowd.groups[place].count,
                weight=weighing.reports[place],
                noise=report_noise(bins, crowd.groups[place].epsilon),
            )
            for place in crowd.reporting
        )
        plan = SharesPlan(bins=bins, weighing=weighing, people=question.size, reported=reported)
        costs, most = priced(crowd, plan)
        return replace(cls.reading(question, crowd, plan), costs=costs, most=most)

    @classmethod
    def reading(cls, question: ShapeQuestion, crowd: Crowd, plan: SharesPlan) -> "ShapePlan":
        """What reads an answer of a plan, and charges no one."""
        return cls(crowd=crowd, plan=plan, costs=(), most=0, question=question)

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, ShapePlan | None]]",
    ) -> "ShapePlan":
        """See `OneShape`, and `app.estimators.label_shares`."""
        own = [(one.people, plan.plan) for one, plan in labels if plan is not None]
        return replace(self, plan=whole_of(own, crowd.people, (question.tilt or 0) / MICRO))

    def stepped(self, steps: Steps) -> Self:
        """See `PiecesPlan`."""
        return replace(self, plan=replace(self.plan, steps=steps))

    @property
    def one_report_moves(self) -> float | None:
        """How far one local report can move a share; None without reports."""
        return max((group.moves for group in self.plan.reported), default=None)

    @property
    def anytime_half_width(self) -> float | None:
        """See `PricedPlan`."""
        return self.plan.anytime_half_width

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Noisy:
        """The noisy counts by bin, and the reports of each local group by choice. Draws entropy.

        Args:
            counts: For each cohort that takes part its people by cell; of local people by the choices that
                are in their reports.
            grown: None: it has no `trees`.
        """
        return noisy_counts(self.crowd, self.plan, counts), self.crowd.by_choice(counts)

    def read(self, *drawn: Noisy) -> dict[str, object]:
        """The answer for shares; that for all people from what is drawn for each label."""
        return self.document(self.plan.read_labels(drawn))

    def beside(self, pieces: Sequence[Piece], counts: Mapping[int, Sequence[int]]) -> list[Noisy]:
        """Noisy counts, and behind them those of public people and the reports, which are made anew."""
        public = self.crowd.public_sums(counts, self.plan.bins)
        return [*((piece.sums, ()) for piece in pieces), (public, self.crowd.by_choice(counts))]

    def document(self, read: BinShares) -> dict[str, object]:
        """What an answer says of shares, as JSON."""
        document = self._parts(read)
        if read.noisy_count is not None:
            document["noisy_count"] = read.noisy_count
        return document

    @abstractmethod
    def _parts(self, read: BinShares) -> dict[str, object]:
        """The fields of `parts_of_document`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoicesPlan(ShapePlan):
    """The shares of choices."""

    name, answers = SHARES, (SHARES,)
    summary = "Noisy counts by choice with weights min(epsilon, tau), moved to shares that sum to 1."
    parts_of_document = ("choices",)

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        return {"starts": study.choice_points[1:], "numbers": len(study.choices)}

    def _parts(self, read: BinShares) -> dict[str, object]:
        shares = zip(self.question.choices, read.bins, strict=True)
        return {"choices": [{"choice": choice, **share.document()} for choice, share in shares]}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPlan(ShapePlan):
    """The shares by bin of the range, and the distribution function."""

    name, answers = HISTOGRAM, BY_BINS
    summary = "Noisy counts by bin with weights min(epsilon, tau); the distribution function is read off."
    parts_of_document = ("bins", "cumulative")

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        starts, edges = read_bins(study, parameters)
        special = {"edges": list(edges)}
        return {"starts": starts, "edges": edges, "numbers": len(starts) + 1, "special": special}

    def _parts(self, read: BinShares) -> dict[str, object]:
        edges = self.question.edges
        return {
            "bins": [_bin(edges[place], edges[place + 1], share) for place, share in enumerate(read.bins)],
            "cumulative": [
                *(_bin(edges[0], edges[place + 1], share) for place, share in enumerate(read.cumulative)),
                _bin(edges[0], edges[-1], _whole(read.cumulative[-1])),
            ],
        }


def of_crowd(
    study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
) -> OneShape[Any]:
    """Plan and price a question for a crowd, see `ShapeEstimator`; refuse it where no person can pay."""
    refuse_without_people(study, crowd)
    made: OneShape[Any] = question.shape.of_crowd(study, question, crowd, part)
    return made


def added_up(crowd: Crowd, *parts: Sequence[int]) -> tuple[int, ...]:
    """What each person of each group pays for all parts: their sum, by sequential composition.

    Raises:
        InternalFault: it exceeds an offer.
    """
    costs = tuple(map(sum, zip(*parts, strict=True)))
    if any(cost > group.epsilon for cost, group in zip(costs, crowd.groups, strict=True)):
        raise InternalFault("A charge exceeds what a group offered.")
    return costs


def noisy_counts(crowd: Crowd, plan: SharesPlan, counts: Mapping[int, Sequence[int]]) -> list[int]:
    """The weights of the people in each bin that is counted, with exact noise. Draws entropy."""
    weighted = crowd.weighed(plan.weighing.weights, counts, plan.bins)[-plan.drawn :]
    noise = draw(plan.noise, queries=len(weighted))
    return [value + error for value, error in zip(weighted, noise, strict=True)]


def _bin(lower: float, upper: float, share: Share) -> dict[str, object]:
    return {"lower": lower, "upper": upper, **share.document()}


def _whole(like: Share) -> Share:
    """All bins together: everyone is in one of them."""

    def one(interval: Interval) -> Interval:
        return interval.moved(lambda _: 1.0)

    return Share(
        share=1.0,
        interval=one(like.interval),
        population_interval=one(like.population_interval),
        simultaneous=one(like.simultaneous),
    )


def priced(crowd: Crowd, plan: Weighed) -> tuple[tuple[int, ...], int]:
    """The cost of weights for each person of each group, and the most that any may pay [study's currency].

    Others than central people pay nothing.

    Raises:
        InternalFault: a charge exceeds an offer.
    """
    weighing = plan.weighing
    price = priced_at(plan.workload, plan.noise, weighing.relation, weighing.currency)
    central = [
        price(weight) if group.trust is Trust.CENTRAL else 0
        for weight, group in zip(weighing.weights, crowd.groups, strict=True)
    ]
    costs = added_up(crowd, central)
    return costs, max(costs, default=0) if weighing.is_public else price(weighing.cap)


def refuse_without_people(study: StudyDefinition, crowd: Crowd) -> None:
    """Refuse where no person is there, or none of those who are can pay: as for means.

    Raises:
        NoContributions, BudgetExhausted: so it is, in a study whose people are public.
    """
    if study.hides_people or any(group.participates for group in crowd.groups):
        return
    if not crowd.people:
        raise NoContributions.yet()
    if crowd.unable:
        raise BudgetExhausted.by_all()


def weigh(
    study: StudyDefinition,
    question: ShapeQuestion,
    crowd: Crowd,
    part: Part = int,
    beside: Beside | None = None,
    share: int = MICRO,
) -> Weighing:
    """What people count for in the counts that a question asks for.

    Args:
        study, question: What is asked of which study.
        crowd: Who is there, and what they offer for these counts.
        part: What of an offer that is [the study's currency]; all of it if not given.
        beside: The people who answered searches, the last group.
        share: Which part of that the noise is made for [ppm].

    Raises:
        NotApplicable: no person central or public is there.
    """
    tilt, groups = question.assumed_tilt(study), crowd.groups
    if study.hides_people:
        cap, floor = part(question.offer(study.amount(study.epsilon_max))), part(question.least_offer(study))
        return weigh_secret(groups, cap=cap, floor=floor, currency=study.noise, tilt=tilt)
    bins = len(question.starts) + 1
    target = (
        shares.target_of(bins, tilt, study.noise)
        if question.shape.counts_bins
        else tree_levels.target_of(
            tilt, study.noise, len(QUARTILES) if question.estimator == DESCRIBE else 1, question.aim
        )
    )
    louder = study.noise.louder(share)
    noises = {
        place: report_noise(bins, group.epsilon).total / shares.error_unit(bins, study.noise) / louder**2
        for place, group in enumerate(groups)
        if question.choices and group.trust is Trust.LOCAL and group.participates and group.count
    }
    if beside is not None:
        noises[len(groups) - 1] = beside.report(study.noise, question.aim) / louder**2
    return weigh_public(groups, crowd.people, target.louder(louder), tilt, noises, study.noise)
