"""What `dither audit privacy` looks at of histograms, quantiles and found ranges, with planted bugs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from operator import add

import numpy as np
from dither.device.gaussian import epsilon_at
from numpy.typing import NDArray

from app.accounting.costs import group_costs
from app.accounting.shape_prices import bins_cost, rank_range, ranks_cost
from app.core.cohort import Group
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators.found_range import RISK, narrowed, outermost
from app.estimators.interface import UNIT_SCALE, Query
from app.estimators.ranks import Draw, RankPlan
from app.estimators.transformed import complementary_queries
from app.estimators.weighing import Weighing
from app.mechanisms.draw import draw
from app.mechanisms.exponential import choose_exponential
from app.mechanisms.permute_and_flip import choose
from app.services.shapes.counts import CountPlan
from app.services.shapes.shape_crowd import ShapeCrowd
from app.services.shapes.shape_questions import COUNT, resolve
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY, cohort_of
from dither_research.pair_audit import DELTA
from dither_research.privacy_audit import STEPS, Cells, Subject, cells
from dither_research.shape_step_audit import stepped_subject

WEIGHT = MICRO
COARSE = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
"""Edges of cells where an output has several parts."""

GAUSSIAN_EDGES = np.linspace(-6, 6, 49)
"""The same of what Gaussian noise is on, in units of what the person moves it by."""

FEW, MANY = 40, 800
"""Empty cells on either side of the target: so unequal, a draw shows nearly all of its price."""

EVEN = 8
"""The same where both sides tell as much."""

EDGE_CELLS = np.array([1, FEW + 1, FEW + 2, FEW + MANY + 1])
"""Where the kinds of cells begin that the two neighbors tell apart."""

MEDIAN = Fraction(1, 2)

BESIDE = 50
"""People beside the one who comes: enough for no noisy count below 0."""


def shape_subjects() -> Iterator[Subject]:
    """Histograms and draws by rank, on the neighbors that tell most."""
    for relation in Relation:
        moves = 2 if relation is Relation.REPLACE_ONE else 1
        yield bins_subject(f"histogram, {relation}", relation, scale=float(moves * MICRO))
        yield gaussian_bins_subject(f"histogram with gaussian noise, {relation}", relation, moves=moves)
    yield ranks_subject("quantile, one draw", draws=1)
    yield ranks_subject("quantile, three draws that share a price", draws=3)
    yield ranks_subject("quantile, searches joined in", draws=1, searched=True)
    yield exponential_subject("quantiles with gaussian noise, sixteen draws")
    yield description_subject("description, two moments and three draws")
    yield count_subject("count of people, one person more")
    yield stepped_subject("histogram, two steps")
    yield stepped_subject("mean of two coordinates, two steps", by_coordinate=True)
    for relation in Relation:
        yield found_subject(f"found range and its mean, {relation}", relation)


def shape_controls() -> Iterator[Subject]:
    """Planted bugs: each claims the price that its careless programmer would."""
    yield bins_subject(
        "a histogram priced at 1 instead of 2", Relation.REPLACE_ONE, scale=float(MICRO), claimed=1.0
    )
    yield gaussian_bins_subject(
        "a gaussian histogram priced at one of its two moves", Relation.REPLACE_ONE, moves=1, planted=True
    )
    yield ranks_subject("quantile scores weighed by twice the weight of the price", draws=1, counted=2)
    yield ranks_subject("a quantile whose searches are exact counts", draws=1, searched=True, exact=True)
    yield exponential_subject(
        "quantiles with gaussian noise, priced as if all scores moved in one direction", counted=2
    )
    yield description_subject("a description whose moments share their noise", shared=True)
    yield count_subject("a count that charges half of a person's weight", part=0.5)
    yield count_subject("a count that weighs people by what they offer, priced by the least", weighed=2)
    yield stepped_subject("a histogram whose second step is drawn anew for the difference", anew=True)
    yield stepped_subject(
        "a mean of coordinates whose second step is drawn anew for the difference",
        by_coordinate=True,
        anew=True,
    )
    yield found_subject("a range that is read off exact counts", Relation.REPLACE_ONE, exact=True)


def count_subject(name: str, *, part: float = 1.0, weighed: int = 1) -> Subject:
    """A person of epsilon 2 who comes to others of epsilon 1: the count that is published.

    Args:
        name: Of the subject.
        part: Of the charge it claims; below 1 that is a planted bug.
        weighed: What the person counts for, whose charge is that of one; above 1 that is one, too.
    """
    study = replace(STUDY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=MICRO, epsilon_max=2 * MICRO)
    question = resolve(study, Ask(statistic=COUNT, share=MICRO))

    def plan_of(people: int) -> CountPlan:
        others = cohort_of(2, MICRO, [0] * BESIDE)
        crowd = ShapeCrowd.of([cohort_of(1, 2 * MICRO, [0] * (weighed * people)), others], question)
        return CountPlan.of_crowd(study, question, crowd)

    def drawn(people: int, draws: int) -> Cells:
        plan = plan_of(people)
        counted = np.array([[plan.answer({})["estimate"]] for _ in range(draws)], dtype=np.float64)
        return cells(counted - BESIDE, np.ones(1), STEPS)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(0, draws), drawn(1, draws)

    charge, _ = plan_of(1).charges()
    claimed, planted = part * charge.epsilon / MICRO, part < 1 or weighed > 1
    return Subject(name=name, claimed=claimed, outputs=outputs, planted=planted)


def bins_subject(name: str, relation: Relation, *, scale: float, claimed: float | None = None) -> Subject:
    """A person of one weight who moves from the first bin to the second one, or comes into it.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        scale: Of the noise of each bin.
        claimed: What a planted bug claims in place of the price.
    """
    noise = DiscreteLaplace(scales=(scale, scale))

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            cells(counts, np.full(2, float(WEIGHT)), STEPS) for counts in _noisy_bins(noise, relation, draws)
        )
        return first, second

    price = bins_cost(WEIGHT, noise, relation) / MICRO
    return Subject(
        name=name,
        claimed=price if claimed is None else claimed,
        outputs=outputs,
        planted=claimed is not None,
    )


def gaussian_bins_subject(name: str, relation: Relation, *, moves: int, planted: bool = False) -> Subject:
    """The same under Gaussian noise, at mu^2 of 2 if one person moves this number of bins.

    Of two counts that move by the same their difference is sufficient, and of one that moves this one is.
    """
    noise = DiscreteGaussian(sigmas=(math.sqrt(moves / 2) * WEIGHT,) * 2)
    seen = (-1.0, 1.0) if relation is Relation.REPLACE_ONE else (0.0, 1.0)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            np.digitize(counts @ np.array(seen) / WEIGHT, GAUSSIAN_EDGES)
            for counts in _noisy_bins(noise, relation, draws)
        )
        return first, second

    price = 2 * MICRO if planted else bins_cost(WEIGHT, noise, relation)
    return Subject(
        name=name,
        claimed=epsilon_at(Fraction(price), DELTA) / MICRO,
        delta=DELTA / DELTA_UNIT,
        outputs=outputs,
        planted=planted,
    )


def _noisy_bins(
    noise: DiscreteLaplace | DiscreteGaussian, relation: Relation, draws: int
) -> Iterator[NDArray[np.float64]]:
    """Draws of two noisy counts on each of two neighbors, shape (draws, 2)."""
    neighbors = [[WEIGHT, 0], [0, WEIGHT]] if relation is Relation.REPLACE_ONE else [[0, 0], [0, WEIGHT]]
    for counts in neighbors:
        yield np.array([np.add(counts, draw(noise, queries=2)) for _ in range(draws)], dtype=np.float64)


def ranks_subject(
    name: str, *, draws: int, counted: int = 1, searched: bool = False, exact: bool = False
) -> Subject:
    """A person who moves across the target, with few empty cells on the one side of it and many on the other.

    Args:
        name: Of the subject.
        draws: Draws that share a price of 1, all at the median.
        counted: How many times their weight people count in the scores; not once: a planted bug.
        searched: Whether people who answered searches stand beside them.
        exact: Whether what these add has exact counts of all people in it: a planted bug.
    """
    scale = draws * rank_range(MEDIAN, Relation.REPLACE_ONE) * WEIGHT
    lines = _lines(counted * WEIGHT, searched=searched, exact=exact)

    def outputs(number: int) -> tuple[Cells, Cells]:
        first, second = (_drawn(line, scale, draws, number) for line in lines)
        return first, second

    price = ranks_cost(WEIGHT, [(MEDIAN, scale)] * draws, Relation.REPLACE_ONE) / MICRO
    return Subject(name=name, claimed=price, outputs=outputs, planted=exact or counted != 1)


def exponential_subject(name: str, *, counted: int = 1) -> Subject:
    """The same person between equally many cells, in exponential draws that cost an mu^2 of 2 together.

    A draw has no loss above its range, and alone tells little of mu^2 at a small delta; many tell most of it.

    Args:
        name: Of the subject.
        counted: How many times their weight people count in the scores; not once: a planted bug.
    """
    draws = 16
    # A range of 0.57 for each of them.
    scale = rank_range(MEDIAN, Relation.REPLACE_ONE) * WEIGHT * 100 // 57
    lines = _lines(counted * WEIGHT, few=EVEN, many=EVEN)

    def outputs(number: int) -> tuple[Cells, Cells]:
        first, second = (
            np.array(
                [sum(choose_exponential(line, scale) > EVEN + 1 for _ in range(draws)) for _ in range(number)]
            )
            for line in lines
        )
        return first, second

    price = ranks_cost(WEIGHT, [(MEDIAN, scale)] * draws, Relation.REPLACE_ONE, Currency.GAUSSIAN)
    return Subject(
        name=name,
        claimed=epsilon_at(price, DELTA) / MICRO,
        delta=DELTA / DELTA_UNIT,
        outputs=outputs,
        planted=counted != 1,
        effort=0.5 if counted != 1 else 1,
    )


def description_subject(name: str, *, shared: bool = False) -> Subject:
    """The same person, also across the range of two moments: two fifths of a price of 1, and three draws.

    Args:
        name: Of the subject.
        shared: Whether both moments get the same noise: a planted bug.
    """
    draws, weight = 3, WEIGHT * 2 // 5
    scale = 5 * rank_range(MEDIAN, Relation.REPLACE_ONE) * WEIGHT
    queries = (
        Query(sum_weights=(weight,), count_weights=(0,)),
        Query(sum_weights=(0,), count_weights=(0,), square_weights=(weight,)),
    )
    noise = DiscreteLaplace(scales=(UNIT_SCALE,) * 2)

    def published(mine: int) -> int:
        """Where the first moment lies, and its distance from the second one."""
        first, second = draw(noise, queries=2)
        moment, squares = weight * mine + first, weight * square(mine) + (first if shared else second)
        half = weight * GRID_SIZE // 2
        return 2 * (moment > half) + (moment - squares > half // 2)

    def outputs(number: int) -> tuple[Cells, Cells]:
        found = []
        for line, mine in zip(_lines(WEIGHT), (GRID_SIZE, 0), strict=True):
            sums = np.array([published(mine) for _ in range(number)], dtype=np.int64)
            drawn = np.array([[choose(line, scale) for _ in range(draws)] for _ in range(number)])
            # How many draws fell among the many cells on the one side: these tell the neighbors apart.
            found.append(sums * (draws + 1) + (drawn > FEW + 1).sum(axis=1))
        return found[0], found[1]

    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)
    (of_mean,) = group_costs(queries, noise, Relation.REPLACE_ONE, [group])
    price = of_mean + ranks_cost(WEIGHT, [(MEDIAN, scale)] * draws, Relation.REPLACE_ONE)
    return Subject(
        name=name,
        claimed=price / MICRO,
        outputs=outputs,
        planted=shared,
        effort=0.05 if shared else 1,
    )


def _lines(
    weight: int, *, searched: bool = False, exact: bool = False, few: int = FEW, many: int = MANY
) -> list[list[int]]:
    """The scores of all cells at the median, for the person at the upper end and at the lower one."""
    last = few + many + 1
    one = Draw(rank=MEDIAN, shift=0, scale=1)
    # Who answered searches has values at both ends.
    beside = (7 * weight,) * last + (14 * weight,)
    plan = RankPlan(
        quantile=MEDIAN,
        cells=last,
        weighing=Weighing(relation=Relation.REPLACE_ONE, weights=(WEIGHT,)),
        draws=(one, None, None),
        people=None,
    )
    scores = []
    for mine in (last, 0):
        weights = [0] * (last + 1)
        # One person below the few cells, one between them and the many, one at the upper end; and mine.
        for place in (1, few + 1, last, mine):
            weights[place] += weight
        if searched:
            one = replace(one, beside=tuple(map(add, beside, accumulate(weights))) if exact else beside)
        scores.append(plan.scores(one, weights))
    return scores


def _drawn(line: Sequence[int], scale: int, draws: int, number: int) -> Cells:
    """Which of the few kinds of cells each of some draws is."""
    drawn = np.array([[choose(line, scale) for _ in range(draws)] for _ in range(number)])
    label = np.zeros(number, dtype=np.int64)
    for column in np.digitize(drawn, EDGE_CELLS).T:
        label = label * (EDGE_CELLS.size + 1) + column
    return label


PART = MICRO * 15 // 100
"""What finding the range takes of the price."""

EDGES = (0, GRID_SIZE // 4, GRID_SIZE // 2, GRID_SIZE)
OTHERS = (300, 0, 0)
"""People in each bin beside the one who moves: enough to be seen, all at the lower end."""


def found_subject(name: str, relation: Relation, *, exact: bool = False) -> Subject:
    """A person at the upper end of the range, and at the lower one or not there: all that is published.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        exact: Whether the range is read off counts without noise: a planted bug.
    """
    public = relation is Relation.REPLACE_ONE
    noise = DiscreteLaplace(scales=(float((2 if public else 1) * MICRO),) * len(OTHERS))
    weight = MICRO - PART
    queries: tuple[Query, ...] = (Query(sum_weights=(weight,), count_weights=(0,)),)
    if not public:
        queries = complementary_queries((weight,))
    whole = DiscreteLaplace(scales=(UNIT_SCALE,) * len(queries))

    def answer(mine: int | None) -> tuple[int, list[float]]:
        """The range, and what is published of counts and sums, in units of what the person moves."""
        mine_in = [int(mine == 0), 0, int(mine == GRID_SIZE)]
        errors = draw(noise, queries=len(OTHERS))
        moved = [PART * one + error for one, error in zip(mine_in, errors, strict=True)]
        counts = [PART * others + one for others, one in zip(OTHERS, moved, strict=True)]
        scale = noise.scales[0]
        if exact:
            scale, counts = 1.0, [PART * (a + b) for a, b in zip(OTHERS, mine_in, strict=True)]
        clear = scale * math.log(len(counts) / (2 * RISK))
        first, last = outermost(scale, clear, counts, sum(OTHERS) * PART)
        low, width = EDGES[first], EDGES[last + 1] - EDGES[first]
        sums = [0] * len(queries)
        if mine is not None:
            inside = min(max(mine - low, 0), width)
            sums = [weight * inside, weight * (width - inside)][: len(queries)]
        noisy = [a + b for a, b in zip(sums, draw(narrowed(whole, width), queries=len(sums)), strict=True)]
        parts = [moved[0] / PART, moved[-1] / PART, *(one / (weight * width) for one in noisy)]
        return first * len(EDGES) + last, parts

    def outputs(number: int) -> tuple[Cells, Cells]:
        found = []
        for mine in (GRID_SIZE, 0 if public else None):
            ranges, parts = zip(*(answer(mine) for _ in range(number)), strict=True)
            label = cells(np.array(parts), np.ones(len(parts[0])), COARSE)
            found.append(label * len(EDGES) ** 2 + np.array(ranges, dtype=np.int64))
        return found[0], found[1]

    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)
    (of_mean,) = group_costs(queries, whole, relation, [group])
    price = (bins_cost(PART, noise, relation) + of_mean) / MICRO
    return Subject(name=name, claimed=price, outputs=outputs, planted=exact, effort=0.05 if exact else 1)
