"""The product's search for a quantile beside the one that halves the range, over shapes and sizes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainc, ndtr

from app.core.grid import GRID_SIZE
from app.sessions.accuracy import accuracy
from app.sessions.response import Tally, truth_probability
from app.sessions.search import Mode, Rules, Search, Target, advance, make_rules
from dither_research.minimum import ERRORS_BY_PEOPLE, Errors
from dither_research.minimum_default import ratio
from dither_research.people import micro
from dither_research.results import Check, Outcome, Reproduction, Row, Track
from dither_research.seeded import Random
from dither_research.simulation import average

SIZES = (2_000, 10_000, 100_000)
EPSILONS = (1.0, 4.0)
QUANTILES = (0.25, 0.5, 0.9)
AT_MOST = 0.75
"""What the rank error may be of the former search's, in the geometric mean, at every epsilon and size."""

Cumulative = Callable[[float], float]
"""The fraction of people at or below a part of the range."""

_HIGHEST_MINUTE = 120


def _bell(x: float) -> float:
    return float(ndtr((x - 0.5) / 0.15))


def _skewed(x: float) -> float:
    return float(ndtr(math.log(x) + 4)) if x > 0 else 0.0


def _two_groups(x: float) -> float:
    return float(ndtr((x - 0.2) / 0.05) + 2 * ndtr((x - 0.7) / 0.1)) / 3


def _minutes(x: float) -> float:
    """Whole minutes: 121 values, which many people share."""
    return float(gammainc(2.2, (math.floor(x * _HIGHEST_MINUTE) + 0.5) / 14))


SHAPES: Mapping[str, Cumulative] = {
    "even": lambda x: x,
    "bell": _bell,
    "skewed": _skewed,
    "two groups": _two_groups,
    "whole minutes": _minutes,
}
"""Laws of values; what lies outside of the range is at its ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What many searches found.

    Attributes:
        errors: How far the rank of the estimate is from the quantile.
        covered: The part of the searches whose interval has the quantile.
        rank_kept: The part of them whose rank is as near as they say.
    """

    errors: Errors
    covered: float
    rank_kept: float


def quantile_rules(
    people: int, epsilon: float, quantile: float, *, halving: bool = False, mode: Mode = Mode.USER_SPLIT
) -> Rules:
    """The rules of a quantile for which nothing else was chosen.

    Args:
        people: N.
        epsilon: Of one person.
        quantile: The fraction that is looked for.
        halving: The former search: every round halves the interval, whose middle is the estimate.
        mode: How each epsilon is used.
    """
    rules = make_rules(
        target=Target.QUANTILE, epsilon=micro(epsilon), participants=people, quantile=quantile, mode=mode
    )
    return replace(rules, posterior=not halving)


def search(rules: Rules, shape: Cumulative, random: Random) -> Search:
    """One search among people whose values are drawn from a shape.

    Args:
        rules: Of the search.
        shape: The law.
        random: The source.
    """
    truth, people = truth_probability(rules.epsilon_per_answer), rules.people_per_round
    found = Search(rules=rules)
    while not found.finished:
        yes = random.binomial(people, min(max(_at_most(shape, found.threshold), 0.0), 1.0))
        positives = random.binomial(yes, truth) + random.binomial(people - yes, 1 - truth)
        found = advance(found, Tally(answers=people, positives=int(positives)))
    return found


def rank_error(shape: Cumulative, quantile: float, estimate: float) -> float:
    """How far an estimate's rank [grid steps] is from the quantile; a tie has every rank of its people."""
    at_most = _at_most(shape, math.floor(estimate))
    less = _at_most(shape, math.ceil(estimate) - 1)
    return max(less - quantile, quantile - at_most, 0.0)


def covers(shape: Cumulative, quantile: float, lower: int, upper: int) -> bool:
    """Whether an interval [grid steps] has the quantile."""
    return _at_most(shape, lower - 1) < quantile <= _at_most(shape, upper)


def measure(rules: Rules, shape: Cumulative, runs: int, random: Random) -> Found:
    """The errors of many searches.

    Args:
        rules: Of a quantile.
        shape: The law of values.
        runs: Searches.
        random: The source.
    """
    assert rules.quantile is not None, "only a quantile has a rank"
    errors, covered, kept = np.empty(runs), 0, 0
    for run in range(runs):
        found = search(rules, shape, random)
        errors[run] = rank_error(shape, rules.quantile, found.estimate)
        covered += covers(shape, rules.quantile, found.lower, found.upper)
        kept += errors[run] <= accuracy(found).missed_fraction
    mean, uncertainty = average(errors)
    low, high = (float(value) for value in np.quantile(errors, (0.05, 0.95)))
    return Found(
        errors=Errors(mean=mean, low=low, high=high, uncertainty=uncertainty),
        covered=covered / runs,
        rank_kept=kept / runs,
    )


def compare(
    people: int, epsilon: float, runs: int, random: Random, *, quantiles: Sequence[float] = QUANTILES
) -> dict[tuple[str, float], tuple[Found, Found]]:
    """The product's search and the former one, by shape and quantile.

    Args:
        people: N.
        epsilon: Of one person.
        runs: Searches in each setting.
        random: The source.
        quantiles: What is looked for.
    """
    return {
        (name, quantile): (
            measure(quantile_rules(people, epsilon, quantile), shape, runs, random),
            measure(quantile_rules(people, epsilon, quantile, halving=True), shape, runs, random),
        )
        for name, shape in SHAPES.items()
        for quantile in quantiles
    }


def _at_most(shape: Cumulative, point: int) -> float:
    if point >= GRID_SIZE:
        return 1.0
    return shape(point / GRID_SIZE) if point >= 0 else 0.0


def _compute(runs: int, random: Random, track: Track) -> Outcome:
    rows: list[Row] = []
    checks: list[Check] = []
    covered, rank_kept = [], []
    for people, epsilon in track([(people, epsilon) for people in SIZES for epsilon in EPSILONS]):
        settings = compare(people, epsilon, runs, random)
        for (name, quantile), (ours, former) in settings.items():
            for series, found in (("the product", ours), ("halving", former)):
                rows.append(
                    {
                        "panel": f"{name}, epsilon = {epsilon:g}",
                        "series": f"{series}, q = {quantile:g}",
                        "x": people,
                        "error": found.errors.mean,
                        "se": found.errors.uncertainty,
                        "covered": found.covered,
                    }
                )
        pairs = [(ours.errors, former.errors) for ours, former in settings.values()]
        worst = max(settings, key=lambda key: settings[key][0].errors.mean / settings[key][1].errors.mean)
        covered += [ours.covered for ours, _ in settings.values()]
        rank_kept += [ours.rank_kept for ours, _ in settings.values()]
        checks.append(
            Check(
                quantity=f"rank error over halving's, n = {people}, epsilon = {epsilon:g}",
                paper="-",
                ours=ratio(pairs).value,
                note=f"at most {AT_MOST:g} is wanted; worst: {worst[0]}, "
                f"q = {worst[1]:g}: {settings[worst][0].errors.mean / settings[worst][1].errors.mean:.2f}",
            )
        )
    checks += [
        Check(
            quantity="least part of intervals that hold",
            paper="-",
            ours=min(covered),
            note="stated: 0.95",
        ),
        Check(
            quantity="least part of ranks as near as stated",
            paper="-",
            ours=min(rank_kept),
            note="stated: 0.95",
        ),
    ]
    return Outcome(rows=tuple(rows), checks=tuple(checks))


DEFAULT = Reproduction(
    name="quantile-default",
    title="The product's search for a quantile and one that halves the range, with the same answers",
    paper="no figure of a paper",
    columns={
        "panel": "law of the values, and epsilon",
        "series": "method, and the quantile",
        "x": "people N",
        "error": "mean distance of the estimate's rank from the quantile",
        "se": "its standard error",
        "covered": "part of the intervals that have the quantile; halving states none",
    },
    figure=replace(ERRORS_BY_PEOPLE, y_label="mean rank error", error="se"),
    runs=200,
    run="searches in each setting",
    compute=_compute,
)
