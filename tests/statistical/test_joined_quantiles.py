"""Quantiles of central people and searches together: errors of the parts and the whole, coverage, controls.

Each verdict is at five standard deviations, a false alarm in 3.5 million.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from dither.device.response import respond
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Currency, Trust
from app.estimators.quantile_tree import Quantile, TreePlan
from app.estimators.searched_ranks import Beside, searched_risk
from app.estimators.shares import UNIT
from app.estimators.tree_levels import target_of
from app.estimators.weighing import weigh_public
from app.sessions.response import Tally
from app.sessions.search import Depth, Mode, Search, Target, advance, make_rules
from app.sessions.searched import Searched
from tests.support.trees import grown

pytestmark = pytest.mark.statistical

Values = NDArray[np.int64]


def drawn(rng: np.random.Generator, law: str, people: int) -> Values:
    numbers = {
        "even": lambda: rng.random(people),
        "skewed": lambda: np.clip(rng.lognormal(-1.5, 0.6, people), 0, 1),
        "heavy": lambda: np.clip(rng.lognormal(-4.5, 0.8, people), 0, 1),
        "two heaps": lambda: np.where(rng.random(people) < 0.5, 0.2, 0.8) + 0.02 * rng.random(people),
    }[law]()
    return np.asarray(numbers * GRID_SIZE, dtype=np.int64)


def search(
    rng: np.random.Generator,
    values: Values,
    epsilon: int,
    *,
    quantile: float = 0.5,
    mode: Mode = Mode.USER_SPLIT,
    rounds: int | Depth = 6,
) -> Searched:
    """A search over people with these values. Coins are the operating system's, by the device's own code."""
    rules = make_rules(
        target=Target.QUANTILE,
        quantile=quantile,
        epsilon=epsilon,
        participants=values.size,
        mode=mode,
        rounds=rounds,
    )
    state, asked = Search(rules=rules), rng.integers(1, rules.rounds + 1, values.size)
    while not state.finished:
        there = values if mode is Mode.BUDGET_SPLIT else values[asked == state.round]
        yes = [respond(int(value), 2, rules.epsilon_per_answer) for value in there <= state.threshold]
        state = advance(state, Tally(answers=len(yes), positives=sum(yes)))
    found = Searched.of([state], people=values.size, reporting=0)
    assert found is not None
    return found


def planned(
    central: int, beside: Beside | None, tilt: float = 0, quantile: Fraction = Fraction(1, 2)
) -> TreePlan:
    """The plan for central people at epsilon 1, those who answered searches beside them."""
    groups = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=central)] if central else []
    noises = {}
    if beside is not None:
        noises[len(groups)] = beside.report(Currency.LAPLACE)
        groups.append(Group(trust=Trust.LOCAL, epsilon=0, count=beside.people))
    people = sum(group.count for group in groups)
    weighing = weigh_public(groups, people, target_of(tilt), tilt, noises)
    return TreePlan(quantiles=(quantile,), weighing=weighing, beside=beside, free=not central)


def answered(plan: TreePlan, values: Values) -> Quantile:
    """The answer, central people having these values."""
    people = [values, *[values[:0]] * (len(plan.weighing.weights) - 1)]
    (found,) = plan.read(UNIT, grown(plan, people))
    return found


def rank_error(found: Quantile, values: Values, quantile: float) -> float:
    """How far q lies from the ranks of the values beside an answer."""
    place = found.estimate * GRID_SIZE
    below, up_to = float((values < place - 0.5).mean()), float((values <= place + 0.5).mean())
    return max(0.0, below - quantile, quantile - up_to)


def above(first: Sequence[float], second: Sequence[float]) -> float:
    """By how many standard deviations the mean of the first is above that of the second, in pairs."""
    apart = np.subtract(first, second)
    return float(apart.mean() / (apart.std() / math.sqrt(apart.size)))


def errors_of(
    rng: np.random.Generator, law: str, central: int, local: int, runs: int
) -> dict[str, list[float]]:
    """Rank errors among all people, of the answer from the central part, from the search, and from both."""
    errors: dict[str, list[float]] = {"central": [], "local": [], "whole": []}
    for _ in range(runs):
        values = drawn(rng, law, central + local)
        beside = search(rng, values[central:], 2 * MICRO).beside(0.5)
        for part, plan, own in (
            ("central", planned(central, None), values[:central]),
            ("local", planned(0, beside), values[:0]),
            ("whole", planned(central, beside), values[:central]),
        ):
            errors[part].append(rank_error(answered(plan, own), values, 0.5))
    return errors


def test_the_whole_errs_less_than_both_parts_where_they_are_alike():
    """Means of .030, .025 and .018: the whole is five standard deviations below the better part."""
    errors = errors_of(np.random.default_rng(1), "even", 150, 400, 200)
    assert np.mean(errors["whole"]) < np.mean(errors["local"])
    assert np.mean(errors["whole"]) < np.mean(errors["central"])


def test_the_whole_errs_no_more_than_a_much_better_part_which_the_worse_one_does():
    pooled: dict[str, list[float]] = {"central": [], "local": [], "whole": []}
    for law in ("even", "skewed", "two heaps"):
        for part, errors in errors_of(np.random.default_rng(2), law, 60, 1000, 60).items():
            pooled[part] += errors
    assert above(pooled["whole"], pooled["local"]) < 5
    assert above(pooled["central"], pooled["local"]) > 5, "the control"


@pytest.mark.slow
def test_the_whole_errs_no_more_than_ten_thousand_central_people_do():
    """Beside as many who answered at epsilon 1, whose search alone errs seven times as much."""
    rng, people = np.random.default_rng(8), 10_000
    errors: dict[str, list[float]] = {"whole": [], "local": [], "central": []}
    for law in ("even", "skewed") * 60:
        values = drawn(rng, law, 2 * people)
        beside = search(rng, values[people:], MICRO, rounds=Depth.UNKNOWN_ALPHA).beside(0.5)
        plans = (planned(people, beside), planned(0, beside), planned(people, None))
        for kept, plan in zip(errors.values(), plans, strict=True):
            own = values[: people if plan.weighing.weights[0] else 0]
            kept.append(rank_error(answered(plan, own), values, 0.5))
    assert above(errors["whole"], errors["central"]) < 5
    assert above(errors["local"], errors["central"]) > 5, "the control"


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(0.5, 2))
def test_within_a_factor_of_two_the_whole_is_never_worse_than_the_better_part(a: float, b: float, k: float):
    whole = a * b * (a + k * k * b) / (a + k * b) ** 2
    weight = a / (a + k * b)
    assert whole == pytest.approx((1 - weight) ** 2 * a + weight**2 * b)
    assert whole <= min(a, b) * (1 + 1e-9)


def test_a_tilt_draws_the_whole_to_all_people_where_the_parts_differ():
    """A tenth of local people are above the median, not below: .008 with the tilt, .022 and .047 else."""
    rng, central, local = np.random.default_rng(3), 1500, 1500
    errors: dict[str, list[float]] = {"tilt": [], "no tilt": [], "central": []}
    for _ in range(60):
        values = drawn(rng, "even", central + local)
        low = central + np.flatnonzero(values[central:] < GRID_SIZE // 2)[: local // 10]
        values[low] += GRID_SIZE // 2
        beside = search(rng, values[central:], 2 * MICRO).beside(0.5)
        for kept, plan in zip(
            errors.values(),
            (planned(central, beside, 0.1), planned(central, beside), planned(central, None)),
            strict=True,
        ):
            kept.append(rank_error(answered(plan, values[:central]), values, 0.5))
    assert np.mean(errors["tilt"]) < np.mean(errors["no tilt"]) < np.mean(errors["central"])


@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("mode", Mode)
def test_intervals_cover_and_so_do_the_bounds_of_a_search(mode: Mode, quantile: Fraction):
    """For these people and the population; a tenth of it, and bounds for one round, do not."""
    rng, runs, q, central, local = np.random.default_rng(4), 100, float(quantile), 300, 600
    hits = dict.fromkeys(("dataset", "population", "a tenth", "bounds", "careless bounds"), 0)
    for _ in range(runs):
        values = drawn(rng, "even", central + local)
        found = search(rng, values[central:], 4 * MICRO, mode=mode, quantile=q)
        beside = found.beside(q)
        said = answered(planned(central, beside, quantile=quantile), values[:central])
        truth = float(np.quantile(values, q, method="inverted_cdf")) / GRID_SIZE
        low, high = said.interval.lower, said.interval.upper
        hits["dataset"] += low <= truth <= high
        hits["population"] += said.population_interval.lower <= q <= said.population_interval.upper
        hits["a tenth"] += abs(truth - (low + high) / 2) <= (high - low) / 20
        start = int(q * GRID_SIZE)
        places = beside.below([start])
        part = float((values[central:] < start).mean())
        hits["bounds"] += bool(places.least[0] <= part <= places.most[0])
        hits["careless bounds"] += all(
            part <= one.at_most(0.5) if one.threshold >= start else one.at_least(0.5) <= part
            for one in found.rounds
        )
    assert at_least(hits["dataset"], runs, 0.95)
    assert at_least(hits["population"], runs, 0.95)
    assert at_least(hits["bounds"], runs, 1 - 2 * searched_risk())
    assert not at_least(hits["a tenth"], runs, 0.95)
    assert not at_least(hits["careless bounds"], runs, 1 - 2 * searched_risk())


def at_least(hits: int, tries: int, level: float) -> bool:
    """Whether that many hits are what a chance of `level` or more gives."""
    return hits >= tries * level - 5 * math.sqrt(tries * level * (1 - level))


@pytest.mark.parametrize("law", ["even", "heavy", "two heaps"])
@pytest.mark.parametrize("mode", Mode)
def test_the_mean_square_of_a_search_is_at_most_twice_what_is_stated(law: str, mode: Mode):
    """At its own quantile and elsewhere; a variance that knows of no gaps between thresholds must fail."""
    rng, people = np.random.default_rng(7), 1000
    stated: list[float] = []
    plain: list[float] = []
    squares: list[float] = []
    for _ in range(60):
        values = drawn(rng, law, people)
        found = search(rng, values, 2 * MICRO, mode=mode, quantile=0.3)
        for quantile in (0.3, 0.7):
            parts = found.beside(quantile).below((np.sort(values) + 1).tolist()).parts
            at = int(np.searchsorted(parts, quantile))
            squares.append(max(0.0, at / people - quantile, quantile - (at + 1) / people) ** 2)
            stated.append(2 * found.variance(quantile))
            plain.append(2 / sum(one.precision(quantile) for one in found.rounds))
    assert above(squares, stated) < 0
    assert law != "two heaps" or above(squares, plain) > 5, "the control"
