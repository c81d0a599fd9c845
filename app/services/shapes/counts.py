r"""`count`: the number of people, public or with noise.

*replace_one.* The number of people is public: the answer is it, has no noise and charges no one.

*add_remove_one.* Each person counts as one, whatever they offer: all weigh the same w, which is what the
share leaves of the least epsilon that the study admits, so that all can pay it, or of the least that the
question asks for: then it counts those who offered that much. A person who comes or goes moves the sum of
weights w n by w: one query, priced as every query is (`app.accounting.costs`), and the same for all. With Z
its noise the answer is n + Z / w, and the interval n + Z / w ± q / w, q the quantile of :math:`|Z|`. So the
error is in people: with Laplace noise it is :math:`\sqrt 2 / w`, w as an epsilon, and grows as the study's
least epsilon falls. By labels the number of all K labels is the sum of theirs, with the noise of K draws.
Weights by offers would have less noise, but their sum is no number of people where offers differ. Neither
noise nor weights depend on who is there.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.accounting.costs import check_charges, group_costs
from app.accounting.measurement import Measurement
from app.core.cohort import Group
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise, NoNoise, as_document
from app.core.plain import plain
from app.core.study import Currency, StudyDefinition, Trust
from app.estimators import confidence
from app.estimators.interface import Interval, NotApplicable, Query
from app.estimators.quantiles import ErrorLaw, error_law
from app.estimators.weighing import Weighing, weigh_secret
from app.mechanisms.draw import draw
from app.services.shapes.parts import Part, part_of
from app.services.shapes.priced_plan import OneShape
from app.services.shapes.questions import COUNT, ShapeQuestion
from app.services.shapes.trees import Grown
from app.services.statistics.crowds import Crowd


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPlan(OneShape[int | None]):
    """One question, priced, for one crowd.

    Attributes:
        weighing: What people count for, all the same; None where their number is public.
        noise: Of the sum of weights [its units, times 2**GRID_BITS].
        sums: How many noisy numbers it adds up, one of each label; 1 without labels.
    """

    name, answers = COUNT, (COUNT,)
    summary = "The number of people, each counted as one; a secret one has noise like 1 / epsilon.min."
    labels_add_up = True
    no_measure = ", which is of people"
    parts_of_document = ("estimate", "interval")

    weighing: Weighing | None
    noise: Noise
    sums: int = 1

    @staticmethod
    def assumption(tilt: int) -> None:
        """See `ShapeEstimator`."""

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "CountPlan":
        """See `ShapeEstimator`."""
        if question.public:
            return cls(crowd=crowd, weighing=None, noise=NoNoise(), costs=(0,) * len(crowd.groups), most=0)
        level = part(question.least_offer(study))
        weighing = weigh_secret(part_of(crowd, part).groups, cap=level, floor=level, currency=study.noise)
        if not weighing.floor:
            raise NotApplicable("The share is too small for a count: it leaves nothing of epsilon.min.")
        noise = _noise(weighing, study.noise)
        costs = group_costs([_query(weighing.weights)], noise, study.relation, crowd.groups, study.noise)
        check_charges(costs, crowd.groups)
        one = Group(trust=Trust.CENTRAL, epsilon=0, count=1)
        (most,) = group_costs([_query((weighing.cap,))], noise, study.relation, [one], study.noise)
        return cls(crowd=crowd, weighing=weighing, noise=noise, costs=tuple(costs), most=most)

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, CountPlan | None]]",
    ) -> "CountPlan":
        """See `OneShape`: where the number is secret each label has one, with noise of the same law."""
        return replace(self, crowd=crowd, sums=len(labels))

    @property
    def predicted_error(self) -> float:
        """Root mean square of the noise [people]."""
        return 0.0 if self.weighing is None else math.sqrt(self._law.variance) / self.weighing.cap

    @property
    def half_width(self) -> float | None:
        """Half of the interval, before it is cut off at 0 [people]; None of a public number."""
        return None if self.weighing is None else self._law.quantile(confidence.level()) / self.weighing.cap

    @property
    def interval_width(self) -> float:
        """None of them is wider than another one: a public number has no width, others are not compared."""
        return 0.0

    def told(self, study: StudyDefinition, question: ShapeQuestion) -> float:
        """What the error takes up of the number, where one is known."""
        known = question.known
        return 0.0 if self.weighing is None or known is None else self.predicted_error / known

    def noise_json(self) -> str:
        """The noise, for the ledger."""
        return json.dumps(as_document(self.noise))

    def measured(self) -> list[Measurement]:
        """What is measured of whom, for the ledger; of a public number nothing."""
        if self.weighing is None:
            return []
        query = _query(self.weighing.weights)
        return [Measurement.of_queries([query], self.noise, self.crowd.groups, self.crowd.ids)]

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> int | None:
        """The sum of weights with exact noise [their unit, times 2**GRID_BITS]; None of a public number.

        Draws entropy.

        Args:
            counts: Not looked at: the sizes of cohorts say it.
            grown: None: it has no `trees`.
        """
        if self.weighing is None:
            return None
        zeros = [0] * len(self.crowd.groups)
        sizes = [group.count * GRID_SIZE for group in self.crowd.groups]
        (error,) = draw(self.noise, queries=1)
        return _query(self.weighing.weights).value(zeros, sizes, zeros) + error

    def read(self, *drawn: int | None) -> dict[str, object]:
        """The number of people, and its interval; that of all people from what is drawn for each label."""
        if self.weighing is None:
            return public_count(self.crowd.people)
        number = sum(own for own in drawn if own is not None)
        # No number is below 0, so a noisy one is no further from the true one where it is raised to 0.
        people = max(0.0, number / GRID_SIZE / self.weighing.cap)
        margin = self.half_width or 0.0
        interval = Interval(
            level=confidence.level(),
            lower=max(0.0, people - margin),
            upper=people + margin,
            coverage="at_least",
        )
        return {"estimate": people, "interval": plain(interval)}

    @property
    def _law(self) -> ErrorLaw:
        """Of the noise [units of the weights]."""
        match self.noise:
            case DiscreteGaussian(sigmas=(sigma,)):
                return error_law(normal_variance=self.sums * (sigma / GRID_SIZE) ** 2, laplaces=())
            case DiscreteLaplace(scales=(scale,)):
                return error_law(normal_variance=0.0, laplaces=((scale / GRID_SIZE, self.sums),))
            case _:
                return error_law(normal_variance=0.0, laplaces=())


def public_count(people: int) -> dict[str, object]:
    """The answer where the number of people is public."""
    number = float(people)
    interval = Interval(level=confidence.level(), lower=number, upper=number, coverage="exact")
    return {"estimate": number, "interval": plain(interval)}


def _query(weights: Sequence[int]) -> Query:
    """The sum of the weights of people, times 2**GRID_BITS."""
    return Query(sum_weights=(0,) * len(weights), count_weights=tuple(weights))


def _noise(weighing: Weighing, currency: Currency) -> DiscreteLaplace | DiscreteGaussian:
    """Noise under which a person pays what they weigh."""
    if currency.is_gaussian:
        return DiscreteGaussian(sigmas=((math.sqrt(2) * weighing.unit + 1) * GRID_SIZE,))
    return DiscreteLaplace(scales=(float(weighing.unit * GRID_SIZE),))
