"""K-means of two rounds against the better of its two parts and against K-means without privacy."""

from dataclasses import dataclass

import numpy as np

from app.core.epsilon import MICRO
from app.sessions.kmeans import ClusterRules
from dither_research.clustering import (
    EPSILON,
    PUBLIC_CENTERS,
    SHARES,
    People,
    best_centers,
    draw_points,
    run,
    square_sum,
)
from dither_research.hybrid import PAPER
from dither_research.results import Bars, Check, Outcome, Reproduction, Row, Track, untracked
from dither_research.seeded import Floats, Random
from dither_research.simulation import average

RULES = ClusterRules(dimension=2, clusters=4, rounds=2, epsilon=EPSILON * MICRO)
OVER_BETTER = 1.15
"""What the hybrid's mean sum of squares may be of the better part's."""

OVER_OPTIMUM = 1.1
"""What it may be of the sum of squares without privacy, with 1 % central people."""

CENTRAL, LOCAL, HYBRID = "central people only", "all people local", "hybrid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums of squares of many sessions, in units of what K-means without privacy reaches on the same points.

    Attributes:
        found: By method and share of central people: float64 array of shape (runs,).
        optimum: Mean sum of squares without privacy [range width squared].
    """

    found: dict[tuple[str, float], Floats]
    optimum: float

    def mean(self, method: str, share: float) -> float:
        """Mean over runs."""
        return float(self.found[method, share].mean())

    def over_better(self, share: float) -> float:
        """The hybrid's mean over the better one's of what can be done without it."""
        return self.mean(HYBRID, share) / min(self.mean(name, share) for name in (CENTRAL, LOCAL))


def compare(runs: int, random: Random, track: Track = untracked) -> Sums:
    """Run sessions on fresh points with fresh noise; the sums are taken outside of the session.

    Args:
        runs: Sessions of each kind.
        random: The source.
        track: Progress.
    """
    found: dict[tuple[str, float], list[float]] = {}
    absent = np.zeros((0, 2))
    optima = []
    for _ in track(range(runs)):
        points = draw_points(random)
        optima.append(square_sum(points, best_centers(points, PUBLIC_CENTERS)))
        all_local = People(central=absent, local=points)
        full = square_sum(points, run(all_local, RULES, random))
        for share in SHARES:
            cut = round(share * len(points))
            trusting, others = points[:cut], points[cut:]
            parts = {
                CENTRAL: People(central=trusting, local=absent),
                HYBRID: People(central=trusting, local=others),
            }
            sums = {name: square_sum(points, run(people, RULES, random)) for name, people in parts.items()}
            for name, value in {LOCAL: full, **sums}.items():
                found.setdefault((name, share), []).append(value / optima[-1])
    return Sums(
        found={key: np.array(values) for key, values in found.items()}, optimum=float(np.mean(optima))
    )


def _compute(runs: int, random: Random, track: Track) -> Outcome:
    sums = compare(runs, random, track)
    rows: list[Row] = []
    for (method, share), values in sums.found.items():
        mean, error = average(values)
        rows.append(
            {
                "share": f"{share:.1%} central",
                "method": method,
                "ratio": mean,
                "se": error,
                "worst": float(values.max()),
            }
        )
    checks = [Check(quantity="WCSS of K-means without privacy", paper="-", ours=sums.optimum)]
    for share in SHARES:
        checks += [
            Check(
                quantity=f"hybrid over the better part, {share:.1%} central",
                paper="about 1",
                ours=sums.over_better(share),
                note=f"at most {OVER_BETTER:g} is wanted",
            ),
            Check(
                quantity=f"hybrid over K-means without privacy, {share:.1%} central",
                paper="-",
                ours=sums.mean(HYBRID, share),
                note=f"at most {OVER_OPTIMUM:g} is wanted" if share == max(SHARES) else "",
            ),
        ]
    return Outcome(rows=tuple(rows), checks=tuple(checks))


TWO_ROUNDS = Reproduction(
    name="hybrid-kmeans",
    title="K-means of two rounds: 4 clusters of 40,000 points, sigma 0.028, epsilon = 7",
    paper=f"{PAPER}, setting of Figure 6; not a figure of the paper",
    columns={
        "share": "people who trust the curator",
        "method": "who takes part",
        "ratio": "within-cluster sum of squares over that of K-means without privacy, mean over runs",
        "se": "its standard error",
        "worst": "the largest of the runs",
    },
    figure=Bars(
        label="share",
        value="ratio",
        series="method",
        value_label="WCSS over that without privacy",
        error="se",
        log_value=True,
    ),
    runs=20,
    run="sessions of each kind",
    compute=_compute,
)
