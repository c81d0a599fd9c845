"""What a draw of each mechanism costs, and what a release by each estimator costs, without a database."""

import time
from collections.abc import Callable
from decimal import Decimal

from dither.device.response import respond

from app.accounting.costs import group_costs
from app.core.cohort import Group, Reports
from app.core.epsilon import MICRO
from app.core.errors import ServiceError
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators import registry
from app.estimators.interface import UNIT_SCALE, Estimator, Question
from app.mechanisms.draw import draw
from app.mechanisms.hourglass import hourglass
from benchmarks.report import Ratio
from dither_research.estimators import ESTIMATORS

SIZES = (10, 1_000, 4_000)
QUICK_SIZES = (10,)


def run(*, quick: bool) -> list[Ratio]:
    """Draws beside one of discrete Laplace noise, releases beside one by `uniform`."""
    return [*draws(100 if quick else 1_000), *releases(QUICK_SIZES if quick else SIZES, 1 if quick else 3)]


def draws(number: int) -> list[Ratio]:
    """Microseconds a draw."""
    laplace = DiscreteLaplace(scales=(UNIT_SCALE,))
    gaussian = DiscreteGaussian(sigmas=(4.5 * GRID_SIZE,))
    pair = hourglass(GRID_SIZE, MICRO)
    mechanisms: dict[str, Callable[[], object]] = {
        "discrete gaussian": lambda: draw(gaussian, queries=1),
        "hourglass pair": lambda: draw(pair, queries=2),
        "randomized response of 5": lambda: respond(0, 5, MICRO),
    }
    results = []
    for name, mechanism in mechanisms.items():
        rounds = [
            (_microseconds(mechanism, number), _microseconds(lambda: draw(laplace, queries=1), number))
            for _ in range(3)
        ]
        results.append(
            Ratio(
                section="mathematics",
                name=f"a draw: {name}",
                unit="us",
                subject=[subject for subject, _ in rounds],
                baseline=[baseline for _, baseline in rounds],
                better="lower",
                note="mathematics: a draw of exact noise beside one of discrete Laplace noise",
            )
        )
    return results


def _microseconds(work: Callable[[], object], number: int) -> float:
    started = time.perf_counter()
    for _ in range(number):
        work()
    return (time.perf_counter() - started) / number * 1e6


def releases(sizes: tuple[int, ...], rounds: int) -> list[Ratio]:
    """Releases a second: plan, price, noise, answer; as many groups of distinct epsilons as cohorts."""
    uniform = ESTIMATORS["uniform"]
    results = []
    for size in sizes:
        for estimator in ESTIMATORS.values():
            rates = [(_rate(estimator, size), _rate(uniform, size)) for _ in range(rounds)]
            results.append(
                Ratio(
                    section="mathematics",
                    name=f"releases by {estimator.name}, {size:,} cohorts",
                    unit="1/s",
                    subject=[subject for subject, _ in rates],
                    baseline=[baseline for _, baseline in rates],
                    note="mathematics: plan, price, noise and answer in one process, beside uniform",
                )
            )
    return results


def _rate(estimator: Estimator, size: int) -> float:
    add_remove = estimator.relation is Relation.ADD_REMOVE_ONE
    groups = _groups(size, local=not add_remove)
    question = Question(
        relation=estimator.relation,
        grid=Grid(Decimal(0), Decimal(1)),
        cap=MICRO,
        floor=MICRO // 10,
        people=None if add_remove else sum(group.count for group in groups),
        expected_size=100.0 * size if add_remove else None,
    )
    started = time.perf_counter()
    plan = estimator.plan(groups, registry.for_estimator(estimator, question))
    group_costs(plan.queries, plan.noise, estimator.relation, groups)
    noise = draw(plan.noise, queries=len(plan.queries))
    try:
        plan.conclude([GRID_SIZE * MICRO * 1000 + error for error in noise])
    except ServiceError as error:
        raise RuntimeError(f"{estimator.name} has no answer") from error
    return 1 / (time.perf_counter() - started)


def _groups(size: int, *, local: bool) -> list[Group]:
    central = [
        Group(trust=Trust.CENTRAL, epsilon=MICRO // 10 + number * 200, count=100) for number in range(size)
    ]
    if not local:
        return central
    reports = Reports(
        mechanism=LocalMechanism.LAPLACE, total=500 * GRID_SIZE, total_squares=3_000 * GRID_SIZE**2
    )
    return [*central, Group(trust=Trust.LOCAL, epsilon=MICRO, count=1000, reports=reports)]
