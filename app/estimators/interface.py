"""The one interface that every estimator has.

An estimator turns the groups of a study into a `Plan`: integer queries on the grid, the noise to add
to them, the predicted error, and how to read the noisy integers. The release service evaluates the
queries on raw sums, `app.mechanisms` draws the noise, and `app.accounting.costs` prices every group
from queries and noise alone, so an estimator cannot understate what it costs.

The canonical linear estimator needs no float at all: give group g the weight W_g = its charge in
micro-epsilon, and add DiscreteLaplace(scale = UNIT_SCALE). Then a person of group g pays exactly W_g.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.errors import ServiceError
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import Noise
from app.core.plain import plain
from app.core.study import Currency, Relation
from app.estimators.expected import GUESS, ExpectedValues
from app.estimators.together import ErrorBound, KnownError

UNIT_SCALE = float(GRID_SIZE * MICRO)
"""Laplace scale at which a weight of W costs exactly W micro-epsilon: 2**30 * 10**6, an exact double."""

Coverage = Literal["exact", "at_least", "worst_case"]
"""Whether an interval has its stated coverage, at least that whatever the values are, or at least that for
values that are independent of each other."""


class NotApplicable(ServiceError):
    """The estimator has no answer for these groups (for example no central people for tcm_only)."""

    code = "estimator_not_applicable"


class NoContributions(NotApplicable):
    """No person who is asked has a contribution; replace_one studies alone say so."""

    code = "no_contributions"

    @classmethod
    def yet(cls) -> "NoContributions":
        """The error of a question whose people are none."""
        return cls("No person who is asked has a contribution now.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One optional parameter of an estimator, as it appears in a query string.

    Attributes:
        name: In digests of questions, and in answers.
        asked: Name in the query string, where that is another one.
        parse: Text to a JSON-able value; raises ValueError with the reason where it is refused.
        default: Value when it is not given.
        description: One line for the documentation.
    """

    name: str
    parse: Callable[[str], object]
    default: object
    description: str
    asked: str = ""

    @property
    def wire(self) -> str:
        """Name in the query string."""
        return self.asked or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and all public facts about the study.

    Attributes:
        relation: The promised neighboring relation.
        grid: The study's grid.
        cap: The most that any person may be charged for this release: the share of the study's epsilon.max,
            or the absolute cap if that is less [the study's currency: micro-epsilon, or 1e-6 of mu^2].
        floor: The least that any person offers who takes part: the share of the study's epsilon.min, or of
            the least that the question asks for, at most `cap` [the study's currency].
        delta: Of a study with Gaussian noise, at which epsilons are read; 0 with Laplace noise [1e-12].
        people: replace_one: people with a live contribution, of any trust. add_remove_one: None.
        expected_size: add_remove_one: people to predict for, as if all weighed the most; from the caller's
            guess or from published noisy counts. None if neither.
        sizes: add_remove_one: the same for each label of the question's attribute; empty where none is known.
        variance: replace_one: what the last release says that the population's variance is at most, for
            weights and predictions, never for intervals [range width squared]. None where none said so.
        expected: The values to predict errors for, never weights or intervals, see `app.estimators.expected`.
        tilt: How far the mean of people who weigh much may differ from that of people who weigh little, in
            [0, 1] [range widths].
        share: For which share weights are chosen and errors predicted, where offers and noise are those of
            share 1 [ppm]: see `app.services.statistics.steps`.
        together: How many answers, this one among them, are read together; the risk that the bound on a
            variance is too low is shared among them.
        parameters: Value of every parameter that the estimator declares.
    """

    relation: Relation
    grid: Grid
    cap: int
    floor: int
    delta: int = 0
    people: int | None
    expected_size: float | None = None
    sizes: tuple[float, ...] = ()
    variance: float | None = None
    expected: ExpectedValues = GUESS
    tilt: float = 0.0
    share: int = MICRO
    together: int = 1
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def currency(self) -> Currency:
        """What people offer and pay in."""
        return Currency.at(self.delta)

    @property
    def louder(self) -> float:
        """How many times as large the deviation of noise is at the question's share as at share 1."""
        return self.currency.louder(self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One integer query on raw sums.

    Its value is the sum over groups of sum_weights[g] * (sum of grid points of g)
    + count_weights[g] * 2**GRID_BITS * (people in g) + square_weights[g] * (sum of `grid.square` over g).
    Empty square_weights are zeros.

    Weights on public groups cost nothing. Local groups get weight 0 here: their reports are already
    private and are combined in `Plan.conclude`.
    """

    sum_weights: tuple[int, ...]
    count_weights: tuple[int, ...]
    square_weights: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of groups; -1 where the tuples disagree about it."""
        size = len(self.sum_weights)
        return size if size == len(self.count_weights) and len(self.square_weights) in (0, size) else -1

    def value(self, totals: Sequence[int], counts: Sequence[int], squares: Sequence[int]) -> int:
        """What it comes to, for sums of grid points, people times 2**GRID_BITS, and sums of squares."""
        columns = ((self.sum_weights, totals), (self.count_weights, counts), (self.square_weights, squares))
        return sum(
            weight * summed
            for weights, sums in columns
            if any(weights)
            for weight, summed in zip(weights, sums, strict=True)
        )

    @property
    def terms(self) -> Iterable[tuple[int, int, int, int]]:
        """(group, sum weight, count weight, square weight), groups in ascending order."""
        squares = self.square_weights or (0,) * len(self.sum_weights)
        return zip(range(len(self.sum_weights)), self.sum_weights, self.count_weights, squares, strict=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseQuery:
    """A query on few of many groups: a thousand of these cost no more than one `Query`.

    Attributes:
        size: The number of groups.
        terms: (group, sum weight, count weight, square weight), groups in ascending order, each at most once.
    """

    size: int
    terms: tuple[tuple[int, int, int, int], ...]

    def value(self, totals: Sequence[int], counts: Sequence[int], squares: Sequence[int]) -> int:
        """See `Query.value`."""
        return sum(
            of_sum * totals[index] + of_count * counts[index] + of_squares * squares[index]
            for index, of_sum, of_count, of_squares in self.terms
        )

    @property
    def sum_weights(self) -> tuple[int, ...]:
        """Weight of each group's sum of grid points, zeros included."""
        weights = [0] * self.size
        for index, weight, _, _ in self.terms:
            weights[index] = weight
        return tuple(weights)

    @property
    def count_weights(self) -> tuple[int, ...]:
        """Weight of 2**GRID_BITS times each group's number of people, zeros included."""
        weights = [0] * self.size
        for index, _, weight, _ in self.terms:
            weights[index] = weight
        return tuple(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval in the data's unit, within the study's range."""

    level: float
    lower: float
    upper: float
    coverage: Coverage

    def moved(self, to: Callable[[float], float]) -> Self:
        """The interval between what both ends become."""
        return replace(self, lower=to(self.lower), upper=to(self.upper))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """An estimate with its accuracy, in one unit.

    Attributes:
        estimate: Never below 0 for what cannot be. A variance is 0 only if its interval is.
        standard_error: Standard deviation of the noise in it, to first order.
        interval: For the dataset: all people with a live contribution.
        population_interval: For the population they were drawn from; wider.
    """

    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval

    @property
    def root(self) -> "Statistic":
        """The standard deviation of which this is the variance."""
        estimate, error = math.sqrt(self.estimate), math.sqrt(self.standard_error)
        if estimate > error / 2:
            error = self.standard_error / (2 * estimate)
        return Statistic(
            estimate=estimate,
            standard_error=error,
            interval=self.interval.moved(math.sqrt),
            population_interval=self.population_interval.moved(math.sqrt),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """The answer read from noisy integers. Everything in it is post-processing.

    Attributes:
        estimate: The mean, clipped to the range [data's unit].
        standard_error: Standard deviation of the noise in the estimate [data's unit].
        interval: For the mean of the dataset: all people with a live contribution, within the question's
            tilt.
        population_interval: For the mean of the population they were drawn from; wider.
        details: Further noisy facts, JSON-able, such as the noisy count.
        variance: That of the values, where the second moment was asked for [data's unit squared].
        error: What intervals at other levels, and together with other answers, are made of; None where it
            has no such form.
        anytime: As `interval`, for all steps of the question at once, see `app.estimators.anytime`; it holds
            `interval`. None of an answer without steps.
    """

    estimate: float
    standard_error: float
    interval: Interval
    population_interval: Interval
    details: Mapping[str, Any] = field(default_factory=dict)
    variance: Statistic | None = None
    error: KnownError | None = None
    anytime: Interval | None = None

    def numbers(self) -> dict[str, Any]:
        """What it says of the mean, as JSON."""
        names = ("estimate", "standard_error", "interval", "population_interval")
        return {name: plain(getattr(self, name)) for name in names}

    def spread(self) -> dict[str, Any]:
        """Variance and standard deviation as JSON; empty where nothing is known of them."""
        if self.variance is None:
            return {}
        return {"variance": plain(self.variance), "sd": plain(self.variance.root)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """What an answer is planned to miss by, in its own unit, where values have the variance that is assumed.

    Attributes:
        error: Root mean square error about the dataset.
        half_width: Half of the interval for the dataset; None where people decide it, and are secret.
        population_error, population_half_width: The first two about the population that people were drawn
            from; None where they are not predicted.
        root_error: Of a variance, that of the standard deviation [the root of the unit].
        anytime_half_width: Half of the interval that holds at all steps; None of an answer without steps.
    """

    error: float
    half_width: float | None
    population_error: float | None = None
    population_half_width: float | None = None
    root_error: float = math.inf
    anytime_half_width: float | None = None

    @property
    def root(self) -> "Accuracy":
        r"""Of the standard deviation.

        Of an interval the most that half of it can be: :math:`|\sqrt a - \sqrt b| \le \sqrt{|a - b|}`.
        """
        half = None if self.half_width is None else math.sqrt(self.half_width / 2)
        return Accuracy(error=self.root_error, half_width=half)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """What a linear plan of one query rests on beside its weights: all that is needed to answer it by parts.

    Attributes:
        reports: Whether it weighs local reports.
        attached: Whether public people weigh in proportion to the central part; otherwise they are weighed
            anew.
        steering: The variance by which parts are weighed [range width squared].
        variance, expected_variance: See `app.estimators.linear.linear_plan`.
        shrinkage: The factor for some sum of squared weights [1], variance of the noise and bias [range
            widths].
    """

    reports: bool
    attached: bool
    steering: float
    variance: float
    expected_variance: float
    shrinkage: Callable[[float, float, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Price, accuracy and procedure of one release. Depends on no raw value.

    Attributes:
        queries: What to compute on raw sums; weights align with the groups given to `plan`.
        noise: What to add to the queries' values.
        predicted_error: Root mean square error about the mean of the dataset, by which estimators are
            compared [data's unit]. replace_one: where values have the variance width^2 / 4, unless a smaller
            one is published or a parameter. add_remove_one: worst-case mean, at the expected size.
        conclude: Reads the noisy values of the queries.
        one_report: How far one local report can move the answer, see `farthest`; None without reports
            [data's unit].
        interval_width: Predicts the width of the interval for the mean of the dataset, at most that of the
            range [data's unit]; None counts as the whole range.
        anytime_width: Predicts the width of the interval that holds at all steps of the question [data's
            unit]; None of an answer without steps.
        conclude_within: Does so given, for each of the levels that are asked for, an upper bound on the
            variance of the population [range width squared] and the risk that it is too low. None where that
            would tell nothing.
        linear: What answers it by parts, see `app.estimators.combination`; None where it is asked as one.
        by_parts: Whether it reads noisy sums, and sums of squares, that were made before it.
        weighs: The most and the least that a person can weigh in two noisy sums whose ratio answers it, see
            `app.estimators.combined_ratio`; None of other plans [epsilon, or mu].
        bias: The part of predicted_error that is the same for all answers: of unequal weights, and of
            shrinking. The squares of both parts add up [data's unit].
        bound: Predicts what the error about the mean of the dataset does not exceed; None: the whole range.
        population_error, population_bound: As predicted_error and bound, about the mean of the population
            that people were drawn from; None where the number of people is secret.
        spread: Predicts what the variance misses by [data's unit squared]; None where the answer has none.
        labels: Of a question by an attribute: makes the plan of each label, in their order; None of one that
            has no answer.
    """

    queries: tuple[Query | SparseQuery, ...]
    noise: Noise
    predicted_error: float
    conclude: Callable[[Sequence[int]], Conclusion]
    one_report: float | None = None
    interval_width: Callable[[], float] | None = None
    anytime_width: Callable[[], float] | None = None
    conclude_within: Callable[[Sequence[int], Sequence[tuple[float, float]]], Conclusion] | None = None
    linear: Linear | None = None
    by_parts: bool = False
    weighs: tuple[float, float] | None = None
    bias: float = 0.0
    bound: Callable[[], ErrorBound] | None = None
    population_error: float | None = None
    population_bound: Callable[[], ErrorBound] | None = None
    spread: Callable[[], Accuracy] | None = None
    labels: "tuple[Callable[[], Plan] | None, ...]" = ()

    @property
    def has_variance(self) -> bool:
        """Whether the second moment is asked for."""
        return self.by_parts or any(of_squares for query in self.queries for *_, of_squares in query.terms)


def made(plan: Plan) -> Callable[[], Plan]:
    """A plan that is there already, for `Plan.labels`."""
    return lambda: plan


class Estimator(Protocol):
    """One named way to a mean.

    Attributes:
        name: As in the query string.
        version: Grows whenever the distribution of answers changes.
        relation: The neighboring relation under which it is private.
        parameters: What it takes beside share and epsilon.
        summary: One line for people.

    One that adds Gaussian noise where the question's currency asks for it says so with
    `currencies: ClassVar[frozenset[Currency]]`; others answer in studies with Laplace noise only.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    relation: ClassVar[Relation]
    parameters: ClassVar[tuple[Parameter, ...]]
    summary: ClassVar[str]

    def plan(self, groups: Sequence[Group], question: Question) -> Plan:
        """Plan a release.

        Args:
            groups: All groups of the study, also those that do not take part (they count as people
                of the dataset). In add_remove_one studies for a plan only: assumed groups.
            question: What is asked.

        Raises:
            NotApplicable: there is no answer for these groups.
        """
