"""A mean over a range that is found first: its plan, its price, and both of its draws; no database.

The proof is in `app.estimators.found_range`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial

from app.accounting.costs import group_costs
from app.accounting.shape_prices import bins_cost
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.release import Charge
from app.core.study import Relation, StudyDefinition
from app.estimators import registry
from app.estimators.found_range import FoundRange, find, narrowed
from app.estimators.interface import Estimator, Plan, Question
from app.estimators.shares import SharesPlan
from app.mechanisms.draw import draw
from app.services import planning
from app.services.shape_crowd import ShapeCrowd
from app.services.shape_parts import groups_of, mean_estimator, mean_question
from app.services.shape_plans import (
    added_up,
    central_costs,
    charges_of,
    noisy_counts,
    weigh,
)
from app.services.shape_questions import ShapeQuestion
from app.store.bins import ClippedSum


@dataclass(frozen=True, kw_only=True)
class FoundPlan:
    """One question, priced, for one crowd.

    Attributes:
        study: The study.
        crowd: Whom it was made for.
        edges: Ends of the bins [grid steps].
        bins: The first part.
        estimator: Of the second part.
        question: What the second part is asked, over the declared range.
        mean: Its plan. Weights and noise are the same for every part of the range.
        groups: What it sees.
        gain: The square of the interval over the declared range, over that of this one where the values fill
            the declared range; below 1. Where a part r of it is found, 1 / r^2 times as much.
        costs: What each person of each group pays for both parts [micro-epsilon].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
    """

    study: StudyDefinition
    crowd: ShapeCrowd
    edges: tuple[int, ...]
    bins: SharesPlan
    estimator: Estimator
    question: Question
    groups: tuple[Group, ...]
    mean: Plan
    gain: float
    costs: tuple[int, ...]
    most: int

    @classmethod
    def of_crowd(cls, study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd) -> "FoundPlan":
        """Plan and price both parts.

        Raises:
            NotApplicable: no person central or public is there.
            InternalFault: a charge exceeds an offer.
        """
        relation = study.relation
        first, second = partial(_first, question), partial(_second, question)
        weighing = weigh(study, question, groups_of(crowd, first), crowd.people, first)
        bins = SharesPlan(bins=len(question.starts) + 1, weighing=weighing, people=question.expected_size)
        of_bins = central_costs(
            crowd, weighing.weights, lambda weight: bins_cost(weight, bins.noise, relation)
        )
        estimator, groups = mean_estimator(study), groups_of(crowd, second)
        asked = mean_question(study, question, crowd, second)
        mean = estimator.plan(groups, asked)
        of_mean = group_costs(mean.queries, mean.noise, relation, groups, study.noise)
        costs = added_up(crowd, of_bins, of_mean)
        most, declared = max(costs, default=0), mean_question(study, question, crowd, int)
        if relation is Relation.ADD_REMOVE_ONE:
            most = bins_cost(weighing.cap, bins.noise, relation)
            most += planning.epsilon_max(study, estimator, asked, of_mean)
            ratio = asked.cap / max(declared.cap, 1)
        else:
            widths = [
                planning.interval_width(study, plan)
                for plan in (estimator.plan(crowd.groups, declared), mean)
            ]
            # Without noise there is nothing to gain.
            ratio = widths[0] / widths[1] if widths[1] else 1.0
        return cls(
            study=study,
            crowd=crowd,
            edges=(0, *question.starts, GRID_SIZE),
            bins=bins,
            estimator=estimator,
            question=asked,
            groups=groups,
            mean=mean,
            gain=ratio**2,
            costs=costs,
            most=most,
        )

    @property
    def predicted_error(self) -> float:
        """Root mean square error of the mean, if the values fill the declared range [data's unit]."""
        return min(self.mean.predicted_error, float(self.study.grid.width))

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval, as a part of the range that is found."""
        return planning.interval_width(self.study, self.mean) / float(self.study.grid.width)

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids."""
        return charges_of(self.crowd, self.costs)

    def noise_json(self, found: FoundRange) -> str:
        """The noise of both parts, for the ledger: what is needed to compute the price again."""
        of_mean = narrowed(self.mean.noise, found.width)
        document = {
            "mechanism": "FoundRange",
            "bins": {"mechanism": type(self.bins.noise).__name__, **asdict(self.bins.noise)},
            "mean": {"mechanism": type(of_mean).__name__, **asdict(of_mean)},
            "range": [found.low, found.high],
        }
        return json.dumps(document, allow_nan=False)

    def find(self, counts: Mapping[int, Sequence[int]]) -> FoundRange:
        """Add exact noise to the counts by bin and read the range off them. Draws entropy."""
        return find(self.bins, self.edges, noisy_counts(self.crowd, self.bins, counts))

    def answer(self, found: FoundRange, sums: Mapping[int, ClippedSum]) -> dict[str, object]:
        """Add exact noise to the sums in the range and read the mean. Draws entropy.

        Args:
            found: What `find` returned for the same people.
            sums: Of each cohort that takes part.

        Returns:
            The part of the body that depends on them.
        """
        asked = replace(self.question, grid=found.grid(self.study.grid))
        plan = self.estimator.plan(self.groups, asked)
        conclusion = plan.conclude(noisy_sums(self, found, sums))
        public = self.study.relation is Relation.REPLACE_ONE
        return {
            "asked": registry.AUTO,
            "estimate": conclusion.estimate,
            "standard_error": conclusion.standard_error,
            "interval": asdict(conclusion.interval),
            "population_interval": asdict(conclusion.population_interval),
            "range": {
                "lower": float(asked.grid.lower),
                "upper": float(asked.grid.upper),
                "outside_at_most": found.outside,
                "people_outside_at_most": math.ceil(found.outside * self.crowd.people) if public else None,
            },
            **conclusion.details,
        }


def _first(question: ShapeQuestion, offer: int) -> int:
    """What finding the range may take of an offer, at least 1 of it."""
    return -(-offer * (question.part or 0) // MICRO)


def _second(question: ShapeQuestion, offer: int) -> int:
    return offer - _first(question, offer)


def noisy_sums(made: FoundPlan, found: FoundRange, sums: Mapping[int, ClippedSum]) -> list[int]:
    """The values of the mean's queries with exact noise, as if the found range were a whole grid.

    Noise is in before anything is divided: steps of the range become steps of a whole grid only then, rounded
    to the nearest. Draws entropy.
    """
    members = made.crowd.members
    totals = [sum(sums[cohort.id].total for cohort in group if cohort.id in sums) for group in members]
    counts = [sum(cohort.count for cohort in group) * found.width for group in members]
    exact = [
        sum(of_sum * totals[index] + of_count * counts[index] for index, of_sum, of_count, _ in query.terms)
        for query in made.mean.queries
    ]
    noise = draw(narrowed(made.mean.noise, found.width), queries=len(exact))
    return [
        round(Fraction((value + error) * GRID_SIZE, found.width))
        for value, error in zip(exact, noise, strict=True)
    ]
