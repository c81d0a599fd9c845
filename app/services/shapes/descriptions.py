r"""`describe`: count, mean, standard deviation and quartiles, in one release.

*Parts.* Of each offer the quartiles have three fifths, and the moments have the rest. Where the number of
people is public, Laplace noise of squares has half of the scale of that of the mean, which costs 9/8 of the
mean alone (`app.estimators.moments`): beside squares that are free the mean errs 9/8 times as much, and the
standard deviation .56 to .8 times. Gaussian noise of squares is free; where the number of people is secret
there are three sums. All quartiles are read off one tree of counts (`app.estimators.quantile_tree`). A secret
number of people has a noisy count (`app.services.shapes.counts`), which takes the same of every person, a
tenth of the least offer.

*Privacy.* All parts draw independently of each other, and none depends on what another one publishes. So the
density of the whole answer is the product of theirs, and for each cohort the price is the sum of the prices
(sequential composition). Where the number of people is public the count is that number.

*By labels.* Mean, second moment and secret number of all people are read off the noisy sums of labels
(`app.estimators.labels_public`, `app.estimators.labels_secret`), for which no one pays again. Quartiles are
no sums: all people have a tree of their own, for a part of what trees take (`app.services.shapes.labels`).

*Order.* Estimates may cross, and quartiles cannot: they are published in ascending order, each with the
interval of its own rank, extended to it. That is post-processing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.accounting.costs import group_costs
from app.accounting.measurement import Measurement
from app.core.noise import OF_MEAN, as_document
from app.core.piece import Piece
from app.core.plain import plain
from app.core.study import StudyDefinition, assumption
from app.estimators import labels_public, labels_secret
from app.estimators.interface import Plan, Question
from app.estimators.linear import midpoint_plan
from app.estimators.moments import WITH_HALF, with_second_moment
from app.estimators.quantile_tree import TreePlan
from app.estimators.transformed import MOMENTS
from app.services.shapes.counts import CountPlan, public_count
from app.services.shapes.parts import Part, mean_estimator, mean_question, of_whole, part_of
from app.services.shapes.plans import added_up, priced
from app.services.shapes.priced_plan import OneShape, measured_by
from app.services.shapes.quantiles import tree_asked, tree_of
from app.services.shapes.questions import DESCRIBE, QUARTILES, ShapeQuestion, of_shares
from app.services.shapes.trees import Grown, Tree
from app.services.statistics import planned_errors, planning, says_nothing
from app.services.statistics.crowds import Crowd
from app.services.statistics.kept_sums import kept_of
from app.services.statistics.questions import Ask


def of_quartiles(offer: int) -> int:
    """What the quartiles may take of an offer."""
    return len(QUARTILES) * (offer // 5)


def of_count(least: int) -> int:
    """What the count of a secret number of people takes of every person, of the least offer."""
    return -(-least // 10)


def of_moments(offer: int) -> int:
    """What is left for mean and standard deviation, and for the count where that takes something."""
    return offer - of_quartiles(offer)


Drawn = tuple[Sequence[int], Grown, int | None]
"""Noisy sums of the moments, the levels of the tree, and the noisy number of people where that is secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(OneShape[Drawn]):
    """One question, priced, for one crowd.

    Attributes:
        study: The study.
        question: What was asked.
        moments: The people as the part for the moments sees them.
        mean: Its plan.
        quartiles: Theirs.
        count: That of the number of people; None where it is public.
    """

    name, answers = DESCRIBE, (DESCRIBE,)
    labels_add_up = whole_draws = True
    summary = "Mean and standard deviation, and quartiles off noisy counts of cells, with one price."
    parts_of_document = ("count", "mean", "sd", "quartiles")
    many_numbers = True

    study: StudyDefinition
    question: ShapeQuestion
    moments: Crowd
    mean: Plan
    quartiles: TreePlan
    count: CountPlan | None

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        return tree_asked(parameters) | {"numbers": 3 + len(QUARTILES)}

    @staticmethod
    def assumption(tilt: int) -> str:
        """See `ShapeEstimator`: of the mean and of the quartiles."""
        of_mean, of_quartiles = assumption(tilt), of_shares(tilt)
        return of_mean if of_mean == of_quartiles else f"{of_mean}, and {of_quartiles.removeprefix('holds ')}"

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "Description":
        """See `ShapeEstimator`; the part is of what quartiles take, since all else adds up."""
        relation = study.relation
        secret = relation.hides_people
        moment = _of_moments(study, question)
        estimator, moments = mean_estimator(study), part_of(crowd, moment)
        groups = moments.groups
        asked = _asked_of_moments(study, question, crowd)
        mean = estimator.plan(groups, asked)
        if not secret:
            mean = with_second_moment(mean, groups, asked, halved=True)
        of_mean = group_costs(mean.queries, mean.noise, relation, groups, study.noise)
        quartiles = _tree(study, question, crowd, part)
        of_tree, most_of_tree = priced(crowd, quartiles)
        count = CountPlan.of_crowd(study, question, crowd, of_count) if secret else None
        costs = added_up(crowd, of_mean, of_tree, *([] if count is None else [count.costs]))
        most = max(costs, default=0)
        if count is not None:
            most = planning.epsilon_max(study, estimator, asked, of_mean) + count.most + most_of_tree
        return cls(
            study=study,
            question=question,
            crowd=crowd,
            moments=moments,
            mean=mean,
            quartiles=quartiles,
            count=count,
            costs=costs,
            most=most,
        )

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, Description | None]]",
    ) -> "Description":
        """See `OneShape`: it pays for quartiles alone."""
        asked = _asked_of_moments(study, question, crowd)
        means = [
            (one.moments.groups, one.mean) if one and one.tells_mean else (here.groups, None)
            for here, one in labels
        ]
        if study.hides_people:
            mean = labels_secret.whole_plan(asked, len(labels))
        elif any(plan is not None for _, plan in means):
            mean = labels_public.whole_plan(means, asked)
        else:
            mean = midpoint_plan(crowd.groups, asked)
        counts = [(here, one.count if one else None) for here, one in labels]
        quartiles = _tree(study, question, crowd, of_whole)
        costs, most = priced(crowd, quartiles)
        return WholeDescription(
            study=study,
            question=question,
            crowd=crowd,
            moments=crowd,
            mean=mean,
            quartiles=quartiles,
            count=None if self.count is None else self.count.of_labels(study, question, crowd, counts),
            costs=costs,
            most=most,
        )

    @property
    def tells_mean(self) -> bool:
        """Whether people weigh anything in its mean; else it is the middle of the range."""
        weights = (weight for query in self.mean.queries for weight in query.sum_weights)
        return self.study.hides_people or any(weights)

    @property
    def predicted_error(self) -> float:
        """Root mean square error of the mean [data's unit]."""
        return min(self.mean.predicted_error, float(self.study.grid.width))

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval for the mean, as a part of the range."""
        return planning.interval_width(self.study.grid, self.mean) / float(self.study.grid.width)

    def told(self, study: StudyDefinition, question: ShapeQuestion) -> float:
        """Its least telling part decides."""
        if study.hides_people and question.size is None:
            return 0.0
        of_mean = super(Description, self).told(study, question)
        return max(of_mean, says_nothing.width_of(self.quartiles.predicted_error))

    def noise_json(self) -> str:
        """The noise of all parts, for the ledger: what is needed to compute the price again."""
        document: dict[str, object] = {
            "mechanism": "Description",
            OF_MEAN: json.loads(planning.noise_json(self.mean)),
            "quartiles": as_document(self.quartiles.noise),
        }
        if self.count is not None:
            document["count"] = json.loads(self.count.noise_json())
        return json.dumps(document, allow_nan=False)

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger: the moments, the quartiles, the number."""
        return [
            planning.measured(self.mean, self.moments),
            measured_by(self.quartiles, self.crowd),
            *([] if self.count is None else self.count.measured()),
        ]

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The one that quartiles are read off."""
        return (Tree(crowd=self.crowd, plan=self.quartiles),)

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Drawn:
        """The sums of the moments and the number of people with exact noise, beside the tree. Draws entropy.

        Args:
            counts: Not looked at: cohorts have their sums.
            grown: The levels of `trees`.
        """
        (levels,) = grown
        number = None if self.count is None else self.count.noisy(counts)
        return planning.noisy(self.mean, self.moments) if self.tells_mean else [], levels, number

    def kept(self, drawn: Drawn) -> Piece | None:
        """The sums of the moments: a mean is read off them, too."""
        sums, _, _ = drawn
        return kept_of(self.study, self.question, self.moments, self.mean, sums, self.charges())

    def read(self, *drawn: Drawn) -> dict[str, object]:
        """The answer: quartiles off the first draw, which is its own, and all else off all of them."""
        _, levels, _ = drawn[0]
        moments = self.mean.conclude([noisy for sums, _, _ in drawn for noisy in sums])
        found = self.quartiles.read(self.study.grid, levels)
        quartiles = [{"q": float(rank), **plain(one)} for rank, one in zip(QUARTILES, found, strict=True)]
        count = None if self.count is None else self.count.read(*(number for _, _, number in drawn))
        shown = {
            "count": count or public_count(self.crowd.people),
            "mean": {**moments.numbers(), "predicted_error": self.predicted_error},
            "sd": moments.spread().get("sd"),
            "quartiles": quartiles,
        }
        return planned_errors.of_spread(shown, self.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeDescription(Description):
    """Of all people beside labels: it draws a tree for quartiles, and reads all else off labels' draws."""

    def noise_json(self) -> str:
        """The noise of the tree, for the ledger."""
        return json.dumps({"mechanism": "Description", "quartiles": as_document(self.quartiles.noise)})

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger: the quartiles."""
        return [measured_by(self.quartiles, self.crowd)]

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Drawn:
        """The tree; arguments as of `Description.noisy`."""
        (levels,) = grown
        return [], levels, None


def _of_moments(study: StudyDefinition, question: ShapeQuestion) -> Part:
    """What moments may take of an offer."""
    of_each = of_count(question.least_offer(study)) if study.hides_people else 0
    if study.hides_people or study.noise.is_gaussian:
        return lambda offer: max(0, of_moments(offer) - of_each)
    # Squares take a ninth of both. The largest weight whose price, rounded up, is no more than there is.
    return lambda offer: max(0, (of_moments(offer) * WITH_HALF.denominator - 1) // WITH_HALF.numerator)


def _asked_of_moments(study: StudyDefinition, question: ShapeQuestion, crowd: Crowd) -> Question:
    """What the part for the moments is asked."""
    parameters = {MOMENTS.name: 2} if study.hides_people else {}
    return mean_question(study, question, crowd, _of_moments(study, question), parameters)


def _tree(study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part) -> TreePlan:
    """The tree for the quartiles, for a part of what they take of each offer."""
    return tree_of(study, question, crowd, QUARTILES, lambda offer: part(of_quartiles(offer)))
