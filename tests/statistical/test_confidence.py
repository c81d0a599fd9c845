"""Every law has its own quantile at every level: how often intervals hold at .8, .95 and .99."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Trust
from app.estimators import confidence
from app.estimators.accuracy import Anytime, PredictedErrors
from app.estimators.anytime import Steps
from app.estimators.every_level import at_every_level
from app.estimators.interface import Interval
from app.estimators.pivot import PivotReader, two_sums_pivot
from app.estimators.quantile_tree import TreePlan
from app.estimators.shares import UNIT, SharesPlan
from app.estimators.together import AnytimeBound, ErrorBound
from app.estimators.tree_levels import Drawn, target_of
from app.estimators.weighing import weigh_public

pytestmark = pytest.mark.statistical

LEVELS = (0.8, 0.95, 0.99)
RUNS = 300
ALPHA = 1e-7
"""Of each verdict, were the seeds not fixed."""


def ends(interval: Interval, level: float) -> tuple[float, float]:
    """Of an interval that was read at every level."""
    if level == confidence.LEVEL:
        return interval.lower, interval.upper
    # What `at_every_level` made has the others too.
    return interval.others[confidence.OTHERS.index(level)]  # type: ignore[attr-defined]


def holds(hits: int, runs: int, level: float) -> bool:
    """Whether this number of hits is likely where an interval holds at its level."""
    return bool(scipy.stats.binom.cdf(hits, runs, level) >= ALPHA)


def errors(**law: Any) -> PredictedErrors:
    plain: dict[str, Any] = {
        "grid": UNIT,
        "laplaces": (),
        "dataset_variance": 0.0,
        "dataset_step": 0.0,
        "population_variance": 0.0,
        "population_step": 0.0,
        "exact": True,
    }
    return PredictedErrors(**plain | law)


SCALE = 0.004
NOISES: dict[str, tuple[dict[str, Any], Callable[[np.random.Generator, int], Any]]] = {
    "laplace": ({"laplaces": ((SCALE, 1),)}, lambda rng, n: rng.laplace(0, SCALE, n)),
    "gaussian": ({"normal": SCALE**2}, lambda rng, n: rng.normal(0, SCALE, n)),
    "sum": (
        {"laplaces": ((SCALE, 2), (2 * SCALE, 1))},
        lambda rng, n: rng.laplace(0, SCALE, (2, n)).sum(0) + rng.laplace(0, 2 * SCALE, n),
    ),
    "both": (
        {"laplaces": ((SCALE, 1),), "normal": SCALE**2},
        lambda rng, n: rng.laplace(0, SCALE, n) + rng.normal(0, SCALE, n),
    ),
}


@pytest.mark.parametrize("name", NOISES)
def test_an_exact_law_has_exactly_its_level(name: str) -> None:
    law, draw = NOISES[name]
    drawn = draw(np.random.default_rng(1), 200_000)
    read = at_every_level(lambda: errors(**law).conclude(Fraction(1, 2)))
    kept = {}
    for level in LEVELS:
        low, high = (end - 0.5 for end in ends(read.interval, level))
        kept[level] = float(np.mean((low <= drawn) & (drawn <= high)))
        assert kept[level] == pytest.approx(level, abs=6 * math.sqrt(level * (1 - level) / drawn.size))
    assert not holds(int(kept[0.8] * drawn.size), drawn.size, 0.95), "the control"


@pytest.mark.parametrize("normal", [False, True])
def test_all_steps_at_once_hold_with_the_level_that_is_asked_for(normal: bool) -> None:
    """Twenty steps from a twentieth on, in the units of the noise at share 1."""
    rng, runs, shares = np.random.default_rng(2), 20_000, np.arange(1, 21) / 20
    steps = looked_at(rng, runs, shares)
    if normal:
        # Backwards: noise at a smaller share is that at a larger one with more added.
        more = np.sqrt(np.diff(1 / shares[::-1], prepend=0.0))
        steps = np.cumsum(more[:, None] * rng.normal(size=(shares.size, runs)), axis=0)
    sizes = 1 / np.sqrt(shares[::-1]) if normal else 1 / shares[::-1]
    kept, once = {}, {}
    for level in LEVELS:
        missed = missed_once = np.zeros(runs, dtype=bool)
        for drawn, size in zip(steps, sizes, strict=True):
            anytime = Anytime(
                steps=Steps(firsts=[50_000], places=[1], step=1, normal=normal),
                noises=(SCALE * size,),
                laplaces=(),
                normal=0.0,
            )
            law = {"normal": (SCALE * size) ** 2} if normal else {"laplaces": ((SCALE * size, 1),)}
            read = at_every_level(partial(errors(anytime=anytime, **law).conclude, Fraction(1, 2)))
            assert read.anytime is not None
            missed = missed | (SCALE * abs(drawn) > ends(read.anytime, level)[1] - 0.5)
            missed_once = missed_once | (SCALE * abs(drawn) > ends(read.interval, level)[1] - 0.5)
        kept[level], once[level] = runs - int(missed.sum()), runs - int(missed_once.sum())
        assert holds(kept[level], runs, level)
        assert not holds(once[level], runs, level), "the control: an interval of one step"
    assert not holds(kept[0.8], runs, 0.99)


def looked_at(rng: np.random.Generator, runs: int, shares: np.ndarray) -> np.ndarray:
    """Refined Laplace noise of scale 1 / share at each share, the smallest one last."""
    noise = rng.laplace(size=runs)
    steps = [noise]
    for larger, smaller in zip(shares[:0:-1], shares[-2::-1], strict=True):
        added = rng.random(runs) >= (smaller / larger) ** 2
        noise = noise + added * rng.laplace(size=runs) / smaller
        steps.append(noise)
    return np.array(steps)


@pytest.mark.parametrize("steps", [2, 10, 20, 200])
def test_a_difference_of_labels_is_within_its_bound_at_all_steps(steps: int) -> None:
    """An analyst who stops at will, over 2,000 questions."""
    rng, runs, shares = np.random.default_rng(5), 2_000, np.arange(1, steps + 1) / steps
    first = round(MICRO / steps)
    off = looked_at(rng, runs, shares) - looked_at(rng, runs, shares)
    nothing = ErrorBound(laplaces=(), normal=0.0, reach=0.0)
    missed = missed_once = np.zeros(runs, dtype=bool)
    for drawn, share in zip(off, shares[::-1], strict=True):
        own = AnytimeBound(
            steps=Steps(firsts=[first], places=[1], step=1, normal=False), noises=(1 / share,), rest=nothing
        )
        missed = missed | (abs(drawn) > AnytimeBound.weighted([(1.0, own), (-1.0, own)]).half_width())
        missed_once = missed_once | (
            abs(drawn) > ErrorBound(laplaces=((1 / share, 2),), normal=0.0, reach=0.0).half_width()
        )
    assert holds(runs - int(missed.sum()), runs, 0.95)
    assert steps == 2 or not holds(runs - int(missed_once.sum()), runs, 0.95), "the control"


def coverage(one: Callable[[np.random.Generator], tuple[Interval, float]], runs: int) -> dict[float, int]:
    """How many intervals hold what they are for, by level."""
    rng, hits = np.random.default_rng(3), dict.fromkeys(LEVELS, 0)
    for _ in range(runs):
        interval, truth = one(rng)
        for level in LEVELS:
            low, high = ends(interval, level)
            hits[level] += low <= truth <= high
    return hits


def test_hulls_of_a_ratio_have_the_level_that_is_asked_for() -> None:
    pivot = two_sums_pivot(1, normal=False)
    reader = PivotReader(grid=UNIT, cap=1.0, floor=1.0, pivot=pivot)

    def one(rng: np.random.Generator) -> tuple[Interval, float]:
        sums = np.array([60.0, 140.0]) + rng.laplace(size=2)
        values = [round(float(one) * pivot.unit) for one in sums]
        return at_every_level(lambda: reader.conclude(values)).interval, 0.3

    hits = coverage(one, RUNS)
    assert all(holds(hits[level], RUNS, level) for level in LEVELS)
    assert not holds(hits[0.8], RUNS, 0.95), "the control"


def test_shares_have_the_level_that_is_asked_for() -> None:
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO, count=500)
    weighing = weigh_public([group], 500, target_of(0), 0.0)
    plan = SharesPlan(bins=4, weighing=weighing, people=500)
    (weight,) = weighing.weights

    def one(rng: np.random.Generator) -> tuple[Interval, float]:
        noise = rng.laplace(0, plan.scale, 4)
        counts = [
            round(weight * people + off) for people, off in zip((100, 150, 50, 200), noise, strict=True)
        ]
        return at_every_level(lambda: plan.read(counts)).bins[0].interval, 0.2

    hits = coverage(one, RUNS)
    assert all(holds(hits[level], RUNS, level) for level in LEVELS)
    assert not holds(hits[0.8], RUNS, 0.95), "the control"


def test_cells_of_a_quantile_have_the_level_that_is_asked_for() -> None:
    values = np.sort(np.random.default_rng(4).integers(0, GRID_SIZE, 400))
    group = Group(trust=Trust.CENTRAL, epsilon=MICRO // 4, count=400)
    weighing = weigh_public([group], 400, target_of(0), 0.0)
    plan = TreePlan(quantiles=(Fraction(1, 2),), weighing=weighing, people=400)
    (weight,) = weighing.weights
    truth = float(values[199]) / GRID_SIZE

    def one(rng: np.random.Generator) -> tuple[Interval, float]:
        drawn: list[Drawn] = []
        for level in range(plan.levels):
            starts = plan.starts(drawn)
            edges = np.searchsorted(values, [0, *starts, GRID_SIZE + 1])
            cells = len(starts) + 1
            # The noise of whole numbers is Laplace here: it has scales.
            scale = plan.noise_of(level, cells).scales[0]  # type: ignore[union-attr]
            noise = np.round(rng.laplace(0, scale, plan.sums(cells))).astype(np.int64)
            counts = [weight * int(number) for number in np.diff(edges)]
            drawn.append(plan.drawn(starts, counts, noise.tolist()))
        (found,) = at_every_level(lambda: list(plan.read(UNIT, drawn)))
        return found.interval, truth

    hits = coverage(one, RUNS)
    assert all(holds(hits[level], RUNS, level) for level in LEVELS)
    assert hits[0.8] <= hits[0.95] <= hits[0.99]
