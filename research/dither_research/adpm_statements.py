"""The heterogeneous paper's Table II, Example 2 and Remark 2."""

import math

import numpy as np

from app.core.epsilon import MICRO
from dither_research.adpm_figures import PAPER, SAMPLING_NOT_PRIVATE, two_groups
from dither_research.people import Bernoulli, Beta, central
from dither_research.published import (
    ldpe_square_error,
    public_and_private_error,
    sampling_inclusion,
    sampling_square_error,
    stretching_error,
    two_groups_error,
)
from dither_research.results import Bars, Check, Lines, Outcome, Reproduction, Row, Track
from dither_research.seeded import Floats, Random
from dither_research.simulation import moments, plan_of, simulate, square_error_of

PEOPLE = 1000
LAW = Beta(2, 3)

VARIANCES = {"high": (-4.0, 2.0), "low": (-3.0, -2.0)}
"""Where the logarithms of the epsilons are drawn from."""

PUBLISHED_SAMPLING = "sampling (published)"
"""The sampling mechanism as the paper has it."""

TABLE_2 = {
    "adpm": (-9.3, -8.1),
    "proportional": (-9.0, -8.1),
    "ldpe": (-7.2, -1.3),
    PUBLISHED_SAMPLING: (-6.5, -7.9),
    "fme": (-6.2, -6.2),
    "uniform": (-5.1, -7.1),
}
"""The paper's logarithms, high and low."""

KNOWN_VARIANCE = "optimal (variance known)"
OURS = ("sampling", KNOWN_VARIANCE)
"""What the product has beside the paper's methods."""


def draw_epsilons(variance: str, random: Random) -> Floats:
    """The epsilons of one column of the table."""
    low, high = VARIANCES[variance]
    epsilons: Floats = np.exp(random.uniform(low, high, PEOPLE))
    return epsilons


def log_errors(epsilons: Floats) -> dict[str, float]:
    """Natural logarithm of every method's mean square error on Beta(2, 3) data, for one draw of epsilons."""
    values, counts = np.unique(np.rint(epsilons * MICRO) / MICRO, return_counts=True)
    groups = [central(value, count) for value, count in zip(values.tolist(), counts.tolist(), strict=True)]
    found = {}
    for name in (*TABLE_2, "sampling"):
        if name == PUBLISHED_SAMPLING:
            inclusion = sampling_inclusion(epsilons)
            error = sampling_square_error(inclusion, float(epsilons.max()), LAW.variance)
        elif name == "ldpe":
            error = ldpe_square_error(epsilons, LAW.variance)
        else:
            error = moments(plan_of(name, groups), groups).square_error(LAW)
        found[name] = math.log(error)
    known = plan_of("optimal", groups, variance=LAW.variance, shrinkage="minimax")
    found[KNOWN_VARIANCE] = math.log(square_error_of(known))
    return found


def _table_2(runs: int, random: Random, track: Track) -> Outcome:
    drawn: dict[str, list[dict[str, float]]] = {variance: [] for variance in VARIANCES}
    for _ in track(range(runs)):
        for variance, made in drawn.items():
            made.append(log_errors(draw_epsilons(variance, random)))
    rows: list[Row] = []
    checks = []
    for column, (variance, made) in enumerate(drawn.items()):
        for name in (*TABLE_2, *OURS):
            values = np.array([one[name] for one in made])
            mean, spread = float(values.mean()), float(values.std(ddof=1)) if runs > 1 else 0.0
            stated = TABLE_2[name][column] if name in TABLE_2 else math.nan
            rows.append(
                {"method": name, "variance": variance, "paper": stated, "mean": mean, "spread": spread}
            )
            if name in TABLE_2:
                note = f"spread over draws {spread:.3f}"
                checks.append(
                    Check(quantity=f"{name}, {variance} variance", paper=stated, ours=mean, note=note)
                )
    return Outcome(rows=tuple(rows), checks=tuple(checks))


def _example_2(runs: int, random: Random, track: Track) -> Outcome:
    law = Bernoulli(1.0)
    rows: list[Row] = []
    for n in track((100, 200, 500, 1000, 2000, 5000, 10_000)):
        groups = two_groups(0.1, n, 0.5, 0.01)
        exact = stretching_error(0.01, 0.1, n, 0.5)
        made = simulate(plan_of("stretching", groups), groups, law, runs, random)
        simulated, error = made.square_error(1.0)
        rows.append({"method": "stretching", "n": n, "exact": exact, "simulated": simulated, "se": error})
        value = moments(plan_of("proportional", groups), groups).square_error(law)
        rows.append({"method": "proportional", "n": n, "exact": value, "simulated": math.nan, "se": math.nan})
    last = float(rows[-2]["simulated"])
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(
                quantity="limit of the error, bias squared",
                paper=0.05,
                ours=stretching_error(0.01, 0.1, 1e9, 0.5),
            ),
            Check(
                quantity="simulated at n = 10,000",
                paper=0.05 + 200 / 1e8,
                ours=last,
                note="the 0.05 is rounded: 0.225^2",
            ),
        ),
    )


def _remark_2(runs: int, random: Random, track: Track) -> Outcome:
    rows: list[Row] = []
    closed, product = 0.0, 0.0
    for n in track((100, 1000, 10_000, 100_000)):
        for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
            for epsilon in (0.01, 0.1, 1.0):
                groups = two_groups(math.inf, n, share, epsilon)
                errors = {
                    "Theorem 1(B)": two_groups_error(epsilon, math.inf, n, share),
                    "Remark 2": public_and_private_error(epsilon, n, share),
                } | {name: square_error_of(plan_of(name, groups)) for name in ("adpm", "ldpe", "uniform")}
                closed = max(closed, abs(errors["Remark 2"] / errors["Theorem 1(B)"] - 1))
                product = max(product, abs(errors["ldpe"] / errors["adpm"] - 1))
                if n == 1000:
                    rows += [
                        {"panel": f"epsilon_1 = {epsilon:g}", "method": name, "share": share, "error": error}
                        for name, error in errors.items()
                    ]
    return Outcome(
        rows=tuple(rows),
        checks=(
            Check(quantity="Remark 2 / Theorem 1(B) - 1, largest", paper=0.0, ours=closed),
            Check(
                quantity="ldpe / adpm - 1, the product's plans, largest",
                paper=0.0,
                ours=product,
                note="weights are whole micro-epsilons",
            ),
        ),
    )


TABLE_II = Reproduction(
    name="adpm-table-2",
    title="Logarithm of the mean square error for 1000 personal epsilons, Beta(2, 3) data",
    paper=f"{PAPER}, Table II",
    columns={
        "method": "estimator",
        "variance": "of the epsilons",
        "paper": "ln MSE in the paper, one draw of the epsilons",
        "mean": "ln MSE, mean over draws",
        "spread": "its standard deviation over draws",
    },
    figure=Bars(
        label="method",
        value="mean",
        series="variance",
        value_label="ln MSE  [range width²]",
        error="spread",
        mark="paper",
    ),
    runs=200,
    run="drawn profiles",
    compute=_table_2,
    errata=(
        "Unclear: the logarithm is natural, and each column is a single draw of the epsilons.",
        "Unclear: for personal epsilons the paper does not define ldpe. Every distinct epsilon is a group of "
        "its own, weighted by worst-case inverse variances; equal weights would give -0.7 and -1.05.",
        SAMPLING_NOT_PRIVATE,
    ),
)

EXAMPLE_2 = Reproduction(
    name="adpm-example-2",
    title="Stretching is biased: all data at one end, epsilons 0.01 and 0.1",
    paper=f"{PAPER}, Example 2",
    columns={
        "method": "estimator",
        "n": "people",
        "exact": "mean square error [range width squared]",
        "simulated": "the same, simulated",
        "se": "its standard error",
    },
    figure=Lines(
        x="n",
        y="exact",
        series="method",
        x_label="people n",
        y_label="MSE  [range width²]",
        log_x=True,
        log_y=True,
        levels=((0.225**2, "bias² = 0.0506"),),
    ),
    runs=20_000,
    run="simulated answers a point",
    compute=_example_2,
    errata=(
        "Not private: 'one can apply any homogeneous epsilon_max-DP algorithm' after stretching. It takes "
        "noise whose loss grows with the distance: staircase noise at epsilon_max = 1 costs a person who "
        "asked for 0.5 a whole 1.0. The product's `stretching` uses Laplace noise.",
    ),
)

REMARK_2 = Reproduction(
    name="adpm-remark-2",
    title="With a public group, ldpe is as good as adpm: an identity",
    paper=f"{PAPER}, Remark 2",
    columns={
        "panel": "epsilon of the private group",
        "method": "formula, or plan of the product",
        "share": "private part of 1000 people",
        "error": "worst-case mean square error [range width squared]",
    },
    figure=Lines(
        x="share",
        y="error",
        series="method",
        panel="panel",
        x_label="private part of 1000 people, f",
        y_label="worst-case MSE  [range width²]",
        log_y=True,
    ),
    runs=None,
    compute=_remark_2,
)
