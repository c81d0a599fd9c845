"""What `dither audit privacy` looks at: the product's own noise on worst-case neighbors, as a black box.

A `Subject` draws outputs on two neighboring inputs and sorts them into cells that were fixed beforehand;
`dither_research.audit_bounds` bounds from below what they cost. Controls with a planted bug are in
`privacy_controls`. A subject that passes is not thereby proved private; that is for the prices.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from dither.device.exact import below
from dither.device.gaussian import epsilon_at
from dither.device.response import respond
from numpy.typing import NDArray

from app.accounting.costs import Weights, group_costs
from app.core.cohort import Group, Reports
from app.core.epsilon import DELTA_UNIT, MICRO, epsilon_of
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, MIDDLE, Grid, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.core.study import Currency, LocalMechanism, Relation, Trust
from app.estimators import registry
from app.estimators.interface import UNIT_SCALE, Estimator, NotApplicable, Plan, Query, Question
from app.mechanisms.draw import draw
from app.mechanisms.entropy import system_bits
from app.mechanisms.gaussian import draw_gaussian
from app.mechanisms.hourglass import hourglass
from dither_research.audit_bounds import audited_epsilon
from dither_research.baselines.sampling import inclusion_of, plan_costs
from dither_research.estimators import ESTIMATORS

Cells = NDArray[np.int64]

EPSILON = MICRO
"""What every subject claims, or close to it [micro-epsilon]: there an audit sees most."""

DELTA = 1_000_000
"""Of Gaussian noise [1e-12]."""

STEPS = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
"""Edges of the cells, in units of what the person moves the output by: where densities may jump."""

WIDE_STEPS = np.linspace(-20, 20, 41)
"""The same for Gaussian noise, whose loss is in its tails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Something that claims to be private.

    Attributes:
        name: What it is.
        claimed: The epsilon it claims [1].
        delta: The delta it claims [1].
        outputs: Draws this number of outputs on each of two neighbors, as cells.
        planted: Whether it has a bug that the audit must find.
        effort: How many times the usual number of draws it takes to see anything, or is worth.
    """

    name: str
    claimed: float
    outputs: Callable[[int], tuple[Cells, Cells]]
    delta: float = 0.0
    planted: bool = False
    effort: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the audit says of one subject.

    Attributes:
        name, claimed, delta, planted: The subject's.
        audited: Lower bound on its epsilon; above the truth with probability at most 1e-6, of a planted bug
            with `ATTEMPTS` times that.
    """

    name: str
    claimed: float
    delta: float
    planted: bool
    audited: float

    @property
    def exceeded(self) -> bool:
        """Whether it provably costs more than it claims."""
        return self.audited > self.claimed

    @property
    def as_expected(self) -> bool:
        """Controls must be caught, everything else must not."""
        return self.exceeded == self.planted


ATTEMPTS = 4
"""How often a planted bug is looked for, each time with twice the draws of the time before."""


def judge(subject: Subject, draws: int) -> Verdict:
    """Audit one subject with `draws` draws on either neighbor, times its effort.

    A planted bug that is not caught is looked for again with twice the draws, `ATTEMPTS` times in all: a
    bound that is only two standard deviations above the claim misses one time in forty, and two bugs of
    forty are as faint as that. What has no bug passes for one with probability at most `ATTEMPTS` x 1e-6.
    """
    for attempt in range(ATTEMPTS if subject.planted else 1):
        first, second = subject.outputs(round(draws * subject.effort) << attempt)
        audited = audited_epsilon(first, second, delta=subject.delta).epsilon
        if audited > subject.claimed:
            break
    return Verdict(
        name=subject.name,
        claimed=subject.claimed,
        delta=subject.delta,
        planted=subject.planted,
        audited=audited,
    )


def cells(outputs: NDArray[np.float64], units: NDArray[np.float64], steps: NDArray[np.float64]) -> Cells:
    """Cells of outputs of shape (draws, queries): a grid of steps in each query, in units of its own."""
    label = np.zeros(outputs.shape[0], dtype=np.int64)
    for column, unit in zip(outputs.T, units, strict=True):
        label = label * (steps.size + 1) + np.digitize(column / unit, steps)
    return label


def subjects() -> Iterator[Subject]:
    """Every mechanism and every estimator of the product."""
    yield from mechanism_subjects()
    for estimator in ESTIMATORS.values():
        yield estimator_subject(estimator)


def mechanism_subjects() -> Iterator[Subject]:
    """The noise itself, and randomized response."""
    one = (Query(sum_weights=(1,), count_weights=(0,)),)
    pair = (Query(sum_weights=(1,), count_weights=(0,)), Query(sum_weights=(-1,), count_weights=(1,)))
    laplace = DiscreteLaplace(scales=(float(GRID_SIZE),))
    gaussian = DiscreteGaussian(sigmas=(4.5 * GRID_SIZE,))
    yield _noise_subject("discrete laplace", one, laplace, Relation.REPLACE_ONE, [GRID_SIZE])
    yield moments_subject("mean and second moment", MIDDLE)
    yield gaussian_moments_subject("mean and second moment, gaussian", 3)
    yield _noise_subject("discrete gaussian", one, gaussian, Relation.REPLACE_ONE, [GRID_SIZE])
    yield gaussian_answers_subject("gaussian answers together", epsilon_at)
    both = hourglass(GRID_SIZE, EPSILON)
    halves = [GRID_SIZE // 2, GRID_SIZE // 2]
    yield _noise_subject("hourglass", pair, both, Relation.ADD_REMOVE_ONE, halves)
    for size in (2, 5):
        yield Subject(
            name=f"randomized response of {size}", claimed=EPSILON / MICRO, outputs=_responses(size)
        )


def moments_subject(name: str, about: int, *, planted: bool = False) -> Subject:
    """A mean beside its second moment, at the mean's price, on the two ends of the range and beside them.

    Args:
        name: Of the subject.
        about: The grid point that squares are taken about; only about the middle they are free.
        planted: Whether it must be caught.
    """
    mean = Query(sum_weights=(1,), count_weights=(0,))
    moment = Query(sum_weights=(0,), count_weights=(0,), square_weights=(1,))
    noise = DiscreteLaplace(scales=(float(GRID_SIZE),) * 2)
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)
    (epsilon,) = group_costs((mean, moment), noise, Relation.REPLACE_ONE, [group])
    low, high = ((point, (point - about) ** 2 // GRID_SIZE) for point in (GRID_SIZE // 4, GRID_SIZE))
    return Subject(
        name=name, claimed=epsilon / MICRO, planted=planted, outputs=_shifted(noise, low, high, None)
    )


def gaussian_moments_subject(name: str, part: int, *, planted: bool = False) -> Subject:
    """A mean beside its second moment under Gaussian noise, at the mean's price, where both move most.

    Args:
        name: Of the subject.
        part: Which part of the mean's sigma the second moment has; a third is free.
        planted: Whether it must be caught.
    """
    # At this delta a few thousand draws tell twice the mu from the mu that was paid for.
    sigma, delta = 1.5 * GRID_SIZE, DELTA_UNIT // 10
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO * MICRO, count=1)
    mean = (Query(sum_weights=(1,), count_weights=(0,)),)
    alone = DiscreteGaussian(sigmas=(sigma,))
    (cost,) = group_costs(mean, alone, Relation.REPLACE_ONE, [group], Currency.GAUSSIAN)
    low, high = ((point, square(point)) for point in (3 * GRID_SIZE // 8, GRID_SIZE))
    return Subject(
        name=name,
        claimed=epsilon_of(cost, delta) / MICRO,
        delta=delta / DELTA_UNIT,
        planted=planted,
        outputs=_shifted(DiscreteGaussian(sigmas=(sigma, sigma / part)), low, high, None),
    )


def gaussian_answers_subject(
    name: str, told: Callable[[Fraction, int], int], *, planted: bool = False
) -> Subject:
    """Several answers with Gaussian noise about one person, at what their mu^2 is together.

    Args:
        name: Of the subject.
        told: The epsilon of mu^2 [1e-6] at a delta.
        planted: Whether it must be caught.
    """
    answers, sigma = 4, 4.5 * GRID_SIZE
    one = (Query(sum_weights=(1,), count_weights=(0,)),)
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO * MICRO, count=1)
    noise = DiscreteGaussian(sigmas=(sigma,))
    (cost,) = group_costs(one, noise, Relation.REPLACE_ONE, [group], Currency.GAUSSIAN)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        # Their mean is sufficient: it is all that tells the two values from each other.
        first, second = (
            np.array(draw_gaussian(sigma, draws * answers), dtype=np.float64)
            .reshape(draws, answers)
            .mean(axis=1, keepdims=True)
            for _ in range(2)
        )
        unit = np.array([GRID_SIZE], dtype=np.float64)
        return cells(first, unit, WIDE_STEPS), cells(second + GRID_SIZE, unit, WIDE_STEPS)

    return Subject(
        name=name,
        claimed=told(Fraction(answers * cost), DELTA) / MICRO,
        delta=DELTA / DELTA_UNIT,
        planted=planted,
        outputs=outputs,
    )


def _responses(categories: int) -> Callable[[int], tuple[Cells, Cells]]:
    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            np.array([respond(category, categories, EPSILON) for _ in range(draws)], dtype=np.int64)
            for category in (0, 1)
        )
        return first, second

    return outputs


def _noise_subject(
    name: str, queries: Sequence[Query], noise: Noise, relation: Relation, shift: Sequence[int]
) -> Subject:
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO * MICRO, count=1)
    delta = DELTA if isinstance(noise, DiscreteGaussian) else 0
    currency = Currency.GAUSSIAN if delta else Currency.LAPLACE
    (cost,) = group_costs(queries, noise, relation, [group], currency)
    return Subject(
        name=name,
        claimed=epsilon_of(cost, delta) / MICRO,
        delta=delta / DELTA_UNIT,
        outputs=_shifted(noise, [0] * len(shift), shift, None),
    )


def estimator_subject(estimator: Estimator) -> Subject:
    """One estimator on people of two epsilons, beside local reports and public data.

    The neighbors differ in one person of the group that pays most. Her loss is what the audit bounds: the
    noisy queries are everything that is published, since answers are post-processing.
    """
    plan, groups = _plan(estimator)
    costs = plan_costs(plan, estimator.relation, groups)
    chosen = max(range(len(groups)), key=lambda index: costs[index])
    weights = [_weights_of(query, chosen) for query in plan.queries]
    ends = [
        [a * point + b * GRID_SIZE + c * square(point) for a, b, c in weights] for point in (0, GRID_SIZE)
    ]
    absent = [0] * len(plan.queries)
    if estimator.relation is Relation.ADD_REMOVE_ONE:
        ends = [absent, max(ends, key=lambda end: sum(map(abs, end)))]
    inclusion = inclusion_of(plan)
    probability = None if inclusion is None else inclusion[chosen]
    return Subject(
        name=estimator.name,
        claimed=costs[chosen] / MICRO,
        outputs=_shifted(plan.noise, ends[0], ends[1], probability),
    )


def _plan(estimator: Estimator) -> tuple[Plan, list[Group]]:
    """A plan that puts noise on a person: with local and public people beside, or without."""
    central = [
        Group(trust=Trust.CENTRAL, epsilon=EPSILON // 2, count=100),
        Group(trust=Trust.CENTRAL, epsilon=EPSILON, count=100),
    ]
    reports = Reports(
        mechanism=LocalMechanism.LAPLACE, total=50 * GRID_SIZE, total_squares=900 * GRID_SIZE**2
    )
    others = [
        Group(trust=Trust.LOCAL, epsilon=EPSILON, count=100, reports=reports),
        Group(trust=Trust.PUBLIC, epsilon=0, count=10),
    ]
    add_remove = estimator.relation is Relation.ADD_REMOVE_ONE
    fallback: tuple[Plan, list[Group]] | None = None
    for groups in [central] if add_remove else [central + others, central]:
        question = Question(
            relation=estimator.relation,
            grid=Grid(Decimal(0), Decimal(1)),
            cap=EPSILON,
            floor=EPSILON // 2,
            people=None if add_remove else sum(group.count for group in groups),
            expected_size=200.0 if add_remove else None,
        )
        try:
            found = estimator.plan(groups, registry.for_estimator(estimator, question)), groups
        except NotApplicable:
            continue
        if any(any(_weights_of(query, 1)) for query in found[0].queries):
            return found
        # Nothing of any person's raw value is published; perhaps it is among fewer people.
        fallback = found
    if fallback is None:
        raise InternalFault(f"there are no people for whom {estimator.name} has a plan")
    return fallback


def _weights_of(query: Weights, group: int) -> tuple[int, int, int]:
    """The sum weight, the count weight and the square weight that a query gives to a group."""
    return next((term[1:] for term in query.terms if term[0] == group), (0, 0, 0))


def _shifted(
    noise: Noise, first: Sequence[int], second: Sequence[int], inclusion: Fraction | None
) -> Callable[[int], tuple[Cells, Cells]]:
    """Noise about two exact values of the queries; queries that the person does not move are left out."""
    moved = [index for index, (one, other) in enumerate(zip(first, second, strict=True)) if one != other]
    units = np.array([abs(second[index] - first[index]) for index in moved], dtype=np.float64)
    steps = WIDE_STEPS if isinstance(noise, DiscreteGaussian) else STEPS

    def outputs(draws: int) -> tuple[Cells, Cells]:
        if not moved:
            return np.zeros(draws, dtype=np.int64), np.zeros(draws, dtype=np.int64)
        results = []
        for values in (first, second):
            rows = np.array([_noisy(noise, values, moved, inclusion) for _ in range(draws)], dtype=np.float64)
            # Measured from the first neighbor's exact value, so that 0 and 1 are the two of them.
            sign = np.sign([second[index] - first[index] for index in moved])
            origin = np.array([first[index] for index in moved], dtype=np.float64)
            results.append(cells((rows - origin) * sign, units, steps))
        return results[0], results[1]

    return outputs


def _noisy(
    noise: Noise, values: Sequence[int], moved: Sequence[int], inclusion: Fraction | None
) -> list[int]:
    """The moved queries of one release. Independent noise is drawn for those only."""
    present = inclusion is None or below(inclusion.denominator, system_bits) < inclusion.numerator
    match noise:
        case DiscreteLaplace(scales=scales):
            drawn = draw(DiscreteLaplace(scales=tuple(scales[index] for index in moved)), queries=len(moved))
        case DiscreteGaussian(sigmas=sigmas):
            drawn = draw(DiscreteGaussian(sigmas=tuple(sigmas[index] for index in moved)), queries=len(moved))
        case _:
            every = draw(noise, queries=len(values))
            drawn = tuple(every[index] for index in moved)
    return [(values[index] if present else 0) + error for index, error in zip(moved, drawn, strict=True)]


def off_grid_subject() -> Subject:
    """Whether noisy values are integers tells nothing: they always are."""

    def outputs(draws: int) -> tuple[Cells, Cells]:
        noise = DiscreteLaplace(scales=(UNIT_SCALE,))
        first, second = (
            np.array(
                [not float(value + draw(noise, queries=1)[0]).is_integer() for _ in range(draws)],
                dtype=np.int64,
            )
            for value in (0, GRID_SIZE)
        )
        return first, second

    return Subject(name="answers off the grid", claimed=EPSILON / MICRO, outputs=outputs)
