"""What `dither audit privacy` looks at of histograms, quantiles and found ranges, with planted bugs."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from dither.device.gaussian import epsilon_at
from numpy.typing import NDArray

from app.accounting.costs import group_costs
from app.accounting.shape_prices import bins_cost, tree_cost
from app.core.cohort import Cohort, Group
from app.core.epsilon import DELTA_UNIT, MICRO
from app.core.grid import GRID_SIZE, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation, Trust
from app.estimators.found_range import RISK, narrowed, outermost
from app.estimators.interface import UNIT_SCALE, Query
from app.estimators.quantile_tree import TreePlan
from app.estimators.transformed import complementary_queries
from app.estimators.tree_levels import FEW, Aim, Drawn
from app.estimators.weighing import Weighing, unit_of
from app.mechanisms.draw import draw
from app.mechanisms.laplace import draw_laplace
from app.services.shapes.counts import CountPlan
from app.services.shapes.kinds import resolve
from app.services.shapes.questions import COUNT
from app.services.statistics.crowds import Crowd
from app.services.statistics.offered import Offered
from app.services.statistics.questions import Ask
from app.services.statistics.questions import resolve as resolve_mean
from dither_research.histories import STUDY, cohort_of
from dither_research.pair_audit import DELTA
from dither_research.privacy_audit import STEPS, Cells, Subject, cells
from dither_research.shape_step_audit import stepped_subject

WEIGHT = MICRO
COARSE = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
"""Edges of cells where an output has several parts."""

GAUSSIAN_EDGES = np.linspace(-6, 6, 49)
"""The same of what Gaussian noise is on, in units of what the person moves it by."""

MEDIAN = Fraction(1, 2)

BESIDE = 50
"""People beside the one who comes: enough for no noisy count below 0."""


def shape_subjects() -> Iterator[Subject]:
    """Histograms, quantiles and what has them, on the neighbors that tell most."""
    for relation in Relation:
        moves = 2 if relation is Relation.REPLACE_ONE else 1
        yield bins_subject(f"histogram, {relation}", relation, scale=float(moves * MICRO))
        yield gaussian_bins_subject(f"histogram with gaussian noise, {relation}", relation, moves=moves)
        yield tree_subject(f"quantile, {relation}", relation)
    yield tree_subject("quantile of many people", Relation.REPLACE_ONE, people=FEW + 1)
    yield bins_subject("histogram of two bins", Relation.REPLACE_ONE, scale=float(MICRO), counts=1)
    yield tree_subject("quantile with gaussian noise", Relation.REPLACE_ONE, currency=Currency.GAUSSIAN)
    yield beyond_subject("quantile whose last level has a cell more, or none")
    yield level_subject("two cells in each level of a quantile")
    yield level_subject("two cells in each level of a quantile of few people", people=3)
    yield level_subject("two cells in each level of a quantile for its estimate", aim=Aim.ESTIMATE)
    yield description_subject("description, two moments and quartiles")
    yield count_subject("count of people, one person more")
    yield offered_subject("who offers how much, and the count of those who are chosen by it")
    yield stepped_subject("histogram, two steps")
    yield stepped_subject("histogram of two bins, two steps", bins=2)
    yield stepped_subject("mean of two coordinates, two steps", by_coordinate=True)
    for relation in Relation:
        yield found_subject(f"found range and its mean, {relation}", relation)


def shape_controls() -> Iterator[Subject]:
    """Planted bugs: each claims the price that its careless programmer would."""
    yield bins_subject(
        "a histogram priced at 1 instead of 2", Relation.REPLACE_ONE, scale=float(MICRO), claimed=1.0
    )
    yield bins_subject(
        "the count of one of two bins with half of its noise",
        Relation.REPLACE_ONE,
        scale=MICRO / 2,
        counts=1,
        claimed=1.0,
    )
    yield gaussian_bins_subject(
        "a gaussian histogram priced at one of its two moves", Relation.REPLACE_ONE, moves=1, planted=True
    )
    yield tree_subject("a quantile whose cells exact counts choose", Relation.REPLACE_ONE, exact=True)
    yield beyond_subject("a quantile whose exact counts choose how many cells its last level has", exact=True)
    yield level_subject("a quantile that charges for its first three levels", priced=3)
    yield level_subject(
        "a quantile for its estimate that charges for all levels but the last one",
        priced=4,
        aim=Aim.ESTIMATE,
    )
    yield level_subject(
        "a quantile of few people that charges for all levels but the last one", priced=2, people=3
    )
    yield level_subject("a quantile whose difference of outer cells is priced as one count", moved=1)
    yield description_subject("a description whose moments share their noise", shared=True)
    yield count_subject("a count that charges half of a person's weight", part=0.5)
    yield count_subject("a count that weighs people by what they offer, priced by the least", weighed=2)
    yield offered_subject("a count of those whom exact numbers choose", exact=True)
    yield offered_subject("who offers how much, which only the count behind it charges for", priced=1)
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
        crowd = Crowd.of(study, [cohort_of(1, 2 * MICRO, [0] * (weighed * people)), others], question)
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


def offered_subject(name: str, *, exact: bool = False, priced: int = 2) -> Subject:
    """A person of epsilon 2 who comes to others of 1 and 2: the level that is chosen, and both numbers.

    One of epsilon 2 more or less tips the exact choice between all people, and those of epsilon 2.

    Args:
        name: Of the subject.
        exact: Whether the level is chosen from exact numbers: a planted bug.
        priced: Of the two charges how many it claims, the last ones; 1 is a planted bug, too.
    """
    study = replace(
        STUDY,
        relation=Relation.ADD_REMOVE_ONE,
        epsilon_min=MICRO,
        epsilon_max=2 * MICRO,
        epsilons=(MICRO, 2 * MICRO),
    )
    question = resolve_mean(study, Ask(share=MICRO)).leveled(study, ())

    def people(more: int) -> list[Cohort]:
        return [cohort_of(1, 2 * MICRO, [0] * (BESIDE + more)), cohort_of(2, MICRO, [0] * BESIDE)]

    def level_of(numbers: Sequence[float]) -> int:
        """The place of the level at which people weigh most; of equal ones the least."""
        return int(2 * numbers[1] > numbers[0])

    def drawn(more: int, draws: int) -> Cells:
        first = Offered.of(study, question, people(more))
        found = []
        for _ in range(draws):
            numbers = [one.people for one in first.drawn()]
            place = level_of((2 * BESIDE + more, BESIDE + more) if exact else numbers)
            weight = (place + 1) * 4 * MICRO // 5
            count = BESIDE + more + (BESIDE if place == 0 else 0)
            noisy = count * weight * GRID_SIZE + draw(DiscreteLaplace(scales=(UNIT_SCALE,)), queries=1)[0]
            left = noisy / (GRID_SIZE * weight) - BESIDE * (2 - place)
            found.append((place - 0.5, numbers[1] - BESIDE, left))
        return cells(np.array(found), np.ones(3), COARSE)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        return drawn(0, draws), drawn(1, draws)

    of_first = max(Offered.of(study, question, people(1)).costs)
    charges = (of_first, 2 * 4 * MICRO // 5)
    claimed = sum(charges[-priced:]) / MICRO
    return Subject(name=name, claimed=claimed, outputs=outputs, planted=exact or priced < len(charges))


def bins_subject(
    name: str, relation: Relation, *, scale: float, counts: int = 2, claimed: float | None = None
) -> Subject:
    """A person of one weight who moves from the first bin to the second one, or comes into it.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        scale: Of the noise of each bin.
        counts: How many bins are counted, the last ones.
        claimed: What a planted bug claims in place of the price.
    """
    noise = DiscreteLaplace(scales=(scale,) * counts)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            cells(noisy, np.full(counts, float(WEIGHT)), STEPS)
            for noisy in _noisy_bins(noise, relation, draws, counts)
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
    noise: DiscreteLaplace | DiscreteGaussian, relation: Relation, draws: int, counts: int = 2
) -> Iterator[NDArray[np.float64]]:
    """Draws of the last noisy counts of two bins on each of two neighbors, shape (draws, counts)."""
    neighbors = [[WEIGHT, 0], [0, WEIGHT]] if relation is Relation.REPLACE_ONE else [[0, 0], [0, WEIGHT]]
    for exact in neighbors:
        noisy = [np.add(exact[-counts:], draw(noise, queries=counts)) for _ in range(draws)]
        yield np.array(noisy, dtype=np.float64)


def tree_subject(
    name: str,
    relation: Relation,
    *,
    currency: Currency = Currency.LAPLACE,
    exact: bool = False,
    people: int = 3,
) -> Subject:
    """A person at one end of the range, and at the other or not there: two levels of a median.

    What is looked at are the cells of the second level, at the place where exact counts would tell the
    neighbors apart, and its outer counts.

    Args:
        name: Of the subject.
        relation: The neighboring relation.
        currency: Of the noise.
        exact: Whether cells are chosen from counts without noise: a planted bug.
        people: How many there are, an odd number, which says how many levels there are.
    """
    plan = _tree(relation, currency, people)
    weight, public = plan.weighing.cap, relation is Relation.REPLACE_ONE
    neighbors = (GRID_SIZE, 0 if public else None)

    def counted(starts: Sequence[int], mine: int | None) -> list[int]:
        counts = [0] * (len(starts) + 1)
        for value in (GRID_SIZE // 3, GRID_SIZE // 2):
            counts[bisect_right(starts, value)] += people // 2 * weight
        if mine is not None:
            counts[bisect_right(starts, mine)] += weight
        return counts

    first = plan.starts([])

    def second(counts: Sequence[int]) -> tuple[int, ...]:
        return plan.starts([Drawn(starts=first, counts=tuple(counts))])

    one, other = (second(counted(first, mine)) for mine in neighbors)
    place = next(place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    between = (one[place] + other[place]) // 2

    def noisy(level: int, starts: tuple[int, ...], mine: int | None) -> tuple[int, ...]:
        counts = counted(starts, mine)
        noise = draw(plan.noise_of(level, len(counts)), queries=plan.sums(len(counts)))
        return plan.drawn(starts, counts, noise).counts

    def seen(mine: int | None) -> int:
        starts = second(counted(first, mine) if exact else noisy(0, first, mine))
        found = noisy(1, starts, mine)
        low, high = (found[end] > weight / 2 for end in (0, -1))
        return 4 * (starts[min(place, len(starts) - 1)] > between) + 2 * low + high

    def outputs(draws: int) -> tuple[Cells, Cells]:
        left, right = (np.array([seen(mine) for _ in range(draws)], dtype=np.int64) for mine in neighbors)
        return left, right

    noise = plan.noise
    paid = (
        DiscreteLaplace(scales=noise.scales[:2])
        if isinstance(noise, DiscreteLaplace)
        else DiscreteGaussian(sigmas=noise.sigmas[:2])
    )
    price = tree_cost(weight, paid, relation)
    gaussian = currency is Currency.GAUSSIAN
    return Subject(
        name=name,
        claimed=(epsilon_at(Fraction(price), DELTA) if gaussian else price) / MICRO,
        delta=DELTA / DELTA_UNIT if gaussian else 0.0,
        outputs=outputs,
        planted=exact,
        effort=0.2 if exact else 1,
    )


def beyond_subject(name: str, *, exact: bool = False) -> Subject:
    """A person below or above the cells of the last level but one, which may leave all to that side.

    What is looked at is how many cells more the last level has for it, and the count above them. Levels
    before are one outcome, the same for both neighbors.

    Args:
        name: Of the subject.
        exact: Whether the counts that tell have no noise: a planted bug.
    """
    people = 2 * FEW + 1
    plan = _tree(Relation.REPLACE_ONE, Currency.LAPLACE, people)
    assert isinstance(plan.noise, DiscreteLaplace)
    level, q = plan.layout.last - 1, float(MEDIAN)
    before: list[Drawn] = []
    for _ in range(level):
        starts = plan.starts(before)
        each = people * WEIGHT // (len(starts) + 1)
        before.append(Drawn(starts=starts, counts=(each,) * (len(starts) + 1)))
    starts = plan.starts(before)

    def counted(above: int, cells: int) -> list[int]:
        return [(people - above) * WEIGHT, *[0] * (cells - 2), above * WEIGHT]

    def more(counts: Sequence[int]) -> int:
        return len(plan.beyond(q, [*before, Drawn(starts=starts, counts=tuple(counts))]))

    # With this number above exact counts choose otherwise than with one less.
    told = [more(counted(above, len(starts) + 1)) for above in range(people)]
    above = next(place for place in range(1, people) if told[place] != told[place - 1])

    def seen(mine: int) -> int:
        chosen = counted(above - 1 + mine, len(starts) + 1)
        if not exact:
            noise = draw(plan.noise_of(level, len(chosen)), queries=plan.sums(len(chosen)))
            chosen = list(plan.drawn(starts, chosen, noise).counts)
        cells = 5 + more(chosen)
        last = counted(above - 1 + mine, cells)
        noise = draw(plan.noise_of(level + 1, cells), queries=plan.sums(cells))
        outer = plan.drawn(tuple(range(1, cells)), last, noise).counts[-1]
        return 2 * (cells - 5) + (outer > (above - Fraction(1, 2)) * WEIGHT)

    def outputs(draws: int) -> tuple[Cells, Cells]:
        found = [np.array([seen(mine) for _ in range(draws)], dtype=np.int64) for mine in (0, 1)]
        return found[0], found[1]

    price = tree_cost(WEIGHT, DiscreteLaplace(scales=plan.noise.scales[-2:]), Relation.REPLACE_ONE)
    return Subject(
        name=name, claimed=price / MICRO, outputs=outputs, planted=exact, effort=0.2 if exact else 1
    )


def level_subject(
    name: str, *, priced: int | None = None, moved: int = 2, aim: Aim = Aim.INTERVAL, people: int = FEW
) -> Subject:
    """A person who moves between two cells of each level, of which the difference is drawn.

    Args:
        name: Of the subject.
        priced: How many levels it claims the price of, from the first one on; None: of all. A number is a
            planted bug.
        moved: By how many weights it claims that the difference moves; less than two: a planted bug.
        aim: What of the quantile is to be exact, which divides the price among levels.
        people: How many there are, which says how many levels there are.
    """
    plan = replace(_tree(Relation.REPLACE_ONE, Currency.LAPLACE, people), aim=aim)
    assert isinstance(plan.noise, DiscreteLaplace)
    scales = plan.noise.scales

    def outputs(draws: int) -> tuple[Cells, Cells]:
        found = []
        for mine in (0, 1):
            label = np.zeros(draws, dtype=np.int64)
            for scale in scales[-2:]:
                noise = np.array(draw_laplace(scale, draws), dtype=np.float64)
                difference = noise + (WEIGHT if mine else -WEIGHT)
                label = label * 3 + np.digitize(difference, (-WEIGHT, WEIGHT))
            found.append(label)
        return found[0], found[1]

    claimed = tree_cost(WEIGHT, DiscreteLaplace(scales=scales[:priced]), Relation.REPLACE_ONE)
    return Subject(
        name=name,
        claimed=claimed / MICRO * moved / 2,
        outputs=outputs,
        planted=priced is not None or moved < 2,
    )


def _tree(relation: Relation, currency: Currency, people: int = 3) -> TreePlan:
    """Of a median of these people, one of whom differs, all of a weight that is the cap."""
    weight = unit_of(currency)
    weighing = Weighing(
        relation=relation,
        weights=(weight,),
        mass=people * weight,
        cap=weight,
        floor=weight,
        currency=currency,
    )
    return TreePlan(quantiles=(MEDIAN,), weighing=weighing)


def description_subject(name: str, *, shared: bool = False) -> Subject:
    """The same person, also across the range of two moments, at two fifths of a price of 1, and a tree.

    Squares have half of the noise of the mean, which has eight ninths of what both have.

    Args:
        name: Of the subject.
        shared: Whether both moments get the same noise: a planted bug.
    """
    weight, rest = WEIGHT * 16 // 45, WEIGHT * 3 // 5
    queries = (
        Query(sum_weights=(weight,), count_weights=(0,)),
        Query(sum_weights=(0,), count_weights=(0,), square_weights=(weight,)),
    )
    noise = DiscreteLaplace(scales=(UNIT_SCALE, UNIT_SCALE / 2))
    plan = _tree(Relation.REPLACE_ONE, Currency.LAPLACE)

    def published(mine: int) -> int:
        """Where the first moment lies, and its distance from the second one."""
        first, second = draw(noise, queries=2)
        moment, squares = weight * mine + first, weight * square(mine) + (first if shared else second)
        half = weight * GRID_SIZE // 2
        return 2 * (moment > half) + (moment - squares > half // 2)

    def outputs(number: int) -> tuple[Cells, Cells]:
        found = []
        for mine in (GRID_SIZE, 0):
            sums = np.array([published(mine) for _ in range(number)], dtype=np.int64)
            noise = np.array([draw(plan.noise_of(plan.layout.last, 2), queries=1) for _ in range(number)])
            difference = noise[:, 0] + (rest if mine else -rest)
            found.append(sums * 3 + np.digitize(difference, (-rest, rest)))
        return found[0], found[1]

    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=1)
    (of_mean,) = group_costs(queries, noise, Relation.REPLACE_ONE, [group])
    price = of_mean + tree_cost(rest, plan.noise, Relation.REPLACE_ONE)
    return Subject(
        name=name,
        claimed=price / MICRO,
        outputs=outputs,
        planted=shared,
        effort=0.05 if shared else 1,
    )


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
