"""The heterogeneous paper's Figures 3 and 4: an earlier estimator beside its own."""

import math

from dither_research.adpm_figures import EPSILONS, LARGER, PAPER, SIZES, UNIFORM, two_groups
from dither_research.people import Bernoulli
from dither_research.published import saturation_ratio
from dither_research.results import Check, Lines, Outcome, Reproduction, Row, Track
from dither_research.seeded import Random
from dither_research.simulation import moments, plan_of


def _figure_3(runs: int, random: Random, track: Track) -> Outcome:
    methods = ("adpm", "ldpe", "fme")
    rows: list[Row] = []
    last: dict[str, float] = {}
    for n in track(SIZES):
        groups = two_groups(LARGER, n, 0.5)
        for name in methods:
            value = (moments(plan_of(name, groups), groups).square_error(UNIFORM) - UNIFORM.variance / n) * n
            rows.append({"panel": "(E - 1/12n) n against n", "method": name, "x": n, "y": value})
            last[name] = value
    for larger in track(EPSILONS):
        groups = two_groups(larger, 1000, 0.7)
        for name in methods:
            value = moments(plan_of(name, groups), groups).square_error(Bernoulli()) * 1e4
            rows.append({"panel": "E 10^4 against epsilon_2", "method": name, "x": larger, "y": value})
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(
                quantity="fme against adpm at n = 10,000",
                paper="an order of magnitude worse",
                ours=f"x {last['fme'] / last['adpm']:.0f}",
                note="fme reconstructed",
            ),
        ),
    )


def _figure_4(runs: int, random: Random, track: Track) -> Outcome:
    smaller, n = 0.01, 10_000
    rows: list[Row] = []
    most: dict[str, float] = {}
    for step in track(range(49)):
        larger = smaller * 10 ** (step / 24)
        groups = two_groups(larger, n, 0.5, smaller)
        for name in ("adpm", "fme"):
            (query,) = plan_of(name, groups).queries
            first, second = query.sum_weights
            rows.append({"method": name, "epsilon_2": larger, "ratio": second / first})
            most[name] = second / first
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(quantity="fme: largest ratio of weights", paper=math.sqrt(2), ours=most["fme"]),
            Check(
                quantity="adpm: largest ratio of weights, R",
                paper=saturation_ratio(smaller, n / 2),
                ours=most["adpm"],
            ),
        ),
    )


FIGURE_3 = Reproduction(
    name="adpm-figure-3",
    title="Fallah et al.'s estimator beside adpm and ldpe, settings of Figure 1",
    paper=f"{PAPER}, Figure 3",
    columns={
        "panel": "(A) or (B)",
        "method": "estimator",
        "x": "n, or the larger epsilon",
        "y": "what the panel says [range width squared]",
    },
    figure=Lines(
        x="x",
        y="y",
        series="method",
        panel="panel",
        x_label="n, or epsilon of the second group",
        y_label="error  [range width²]",
        log_y=True,
        share_y=False,
    ),
    runs=None,
    compute=_figure_3,
    errata=(
        "Unclear: the paper only cites the estimator. It is reconstructed as weights min(epsilon, "
        "1/sqrt(n-k)), which gives both values of Table II, the ratio sqrt 2 of Example 1 and the 2/n here.",
    ),
)

FIGURE_4 = Reproduction(
    name="adpm-figure-4",
    title="Ratio of the two groups' weights: epsilon_1 = 0.01, n = 10,000, f = 0.5",
    paper=f"{PAPER}, Figure 4 and Example 1",
    columns={
        "method": "estimator",
        "epsilon_2": "the larger epsilon",
        "ratio": "weight of the second group over the first's",
    },
    figure=Lines(
        x="epsilon_2",
        y="ratio",
        series="method",
        x_label="epsilon of the second group",
        y_label="w₂ / w₁",
        log_x=True,
        log_y=True,
        levels=((math.sqrt(2), "√2"), (saturation_ratio(0.01, 5000), "R")),
    ),
    runs=None,
    compute=_figure_4,
)
