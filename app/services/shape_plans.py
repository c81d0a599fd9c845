"""From cohorts to the plan of a histogram or a quantile, and from counts to an answer; no database."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from app.accounting.shape_prices import bins_cost, ranks_cost
from app.core.cohort import Cohort, Group
from app.core.epsilon import MICRO
from app.core.errors import BudgetExhausted, InternalFault
from app.core.grid import Grid
from app.core.noise import DiscreteLaplace
from app.core.release import Charge, Used
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators import ranks, shares
from app.estimators.choice_reports import Reported, report_noise
from app.estimators.interface import Interval
from app.estimators.ranks import RankPlan
from app.estimators.shares import BinShares, Share, SharesPlan
from app.estimators.weighing import Weighing, weigh_public, weigh_secret
from app.mechanisms.draw import draw
from app.mechanisms.permute_and_flip import choose
from app.services.shape_questions import ShapeQuestion

SUMMARIES = {
    "histogram": "Noisy counts by bin with weights min(epsilon, tau); the distribution function is read off.",
    "describe": "Mean and standard deviation, and quartiles drawn by rank, with one price.",
    "found_range": "The mean of the values moved into a range that a part of the price finds first.",
    "shares": "Noisy counts by choice with weights min(epsilon, tau), moved to shares that sum to 1.",
    "quantile": "Steps of the range drawn by how near their rank is (permute-and-flip), with an interval.",
}
"""One line about each estimator."""

LOCAL = "local_reports_not_used"
"""Why local people have no part in these answers: a report is a noisy number, and in no bin."""

MOST_STEPS = 20
"""Times that people drop out before the rest is not followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeCrowd:
    """The cohorts of a study as groups of equal offers.

    Attributes:
        groups: What plans see; without sums of reports.
        members: For each group its cohorts.
    """

    groups: tuple[Group, ...]
    members: tuple[tuple[Cohort, ...], ...]

    @classmethod
    def of(cls, cohorts: Sequence[Cohort], question: ShapeQuestion) -> "ShapeCrowd":
        """Group cohorts by what they offer. A cohort takes part with its whole offer or not at all."""
        merged: dict[tuple[Trust, int, bool], list[Cohort]] = {}
        for cohort in cohorts:
            offer, participates = 0, cohort.trust is Trust.PUBLIC
            if cohort.trust is Trust.LOCAL and question.choices:
                offer, participates = cohort.epsilon - cohort.carried, True
            if cohort.trust is Trust.CENTRAL:
                offer = question.offer(cohort.epsilon)
                participates = 0 < offer <= cohort.epsilon - cohort.spent
            merged.setdefault((cohort.trust, offer, participates), []).append(cohort)
        groups = tuple(
            Group(
                trust=trust,
                epsilon=offer,
                count=sum(cohort.count for cohort in members),
                participates=participates,
            )
            for (trust, offer, participates), members in merged.items()
        )
        return cls(groups=groups, members=tuple(tuple(members) for members in merged.values()))

    @property
    def people(self) -> int:
        """All people with a live contribution."""
        return sum(group.count for group in self.groups)

    @property
    def unable(self) -> int:
        """Central people who cannot pay what is asked."""
        return sum(
            group.count for group in self.groups if group.trust is Trust.CENTRAL and not group.participates
        )

    @property
    def local(self) -> int:
        """Local people whose reports have no part in it."""
        return sum(
            group.count for group in self.groups if group.trust is Trust.LOCAL and not group.participates
        )

    @property
    def reporting(self) -> tuple[int, ...]:
        """The groups of local people whose reports have a part in it."""
        return tuple(
            place
            for place, group in enumerate(self.groups)
            if group.trust is Trust.LOCAL and group.participates and group.count
        )

    def reported(self) -> frozenset[int]:
        """The cohorts of these groups."""
        return frozenset(cohort.id for place in self.reporting for cohort in self.members[place])

    def used(self) -> tuple[Used, ...]:
        """Every cohort whose counts are in the answer, in the order of ids."""
        used = (
            Used(
                cohort_id=cohort.id,
                count=cohort.count,
                offer=group.epsilon if group.trust is Trust.CENTRAL else 0,
            )
            for group, members in zip(self.groups, self.members, strict=True)
            if group.participates
            for cohort in members
        )
        return tuple(sorted(used, key=lambda cohort: cohort.cohort_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePlan:
    """One question, priced, for one crowd.

    Attributes:
        crowd: Whom it was made for.
        weighing: What each group's people count for.
        plan: Of the statistic.
        costs: What each person of each group pays [micro-epsilon].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
        grid: Of the study.
        edges: Ends of the bins, for a histogram [data's unit].
        choices: Labels of the bins, for shares of choices.
    """

    crowd: ShapeCrowd
    weighing: Weighing
    plan: SharesPlan | RankPlan
    costs: tuple[int, ...]
    most: int
    grid: Grid
    edges: tuple[float, ...]
    choices: tuple[str, ...]

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids."""
        return charges_of(self.crowd, self.costs)

    @property
    def predicted_error(self) -> float:
        """Root mean square error, as a part of all people."""
        return self.plan.predicted_error

    @property
    def one_report_moves(self) -> float | None:
        """How far one local report can move a share; None without reports."""
        reported = self.plan.reported if isinstance(self.plan, SharesPlan) else ()
        return max((group.moves for group in reported), default=None)

    @property
    def interval_width(self) -> float:
        """Predicted width of an interval, as a part of all people."""
        return self.plan.interval_width

    def noise_json(self) -> str:
        """The noise, for the ledger: what is needed to compute the price again."""
        if isinstance(self.plan, SharesPlan):
            return json.dumps({"mechanism": DiscreteLaplace.__name__, **asdict(self.plan.noise)})
        return json.dumps(draws_json(self.plan))

    def answer(self, counts: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """Weigh the counts, add exact noise or draw, read the result. Integers until then; draws entropy.

        Args:
            counts: For each cohort that takes part its people by cell; of local people by the choices that
                are in their reports.

        Returns:
            The part of the body that depends on them.
        """
        if isinstance(self.plan, RankPlan):
            weighted = weighted_counts(self.crowd, self.weighing, self.plan.cells + 1, counts)
            found = self.plan.read(self.grid, drawn(self.plan, weighted))
            return {"estimate": found.estimate, "interval": asdict(found.interval)}
        reports = [
            np.sum([counts[cohort.id] for cohort in self.crowd.members[place]], axis=0).tolist()
            for place in self.crowd.reporting
        ]
        read = self.plan.read(noisy_counts(self.crowd, self.plan, counts), reports)
        document = self._of_choices(read) if self.choices else self._of_bins(read)
        if read.noisy_count is not None:
            document["noisy_count"] = read.noisy_count
        return document

    def _of_choices(self, read: BinShares) -> dict[str, object]:
        shares = zip(self.choices, read.bins, strict=True)
        return {"choices": [{"choice": choice, **asdict(share)} for choice, share in shares]}

    def _of_bins(self, read: BinShares) -> dict[str, object]:
        edges = self.edges
        return {
            "bins": [_bin(edges[place], edges[place + 1], share) for place, share in enumerate(read.bins)],
            "cumulative": [
                *(_bin(edges[0], edges[place + 1], share) for place, share in enumerate(read.cumulative)),
                _bin(edges[0], edges[-1], _whole(read.cumulative[-1])),
            ],
        }


def charges_of(crowd: ShapeCrowd, costs: Sequence[int]) -> tuple[Charge, ...]:
    """What each group pays as charges of its cohorts, in the order of ids."""
    charges = (
        Charge(cohort_id=cohort.id, epsilon=cost)
        for cost, members in zip(costs, crowd.members, strict=True)
        if cost
        for cohort in members
    )
    return tuple(sorted(charges, key=lambda charge: charge.cohort_id))


def added_up(crowd: ShapeCrowd, *parts: Sequence[int]) -> tuple[int, ...]:
    """What each person of each group pays for all parts: their sum, by sequential composition.

    Raises:
        InternalFault: it exceeds an offer.
    """
    costs = tuple(map(sum, zip(*parts, strict=True)))
    if any(cost > group.epsilon for cost, group in zip(costs, crowd.groups, strict=True)):
        raise InternalFault("A charge exceeds what a group offered.")
    return costs


def central_costs(crowd: ShapeCrowd, weights: Sequence[int], price: Callable[[int], int]) -> list[int]:
    """The price of a weight for each group; others than central people pay nothing."""
    return [
        price(weight) if group.trust is Trust.CENTRAL else 0
        for weight, group in zip(weights, crowd.groups, strict=True)
    ]


def weighted_counts(
    crowd: ShapeCrowd, weighing: Weighing, cells: int, counts: Mapping[int, Sequence[int]]
) -> list[int]:
    """The weights of the people in each cell. Raw: must not leave the services."""
    weighted = [0] * cells
    for weight, members in zip(weighing.weights, crowd.members, strict=True):
        if weight:
            for cohort in members:
                for cell, count in enumerate(counts[cohort.id]):
                    weighted[cell] += weight * count
    return weighted


def noisy_counts(crowd: ShapeCrowd, plan: SharesPlan, counts: Mapping[int, Sequence[int]]) -> list[int]:
    """The weights of the people in each bin with exact noise. Draws entropy."""
    weighted = weighted_counts(crowd, plan.weighing, plan.bins, counts)
    noise = draw(plan.noise, queries=len(weighted))
    return [value + error for value, error in zip(weighted, noise, strict=True)]


def draws_json(plan: RankPlan) -> dict[str, object]:
    """The draws of a quantile, for the ledger."""
    draws = [one for one in plan.draws if one is not None]
    return {
        "mechanism": "PermuteAndFlip",
        "scales": [one.scale for one in draws],
        "ranks": [str(one.rank) for one in draws],
    }


def drawn(plan: RankPlan, weighted: Sequence[int]) -> list[int | None]:
    """The cell of each draw that is made. Draws entropy."""
    return [None if one is None else choose(plan.scores(one, weighted), one.scale) for one in plan.draws]


def _bin(lower: float, upper: float, share: Share) -> dict[str, object]:
    return {"lower": lower, "upper": upper, **asdict(share)}


def _whole(like: Share) -> Share:
    """All bins together: everyone is in one of them."""

    def one(interval: Interval) -> Interval:
        return replace(interval, lower=1.0, upper=1.0)

    return Share(
        share=1.0,
        interval=one(like.interval),
        population_interval=one(like.population_interval),
        simultaneous=one(like.simultaneous),
    )


def make(study: StudyDefinition, question: ShapeQuestion, cohorts: Sequence[Cohort]) -> ShapePlan:
    """Plan and price a question.

    Raises:
        BudgetExhausted: people could take part, but cannot pay any more.
        NotApplicable: no person central or public is there.
        InternalFault: a charge exceeds an offer.
    """
    crowd, cells, relation = ShapeCrowd.of(cohorts, question), len(question.starts), study.relation
    refuse_without_people(study, crowd)
    weighing = weigh(study, question, crowd.groups, crowd.people)
    plan: SharesPlan | RankPlan
    if question.quantile is None:
        reported = tuple(
            Reported(
                people=crowd.groups[place].count,
                weight=weighing.reports[place],
                noise=report_noise(cells + 1, crowd.groups[place].epsilon),
            )
            for place in crowd.reporting
        )
        plan = SharesPlan(bins=cells + 1, weighing=weighing, people=question.expected_size, reported=reported)
    else:
        plan = RankPlan.of(question.quantile, cells, weighing, people=question.expected_size)
    costs = added_up(
        crowd, central_costs(crowd, weighing.weights, lambda weight: _price(plan, weight, relation))
    )
    most = max(costs, default=0) if relation is Relation.REPLACE_ONE else _price(plan, weighing.cap, relation)
    return ShapePlan(
        crowd=crowd,
        weighing=weighing,
        plan=plan,
        costs=costs,
        most=most,
        grid=study.grid,
        edges=question.edges,
        choices=question.choices,
    )


def refuse_without_people(study: StudyDefinition, crowd: ShapeCrowd) -> None:
    """Refuse where people are left, and none of them can pay.

    Raises:
        BudgetExhausted: so it is, in a study whose people are public.
    """
    able = any(group.participates for group in crowd.groups)
    if study.relation is Relation.REPLACE_ONE and crowd.unable and not able:
        raise BudgetExhausted("no person in this study can take part in such a release")


def weigh(
    study: StudyDefinition,
    question: ShapeQuestion,
    groups: Sequence[Group],
    people: int,
    part: Callable[[int], int] = int,
) -> Weighing:
    """What people count for in the counts that a question asks for.

    Args:
        study, question: What is asked of which study.
        groups: Who is there, and what they offer for these counts.
        people: All with a live contribution.
        part: What of an offer that is [micro-epsilon]; all of it if not given.

    Raises:
        NotApplicable: no person central or public is there.
    """
    if study.relation is Relation.ADD_REMOVE_ONE:
        cap, floor = (part(question.offer(end)) for end in (study.epsilon_max, study.epsilon_min))
        return weigh_secret(groups, cap=cap, floor=floor)
    tilt = (question.tilt or 0) / MICRO
    bins = len(question.starts) + 1
    target = shares.target_of(bins, tilt) if question.counts_bins else ranks.target_of(tilt)
    noises = {
        place: report_noise(bins, group.epsilon).total / (4 * (bins - 1))
        for place, group in enumerate(groups)
        if group.trust is Trust.LOCAL and group.participates and group.count
    }
    return weigh_public(groups, people, target, tilt, noises)


def _price(plan: SharesPlan | RankPlan, weight: int, relation: Relation) -> int:
    if isinstance(plan, SharesPlan):
        return bins_cost(weight, plan.noise, relation)
    draws = [(one.rank, one.scale) for one in plan.draws if one is not None]
    return ranks_cost(weight, draws, relation)
