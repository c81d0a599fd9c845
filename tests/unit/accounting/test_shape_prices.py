"""Prices of histograms and of draws by rank against brute force over all neighbors of small datasets."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, combinations_with_replacement, product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from app.accounting.shape_prices import bins_cost, rank_range, ranks_cost, tree_cost
from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators.shares import SharesPlan, target_of
from app.estimators.weighing import weigh_public, weigh_secret

REPLACE, ADD = Relation.REPLACE_ONE, Relation.ADD_REMOVE_ONE


def moves(bins: int, relation: Relation) -> Iterator[tuple[int, ...]]:
    """What one person of weight 1 can move the counts by."""
    ones = [tuple(int(place == bin_) for place in range(bins)) for bin_ in range(bins)]
    if relation is ADD:
        yield from ones
    else:
        yield from (tuple(b - a for a, b in zip(one, other, strict=True)) for one in ones for other in ones)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("scales", [(3.0, 3.0), (2e6, 2e6, 2e6), (1.5, 4.0, 2.25, 8.0)])
@pytest.mark.parametrize("weight", [0, 1, 7, 123_457])
def test_bins_cost_the_largest_l1_move_and_less_than_a_micro_more(
    relation: Relation, scales: tuple[float, ...], weight: int
):
    cost = bins_cost(weight, DiscreteLaplace(scales=scales), relation)
    largest = max(
        sum(weight * abs(move) / Fraction(scale) for move, scale in zip(moved, scales, strict=True))
        for moved in moves(len(scales), relation)
    )
    assert 0 <= Fraction(cost, MICRO) - largest < Fraction(1, MICRO)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("bins", [2, 3])
@pytest.mark.parametrize("weight", [0, 1, 5])
def test_a_bin_that_is_counted_alone_costs_one_move_over_all_outputs_and_neighbors(
    relation: Relation, bins: int, weight: int
):
    """Brute force over the places of one person, and of two others, and the outputs around them."""
    scale, worst = 7.0, Fraction(0)
    for others in product(range(bins), repeat=2):
        before = weight * others.count(bins - 1)
        for moved in moves(bins, relation):
            after = before + weight * moved[-1]
            for output in range(-3, 4 * weight + 4):
                loss = Fraction(abs(output - after) - abs(output - before)) / Fraction(scale)
                worst = max(worst, abs(loss))
    cost = bins_cost(weight, DiscreteLaplace(scales=(scale,)), relation)
    assert 0 <= Fraction(cost, MICRO) - worst < Fraction(1, MICRO)
    # The control: two counts of bins that both move.
    both = bins_cost(weight, DiscreteLaplace(scales=(scale, scale)), relation)
    assert both >= relation.moved * cost - 1


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("sigmas", [(3e5, 3e5), (2e6, 2e6, 2e6), (1.5e5, 4e5, 2.25e5, 8e5)])
@pytest.mark.parametrize("weight", [0, 1, 7, 123_457])
def test_gaussian_bins_cost_the_largest_l2_move_and_less_than_a_micro_more(
    relation: Relation, sigmas: tuple[float, ...], weight: int
):
    """Discrete noise of sigma is worth sigma^2 - 9; of two bins that move the squares add up."""
    cost = bins_cost(weight, DiscreteGaussian(sigmas=sigmas), relation)
    largest = max(
        sum(
            (weight * move) ** 2 / (Fraction(sigma) ** 2 - 9)
            for move, sigma in zip(moved, sigmas, strict=True)
        )
        for moved in moves(len(sigmas), relation)
    )
    assert 0 <= Fraction(cost, MICRO) - largest < Fraction(1, MICRO)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("mu2", [1, 56_028, 419_500, 4_001_800, 10**9])
def test_what_mu2_weighs_in_gaussian_bins_costs_that_and_little_less(relation: Relation, mu2: int):
    groups = [Group(trust=Trust.CENTRAL, epsilon=mu2, count=10)]
    if relation is ADD:
        weighing = weigh_secret(groups, cap=mu2, floor=mu2, currency=Currency.GAUSSIAN)
    else:
        weighing = weigh_public(groups, 10, target_of(5, 0.0), 0.0, currency=Currency.GAUSSIAN)
    plan = SharesPlan(bins=5, weighing=weighing)
    cost = bins_cost(weighing.weights[0], plan.noise, relation)
    assert mu2 * (1 - 1e-4) - 1 <= cost <= mu2


def test_gaussian_bins_need_a_sigma_that_has_a_price():
    with pytest.raises(InternalFault):
        bins_cost(1, DiscreteGaussian(sigmas=(2.0, 2.0)), REPLACE)


def test_the_price_of_a_histogram_is_reached_by_the_probabilities_themselves():
    """The loss of two discrete Laplaces, from their probabilities, at the worst output."""
    scale, weight = 2e6, 700_000
    cost = bins_cost(weight, DiscreteLaplace(scales=(scale, scale)), REPLACE)

    def log(noise: int) -> float:
        return -abs(noise) / scale

    loss = max(
        log(first) + log(second) - log(first - weight) - log(second + weight)
        for first, second in product((-weight, 0, weight, 5 * weight), repeat=2)
    )
    assert loss * MICRO == pytest.approx(cost)
    assert cost == weight


def chances(classes: Mapping[int, int], scale: int) -> dict[int, float]:
    """The probability of one choice of each score, permute-and-flip having so many of each.

    That is p_j times the integral over t in [0, 1] of the product of 1 - p_k t over the other choices, cut
    off where it is below e^-50.
    """
    p = {score: math.exp(-(max(classes) - score) / scale) for score in classes}
    end = min(1.0, 50 / sum(count * p[score] for score, count in classes.items()))

    def chance(mine: int) -> float:
        def integrand(t: float) -> float:
            logs = ((count - (score == mine)) * math.log1p(-p[score] * t) for score, count in classes.items())
            return math.exp(sum(logs))

        return p[mine] * quad(integrand, 0, end * (1 - 1e-15), epsabs=0, epsrel=1e-11, limit=200)[0]

    return {score: chance(score) for score in classes}


def law(scores: Sequence[int], scale: int) -> list[float]:
    """The probability of each choice."""
    found = chances(Counter(scores), scale)
    return [found[score] for score in scores]


def scores(
    values: Sequence[int],
    weights: Sequence[int],
    rank: Fraction,
    cells: int,
    shift: int,
    beside: tuple[int, ...] = (),
) -> list[int]:
    """Of every cell, as draws of quantiles had them, which the audit prices still."""
    part, whole = rank.as_integer_ratio()
    counted = [0] * (cells + 1)
    for value, weight in zip(values, weights, strict=True):
        counted[value] += weight
    below = list(accumulate(counted))
    if beside:
        below = [one + other for one, other in zip(below, beside, strict=True)]
    aim = part * below[-1] + shift
    return [
        -max(
            0,
            whole * below[cell - 1] - aim if cell else 0,
            aim - whole * below[cell] if cell < cells else 0,
        )
        for cell in range(cells + 1)
    ]


RANKS = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 11)]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("relation", Relation)
def test_scores_never_move_apart_by_more_than_the_range_and_somewhere_by_all_of_it(
    rank: Fraction, relation: Relation
):
    """All datasets of up to five people in four cells, the last of whom is replaced or removed."""
    most = 0
    for people in range(1, 6):
        for values in combinations_with_replacement(range(4), people - 1):
            for weight, shift in product((1, 3), (-4, 0, 5)):
                weights = [4 * rank.denominator] * (people - 1)
                mine = [scores((*values, value), (*weights, weight), rank, 3, shift) for value in range(4)]
                others = mine if relation is REPLACE else [scores(values, weights, rank, 3, shift)]
                for one, other in product(mine, others):
                    d = [b - a for a, b in zip(one, other, strict=True)]
                    moved = max(d) - min(d)
                    assert moved <= weight * rank_range(rank, relation)
                    most = max(most, moved) if weight == 1 else most
    assert most == rank_range(rank, relation), "it is reached"


@pytest.mark.parametrize(
    ("beside", "reached"), [((0, 1, 1, 3), 8), ((1, 2, 2, 4), 8), ((0, 0, 3, 9), 8), ((7, 9, 9, 9), 4)]
)
def test_people_who_answered_searches_raise_neither_the_range_nor_the_price(
    beside: tuple[int, ...], reached: int
):
    """All datasets of up to three people in four cells; the best score is 0 with them, too."""
    rank, scale, most, worst = Fraction(1, 4), 10, 0, 0.0
    for people, weight in product(range(1, 4), (1, 3)):
        for values in combinations_with_replacement(range(4), people - 1):
            weights = [5] * (people - 1)
            mine = [scores((*values, x), (*weights, weight), rank, 3, 0, beside) for x in range(4)]
            assert all(max(line) == 0 for line in mine)
            laws = [law(line, scale) for line in mine]
            for (one, first), (other, second) in product(zip(mine, laws, strict=True), repeat=2):
                d = [b - a for a, b in zip(one, other, strict=True)]
                assert max(d) - min(d) <= weight * rank_range(rank, REPLACE)
                most = max(most, max(d) - min(d)) if weight == 1 else most
                loss = max(abs(math.log(a / b)) for a, b in zip(first, second, strict=True))
                worst = max(worst, loss * MICRO - ranks_cost(weight, [(rank, scale)], REPLACE))
    assert most == reached, "but where the first cell is the quantile's for sure"
    assert worst <= 1e-3


@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 4)])
@pytest.mark.parametrize("relation", Relation)
def test_no_neighbors_lose_more_than_the_price(rank: Fraction, relation: Relation):
    """Brute force over the probabilities of all cells, for all datasets of two people and one who differs."""
    scale, weight = 10, 2
    price = ranks_cost(weight, [(rank, scale)], relation) / MICRO
    worst = 0.0
    for values in combinations_with_replacement(range(4), 2):
        for crowd in ((1, 1), (3, 9), (40, 2)):
            mine = [law(scores((*values, x), (*crowd, weight), rank, 3, 0), scale) for x in range(4)]
            others = mine if relation is REPLACE else [law(scores(values, crowd, rank, 3, 0), scale)]
            for first, second in product(mine, others):
                worst = max(worst, *(abs(math.log(a / b)) for a, b in zip(first, second, strict=True)))
    assert worst <= price + 1e-9
    assert worst > price / 2, "the price of scores that all move in one direction would be too low"


@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 4)])
@pytest.mark.parametrize("relation", Relation)
def test_no_test_tells_neighbors_better_than_the_price_of_an_exponential_draw_allows(
    rank: Fraction, relation: Relation
):
    """The best tests between the laws of all neighbors above, beside those of N(0, 1) and N(mu, 1)."""
    scale, weight = 10, 2
    mu = math.sqrt(ranks_cost(weight, [(rank, scale)], relation, Currency.GAUSSIAN) / MICRO)
    least, least_of_half = 1.0, 1.0

    def exponential(line: Sequence[int]) -> np.ndarray:
        weights = np.exp(np.array(line) / scale)
        return np.asarray(weights / weights.sum())

    for values in combinations_with_replacement(range(4), 2):
        for crowd in ((1, 1), (3, 9), (40, 2), (2, 2)):
            mine = [exponential(scores((*values, x), (*crowd, weight), rank, 3, 0)) for x in range(4)]
            others = mine if relation is REPLACE else [exponential(scores(values, crowd, rank, 3, 0))]
            for pair in product(mine, others):
                for first, second in (pair, pair[::-1]):
                    order = np.argsort(first / second)
                    false = np.cumsum(first[order])[:-1]
                    missed = 1 - np.cumsum(second[order])[:-1]
                    least = min(least, *(missed - ndtr(ndtri(1 - false) - mu)))
                    least_of_half = min(least_of_half, *(missed - ndtr(ndtri(1 - false) - mu / 2)))
    assert least >= -1e-9
    assert least_of_half < -1e-2, "the price of scores that all move in one direction would be too low"


@pytest.mark.parametrize("relation", Relation)
def test_the_price_is_the_least_upper_bound(relation: Relation):
    """A hundred million empty cells at the target, one cell on its other side: the price up to a micro."""
    rank, scale, weight, empty, many = Fraction(1, 2), 40, 10, 60, 10**8
    last = empty + 3
    if relation is REPLACE:
        others = [(1, weight), (2, weight), (last, weight)]
        before, after = [*others, (last, weight)], [*others, (0, weight)]
    else:
        before = [(1, 4 * weight), (last - 1, weight // 2), (last, 4 * weight - weight // 2)]
        after = [*before, (last, weight)]
    lines, laws = [], []
    for people in (before, after):
        values, weights = zip(*people, strict=True)
        line = scores(values, weights, rank, last, 0)
        classes = Counter(line)
        classes[line[empty // 2]] += many
        lines.append(line)
        laws.append(chances(classes, scale))
    loss = max(abs(math.log(laws[0][a] / laws[1][b])) for a, b in zip(*lines, strict=True))
    price = ranks_cost(weight, [(rank, scale)], relation)
    assert price - 1 <= loss * MICRO <= price + 1e-3


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize(
    "noise",
    [
        DiscreteLaplace(scales=(32e6, 8e6, 4e6)),
        DiscreteLaplace(scales=(3.5,)),
        DiscreteGaussian(sigmas=(3e5, 2e6)),
    ],
)
@pytest.mark.parametrize("weight", [0, 1, 123_457])
def test_a_tree_costs_the_largest_move_of_all_levels_and_less_than_a_micro_more(
    noise: DiscreteLaplace | DiscreteGaussian, relation: Relation, weight: int
):
    """All cells of each level before and after; levels cut the grid differently, so any are possible."""
    gaussian = isinstance(noise, DiscreteGaussian)
    sizes = noise.sigmas if isinstance(noise, DiscreteGaussian) else noise.scales

    def loss(moved: tuple[int, ...], size: float) -> Fraction:
        if gaussian:
            return sum(((weight * move) ** 2 / (Fraction(size) ** 2 - 9) for move in moved), Fraction(0))
        return sum((weight * abs(move) / Fraction(size) for move in moved), Fraction(0))

    largest = max(
        sum((loss(moved, size) for moved, size in zip(chosen, sizes, strict=True)), Fraction(0))
        for chosen in product(list(moves(3, relation)), repeat=len(sizes))
    )
    assert 0 <= Fraction(tree_cost(weight, noise, relation), MICRO) - largest < Fraction(1, MICRO)


@pytest.mark.parametrize("relation", Relation)
def test_no_outcome_of_two_levels_tells_neighbors_better_than_the_price_and_one_tells_it_all(
    relation: Relation,
):
    """Brute force: the second level's cut is chosen from the first one's noisy counts of two cells.

    Exact counts in its place are the control: an outcome is then possible for one of two neighbors alone.
    """
    places, scales, span = range(4), (3.0, 2.0), range(-6, 8)

    def counts(values: Sequence[int], cut: int) -> tuple[int, ...]:
        return sum(value < cut for value in values), sum(value >= cut for value in values)

    def log(noisy: tuple[int, ...], values: Sequence[int], cut: int, scale: float) -> float:
        return -sum(abs(a - b) for a, b in zip(noisy, counts(values, cut), strict=True)) / scale

    def chosen(seen: tuple[int, ...]) -> int:
        return 1 if seen[0] > seen[1] else 3

    worst, impossible = 0.0, False
    for company in combinations_with_replacement(places, 1):
        mine = [(*company, value) for value in places]
        others = mine if relation is REPLACE else [company]
        for one, other in product(mine, others):
            impossible |= chosen(counts(one, 2)) != chosen(counts(other, 2))
            for first in product(span, repeat=2):
                of_first = log(first, one, 2, scales[0]) - log(first, other, 2, scales[0])
                cut = chosen(first)
                of_second = max(
                    log(second, one, cut, scales[1]) - log(second, other, cut, scales[1])
                    for second in product((-5, 6), repeat=2)
                )
                worst = max(worst, of_first + of_second)
    price = tree_cost(1, DiscreteLaplace(scales=scales), relation) / MICRO
    assert price - 1e-6 <= worst <= price
    assert impossible, "the control"


@pytest.mark.parametrize(
    "bad",
    [
        lambda: bins_cost(1, DiscreteLaplace(scales=()), ADD),
        lambda: bins_cost(1, DiscreteLaplace(scales=(1.0, 0.0)), ADD),
        lambda: bins_cost(1, DiscreteLaplace(scales=(1.0, math.inf)), ADD),
        lambda: bins_cost(-1, DiscreteLaplace(scales=(1.0, 1.0)), ADD),
        lambda: bins_cost(1.0, DiscreteLaplace(scales=(1.0, 1.0)), ADD),  # type: ignore[arg-type]
        lambda: tree_cost(-1, DiscreteLaplace(scales=(1.0,)), ADD),
        lambda: tree_cost(1, DiscreteLaplace(scales=(1.0, 0.0)), ADD),
        lambda: tree_cost(1, DiscreteGaussian(sigmas=(2.0,)), REPLACE),
        lambda: ranks_cost(-1, [(Fraction(1, 2), 1)], ADD),
        lambda: ranks_cost(1, [(Fraction(1, 2), 0)], ADD),
        lambda: ranks_cost(1, [(Fraction(1), 5)], ADD),
    ],
)
def test_what_cannot_be_priced_is_refused(bad):
    with pytest.raises(InternalFault):
        bad()
