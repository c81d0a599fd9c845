"""An interval lies within that of every higher level, also where noise leaves no value at a level."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.study import Currency, Relation, Trust
from app.estimators import confidence, registry
from app.estimators.covariance_secret import SecretCovarianceReader
from app.estimators.interface import Question
from app.estimators.pivot import fitting
from app.estimators.weighing import weigh_secret
from tests.support.groups import UNIT_GRID

Ends = tuple[float, float]
Read = Callable[[Sequence[float]], dict[str, Ends]]
"""Both intervals of an answer with these sums [epsilons times people], at the level that is asked for."""

FLOORS = (MICRO, MICRO // 4)

numbers = st.floats(-30, 60)


def variance(currency: Currency, floor: int, tilt: float) -> Read:
    estimator = registry.ESTIMATORS["transformed"]
    question = registry.for_estimator(
        estimator,
        Question(
            relation=Relation.ADD_REMOVE_ONE,
            grid=UNIT_GRID,
            cap=MICRO,
            floor=floor,
            people=None,
            expected_size=20.0,
            delta=1_000_000 if currency.is_gaussian else 0,
            tilt=tilt,
            parameters={"moments": 2},
        ),
    )
    plan = estimator.plan([Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)], question)
    unit = plan.conclude.__self__.pivot.unit / 2  # type: ignore[attr-defined]

    def read(sums: Sequence[float]) -> dict[str, Ends]:
        found = plan.conclude([int(one * unit) for one in sums[:3]]).variance
        assert found is not None
        assert found.interval is not None
        assert found.population_interval is not None
        for one in (found.interval, found.population_interval):
            assert one.lower <= found.estimate <= one.upper
        return {
            "dataset": (found.interval.lower, found.interval.upper),
            "population": (found.population_interval.lower, found.population_interval.upper),
        }

    return read


def covariance(currency: Currency, floor: int, tilt: float) -> Read:
    groups = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)]
    weighing = weigh_secret(groups, cap=MICRO, floor=floor, currency=currency, tilt=tilt)
    reader = SecretCovarianceReader(
        grids=(UNIT_GRID, UNIT_GRID), weighing=SecretCovarianceReader.weighed(weighing), people=20.0
    )
    unit = reader.pivot.unit

    def read(sums: Sequence[float]) -> dict[str, Ends]:
        found: dict[str, Any] = reader.read([int(one * unit) for one in sums])
        intervals = {name: found[f"{name}interval"] for name in ("", "population_")}
        for one in intervals.values():
            assert one["lower"] <= found["estimate"] <= one["upper"]
        return {name: (one["lower"], one["upper"]) for name, one in intervals.items()}

    return read


READERS: dict[str, Read] = {
    f"{make.__name__}, {currency}, {floor}, {tilt}": make(currency, floor, tilt)
    for make in (variance, covariance)
    for currency in Currency
    for floor in FLOORS
    for tilt in (0.0, 0.1)
}


@pytest.mark.parametrize("name", READERS)
@example(sums=(-2.7, 4.2, 17.8, 0.5))
@example(sums=(-7.9, 13.3, 35.0, 0.4))
@example(sums=(45.6, 1.7, -3.3, -5.1))
@example(sums=(-5.3, 1.7, 12.7, 0.3))
@example(sums=(-0.6, 9.6, -10.7, 10.1))
@example(sums=(1.6, -11.5, 8.8, 9.5))
@example(sums=(-1.4, 27.6, -22.2, 24.2))
@example(sums=(-11.4, 0.5, 7.6, 5.2))
@given(sums=st.tuples(numbers, numbers, numbers, numbers))
def test_each_interval_lies_within_those_of_higher_levels(name: str, sums: tuple[float, ...]) -> None:
    each = []
    for level in confidence.LEVELS:
        with confidence.at(level):
            each.append(READERS[name](sums))
    for below, above in pairwise(each):
        for kind, (lower, upper) in below.items():
            least, most = above[kind]
            assert least - 1e-9 <= lower <= upper <= most + 1e-9, kind


def test_where_a_level_leaves_nothing_the_next_higher_one_says_what_is_left() -> None:
    looked_at = []

    def ends() -> Ends | None:
        level = confidence.level()
        looked_at.append(level)
        return (0.3, 0.4) if level > 0.9 else None

    with confidence.at(0.8):
        assert fitting(ends, (0, 1)) == (0.3, 0.4)
    assert looked_at == [0.8, 0.9, 0.95]
    with confidence.at(0.9):
        assert fitting(lambda: None, (0, 1)) == (0, 1)
