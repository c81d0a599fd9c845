"""Histograms and quantiles on random data: coverage, size of errors, and controls that must fail.

Each verdict is a binomial test at five standard deviations, a false alarm in 3.5 million.
"""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE, Grid
from app.core.study import Currency, Relation, Trust
from app.estimators import shares
from app.estimators.cell_counts import CellCounts, WholeNumbers
from app.estimators.quantile_tree import TreePlan
from app.estimators.shares import UNIT, SharesPlan
from app.estimators.tree_levels import FIVE, THREE, Aim, Drawn, target_of
from app.estimators.weighing import Target, Weighing, weigh_public, weigh_secret
from app.mechanisms.draw import draw
from tests.support.trees import by_cell, grown

pytestmark = pytest.mark.statistical

LAPLACE, GAUSSIAN = Currency.LAPLACE, Currency.GAUSSIAN

OFFERS = (0.2, 1.0, 2.0)
SIZES = (300, 500, 200)
GROUPS = [
    Group(trust=Trust.CENTRAL, epsilon=round(offer * MICRO), count=size)
    for offer, size in zip(OFFERS, SIZES, strict=True)
]
PEOPLE = sum(SIZES)
TRUE = np.array([0.02, 0.4, 0.25, 0.33])
RUNS = 150


def weighing_of(relation: Relation, target: Target, currency: Currency = Currency.LAPLACE) -> Weighing:
    if relation is Relation.ADD_REMOVE_ONE:
        equal = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=size) for size in SIZES]
        return weigh_secret(equal, cap=MICRO, floor=MICRO, currency=currency)
    return weigh_public(GROUPS, PEOPLE, target, 0.0, currency=currency)


def at_least(hits: int, tries: int, level: float) -> bool:
    """Whether so many hits are what a chance of `level` or more gives."""
    return hits >= tries * level - 5 * math.sqrt(tries * level * (1 - level))


@pytest.mark.parametrize("true", [TRUE, np.array([0.1, 0.9])], ids=["four bins", "two bins"])
@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("relation", Relation)
def test_intervals_and_bands_cover_and_narrower_ones_do_not(
    relation: Relation, currency: Currency, true: NDArray[np.float64]
):
    rng, bins = np.random.default_rng(), true.size
    weighing = weighing_of(relation, shares.target_of(bins, 0, currency), currency)
    plan = SharesPlan(bins=bins, weighing=weighing)
    weights = np.array(weighing.weights)
    covered = dict.fromkeys(("dataset", "population", "jointly", "band", "sampled band", "narrow"), 0)
    for _ in range(RUNS):
        counts = np.array([rng.multinomial(size, true) for size in SIZES])
        dataset = counts.sum(axis=0) / PEOPLE
        exact = (weights @ counts).tolist()[-plan.drawn :]
        noises = draw(plan.noise, queries=plan.drawn)
        read = plan.read([value + noise for value, noise in zip(exact, noises, strict=True)])

        def holds(intervals, truth, factor=1.0):
            return [
                one.lower <= value <= one.upper
                if factor == 1
                else abs(value - (one.lower + one.upper) / 2) <= factor * (one.upper - one.lower) / 2
                for one, value in zip(intervals, truth, strict=True)
            ]

        covered["dataset"] += sum(holds([one.interval for one in read.bins], dataset))
        covered["population"] += sum(holds([one.population_interval for one in read.bins], true))
        covered["jointly"] += all(holds([one.simultaneous for one in read.bins], dataset))
        covered["band"] += all(holds([one.interval for one in read.cumulative], np.cumsum(dataset)[:-1]))
        sampled = [one.population_interval for one in read.cumulative]
        covered["sampled band"] += all(holds(sampled, np.cumsum(true)[:-1]))
        covered["narrow"] += sum(holds([one.interval for one in read.bins], dataset, 0.5))
    # Two bins that sum to 1 are one test.
    tests, each = (RUNS, 2) if bins == 2 else (4 * RUNS, 1)
    assert at_least(covered["dataset"] // each, tests, 0.95)
    assert at_least(covered["population"] // each, tests, 0.95)
    for joint in ("jointly", "band", "sampled band"):
        assert at_least(covered[joint], RUNS, 0.95)
    assert not at_least(covered["narrow"] // each, tests, 0.95)


@pytest.mark.parametrize("bins", [2, 5])
@pytest.mark.parametrize("currency", Currency)
def test_shares_err_as_predicted(currency: Currency, bins: int):
    """Mean square of the error about the people there over its prediction: 1 up to noise."""
    people, runs = 400, 3_000
    group = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)]
    target = shares.target_of(bins, 0, currency)
    plan = SharesPlan(bins=bins, weighing=weigh_public(group, people, target, 0.0, currency=currency))
    weight = plan.weighing.weights[0]
    rng = np.random.default_rng()
    squares = []
    for _ in range(runs):
        there = rng.multinomial(people, np.full(bins, 1 / bins))
        counts = (there * weight)[-plan.drawn :]
        noises = draw(plan.noise, queries=plan.drawn)
        noisy = np.array([int(c) + z for c, z in zip(counts, noises, strict=True)])
        plane = noisy / (people * weight)
        plane = np.array([1 - plane[0], plane[0]]) if bins == 2 else plane + (1 - plane.sum()) / bins
        squares.append(np.mean((plane - there / people) ** 2))
    ratio = np.mean(squares) / plan.predicted_error**2
    error = np.std(squares) / plan.predicted_error**2 / math.sqrt(runs)
    assert abs(ratio - 1) < 5 * error
    assert abs(ratio - 1.5) > 5 * error, "the control"


def test_a_quantile_errs_less_than_twice_as_much_as_a_draw_over_gaps():
    """Ranks of both in one run, at epsilon 1, of incomes, minutes and numbers spread evenly, at .5 and .9.

    The ratio is 1.3, with a standard error of 4 %. At half of the epsilon, the control, it is 2.4 to 2.7,
    with 6 %. In a range 100 times too wide it is at most twice as much, with 1.5 times and 6 %; a
    half-width is at most 4 times the real 95 % error, with 2.2 times and 10 %.
    """
    rng, people = np.random.default_rng(), 5000
    off: dict[str, list[float]] = {"tree": [], "gaps": [], "halved": [], "wide": []}
    halves: list[float] = []
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)
    for run, (kind, quantile) in enumerate(
        [*product(("incomes", "minutes", "even"), (Fraction(1, 2), Fraction(9, 10)))] * 250
    ):
        values = np.sort(np.floor(drawn_values(rng, kind, people) * GRID_SIZE)).astype(np.int64)
        aim = float(quantile) * people
        asked = [("tree", MICRO, 1), ("halved", MICRO // 2, 1), ("wide", MICRO, 100)]
        for name, epsilon, wide in asked if run % 3 == 0 else asked[:1]:
            weighing = weigh_public([replace(group, epsilon=epsilon)], people, target_of(0), 0.0)
            plan = TreePlan(quantiles=(quantile,), weighing=weighing)
            points = values // wide
            (found,) = plan.read(UNIT, grown(plan, [points]))

            def rank(place: float, points: NDArray[np.int64] = points) -> float:
                return float(np.searchsorted(points, place * GRID_SIZE))

            off[name].append(rank(found.estimate) - aim)
            if name == "tree":
                halves.append((rank(found.interval.upper) - rank(found.interval.lower)) / 2)
        ends = np.concatenate([[0], values, [GRID_SIZE]])
        law = np.log(np.maximum(np.diff(ends), 1e-9)) - np.abs(np.arange(people + 1) - aim) / 2
        chance = np.exp(law - law.max())
        off["gaps"].append(float(rng.choice(people + 1, p=chance / chance.sum())) - aim)
    error = {name: math.sqrt(np.mean(np.square(own))) for name, own in off.items()}
    assert error["tree"] <= 1.8 * error["gaps"]
    assert error["halved"] > 1.8 * error["gaps"], "the control"
    assert error["wide"] <= 2 * error["tree"]
    assert np.median(halves) <= 4 * np.quantile(np.abs(off["tree"]), 0.95)


def test_a_quantile_of_few_people_errs_less_in_three_levels_than_in_five():
    """300 people at epsilon 1, numbers spread evenly: ranks at .25, .5 and .9, and how wide intervals are.

    In 5 runs of 400 draws a quantile three levels erred .69 to .76 times as much, with a standard error of
    .04, and intervals were .83 to .85 times as wide: .95 is five of these above. Of 3,000 people in a range
    100 times too wide, the control, they err 3.5 to 4.3 times as much, and intervals are 20 times as wide.
    Those of three levels cover in both.
    """
    rng = np.random.default_rng()
    ratios = {}
    for people, draws, wide in ((300, 400, 1), (3000, 40, 100)):
        weighing = weigh_public(
            [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)], people, target_of(0), 0.0
        )
        off: dict[int, list[float]] = {3: [], 5: []}
        widths: dict[int, list[float]] = {3: [], 5: []}
        hits = 0
        for quantile, _ in product((Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)), range(draws)):
            points = np.sort(np.floor(rng.random(people) * GRID_SIZE / wide)).astype(np.int64)
            truth = float(points[math.ceil(quantile * people) - 1]) / GRID_SIZE
            for levels, layouts in ((3, THREE), (5, FIVE)):
                plan = TreePlan(quantiles=(quantile,), weighing=weighing)
                vars(plan)["layout"] = layouts[Aim.INTERVAL]
                (found,) = plan.read(UNIT, grown(plan, [points]))
                off[levels].append(found.estimate - truth)
                widths[levels].append(found.interval.upper - found.interval.lower)
                hits += levels == 3 and found.interval.lower <= truth <= found.interval.upper
        assert at_least(hits, 3 * draws, 0.95)
        error = {levels: math.sqrt(np.mean(np.square(own))) for levels, own in off.items()}
        ratios[people] = error[3] / error[5], float(np.mean(widths[3]) / np.mean(widths[5]))
    assert max(ratios[300]) < 0.95
    assert min(ratios[3000]) > 1.5, "the control"


def test_where_two_levels_lie_off_an_interval_ends_in_the_cell_more_and_covers():
    """1,000 people, evenly; all levels but the last one tell of ranks too high, which leaves the end open.

    In 2,000 draws of the last level no interval went on to the end of the range, and without a cell more,
    the control, .86 of them did. Each verdict is wrong less than once in 10^10 runs.
    """
    people, draws, quantile = 1000, 200, Fraction(9, 10)
    points = np.arange(people) * GRID_SIZE // people
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)
    weighing = weigh_public([group], people, target_of(0), 0.0)
    open_ends = dict.fromkeys(("as it is", "without"), 0)
    hits = 0
    for name in open_ends:
        plan = TreePlan(quantiles=(quantile,), weighing=weighing)
        if name == "without":
            vars(plan)["layout"] = replace(plan.layout, reach=None)
        drawn: list[Drawn] = []
        for off in (90, 90, 90, 20):
            starts = plan.starts(drawn)
            counts = by_cell(points - off * GRID_SIZE // people, starts)
            drawn.append(Drawn(starts=starts, counts=tuple(MICRO * count for count in counts)))
        starts = plan.starts(drawn)
        exact = [MICRO * count for count in by_cell(points, starts)]
        for _ in range(draws):
            noise = draw(plan.noise_of(plan.layout.last, len(exact)), queries=plan.sums(len(exact)))
            (found,) = plan.read(UNIT, [*drawn, plan.drawn(starts, exact, noise)])
            open_ends[name] += found.interval.upper > 0.999
            hits += name == "as it is" and found.interval.lower <= 0.9 <= found.interval.upper
    assert at_least(hits, draws, 0.95)
    assert open_ends["as it is"] <= 0.1 * draws
    assert open_ends["without"] >= 0.5 * draws, "the control"


def drawn_values(rng: np.random.Generator, kind: str, people: int) -> NDArray[np.float64]:
    """Numbers in [0, 1]."""
    match kind:
        case "incomes":
            return np.clip(rng.lognormal(-2.8, 0.7, people), 0, 1)
        case "minutes":
            return np.clip(rng.exponential(0.1, people), 0, 1)
        case _:
            return rng.random(people)


def test_a_median_of_a_secret_number_of_people_errs_no_more_than_that_of_a_public_one(
    monkeypatch: pytest.MonkeyPatch,
):
    """100 people at epsilon 1: the first level often tells of no people at all. The control believes it."""
    rng = np.random.default_rng()
    people = [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=100)]
    secret = weigh_secret(people, cap=MICRO, floor=MICRO)
    public = weigh_public(people, 100, target_of(0), 0.0)

    def error(weighing: Weighing) -> float:
        plan, squares = TreePlan(quantiles=(Fraction(1, 2),), weighing=weighing), []
        for _ in range(300):
            points = np.sort(np.floor(3 * drawn_values(rng, "incomes", 100) / 4 * GRID_SIZE)).astype(np.int64)
            (found,) = plan.read(UNIT, grown(plan, [points]))
            squares.append((found.estimate - float(points[49]) / GRID_SIZE) ** 2)
        return math.sqrt(np.mean(squares))

    def believed(plan: TreePlan, first: Drawn) -> CellCounts:
        unknown = 1e4 * len(first.counts) * plan._variance(0)
        return CellCounts.of_all(GRID_SIZE + 1.0, sum(first.counts), unknown, MICRO)

    known = error(public)
    assert error(secret) <= known
    monkeypatch.setattr(TreePlan, "_all", believed)
    assert error(secret) > 2 * known, "the control"


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("kind", ["even", "whole numbers", "minutes"])
@pytest.mark.parametrize(
    ("quantile", "currency", "aim"),
    [
        (Fraction(1, 2), LAPLACE, Aim.INTERVAL),
        (Fraction(4, 5), LAPLACE, Aim.INTERVAL),
        (Fraction(4, 5), LAPLACE, Aim.ESTIMATE),
        (Fraction(4, 5), GAUSSIAN, Aim.INTERVAL),
    ],
)
def test_the_interval_of_a_quantile_covers_and_an_eighth_of_it_does_not(
    relation: Relation, quantile: Fraction, currency: Currency, aim: Aim, kind: str
):
    """Ties and whole numbers, too; these have no control, since an interval is a few steps there."""
    rng = np.random.default_rng()
    weighing = weighing_of(relation, target_of(0, currency), currency)
    plan = TreePlan(quantiles=(quantile,), weighing=weighing, aim=aim)
    hits = dict.fromkeys(("dataset", "population", "an eighth"), 0)
    q = float(quantile)
    whole = float(np.quantile(whole_numbers(drawn_values(np.random.default_rng(5), "minutes", 200_000)), q))
    of_all = {"even": q, "whole numbers": whole, "minutes": -0.1 * math.log(1 - q)}[kind]
    for _ in range(RUNS):
        law = "minutes" if kind == "whole numbers" else kind
        numbers = [drawn_values(rng, law, size) for size in SIZES]
        if kind == "whole numbers":
            numbers = [whole_numbers(one) for one in numbers]
        points = [np.round(one * GRID_SIZE).astype(np.int64) for one in numbers]
        (found,) = plan.read(UNIT, grown(plan, points))
        truth = float(np.quantile(np.concatenate(numbers), q, method="inverted_cdf"))
        low, high = found.interval.lower, found.interval.upper
        hits["dataset"] += low <= truth <= high
        hits["population"] += found.population_interval.lower <= of_all <= found.population_interval.upper
        hits["an eighth"] += abs(truth - (low + high) / 2) <= (high - low) / 16
    assert at_least(hits["dataset"], RUNS, 0.95)
    assert at_least(hits["population"], RUNS, 0.95)
    assert kind == "whole numbers" or not at_least(hits["an eighth"], RUNS, 0.95)


def test_quantiles_of_ratings_are_ratings_and_those_of_numbers_spread_evenly_err_no_more_for_it():
    """300 ratings from 1 to 5 at epsilon 1, each 30 ranks or more away from the next one.

    Of 900 answers all were right, and without cases of whole numbers, the control, none. Of numbers spread
    evenly over 0 to 4 the ratio of root mean square errors was 1.04 to 1.18 in four runs, with a standard
    error of 6 to 9 % in each: 1.8 is five of them above all of these. A quantile that was taken for a whole
    number would be 30 ranks off, the control.
    """
    rng, people, grid = np.random.default_rng(), 300, Grid(Decimal(1), Decimal(5))
    weighing = weigh_public(
        [Group(trust=Trust.CENTRAL, epsilon=MICRO, count=people)], people, target_of(0), 0.0
    )
    ratings = np.repeat([1, 2, 3, 4, 5], [15, 30, 75, 120, 60])
    points = ((ratings - 1) * (GRID_SIZE // 4)).astype(np.int64)

    def plan_of(quantile: str, over: Grid | None) -> TreePlan:
        whole = None if over is None else WholeNumbers.of(over)
        return TreePlan(quantiles=(Fraction(quantile),), weighing=weighing, whole=whole)

    right = {"whole": 0, "control": 0}
    for name, over in (("whole", grid), ("control", None)):
        for quantile, rating in (("0.25", 3), ("0.5", 4), ("0.9", 5)):
            plan = plan_of(quantile, over)
            for _ in range(100):
                (found,) = plan.read(grid, grown(plan, [points]))
                assert name == "control" or found.interval.lower <= found.estimate <= found.interval.upper
                right[name] += found.estimate == rating
    assert right["whole"] >= 270
    assert right["control"] < 30, "the control"

    wide = Grid(Decimal(0), Decimal(4))
    squares: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(400):
        even = np.sort(np.floor(rng.random(people) * GRID_SIZE)).astype(np.int64)
        for knows, own in squares.items():
            plan = plan_of("0.9", wide if knows else None)
            (found,) = plan.read(UNIT, grown(plan, [even]))
            own.append((float(np.searchsorted(even, found.estimate * GRID_SIZE)) - 0.9 * people) ** 2)
    error, without = (math.sqrt(np.mean(squares[knows])) for knows in (True, False))
    assert error <= 1.8 * without
    assert 1.8 * without < 30, "the control"


def whole_numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """In twentieths: many people share one."""
    return np.round(values * 20) / 20
