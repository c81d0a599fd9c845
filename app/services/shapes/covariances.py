"""`covariance`: of two of the numbers that a study asks each person for; its plan, its price and its draw."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.accounting.pair_prices import pair_cost
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, as_document
from app.core.release import Charge
from app.core.study import Currency, StudyDefinition
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.covariance import CovarianceReader
from app.estimators.weighing import Target, weigh_public
from app.mechanisms.draw import draw
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_parts import groups_of
from app.services.shapes.shape_plans import added_up, central_costs, charges_of
from app.services.shapes.shape_questions import ShapeQuestion

MIDDLE = GRID_SIZE // 2


def of_each(offer: int) -> int:
    """What either number may take of an offer; the products cost nothing beside them, but for rounding."""
    return max(0, offer - 2) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariancePlan:
    """One question, priced, for one crowd.

    Attributes:
        crowd: Whom it was made for.
        reader: What reads the noisy sums; it has what people count for.
        noise: Of the three sums [grid steps times the weights].
        costs: What each person of each group pays [the study's currency].
    """

    crowd: ShapeCrowd
    reader: CovarianceReader
    noise: DiscreteLaplace | DiscreteGaussian
    costs: tuple[int, ...]

    @classmethod
    def of_crowd(cls, study: StudyDefinition, question: ShapeQuestion, crowd: ShapeCrowd) -> "CovariancePlan":
        """Plan and price it.

        Raises:
            NotApplicable: no person central or public is there.
            InternalFault: a charge exceeds an offer.
        """
        tilt = (question.tilt or 0) / MICRO
        # Products have half of the spread and half of the noise of a number: the weights of a mean serve.
        target = Target(variance=WORST_VARIANCE, tilt=tilt)
        groups = groups_of(crowd, of_each)
        weighing = weigh_public(groups, crowd.people, target, tilt, currency=study.noise)
        gaussian = study.noise is Currency.GAUSSIAN
        # An offer of mu^2 weighs sqrt(2) mu; a unit more, since discrete noise costs a little more.
        scale = (math.sqrt(2) * weighing.unit + 1 if gaussian else float(weighing.unit)) * GRID_SIZE
        scales = (scale, scale, scale / 2)
        noise = DiscreteGaussian(sigmas=scales) if gaussian else DiscreteLaplace(scales=scales)
        costs = added_up(
            crowd, central_costs(crowd, weighing.weights, lambda weight: pair_cost(weight, noise))
        )
        first, second = (study.of_measure(name).grid for name in question.pair)
        reader = CovarianceReader(
            weighing=weighing,
            scale=scale / GRID_SIZE / max(weighing.mass, 1),
            normal=gaussian,
            grids=(first, second),
        )
        return cls(crowd=crowd, reader=reader, noise=noise, costs=costs)

    @property
    def most(self) -> int:
        """The largest charge to a person."""
        return max(self.costs, default=0)

    @property
    def predicted_error(self) -> float:
        """Root mean square error [data's units]."""
        return self.reader.predicted_error

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval [range width squared]."""
        return self.reader.interval_width

    def charges(self) -> tuple[Charge, ...]:
        """What it costs each cohort, in the order of ids."""
        return charges_of(self.crowd, self.costs)

    def noise_json(self) -> str:
        """The noise, for the ledger."""
        return json.dumps(as_document(self.noise))

    def answer(self, counts: Mapping[int, Sequence[int]]) -> dict[str, object]:
        """Weigh the sums, add exact noise, read the result. Integers until the noise is in; draws entropy.

        Args:
            counts: For each cohort that takes part its people, the sums of both numbers [grid steps], and the
                sum of their products about the middles [2^-30 of a squared step].
        """
        first, second, products = self.noisy(counts)
        return self.reader.read((first, second, products))

    def noisy(self, counts: Mapping[int, Sequence[int]]) -> list[int]:
        """The three sums with exact noise. Draws entropy."""
        sums = [0, 0, 0]
        for weight, members in zip(self.reader.weighing.weights, self.crowd.members, strict=True):
            for cohort in members if weight else ():
                people, first, second, products = counts[cohort.id]
                own = (first - MIDDLE * people, second - MIDDLE * people, products)
                sums = [total + weight * one for total, one in zip(sums, own, strict=True)]
        return [total + error for total, error in zip(sums, draw(self.noise, queries=3), strict=True)]
