r"""`mean` of values of several coordinates, and what is read off it: sum, variance and sd by coordinate.

A value has d coordinates, each on the grid of the range. Every coordinate is asked what a number is asked:
the weighted sum and, at no price (`app.accounting.prices`), the sum of squares; where the number of people is
secret, the complementary sums of `transformed`. The queries of all coordinates have the same weights, and
independent noise of one law.

*Privacy.* Let :math:`l(W)` be the price of the queries of one coordinate for a person of weight W: the
largest loss over all pairs of neighbors. The loss of the whole release is :math:`\sum_j l_j`, and
:math:`l_j` depends on coordinate j alone. The coordinates of a person are free of each other, so all
:math:`l_j` can be at their largest at once, and

.. math:: \max \sum_{j=1}^d l_j = \sum_{j=1}^d \max l_j = d\, l(W).

It holds in both currencies and both relations: with Laplace noise the L1 moves of coordinates add up, with
Gaussian noise the squares of their L2 moves. So second moments stay free: in each coordinate
:math:`|y - y'| + |y^2 - y'^2| \le 1`, and d of these are at most d. `app.accounting.costs` prices all d
copies of the queries as one list, in which one number stands for all coordinates: as every copy has the same
weights and noise, the number that is worst for one is worst for all, so the price is d l(W), rounded up once.

*Accuracy.* A coordinate has a d-th of each offer, and the law of a mean that is asked for with it. With
Laplace noise the scale of each grows with d, with Gaussian noise with its root. The simultaneous intervals
are those at the level :math:`1 - (1 - .95) / d`, by the union bound, whatever the coordinates have in common.

*By labels.* Each label has sums of its own, at the whole price, and the coordinates of all people are read
off the sums of all labels, as means are (`app.estimators.labels_public`, `app.estimators.labels_secret`): a
person has one label, and is in the sums of that one alone (`app.services.shapes.labels` has the proof).

*Steps.* In replace_one studies shares of the question add up, see `app.services.shapes.steps`: a piece
has the 2 d sums of its people, whose price at each share is in `app.services.statistics.piece_noise`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.accounting.costs import group_costs
from app.accounting.measurement import Measurement
from app.core.cohort import Group, Groups
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import Noise, as_document, repeated
from app.core.piece import Piece
from app.core.plain import plain
from app.core.study import StudyDefinition, Trust, assumption
from app.estimators import confidence, labels_public, labels_secret
from app.estimators.combination import Sums, combination_plan
from app.estimators.interface import Conclusion, Interval, Linear, Plan, Query, SparseQuery
from app.estimators.moments import with_second_moment
from app.estimators.shares import Noisy
from app.estimators.together import together
from app.estimators.transformed import MOMENTS
from app.mechanisms.draw import draw
from app.services.shapes.parts import Part, mean_estimator, mean_question, part_of
from app.services.shapes.plans import added_up, refuse_without_people
from app.services.shapes.priced_plan import PiecesPlan
from app.services.shapes.questions import COORDINATES, ShapeQuestion
from app.services.shapes.trees import Grown
from app.services.statistics import planned_errors, planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import PieceNoise
from app.services.statistics.questions import MEAN, SD, SUM, VARIANCE, Ask
from app.services.statistics.whole_plans import planned_share, weights_of
from app.store import bins


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatesPlan(PiecesPlan):
    """One question, priced, for one crowd.

    Attributes:
        study: The study of values of d coordinates.
        plan: Of each coordinate.
    """

    name = COORDINATES
    summary = "Mean and spread of each coordinate, each with an equal part of the price."
    parts_of_document = ("coordinates",)
    keeps = labels_add_up = is_mean = many_numbers = True

    study: StudyDefinition
    plan: Plan

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        first = study.measures.place(ask.measure) if ask.measure else 0
        return {"summed": bins.coordinates(first, study.dimension), "numbers": study.dimension}

    @staticmethod
    def assumption(tilt: int) -> str:
        """See `ShapeEstimator`."""
        return assumption(tilt) + (" in each coordinate" if tilt < MICRO else "")

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "CoordinatesPlan":
        """See `ShapeEstimator`."""
        dimension, relation = study.dimension, study.relation
        of_each = _of_each(study, part)
        estimator, groups = mean_estimator(study), part_of(crowd, of_each).groups
        able = [
            replace(group, participates=one.participates)
            for group, one in zip(crowd.groups, groups, strict=True)
        ]
        crowd = replace(crowd, groups=Groups.of(able))
        refuse_without_people(study, crowd)
        secret = relation.hides_people
        asked = mean_question(study, question, crowd, of_each, _parameters(study, question))
        plan = estimator.plan(groups, asked)

        def priced(one: Plan, groups: Sequence[Group]) -> list[int]:
            noise = repeated(one.noise, dimension)
            return group_costs(one.queries * dimension, noise, relation, groups, study.noise)

        if secret:
            one = Group(trust=Trust.CENTRAL, epsilon=asked.cap, count=1)
            (most,) = priced(estimator.plan([one], asked), [one])
            costs = added_up(crowd, priced(plan, groups))
        else:
            plan = with_second_moment(plan, groups, asked)
            costs = added_up(crowd, priced(plan, groups))
            most = max(costs, default=0)
        return cls(study=study, crowd=crowd, plan=plan, costs=costs, most=most)

    @property
    def queries(self) -> tuple[Query | SparseQuery, ...]:
        """Of all coordinates, one after the other."""
        return self.plan.queries * self.study.dimension

    @property
    def noise(self) -> Noise:
        """On all queries."""
        return repeated(self.plan.noise, self.study.dimension)

    @property
    def of_mean(self) -> Plan:
        """Of each coordinate."""
        return self.plan

    @property
    def is_midpoint(self) -> bool:
        """Whether it says the middle of the range, which would be nearer than any answer of its people.

        In add_remove_one studies it never is: there nothing depends on who is there.
        """
        public = not self.study.hides_people
        return public and not any(weight for query in self.plan.queries for weight in query.sum_weights)

    @property
    def statistics(self) -> tuple[str, ...]:
        """What can be read off the answer."""
        if self.study.hides_people:
            return (MEAN, VARIANCE, SD) if self.plan.spread is not None else (MEAN,)
        return (MEAN, SUM, VARIANCE, SD) if self.plan.has_variance else (MEAN, SUM)

    @property
    def predicted_error(self) -> float:
        """Root mean square error of each coordinate [data's unit]."""
        return min(self.plan.predicted_error, float(self.study.grid.width))

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval of each coordinate, as a part of the range."""
        return planning.interval_width(self.study.grid, self.plan) / float(self.study.grid.width)

    def noise_json(self) -> str:
        """The noise, for the ledger."""
        return json.dumps(as_document(self.noise))

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger."""
        return [Measurement.of_queries(self.queries, self.noise, self.crowd.groups, self.crowd.ids)]

    def read(self, *drawn: Noisy) -> dict[str, object]:
        """The answer; that for all people from what is drawn for each label."""
        read = []
        for place in range(self.study.dimension):
            # One label after the other, of each the values of this coordinate.
            values: list[int] = []
            for sums, _ in drawn:
                each = len(sums) // self.study.dimension
                values += sums[place * each : (place + 1) * each]
            read.append(self.plan.conclude(values))
        answer: dict[str, object] = {
            "coordinates": [{"coordinate": place, **self._shown(one)} for place, one in enumerate(read)]
        }
        # Each coordinate has a noisy count of its own: their mean has the least noise.
        noisy = [found for one in read if isinstance(found := one.details.get("noisy_count"), float)]
        return answer | ({"noisy_count": sum(noisy) / len(noisy)} if noisy else {})

    def beside(self, pieces: Sequence[Piece], counts: Mapping[int, Sequence[int]]) -> list[Noisy]:
        """Noisy sums of a plan of `reading`, and behind them those of public people."""
        dimension = self.study.dimension
        sums = [piece.sums for piece in pieces] + [self.crowd.public_sums(counts, 1 + 2 * dimension)[1:]]
        return [
            ([own[place] for at in range(dimension) for place in (at, at + dimension) for own in sums], ())
        ]

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, CoordinatesPlan | None]]",
    ) -> "CoordinatesPlan":
        """See `OneShape`."""
        of_each = _of_each(study)
        asked = mean_question(study, question, crowd, of_each, _parameters(study, question))
        if study.hides_people:
            plan = labels_secret.whole_plan(asked, len(labels))
        else:
            plan = labels_public.whole_plan(
                [(part_of(one, of_each).groups, None if own is None else own.plan) for one, own in labels],
                asked,
            )
        return replace(self, crowd=crowd, plan=plan, costs=(), most=0)

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Noisy:
        """The queries of all coordinates with exact noise, and no reports. Integers; draws entropy.

        Args:
            counts: For each cohort that takes part its people, the sum of each coordinate [grid steps], and
                the sum of the squares of each (`app.core.grid.square`).
            grown: None: it has no `trees`.
        """
        dimension, groups = self.study.dimension, self.crowd.groups
        sizes = [group.count * GRID_SIZE for group in groups]
        sums = [
            self.crowd.summed(counts, place) if group.participates else []
            for place, group in enumerate(groups)
        ]
        exact = []
        for place in range(1, 1 + dimension):
            totals, squares = ([own[at] if own else 0 for own in sums] for at in (place, place + dimension))
            exact += [query.value(totals, sizes, squares) for query in self.plan.queries]
        errors = draw(self.noise, queries=len(exact))
        return [value + error for value, error in zip(exact, errors, strict=True)], ()

    def _shown(self, found: Conclusion) -> dict[str, object]:
        """What the answer says of a coordinate."""
        shown = found.numbers()
        if not self.study.hides_people:
            shown["simultaneous"] = plain(self._simultaneous(found))
        if found.anytime is not None:
            shown["anytime"] = plain(found.anytime)
        return planned_errors.of_spread(shown | found.spread(), self.plan)

    def _simultaneous(self, found: Conclusion) -> Interval:
        """The interval for the dataset that holds together with those of all coordinates."""
        if found.error is None:  # The middle of the range: the interval is all of it.
            return found.interval
        grid, error = self.study.grid, found.error
        reach = error.dataset.half_width(together(confidence.level(), self.study.dimension))
        return replace(
            found.interval,
            lower=min(max(error.center - reach, float(grid.lower)), found.interval.lower),
            upper=max(min(error.center + reach, float(grid.upper)), found.interval.upper),
        )


def _parameters(study: StudyDefinition, question: ShapeQuestion) -> dict[str, object]:
    """Of the estimator of a coordinate: a variance takes sums of its own where presence is secret."""
    return {MOMENTS.name: 2} if study.hides_people and question.spread else {}


def _of_each(study: StudyDefinition, part: Part = int) -> Part:
    """What of an offer one coordinate may take, of a part of it for all."""
    return lambda offer: part(offer) // study.dimension


def weigh(
    study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, noise: PieceNoise, *, first: int
) -> tuple[Sequence[int], Linear] | None:
    """What one person of each group weighs in every coordinate under `noise.unit`, and what that rests on.

    Args:
        study, question, crowd: What is asked of whom, for each person's whole epsilon.
        noise: Of all pieces.
        first: The share that a piece with these weights begins with [ppm].

    Returns:
        None where the plan is no single sum under noise of the study's currency.

    Raises:
        NotApplicable: no person central or public is there.
    """
    of_each = _of_each(study)
    asked = replace(mean_question(study, question, crowd, of_each), share=planned_share(first))
    plan = mean_estimator(study).plan(part_of(crowd, of_each).groups, asked)
    weights = weights_of(plan, noise)
    return None if weights is None or plan.linear is None else (weights, plan.linear)


def reading(
    study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, sums: Sums, linear: Linear
) -> CoordinatesPlan:
    """What reads the sums of pieces, and charges no one; arguments as of `combination_plan`."""
    asked = mean_question(study, question, crowd, _of_each(study))
    plan = combination_plan(sums, linear, asked)
    return CoordinatesPlan(study=study, crowd=crowd, plan=plan, costs=(), most=0)
