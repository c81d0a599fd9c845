"""Quantiles off noisy counts by level: cells, intervals against brute force, ties, and what is predicted."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from statistics import NormalDist

import numpy as np
import pytest

from app.accounting.shape_prices import tree_cost
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, Grid
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators.calibration import gaussian_weight
from app.estimators.quantile_tree import TreePlan
from app.estimators.tree_levels import FEW, Aim, Drawn, target_of
from app.estimators.weighing import Weighing, unit_of, weigh_public, weigh_secret

GRID = Grid(Decimal(0), Decimal(GRID_SIZE))
HALF = Fraction(1, 2)
QUARTILES = (Fraction(1, 4), HALF, Fraction(3, 4))
REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE


def plan_of(people: int, *quantiles: Fraction, free: bool = False, relation: Relation = REPLACE) -> TreePlan:
    groups = [Group(trust=Trust.PUBLIC if free else Trust.CENTRAL, epsilon=MICRO, count=people)]
    if relation is ADD:
        weighing = weigh_secret(groups, cap=MICRO, floor=MICRO)
    else:
        weighing = weigh_public(groups, people, target_of(0, quantiles=len(quantiles)), 0.0)
    return TreePlan(quantiles=quantiles, weighing=weighing, people=people, free=free)


def grown(plan: TreePlan, values: Sequence[int], noise: Sequence[Sequence[int]] = ()) -> list[Drawn]:
    """All levels for people of one weight, with this noise at the counts of each."""
    (weight,), drawn = plan.weighing.weights, list[Drawn]()
    for level in range(plan.levels):
        starts = plan.starts(drawn)
        counts = [0] * (len(starts) + 1)
        for value in values:
            counts[bisect_right(starts, value)] += weight
        if noise:
            counts = [count + noise[level][cell] for cell, count in enumerate(counts)]
        drawn.append(Drawn(starts=starts, counts=tuple(counts)))
    return drawn


@pytest.mark.parametrize("quantiles", [(HALF,), (Fraction(1, 1000),), QUARTILES])
@pytest.mark.parametrize(("relation", "people"), [(REPLACE, 50), (REPLACE, FEW), (ADD, 50)])
def test_cells_of_a_level_cut_the_grid_and_are_no_more_than_planned_whatever_the_noise(
    quantiles: tuple[Fraction, ...], relation: Relation, people: int
):
    rng = np.random.default_rng(1)
    plan = plan_of(people, *quantiles, relation=relation)
    assert plan.levels == (3 if relation is REPLACE and people < FEW else 5)
    for scale in (0, 1, 100, 10**6):
        for _ in range(20):
            noise = (rng.laplace(0, 1, (plan.levels, 64)) * scale * MICRO).astype(object)
            whole = [[int(one) for one in level] for level in noise]
            drawn = grown(plan, rng.integers(0, GRID_SIZE + 1, people).tolist(), whole)
            for level, one in enumerate(drawn):
                more = 0 if plan.layout.reach is None or level < plan.layout.last else 2 * len(quantiles)
                assert 1 <= len(one.starts) < plan.layout.cells(level, len(quantiles)) + more
                assert 0 < one.starts[0] <= one.starts[-1] <= GRID_SIZE
                assert all(first < second for first, second in pairwise(one.starts))
            found = plan.read(GRID, drawn)
            estimates = [one.estimate for one in found]
            assert estimates == sorted(estimates)
            for said in found:
                for ends in (said.interval, said.population_interval):
                    assert 0 <= ends.lower <= said.estimate <= ends.upper <= GRID_SIZE
                of_people, of_population = said.interval, said.population_interval
                assert of_population.lower <= of_people.lower <= of_people.upper <= of_population.upper


def test_where_no_one_pays_a_quantile_is_a_value_of_a_person_also_with_ties_and_at_both_ends():
    for values in ([7], [0, 0, GRID_SIZE], [5, 5, 5, 6], [3] * 9 + [GRID_SIZE - 1] * 2, list(range(11))):
        plan = plan_of(len(values), Fraction(1, 4), Fraction(3, 5), free=True)
        for q, one in zip((0.25, 0.6), plan.read(GRID, grown(plan, values)), strict=True):
            truth = float(np.quantile(values, q, method="inverted_cdf"))
            assert one.estimate == truth
            assert one.interval.lower <= truth <= one.interval.upper
            assert one.interval.upper - one.interval.lower <= 1


@pytest.mark.parametrize("relation", Relation)
def test_without_noise_an_interval_holds_the_quantile_for_all_small_data_and_one_off_it_does_not(
    relation: Relation,
):
    """All data of three people at five places; a claim about another rank is the control."""
    places = (0, GRID_SIZE // 7, GRID_SIZE // 7 + 1, GRID_SIZE // 2, GRID_SIZE)
    missed = 0
    for values in product(places, repeat=3):
        # As many as noise cannot hide.
        plan = plan_of(3000, Fraction(2, 5), relation=relation)
        (found,) = plan.read(GRID, grown(plan, [value for value in values for _ in range(1000)]))
        ordered = sorted(values)
        assert found.interval.lower <= ordered[1] <= found.interval.upper
        missed += not found.interval.lower <= ordered[2] <= found.interval.upper
    assert missed > 20


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("offer", [1, 40, 56_028, 4_001_800, 10**9])
@pytest.mark.parametrize("aim", Aim)
@pytest.mark.parametrize("people", [0, 10**9])
def test_all_levels_take_an_offer_and_no_more(
    people: int, aim: Aim, relation: Relation, currency: Currency, offer: int
):
    gaussian = currency is Currency.GAUSSIAN
    weight = gaussian_weight(offer) if gaussian else offer
    weighing = Weighing(
        relation=relation,
        weights=(weight,),
        mass=people * weight,
        cap=weight,
        floor=weight,
        currency=currency,
    )
    plan = TreePlan(quantiles=(HALF,), weighing=weighing, aim=aim)
    cost = tree_cost(weight, plan.noise, relation)
    assert cost <= offer
    assert cost >= (0.97 * offer - 1 if gaussian else offer * (1 - 1e-6))
    assert sum(plan.layout.parts) == sum(plan.layout.risks) == sum(plan.layout.spread_risks) == 1


def test_an_answer_is_predicted_to_be_better_the_more_people_and_the_fewer_quantiles_there_are():
    few, many, several = plan_of(100, HALF), plan_of(10_000, HALF), plan_of(10_000, *QUARTILES)
    assert many.predicted_error < several.predicted_error < few.predicted_error < 0.3
    assert 100 * many.predicted_error == pytest.approx(few.predicted_error, rel=0.05)
    assert plan_of(10, HALF, relation=ADD).predicted_error < 1
    unknown = TreePlan(quantiles=(HALF,), weighing=plan_of(10, HALF, relation=ADD).weighing)
    assert unknown.predicted_error == 1


def test_unequal_weights_of_a_secret_number_widen_an_interval_to_the_worst_case_of_both_ends():
    """Those below the quantile weigh 1 and those above 4, or the other way round: ranks .2 and .8."""
    values = [place * GRID_SIZE // 1000 for place in range(1000)]
    ends = {}
    for floor in (MICRO, 4 * MICRO):
        weighing = Weighing(
            relation=ADD, weights=(4 * MICRO,), cap=4 * MICRO, floor=floor, tilt=1.0, bias=1.0
        )
        plan = TreePlan(quantiles=(HALF,), weighing=weighing)
        (found,) = plan.read(GRID, grown(plan, values))
        ends[floor] = found.interval.lower / GRID_SIZE, found.interval.upper / GRID_SIZE
    assert 0.1 <= ends[MICRO][0] <= 0.2 < 0.8 <= ends[MICRO][1] <= 0.9
    assert 0.45 < ends[4 * MICRO][0] < ends[4 * MICRO][1] < 0.55


def levels_of(plan: TreePlan, last: Sequence[int], low: float = 0.0, high: float = 1.0) -> list[Drawn]:
    """Levels without noise of 1,000 people, evenly from `low` to `high`; of the last one `last` alone."""
    values = [round((low + (high - low) * place / 1000) * GRID_SIZE) for place in range(1000)]
    drawn = grown(plan, values)
    (weight,) = plan.weighing.weights
    assert len(last) == len(drawn[-1].counts) == 5
    return [*drawn[:-1], Drawn(starts=drawn[-1].starts, counts=tuple(weight * one for one in last))]


def test_an_estimate_takes_little_differences_of_neighboring_cells_for_noise_and_large_ones_for_values():
    plan = plan_of(1000, HALF)
    even = levels_of(plan, (485, 10, 10, 10, 485))
    starts = np.array(even[-1].starts) / GRID_SIZE
    read = {
        last: plan.read(GRID, levels_of(plan, last))[0].estimate / GRID_SIZE
        for last in ((485, 10, 10, 10, 485), (485, 7, 10, 13, 485), (300, 0, 0, 400, 300))
    }
    middle, noisy, tied = read.values()
    assert middle == pytest.approx(float(starts[1] + starts[2]) / 2, abs=0.001)
    # A line through the counts would cross at 8/10 of the second cell.
    line = float(starts[1] + 0.8 * (starts[2] - starts[1]))
    assert middle < noisy < middle + 0.75 * (line - middle)
    assert tied > float(starts[2] + 0.2 * (starts[3] - starts[2]))


def test_within_an_outer_cell_of_the_last_level_earlier_levels_tell_where_a_quantile_is():
    """All are between .4 and .6 of the range, and the last level finds 700 of them below its inner cells."""
    plan = plan_of(1000, HALF)
    missed = levels_of(plan, (700, 10, 10, 10, 270), 0.4, 0.6)
    (found,) = plan.read(GRID, missed)
    # A straight line from the lower end of the range has it at .36.
    assert 0.45 * GRID_SIZE < found.estimate <= missed[-1].starts[0]


@pytest.mark.parametrize("below", [True, False])
def test_where_a_level_contradicts_the_one_before_an_answer_does_not_reach_to_the_end_of_the_range(
    below: bool,
):
    """The last level finds all people beyond its inner cells, on a side that earlier levels rule out."""
    plan = plan_of(1000, HALF)
    last = (970, 10, 10, 10, 0) if below else (0, 10, 10, 10, 970)
    (found,) = plan.read(GRID, levels_of(plan, last, 0.4, 0.6))
    for ends in (found.interval, found.population_interval):
        assert 0.3 * GRID_SIZE < ends.lower <= found.estimate <= ends.upper < 0.7 * GRID_SIZE


@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(9, 10)])
def test_where_a_level_leaves_all_to_an_end_of_the_range_the_last_one_has_a_cell_more_on_that_side(
    q: Fraction,
):
    """The last level but one finds more and more people above its cells, and the others below."""
    plan = plan_of(1000, q)
    *drawn, _, _ = grown(plan, [place * GRID_SIZE // 1000 for place in range(1000)])
    starts, seen = plan.starts(drawn), []
    usual = plan_of(1000, q)
    vars(usual)["layout"] = replace(plan.layout, reach=None)
    middle = int(1000 * (1 - q))
    for above in range(middle - 90, middle + 90, 10):
        inner = [5] * (len(starts) - 1)
        counts = (1000 - sum(inner) - above, *inner, above)
        levels = [*drawn, Drawn(starts=starts, counts=tuple(count * MICRO for count in counts))]
        ends, usual_ends = plan.starts(levels), usual.starts(levels)
        assert set(ends) >= set(usual_ends)
        more = [-1 if end < usual_ends[0] else 1 for end in ends if end not in usual_ends]
        assert more == [math.copysign(1, one) for one in plan.beyond(float(q), levels)]
        assert plan.beyond(float(q), drawn) == usual.beyond(float(q), levels) == []
        seen.append(tuple(more))
    first, *_, last = seen
    assert (first, last) == ((-1,), (1,))
    assert seen == sorted(seen, key=sum)
    assert plan_of(FEW - 1, q).layout.reach is None


@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("relation", Relation)
def test_what_is_drawn_of_a_level_moves_by_its_price_at_most_and_all_else_follows_from_it(
    relation: Relation, currency: Currency
):
    """Every move of a person between up to five cells, or into one: the noise that hides it."""
    weight, public = unit_of(currency), relation is REPLACE
    dearest = Fraction(0)
    for cells in range(2, 6):
        starts = tuple(range(1, cells))
        company = [7 * weight] * cells

        def counts(mine: int | None, company: Sequence[int] = company) -> list[int]:
            return [count + weight * (cell == mine) for cell, count in enumerate(company)]

        mass = sum(company) + weight if public else 0
        weighing = Weighing(
            relation=relation, weights=(weight,), mass=mass, cap=weight, floor=weight, currency=currency
        )
        plan = TreePlan(quantiles=(HALF,), weighing=weighing)
        places = range(cells)
        neighbors = product(places, places) if public else product([None], places)
        for one, other in neighbors:
            seen = plan.drawn(starts, counts(one), (0,) * plan.sums(cells))
            assert seen.counts == tuple(counts(one))
            hiding = {
                noise
                for noise in product(range(-2 * weight, 3 * weight, weight), repeat=plan.sums(cells))
                if plan.drawn(starts, counts(other), noise) == seen
            }
            (noise,) = hiding
            sizes = plan.noise_of(plan.layout.last, cells)
            if isinstance(sizes, DiscreteGaussian):
                loss = Fraction(sum(move**2 for move in noise)) / (Fraction(sizes.sigmas[0]) ** 2 - 9)
                price = tree_cost(weight, DiscreteGaussian(sigmas=sizes.sigmas[:1]), relation)
            else:
                loss = Fraction(sum(map(abs, noise))) / Fraction(sizes.scales[0])
                price = tree_cost(weight, DiscreteLaplace(scales=sizes.scales[:1]), relation)
            assert loss * MICRO <= price
            dearest = max(dearest, loss * MICRO / price)
    assert dearest > 0.99


def test_where_presence_is_secret_nothing_but_counts_tells_who_is_there():
    """A person of another weight among them, below the cap: equal counts are read equally."""
    for floor in (MICRO // 2, MICRO):
        few, more = (
            TreePlan(
                quantiles=(HALF,),
                weighing=Weighing(relation=ADD, weights=weights, cap=4 * MICRO, floor=floor),
            )
            for weights in ((MICRO,), (MICRO, 3 * MICRO))
        )
        drawn = grown(few, [place * GRID_SIZE // 100 for place in range(100)])
        assert few.read(GRID, drawn) == more.read(GRID, drawn)
        assert few.starts(drawn[:2]) == more.starts(drawn[:2])


@pytest.mark.parametrize("people_told", [-50, 0, 20, 100])
def test_where_a_first_level_tells_of_hardly_any_people_the_later_ones_still_count(people_told: int):
    """100 people in the lower fifth of the range; noise of the first level alone, alike in all cells."""
    plan = plan_of(100, HALF, relation=ADD)
    values = [GRID_SIZE * place // 500 for place in range(100)]
    cells = len(plan.starts([])) + 1
    noise = [[(people_told - 100) * MICRO // cells] * cells, *([0] * 100 for _ in range(plan.levels - 1))]
    drawn = grown(plan, values, noise)
    (found,) = plan.read(GRID, drawn)
    assert sum(drawn[0].counts) <= people_told * MICRO
    assert found.estimate == pytest.approx(values[50], abs=GRID_SIZE / 100)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("before", [1, 2, 3, 4])
def test_the_rank_of_an_end_of_cells_has_the_noise_of_the_cells_on_both_sides_of_it(
    before: int, relation: Relation
):
    """Of K counts k lie below it: a variance of k (K - k) / K, or of (1 - q)^2 k + q^2 (K - k) with a sum."""
    cells, people, q, risk, place = 5, 10**7, 0.5, 0.01, 4
    groups = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    if relation is ADD:
        weighing = weigh_secret(groups, cap=MICRO, floor=MICRO, currency=Currency.GAUSSIAN)
        spread = (1 - q) ** 2 * before + q**2 * (cells - before)
    else:
        weighing = weigh_public(groups, people, target_of(0), 0.0, currency=Currency.GAUSSIAN)
        spread = before * (cells - before) / cells
    plan, mass = TreePlan(quantiles=(HALF,), weighing=weighing, people=people), people * weighing.weights[0]
    assert isinstance(plan.noise, DiscreteGaussian)
    far = NormalDist().inv_cdf(1 - risk) * plan.noise.sigmas[place] * math.sqrt(spread)
    for times, first in ((0.99, before - 1), (1.01, before)):
        off = round(times * far)
        counts = [0] * cells
        counts[before - 1], counts[before] = mass // 2 - off, off
        counts[-1] += mass - mass // 2
        level = Drawn(starts=(10, 20, 30, 40), counts=tuple(counts))
        found, _ = plan._hull((q, q), place, level, risk)
        assert found == (0, 10, 20, 30, 40)[first]
