"""The product's default search for a minimum beside the paper's, over tails, people and epsilons."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.sessions.search import Rules
from dither_research.minimum import (
    DEPTHS,
    EPSILONS,
    ERRORS_BY_PEOPLE,
    GAMMA_ABOVE_ONE,
    PAPER,
    SIZES,
    Errors,
    search_errors,
)
from dither_research.results import Check, Outcome, Reproduction, Row, Track, untracked
from dither_research.searching import default_rules, paper_rules
from dither_research.seeded import Random

ALPHAS = (0.5, 1.0, 2.0, 4.0)
AT_MOST = 0.4
"""What the default's error may be of the paper's, in the geometric mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Geometric mean, over settings, of one search's mean error over another's.

    Attributes:
        value: The mean.
        uncertainty: Standard error of its logarithm, from the spread over runs.
    """

    value: float
    uncertainty: float


def ratio(pairs: Sequence[tuple[Errors, Errors]]) -> Ratio:
    """Compare two searches, setting by setting.

    Args:
        pairs: Errors of the one and of the other, independent.
    """
    logarithms = [math.log(ours.mean / theirs.mean) for ours, theirs in pairs]
    relative = [(errors.uncertainty / errors.mean) ** 2 for pair in pairs for errors in pair]
    return Ratio(
        value=math.exp(math.fsum(logarithms) / len(pairs)),
        uncertainty=math.sqrt(math.fsum(relative)) / len(pairs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One point of the comparison.

    Attributes:
        alpha: Fatness of the minimum's tail: Beta(alpha, 1) on a support of width 0.3.
        people: N.
        ours: Errors of the default.
        paper: Errors of the paper's search, by depth.
    """

    alpha: float
    people: int
    ours: Errors
    paper: dict[str, Errors]


def compare(
    epsilon: float,
    runs: int,
    random: Random,
    *,
    sizes: Sequence[int] = SIZES,
    track: Track = untracked,
    ours: Sequence[Rules] | None = None,
) -> list[Setting]:
    """The default against the paper's search in every setting of one epsilon.

    Args:
        epsilon: Of one person.
        runs: Searches at each of six places of the support.
        random: The source.
        sizes: Values of N.
        track: Progress.
        ours: Other rules than the default, one a size.
    """
    rules = ours or [default_rules(n, epsilon) for n in sizes]
    return [
        Setting(
            alpha=alpha,
            people=n,
            ours=search_errors(mine, runs, random, alpha=alpha),
            paper={
                name: search_errors(paper_rules(n, epsilon, depth), runs, random, alpha=alpha)
                for name, depth in DEPTHS.items()
            },
        )
        for alpha in ALPHAS
        for n, mine in track(list(zip(sizes, rules, strict=True)))
    ]


def _compute(runs: int, random: Random, track: Track) -> Outcome:
    rows: list[Row] = []
    checks: list[Check] = []
    for epsilon in EPSILONS:
        found = compare(epsilon, runs, random, track=track)
        for setting in found:
            panel = f"alpha = {setting.alpha:g}, epsilon = {epsilon:g}"
            series = {"the product": setting.ours} | {
                f"paper, {name}": errors for name, errors in setting.paper.items()
            }
            rows += [
                {
                    "panel": panel,
                    "series": name,
                    "x": setting.people,
                    "error": errors.mean,
                    "se": errors.uncertainty,
                    "q95": errors.high,
                }
                for name, errors in series.items()
            ]
        for name in DEPTHS:
            over = ratio([(setting.ours, setting.paper[name]) for setting in found])
            worst = max(setting.ours.mean / setting.paper[name].mean for setting in found)
            checks.append(
                Check(
                    quantity=f"the product's error over the paper's ({name}) at epsilon = {epsilon:g}",
                    paper="-",
                    ours=over.value,
                    note=f"geometric mean; at most {AT_MOST:g} is wanted; the worst setting {worst:.2f}",
                )
            )
    return Outcome(rows=tuple(rows), checks=tuple(checks))


DEFAULT = Reproduction(
    name="minimum-default",
    title="The product's search for a minimum and the paper's: Beta(alpha, 1) on a support of width 0.3",
    paper=f"{PAPER}, settings of section 6; not a figure of the paper",
    columns={
        "panel": "fatness of the tail, and epsilon",
        "series": "method",
        "x": "people N",
        "error": "mean absolute error, worst of six places of the support [data units, range 2]",
        "se": "its standard error",
        "q95": "95 % quantile of the error over runs",
    },
    figure=replace(ERRORS_BY_PEOPLE, error="se"),
    runs=400,
    run="searches at each place",
    compute=_compute,
    errata=(GAMMA_ABOVE_ONE,),
)
