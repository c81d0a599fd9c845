"""What is read at every level at once is what is read at each one by itself."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, Grid
from app.core.study import Currency, Relation, Trust
from app.estimators import confidence, quantile_tables, quantiles, registry
from app.estimators.every_level import at_every_level, interval_of, once
from app.estimators.interface import Interval, Question
from app.estimators.moments import with_second_moment
from app.estimators.quantile_tree import TreePlan
from app.estimators.shares import SharesPlan
from app.estimators.shares import target_of as shares_target
from app.estimators.together import ErrorBound
from app.estimators.tree_levels import target_of
from app.estimators.weighing import Weighing, weigh_public, weigh_secret
from tests.unit.estimators.test_quantile_tree import grown

GRID = Grid(Decimal(0), Decimal(100))
EPSILONS = [MICRO // 4, MICRO // 2, MICRO]

Read = Callable[[], Any]
Fresh = Callable[[], Read]
"""What reads the same noisy numbers with a plan that nothing was read by."""


def weighing(relation: Relation, currency: Currency, target: Any, epsilons: Sequence[int]) -> Weighing:
    groups = [Group(trust=Trust.CENTRAL, epsilon=epsilon, count=40) for epsilon in epsilons]
    if relation is Relation.REPLACE_ONE:
        return weigh_public(groups, 40 * len(groups), target, 0.05, currency=currency)
    return weigh_secret(groups, cap=max(epsilons), floor=min(epsilons), currency=currency, tilt=0.05)


def tree(relation: Relation, currency: Currency, epsilons: Sequence[int], rng: np.random.Generator) -> Fresh:
    ranks = (Fraction(1, 4), Fraction(1, 2))
    weighed = weighing(relation, currency, target_of(0.05, currency, 2), epsilons)
    of_one = replace(weighed, weights=(max(weighed.weights),))
    values = rng.integers(0, GRID_SIZE, 40 * len(epsilons)).tolist()
    scale = float(max(weighed.weights)) * 4
    noise = [[int(one) for one in rng.laplace(0, scale, 64)] for _ in range(16)]
    drawn = grown(TreePlan(quantiles=ranks, weighing=of_one), values, noise)

    def fresh() -> Read:
        plan = TreePlan(quantiles=ranks, weighing=weighed)
        return lambda: list(plan.read(GRID, drawn))

    return fresh


def shares(
    relation: Relation, currency: Currency, epsilons: Sequence[int], rng: np.random.Generator
) -> Fresh:
    weighed = weighing(relation, currency, shares_target(5, 0.05, currency), epsilons)
    heavy = float(max(weighed.weights))
    counts = [int(heavy * one) for one in rng.integers(0, 40, 5) + rng.laplace(0, 3, 5)]
    return lambda: lambda: SharesPlan(bins=5, weighing=weighed).read(counts)


def mean(name: str, epsilons: Sequence[int], rng: np.random.Generator) -> Fresh:
    estimator = registry.ESTIMATORS[name]
    public = estimator.relation is Relation.REPLACE_ONE
    groups = [Group(trust=Trust.CENTRAL, epsilon=epsilon, count=40) for epsilon in epsilons]
    question = Question(
        relation=estimator.relation,
        grid=GRID,
        cap=max(epsilons),
        floor=min(epsilons),
        people=40 * len(groups) if public else None,
        expected_size=None if public else 40.0 * len(groups),
        tilt=0.05,
    )
    asked = registry.for_estimator(estimator, question)
    noise = rng.laplace(0, 5, 3)

    def fresh() -> Read:
        plan = estimator.plan(groups, asked)
        if public:
            plan = with_second_moment(plan, groups, asked)
        # As if each person stood at .3 of the range.
        sums = [group.count * GRID_SIZE * 3 // 10 for group in groups]
        whole = [group.count * GRID_SIZE for group in groups]
        squares = [group.count * GRID_SIZE // 10 for group in groups]
        values = [
            query.value(sums, whole, squares) + int(off * MICRO * GRID_SIZE)
            for query, off in zip(plan.queries, noise, strict=False)
        ]
        return lambda: plan.conclude(values)

    return fresh


CASES: dict[str, Callable[[np.random.Generator], Fresh]] = {
    **{
        f"{kind.__name__}, {relation}, {currency}, {len(epsilons)}": partial(
            kind, relation, currency, epsilons
        )
        for kind in (tree, shares)
        for relation in Relation
        for currency in Currency
        for epsilons in (EPSILONS, EPSILONS[:1])
    },
    **{f"mean, {name}": partial(mean, name, EPSILONS) for name in registry.ESTIMATORS},
}


def ends(found: Any, level: float) -> Iterator[tuple[float, float]]:
    """All that differs from level to level, in one order."""
    if isinstance(found, Interval | ErrorBound):
        others = getattr(found, "others", ())
        if others and level != confidence.LEVEL:
            yield others[confidence.OTHERS.index(level)]
        elif isinstance(found, Interval):
            yield found.lower, found.upper
        else:
            yield found.normal, found.risk
    elif is_dataclass(found):
        for one in fields(found):
            yield from ends(getattr(found, one.name), level)
    elif isinstance(found, dict):
        for value in found.values():
            yield from ends(value, level)
    elif isinstance(found, list | tuple):
        for value in found:
            yield from ends(value, level)


@pytest.mark.parametrize("name", CASES)
def test_each_level_has_the_ends_that_it_has_by_itself_to_the_last_bit(name: str) -> None:
    for seed in range(3):
        fresh = CASES[name](np.random.default_rng(seed))
        together = at_every_level(fresh())
        for level in reversed(confidence.LEVELS):
            # Nothing that was computed before is left.
            quantiles.ErrorLaw._quantile.cache_clear()
            quantiles._inverted.cache_clear()
            quantile_tables._table.cache_clear()
            with confidence.at(level):
                alone = fresh()()
            own, found = list(ends(alone, level)), list(ends(together, level))
            assert own
            assert found == own


def test_a_method_is_computed_once_for_the_same_arguments_and_object() -> None:
    calls = []

    class Plan:
        @once
        def doubled(self, number: int) -> int:
            calls.append(number)
            return 2 * number

    one, other = Plan(), Plan()
    assert [one.doubled(1), one.doubled(1), one.doubled(2), other.doubled(1)] == [2, 2, 4, 2]
    assert calls == [1, 2, 1]


def test_what_is_made_at_all_levels_is_read_once_and_beside_it_anything_else_at_each() -> None:
    reads = []

    def read() -> list[Interval]:
        reads.append(confidence.levels())
        together = interval_of([(1 - level, level) for level in confidence.levels()], "exact")
        if len(reads) == 1:
            return [together]
        level = confidence.level()
        return [together, Interval(level=level, lower=1 - level, upper=level, coverage="exact")]

    (alone,) = at_every_level(read)
    assert reads == [(confidence.LEVEL, *confidence.OTHERS)]
    first, second = at_every_level(read)
    assert reads[2:] == [(level,) for level in confidence.OTHERS]
    assert first == second == alone
    for level in confidence.LEVELS:
        assert [*ends(alone, level)] == [(1 - level, level)]
