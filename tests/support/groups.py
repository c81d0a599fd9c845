"""Short ways to write groups and questions."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from app.core.cohort import Group, Reports
from app.core.grid import GRID_SIZE, Grid
from app.core.study import LocalMechanism, Relation, Trust
from app.estimators.interface import Plan, Question

UNIT_GRID = Grid(Decimal(0), Decimal(1))
WIDE_GRID = Grid(Decimal(-20), Decimal(60))


def micro(epsilon: float) -> int:
    """An epsilon in micro-epsilon, to the nearest."""
    return round(epsilon * 1_000_000)


def central(epsilon: float, count: int = 1, *, participates: bool = True) -> Group:
    return Group(trust=Trust.CENTRAL, epsilon=micro(epsilon), count=count, participates=participates)


def public(count: int = 1) -> Group:
    return Group(trust=Trust.PUBLIC, epsilon=0, count=count)


def local(epsilon: float, reports: Sequence[int]) -> Group:
    return Group(
        trust=Trust.LOCAL,
        epsilon=micro(epsilon),
        count=len(reports),
        reports=Reports(
            mechanism=LocalMechanism.LAPLACE,
            total=sum(reports),
            total_squares=sum(report * report for report in reports),
        ),
    )


def replace_one(
    groups: Sequence[Group],
    *,
    grid: Grid = UNIT_GRID,
    parameters: Mapping[str, object] | None = None,
    tilt: float = 0.0,
) -> Question:
    return Question(
        relation=Relation.REPLACE_ONE,
        grid=grid,
        cap=max((group.epsilon for group in groups if group.trust is Trust.CENTRAL), default=1),
        floor=1,
        people=sum(group.count for group in groups),
        tilt=tilt,
        parameters=parameters or {},
    )


def about_population(plan: Plan) -> float:
    """The error about the population that a plan of a replace_one study predicts."""
    assert plan.population_error is not None
    return plan.population_error


def add_remove_one(
    *,
    cap: float = 1.0,
    floor: float | None = None,
    grid: Grid = UNIT_GRID,
    expected_size: float | None = None,
) -> Question:
    return Question(
        relation=Relation.ADD_REMOVE_ONE,
        grid=grid,
        cap=micro(cap),
        floor=micro(cap if floor is None else floor),
        people=None,
        expected_size=expected_size,
    )


def query_values(plan: Plan, groups: Sequence[Group], sums: Sequence[int]) -> tuple[int, ...]:
    """The exact values of a plan's queries on sums of grid points, without noise."""
    return tuple(
        sum(weight * value for weight, value in zip(query.sum_weights, sums, strict=True))
        + GRID_SIZE * sum(w * g.count for w, g in zip(query.count_weights, groups, strict=True))
        for query in plan.queries
    )
