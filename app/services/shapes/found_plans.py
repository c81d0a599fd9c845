"""A mean over a range that is found first: its plan, its price, and both of its draws.

The proof is in `app.estimators.found_range`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.accounting.measurement import Measurement, recorded
from app.core.attributes import conditions_of, label_of
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import as_document
from app.core.study import Study, StudyDefinition, assumption
from app.estimators import registry
from app.estimators.every_level import at_every_level
from app.estimators.found_range import FoundRange, find, ladder, narrowed
from app.estimators.interface import NotApplicable, Plan
from app.estimators.shares import SharesPlan
from app.services.shapes.found_means import AskedMeans, Means
from app.services.shapes.parameters import DEFAULT_PART, read_rank
from app.services.shapes.parts import mean_estimator, part_of
from app.services.shapes.plans import (
    added_up,
    noisy_counts,
    priced,
    refuse_without_people,
    weigh,
)
from app.services.shapes.priced_plan import Answered, PricedPlan, Scans, measured_by
from app.services.shapes.questions import FOUND_RANGE, ExpectedRange, ShapeQuestion
from app.services.statistics import planned_errors, planning
from app.services.statistics.crowds import Crowd, by_label
from app.services.statistics.questions import FOUND, MEAN, RANGE, RANGE_PART, Ask
from app.store import releases as store
from app.store.database import Connection

WHOLE = FoundRange(low=0, high=GRID_SIZE, outside=0.0)
"""The declared range."""

GUESS = ExpectedRange(width=GRID_SIZE // 10)
"""What is expected where no range was found before: who has one found takes the declared one for too wide."""


@dataclass(frozen=True, kw_only=True)
class FoundPlan(PricedPlan):
    """One question, priced, for one crowd.

    Attributes:
        study: The study.
        edges: Ends of the bins [grid steps].
        bins: The first part.
        asked: What the second part is asked, over any range.
        expected: The range that is expected to be found.
        means: Its plan over that.
        declared_width: Predicted width of the interval, as a part of the range, if the declared one stays.
        gain: The square of the interval over the declared range, over that of this one where the values fill
            the declared range; below 1. Where a part r of it is found, 1 / r^2 times as much, without a tilt.
    """

    name, answers = FOUND_RANGE, (MEAN,)
    summary = "The mean of the values moved into a range that a part of the price finds first."
    counts_bins = labels_add_up = is_mean = True

    study: StudyDefinition
    edges: tuple[int, ...]
    bins: SharesPlan
    asked: AskedMeans
    expected: ExpectedRange
    means: Means
    declared_width: float
    gain: float

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        part = int(read_rank(RANGE_PART, parameters) * MICRO) if RANGE_PART in parameters else DEFAULT_PART
        special = {RANGE: FOUND, RANGE_PART: part / MICRO}
        return {"starts": ladder(study.grid)[1:-1], "part": part, "special": special}

    @staticmethod
    def assumption(tilt: int) -> str:
        """See `ShapeEstimator`."""
        moved = ", in the part of it that is found, all values moved into it"
        return assumption(tilt) + (moved if 0 < tilt < MICRO else "")

    @classmethod
    async def informed(cls, connection: Connection, study: Study, question: ShapeQuestion) -> ShapeQuestion:
        """See `ShapeEstimator`: the range that was found last is expected."""
        last = await store.read_last_range(connection, study.id, question.measure)
        if last is None:
            return replace(question, expected=None)
        found = json.loads(last.body)["range"]
        part = (found["upper"] - found["lower"]) / float(study.definition.grid.width)
        width = max(1, min(GRID_SIZE, round(part * GRID_SIZE)))
        return replace(question, expected=ExpectedRange(width=width, release=last.id))

    @classmethod
    def of(cls, study: StudyDefinition, question: ShapeQuestion, cohorts: Sequence[Cohort]) -> "FoundPlan":
        """Plan and price both parts.

        Raises:
            BudgetExhausted: people could take part, but cannot pay any more.
            NotApplicable: no person central or public is there, or not enough of a label that is needed.
            InternalFault: a charge exceeds an offer.
        """
        relation = study.relation
        first, second = partial(_first, question), partial(_second, question)
        labels = (
            by_label(study, question, cohorts)
            if question.by
            else [(question, Crowd.of(study, cohorts, question))]
        )
        asked = AskedMeans(study=study, question=question, labels=labels, part=second)
        refuse_without_people(study, asked.crowd)
        # 1. The second part, which says who takes part: no person pays for an answer that is not there.
        expected = question.expected or GUESS
        means = asked.over(expected.found)
        small = frozenset(number for number, one in enumerate(means.sums) if one.plan is None)
        read = question.label_weights
        weights = {} if read is None else read.of(_cells(labels, question.by))
        for number in small:
            where = labels[number][0].where
            if label_of(where, question.by) in weights:
                raise NotApplicable(
                    f"Not enough people with {conditions_of(where)} can take part: there is nothing to read."
                )
        crowd = Crowd.joined([one for _, one in labels], small)
        # 2. The first part, of the same people.
        weighing = weigh(study, question, part_of(crowd, first), first)
        bins = SharesPlan(bins=len(question.starts) + 1, weighing=weighing, people=question.size)
        of_bins, most_of_bins = priced(crowd, bins)
        of_mean = [cost for one in means.sums for cost in one.costs(study)]
        costs = added_up(crowd, of_bins, of_mean)
        # 3. What it may cost, and what it gains.
        declared, most = replace(asked, part=int), max(costs, default=0)
        width = planning.interval_width(study.grid, asked.over(WHOLE, means.sums).plan)
        if relation.hides_people:
            most = most_of_bins + planning.epsilon_max(study, mean_estimator(study), asked.asked, of_mean)
            ratio = asked.asked.cap / max(declared.asked.cap, 1)
        else:
            # Without noise there is nothing to gain.
            ratio = planning.interval_width(study.grid, declared.over(WHOLE).plan) / width if width else 1.0
        return cls(
            study=study,
            crowd=crowd,
            edges=(0, *question.starts, GRID_SIZE),
            bins=bins,
            asked=asked,
            expected=expected,
            means=means,
            declared_width=width / float(study.grid.width),
            gain=ratio**2,
            costs=costs,
            most=most,
        )

    @property
    def predicted_error(self) -> float:
        """Root mean square error of the mean, if the range is found that is expected [data's unit]."""
        return min(self.means.plan.predicted_error, float(self.study.grid.width))

    @property
    def interval_width(self) -> float:
        """As if the declared range stayed: answers are compared by it."""
        return self.declared_width

    @property
    def of_mean(self) -> Plan:
        """Over the range that is expected."""
        return self.means.plan

    @property
    def cells(self) -> Mapping[str, int]:
        """See `PricedPlan`."""
        return _cells(self.asked.labels, self.asked.question.by)

    def unit(self, study: StudyDefinition) -> float:
        """The width of that [data's unit]."""
        return float(study.grid.width) * self.expected.width / GRID_SIZE

    def shown(self) -> dict[str, Any]:
        """What finding a range gains, and the range that is expected."""
        width = self.expected.width / GRID_SIZE * float(self.study.grid.width)
        return {"gain": self.gain, "expected_range": {"width": width, "release": self.expected.release}}

    def noise_json(self, found: FoundRange) -> str:
        """The noise of both parts, for the ledger: what is needed to compute the price again."""
        noises = [narrowed(one.plan.noise, found.width) for one in self.means.sums if one.plan is not None]
        bins, *means = [as_document(one) for one in (self.bins.noise, *noises)]
        document = {
            "mechanism": "FoundRange",
            "bins": bins,
            "mean": means if self.asked.question.by else means[0],
            "range": [found.low, found.high],
        }
        return json.dumps(document, allow_nan=False)

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger; sums as over the declared range, at the same price."""
        bins = measured_by(self.bins, self.crowd)
        return [bins, *(one.measured() for one in self.means.sums if one.plan is not None)]

    async def answered(self, scans: Scans) -> Answered:
        """See `PricedPlan`: first the range, then the sums in it."""
        found = await scans.draw(self.find, await scans.summed_up())
        body = await scans.draw(self.answer, found, await scans.within(found))
        noise = recorded(self.noise_json(found), self.measured())
        return Answered(body=body, noise=noise, charges=self.charges())

    def find(self, counts: Mapping[int, Sequence[int]]) -> FoundRange:
        """Add exact noise to the counts by bin and read the range off them. Draws entropy."""
        return find(self.bins, self.edges, noisy_counts(self.crowd, self.bins, counts))

    def answer(self, found: FoundRange, sums: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """Add exact noise to the sums in the range and read the mean. Draws entropy.

        Args:
            found: What `find` returned for the same people.
            sums: Of each cohort that takes part its people, and what they add up to in the range.

        Returns:
            The part of the body that depends on them.
        """
        # What is drawn is what was priced; the range only decides how it is read.
        values = [value for one in self.means.sums for value in one.noisy(found, sums)]
        read = self.asked.over(found, self.means.sums).plan
        return at_every_level(lambda: self._read(found, read, values))

    def _read(self, found: FoundRange, read: Plan, values: Sequence[int]) -> dict[str, object]:
        """What the noisy sums in the range say."""
        grid, conclusion = found.grid(self.study.grid), read.conclude(values)
        outside: int | None = None
        details: dict[str, Any] = dict(conclusion.details)
        if "groups" in details:
            details["groups"] = planned_errors.of_labels(details["groups"], read.labels, float(grid.width))
        if not self.study.hides_people:
            outside = math.ceil(found.outside * self.crowd.people)
            if "groups" in details:
                details["groups"] = [_with_outside(one, outside) for one in details["groups"]]
        return {
            "asked": registry.AUTO,
            **conclusion.numbers(),
            "predicted_error": min(read.predicted_error, float(grid.width)),
            "range": {
                "lower": float(grid.lower),
                "upper": float(grid.upper),
                "outside_at_most": found.outside,
                "people_outside_at_most": outside,
            },
            **details,
        }


def _cells(labels: Sequence[tuple[ShapeQuestion, Crowd]], by: str) -> Mapping[str, int]:
    return {label_of(own.where, by): crowd.people for own, crowd in labels} if by else {}


def _first(question: ShapeQuestion, offer: int) -> int:
    """What finding the range may take of an offer, at least 1 of it."""
    return -(-offer * (question.part or 0) // MICRO)


def _second(question: ShapeQuestion, offer: int) -> int:
    return offer - _first(question, offer)


def _with_outside(label: Mapping[str, Any], outside: int) -> dict[str, object]:
    """The answer for a label, with how many may lie outside: at worst all who do are of this label."""
    most = None if label["estimate"] is None else min(1.0, outside / label["people"])
    return {**label, "outside_at_most": most}
