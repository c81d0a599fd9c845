r"""`describe`: count, mean, standard deviation and quartiles, in one release.

*Parts.* Of each offer every quartile has a fifth, and the moments have the rest. The mean and the second
moment cost what the mean alone costs (`app.estimators.moments`; three sums where the number of people is
secret, off which the noisy count is read, too). Each quartile is a draw of its own, with two more for the
ends of its interval (`app.estimators.ranks`).

*Privacy.* All parts draw independently of each other, and none depends on what another one publishes. So the
density of the whole answer is the product of theirs, and for each cohort the price is the sum of the prices
(sequential composition). Where the number of people is public the count is that number.

*Order.* Draws may cross, and quartiles cannot: the three estimates are published in ascending order, each
with the interval of its own rank, extended to it. That is post-processing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import ClassVar

from app.accounting.costs import group_costs
from app.accounting.shape_prices import ranks_cost
from app.core.cohort import Cohorts, Group, Groups
from app.core.epsilon import MICRO
from app.core.release import Charge
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import Interval, Plan
from app.estimators.moments import with_second_moment
from app.estimators.moments_secret import GaussianHalvesPivot, HalvesPivot, count_interval
from app.estimators.quantiles import LEVEL
from app.estimators.ranks import RankPlan
from app.estimators.transformed import MOMENTS
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_parts import Part, groups_of, mean_estimator, mean_question
from app.services.shapes.shape_plans import (
    added_up,
    central_costs,
    charges_of,
    drawn,
    draws_json,
    weigh,
    weighted_counts,
)
from app.services.shapes.shape_questions import ShapeQuestion
from app.services.statistics import planning

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


def of_quartile(offer: int) -> int:
    """What each quartile may take of an offer."""
    return offer // 5


def of_moments(offer: int) -> int:
    """What is left for the mean and the standard deviation."""
    return offer - len(QUARTILES) * of_quartile(offer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """One question, priced, for one crowd.

    Attributes:
        study: The study.
        crowd: Whom it was made for.
        groups: What the part for the moments sees.
        mean: Its plan.
        quartiles: The other parts.
        costs: What each person of each group pays for all parts [the study's currency].
        most: The largest charge to a person; in add_remove_one studies the largest that is possible.
    """

    study: StudyDefinition
    crowd: ShapeCrowd
    groups: tuple[Group, ...]
    mean: Plan
    quartiles: tuple[RankPlan, ...]
    costs: tuple[int, ...]
    most: int

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd, part: Part = int
    ) -> "Description":
        """Plan and price all parts.

        Args:
            study, question, crowd: What is asked of whom.
            part: What of an offer they may take together; all of it if not given.

        Raises:
            NotApplicable: no person central or public is there.
            InternalFault: a charge exceeds an offer.
        """
        relation = study.relation
        secret = relation is Relation.ADD_REMOVE_ONE

        def moments(offer: int) -> int:
            return of_moments(part(offer))

        def quartile(offer: int) -> int:
            return of_quartile(part(offer))

        estimator, groups = mean_estimator(study), groups_of(crowd, moments)
        asked = mean_question(study, question, crowd, moments, {MOMENTS.name: 2} if secret else {})
        mean = estimator.plan(groups, asked)
        if not secret:
            mean = with_second_moment(mean, groups, asked)
        of_mean = group_costs(mean.queries, mean.noise, relation, groups, study.noise)
        weighing = weigh(study, question, groups_of(crowd, quartile), crowd.people, quartile)
        cells = len(question.starts)
        quartiles = tuple(
            RankPlan.of(rank, cells, weighing, people=question.expected_size) for rank in QUARTILES
        )
        draws = [(one.rank, one.scale) for plan in quartiles for one in plan.draws if one is not None]
        of_ranks = central_costs(
            crowd, weighing.weights, lambda weight: ranks_cost(weight, draws, relation, study.noise)
        )
        costs = added_up(crowd, of_mean, of_ranks)
        most = max(costs, default=0)
        if secret:
            most = planning.epsilon_max(study, estimator, asked, of_mean)
            most += ranks_cost(weighing.cap, draws, relation, study.noise)
        return cls(
            study=study,
            crowd=crowd,
            groups=groups,
            mean=mean,
            quartiles=quartiles,
            costs=costs,
            most=most,
        )

    one_report_moves: ClassVar[None] = None

    parts_of_document: ClassVar[tuple[str, ...]] = ("count", "mean", "sd", "quartiles")

    @property
    def predicted_error(self) -> float:
        """Root mean square error of the mean [data's unit]."""
        return min(self.mean.predicted_error, float(self.study.grid.width))

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval for the mean, as a part of the range."""
        return planning.interval_width(self.study, self.mean) / float(self.study.grid.width)

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids."""
        return charges_of(self.crowd, self.costs)

    def noise_json(self) -> str:
        """The noise of all parts, for the ledger: what is needed to compute the price again."""
        document = {
            "mechanism": "Description",
            "moments": json.loads(planning.noise_json(self.mean)),
            "quartiles": [draws_json(plan) for plan in self.quartiles],
        }
        return json.dumps(document, allow_nan=False)

    def answer(self, counts: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """Add exact noise to the sums, draw the quartiles, read the result. Draws entropy.

        Args:
            counts: For each cohort that takes part its people by cell.

        Returns:
            The part of the body that depends on them.
        """
        members = self.crowd.members
        crowd = planning.Crowd(
            groups=Groups.of(self.groups),
            cohorts=Cohorts.of([cohort for group in members for cohort in group]),
            places=[place for place, group in enumerate(members) for _ in group],
        )
        moments = planning.answer(self.mean, crowd)
        found = []
        for plan in self.quartiles:
            cells = weighted_counts(self.crowd, plan.weighing, plan.cells + 1, counts)
            found.append(plan.read(self.study.grid, drawn(plan, cells)))
        quartiles = []
        for rank, estimate, quantile in zip(
            QUARTILES, sorted(one.estimate for one in found), found, strict=True
        ):
            interval = asdict(quantile.interval)
            interval["lower"] = min(quantile.interval.lower, estimate)
            interval["upper"] = max(quantile.interval.upper, estimate)
            quartiles.append({"q": float(rank), "estimate": estimate, "interval": interval})
        sd = moments.variance and asdict(moments.variance.root)
        return {
            "count": self._count(moments.details.get("noisy_count")),
            "mean": {
                "estimate": moments.estimate,
                "standard_error": moments.standard_error,
                "interval": asdict(moments.interval),
                "population_interval": asdict(moments.population_interval),
            },
            "sd": sd,
            "quartiles": quartiles,
        }

    def _count(self, noisy: object) -> dict[str, object]:
        """How many people there are: public, or read off the noisy total weight."""
        if not isinstance(noisy, float):
            people = float(self.crowd.people)
            interval = Interval(level=LEVEL, lower=people, upper=people, coverage="exact")
            return {"estimate": self.crowd.people, "interval": asdict(interval)}
        assert self.mean.weighs is not None
        cap, floor = self.mean.weighs
        pivot = GaussianHalvesPivot() if self.study.delta else HalvesPivot()
        interval = count_interval(noisy, pivot, cap=cap, floor=max(floor, 1 / MICRO))
        return {"estimate": noisy, "interval": asdict(interval)}
