"""The heterogeneous paper's Figure 1: two groups of people."""

import math

import numpy as np

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.estimators.adpm import saturation_point
from dither_research.people import Bernoulli, Beta, Law, central, public
from dither_research.published import (
    sampling_inclusion,
    sampling_square_error,
    saturation_ratio,
    two_groups_error,
)
from dither_research.results import Check, Lines, Outcome, Reproduction, Row, Track
from dither_research.seeded import Random
from dither_research.simulation import moments, plan_of, simulate, square_error_of

PAPER = "Chaudhuri, Courtade, arXiv:2305.09668"

UNIFORM = Beta(1, 1)

SMALLER = 0.1
LARGER = 0.15
SIZES = (1000, 1500, 2000, 3000, 4000, 5000, 6000, 8000, 10_000)
EPSILONS = (0.100001, *(round(0.1 + 0.0125 * step, 4) for step in range(1, 25)))
"""Of the second group; never quite the first one's, or it would be a single group to ldpe."""

COMPARED = ("adpm", "proportional", "ldpe", "uniform")
_METHODS = (*COMPARED, "sampling")
"""The last one as published, in closed form."""

SAMPLING_NOT_PRIVATE = (
    "Not private: the sampling mechanism with noise of scale 1 / (m t) shows the sample's size m. A person "
    "who asks for 0.05 loses 0.0655 when m = 1 and t = 0.1, and 0.0522 at m = 10. The product's `sampling` "
    "divides by a public size instead."
)


def two_groups(larger: float, n: int, share: float, smaller: float = SMALLER) -> list[Group]:
    """A part of n people with the smaller epsilon, the others with the larger one; infinite means public."""
    first = round(n * share)
    rest = public(n - first) if math.isinf(larger) else central(larger, n - first)
    return [central(smaller, first), rest]


def _exact(method: str, groups: list[Group], law: Law) -> float:
    """Mean square error about the population's mean."""
    if method in COMPARED:
        return moments(plan_of(method, groups), groups).square_error(law)
    epsilons = np.repeat([group.epsilon / MICRO for group in groups], [group.count for group in groups])
    return sampling_square_error(sampling_inclusion(epsilons), float(epsilons.max()), law.variance)


def _figure_1a(runs: int, random: Random, track: Track) -> Outcome:
    rows: list[Row] = []
    ends: dict[tuple[str, int], float] = {}
    worst = 0.0
    for n in track(SIZES):
        groups = two_groups(LARGER, n, 0.5)
        for method in _METHODS:
            exact = (_exact(method, groups, UNIFORM) - UNIFORM.variance / n) * n**2
            ends[method, n] = exact
            simulated, error = math.nan, math.nan
            if method in COMPARED:
                made = simulate(plan_of(method, groups), groups, UNIFORM, runs, random)
                simulated, error = (value * n**2 for value in made.excess(UNIFORM.mean))
                worst = max(worst, abs(simulated - exact) / error) if error else worst
            rows.append({"method": method, "n": n, "exact": exact, "simulated": simulated, "se": error})
    first, last = SIZES[0], SIZES[-1]
    rises = {name: ends[name, last] / ends[name, first] for name in ("sampling", "adpm")}
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(quantity="uniform: 2 / epsilon_1^2 at every n", paper=200.0, ours=ends["uniform", 5000]),
            Check(
                quantity="sampling close to adpm, but rising with n",
                paper="upward trend",
                ours=f"x {rises['sampling']:.2f} from n = {first} to {last}",
                note=f"adpm: x {rises['adpm']:.2f}",
            ),
            Check(
                quantity="ldpe worse than adpm and uniform at n = 5000",
                paper="worse",
                ours=f"{ends['ldpe', 5000]:.1f} against {ends['adpm', 5000]:.1f} and 200",
            ),
            Check(
                quantity="proportional against adpm at n = 5000",
                paper="-",
                ours=f"{ends['proportional', 5000]:.1f} against {ends['adpm', 5000]:.1f}",
                note="adpm minimizes the worst case, not the error on Uniform data",
            ),
            Check(
                quantity="largest |simulated - exact| [standard errors]",
                paper="-",
                ours=worst,
            ),
        ),
    )


def _figure_1b(runs: int, random: Random, track: Track) -> Outcome:
    n, share, law = 1000, 0.7, Bernoulli()
    rows: list[Row] = []
    for larger in track(EPSILONS):
        groups = two_groups(larger, n, share)
        for method in _METHODS:
            simulated, error = math.nan, math.nan
            if method in COMPARED:
                made = simulate(plan_of(method, groups), groups, law, runs, random)
                simulated, error = (value * 1e4 for value in made.square_error(law.mean))
            exact = _exact(method, groups, law) * 1e4
            rows.append(
                {
                    "method": method,
                    "epsilon_2": larger,
                    "exact": exact,
                    "simulated": simulated,
                    "se": error,
                }
            )
    stated = saturation_ratio(SMALLER, n * share) * SMALLER
    tau = saturation_point(np.array([SMALLER]), np.array([n * share]), public=True)
    plain, free = (plan_of("adpm", two_groups(larger, n, share)) for larger in (0.3, math.inf))
    gain = square_error_of(plain) / square_error_of(free) - 1
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(quantity="adpm saturates at R epsilon_1", paper=stated, ours=tau),
            Check(quantity="gain of public data over epsilon_2 = 0.3", paper=0.0, ours=gain),
            Check(
                quantity="mean square error from there on, 1e4 times (Theorem 1)",
                paper=two_groups_error(SMALLER, math.inf, n, share) * 1e4,
                ours=square_error_of(free) * 1e4,
            ),
            Check(
                quantity="proportional beyond that point",
                paper="worse",
                ours=f"x {_ratio(rows, 'proportional', 'adpm', EPSILONS[-1]):.2f} of adpm at {EPSILONS[-1]}",
            ),
        ),
    )


def _ratio(rows: list[Row], method: str, other: str, epsilon: float) -> float:
    found = {row["method"]: float(row["exact"]) for row in rows if row["epsilon_2"] == epsilon}
    return found[method] / found[other]


FIGURE_1A = Reproduction(
    name="adpm-figure-1a",
    title="Second-order error against n: epsilons 0.1 and 0.15, half of the people each, Uniform data",
    paper=f"{PAPER}, Figure 1(A)",
    columns={
        "method": "estimator",
        "n": "people",
        "exact": "(mean square error - 1/12n) n^2, from the plan [range width squared]",
        "simulated": "the same, simulated",
        "se": "its standard error",
    },
    figure=Lines(
        x="n",
        y="exact",
        series="method",
        x_label="people n",
        y_label="(MSE - 1/12n) n²  [range width²]",
    ),
    runs=20_000,
    run="simulated answers a point",
    compute=_figure_1a,
    errata=(SAMPLING_NOT_PRIVATE,),
)

FIGURE_1B = Reproduction(
    name="adpm-figure-1b",
    title="Error against the larger epsilon: epsilon_1 = 0.1, f = 0.7, n = 1000, coins on the ends",
    paper=f"{PAPER}, Figure 1(B)",
    columns={
        "method": "estimator",
        "epsilon_2": "the larger epsilon",
        "exact": "10^4 mean square error, from the plan [range width squared]",
        "simulated": "the same, simulated",
        "se": "its standard error",
    },
    figure=Lines(
        x="epsilon_2",
        y="exact",
        series="method",
        x_label="epsilon of the second group",
        y_label="10⁴ MSE  [range width²]",
        verticals=((saturation_ratio(SMALLER, 700) * SMALLER, "R ε₁"),),
    ),
    runs=20_000,
    run="simulated answers a point",
    compute=_figure_1b,
    errata=(SAMPLING_NOT_PRIVATE,),
)
