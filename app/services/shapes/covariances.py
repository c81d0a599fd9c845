"""Covariance, correlation and lines of two numbers that a study asks each person for; plan and draw."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

from app.core.epsilon import MICRO
from app.core.study import Currency, Study, StudyDefinition
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.covariance import CovarianceReader, PairReader, PublicPair, SecretPair
from app.estimators.covariance_secret import SecretCovarianceReader
from app.estimators.second_moments import (
    NUMBERS,
    FiveSumsReader,
    MomentsReader,
    NineSumsReader,
    SecretMomentsReader,
)
from app.estimators.shares import Noisy
from app.estimators.weighing import Target, weigh_public
from app.mechanisms.draw import draw
from app.services.shapes.parameters import read_pair
from app.services.shapes.parts import Part, part_of
from app.services.shapes.plans import priced, weigh
from app.services.shapes.priced_plan import WeighedPlan
from app.services.shapes.questions import CORRELATION, COVARIANCE, NO_ONE_MEASURE, ShapeQuestion
from app.services.shapes.trees import Grown
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.questions import REGRESSION, Ask
from app.store import bins
from app.store import releases as store
from app.store.database import Connection


def of_each(offer: int) -> int:
    """What either number may take of an offer; the products cost nothing beside them, but for rounding."""
    return max(0, offer - 2) // 2


Expressions = Callable[[int, int], tuple[str, ...]]
"""What is summed of the coordinates of two measures, see `app.store.bins`."""

OfPublic = Mapping[Currency, tuple[type[PublicPair], Expressions]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPlan(WeighedPlan[Noisy]):
    """One question, priced, for one crowd.

    Attributes:
        plan: Reads them [data's units].
    """

    no_measure = NO_ONE_MEASURE
    labels_add_up = True

    numbers: ClassVar[int] = 1
    """How many an answer has."""

    public: ClassVar[OfPublic]
    """What reads the answer where the number of people is public, and what, by the noise."""

    secret: ClassVar[tuple[type[SecretPair], Expressions]]
    """What reads it where that number is secret, and what."""

    plan: PairReader

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        """See `ShapeEstimator`."""
        pair = read_pair(study, parameters, line=ask.statistic == REGRESSION)
        _, expressions = cls.secret if study.hides_people else cls.public[study.noise]
        summed = expressions(*map(study.measures.place, pair))
        return {"pair": pair, "summed": summed, "numbers": cls.numbers}

    @classmethod
    def of_crowd(
        cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd, part: Part = int
    ) -> "PairPlan":
        """See `ShapeEstimator`."""
        plan = cls._reader(study, question, crowd)
        costs, most = priced(crowd, plan)
        return cls(crowd=crowd, plan=plan, costs=costs, most=most)

    @classmethod
    def _reader(cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd) -> PairReader:
        first, second = (study.of_measure(name).grid for name in question.pair)
        if study.hides_people:
            secret, _ = cls.secret
            weighing = secret.weighed(weigh(study, question, crowd))
            return secret(weighing=weighing, grids=(first, second), people=question.size)
        public, _ = cls.public[study.noise]
        tilt = (question.tilt or 0) / MICRO
        # Products have half of the spread and half of the noise of a number: the weights of a mean serve.
        target = Target(variance=WORST_VARIANCE, tilt=tilt)
        weighing = weigh_public(
            part_of(crowd, of_each).groups, crowd.people, target, tilt, currency=study.noise
        )
        return public(weighing=weighing, grids=(first, second))

    @property
    def part_told(self) -> float:
        """Of the covariances there can be, the part that the interval takes."""
        return self.interval_width / (2 * self.plan.largest)

    def unit(self, study: StudyDefinition) -> float:
        """As above, in the unit of the answer."""
        return 2 * self.plan.largest * self.plan.unit

    def noisy(self, counts: Mapping[int, Sequence[int]], grown: Sequence[Grown] = ()) -> Noisy:
        """The weighed sums with exact noise, and no reports. Integers until it is in; draws entropy.

        Args:
            counts: For each cohort that takes part its people, and what `PairReader.parts` needs of them.
            grown: None: it has no `trees`.
        """
        parts = [
            [weight * part for part in self.plan.parts(*counts[cohort])]
            for cohort, weight in self.crowd.by_cohort(self.plan.weighing.weights)
            if weight
        ]
        errors = draw(self.plan.noise, queries=self.plan.sums)
        return [sum(column) for column in zip(errors, *parts, strict=True)], ()

    def read(self, *drawn: Noisy) -> dict[str, object]:
        """The answer; that for all people from what is drawn for each label."""
        return self.plan.read(*(sums for sums, _ in drawn))

    def of_labels(
        self,
        study: StudyDefinition,
        question: ShapeQuestion,
        crowd: Crowd,
        labels: "Sequence[tuple[Crowd, PairPlan | None]]",
    ) -> "PairPlan":
        """See `OneShape`."""
        weighed = [(one.people, plan.plan.weighing) for one, plan in labels if plan is not None]
        tilt = (question.tilt or 0) / MICRO
        return replace(self, plan=self.plan.of_labels(weighed, crowd.people, tilt))


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariancePlan(PairPlan):
    """A covariance."""

    name, answers = COVARIANCE, (COVARIANCE,)
    summary = "Noisy sums of two numbers and of their products, the products at no further price."
    parts_of_document = ("estimate", "interval", "population_interval", "means")
    public: ClassVar[OfPublic] = dict.fromkeys(Currency, (CovarianceReader, bins.pair))
    secret = SecretCovarianceReader, bins.pair


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelationPlan(PairPlan):
    """A correlation, and both lines."""

    name, answers = CORRELATION, (CORRELATION, REGRESSION)
    summary = "Noisy sums of two numbers, of their products and squares, at the price of a covariance."
    parts_of_document = (
        *("estimate", "interval", "population_interval"),
        *("r_squared", "r_squared_interval", "means", "lines"),
    )
    many_numbers = True
    numbers = NUMBERS
    public: ClassVar[OfPublic] = {
        Currency.LAPLACE: (NineSumsReader, bins.bernstein),
        Currency.GAUSSIAN: (FiveSumsReader, bins.moments),
    }
    secret = SecretMomentsReader, bins.bernstein

    @classmethod
    async def informed(cls, connection: Connection, study: Study, question: ShapeQuestion) -> ShapeQuestion:
        """See `ShapeEstimator`: of both numbers the variance that the last answer says, or guesses."""
        both = []
        for name in question.pair:
            last = await store.read_last_spread(connection, study.id, name)
            both.append(planning.expected_values(study.definition.of_measure(name), last, last))
        first, second = both
        return replace(
            question,
            spreads=(first.spread_in_pair, second.spread_in_pair),
            most=(first.most, second.most),
        )

    def told(self, study: StudyDefinition, question: ShapeQuestion) -> float:
        """As of every plan; before an answer told of a spread for the most that it ordinarily is."""
        most = replace(cast(MomentsReader, self.plan), expected=question.most)
        return super(CorrelationPlan, replace(self, plan=most)).told(study, question)

    @classmethod
    def _reader(cls, study: StudyDefinition, question: ShapeQuestion, crowd: Crowd) -> PairReader:
        reader = cast(MomentsReader, super(CorrelationPlan, cls)._reader(study, question, crowd))
        return replace(reader, expected=question.spreads)
