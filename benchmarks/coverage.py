"""Do intervals hold where epsilon and value go together, and what does that cost where they do not?

Epsilons are lognormal about 0.5, values have a standard deviation of 0.15 of the range, and the two are
correlated by -r: those who ask for more privacy have the larger values. Each study is asked at tilt 0, which
is what the service answered before it knew of tilt, at 0.1, the default, and at 0.3.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from benchmarks.batches import send
from benchmarks.report import Ratio
from benchmarks.services import Caller, Installation, installation
from benchmarks.studies import definition

STUDIES = 400
QUICK_STUDIES = 10
SIZES = (300, 3000)
CORRELATIONS = (0.0, 0.2, 0.5)
TILTS = (0.0, 0.1, 0.3)
WIDTH = 120
QUESTIONS = 4
"""People offer this many times the epsilon of one question, and each question takes its share."""

COVERS = 0.94
ERROR = 0.7
EPSILON_MAX = 10
EPSILON_OFFERED = Decimal(QUESTIONS * EPSILON_MAX)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer: its error [range widths], and whether each interval holds its mean."""

    error: float
    holds: Mapping[str, bool]


def people(n: int, correlation: float, source: random.Random) -> list[tuple[float, float]]:
    """Epsilon for one question, and value in [0, 1]."""
    crowd = []
    for _ in range(n):
        deviation = source.gauss(0, 1)
        epsilon = min(max(math.exp(math.log(0.5) + deviation), 0.01), EPSILON_MAX)
        other = math.sqrt(1 - correlation**2) * source.gauss(0, 1)
        crowd.append((epsilon, min(max(0.5 + 0.15 * (other - correlation * deviation), 0.0), 1.0)))
    return crowd


def run(*, quick: bool) -> list[Ratio]:
    """Studies of every size and correlation; each is a batch over HTTP and a release for every tilt."""
    studies = QUICK_STUDIES if quick else STUDIES
    found: dict[tuple[int, float, float], list[Outcome]] = {}
    with installation() as here:
        kinds = [(n, r, number) for n in SIZES for r in CORRELATIONS for number in range(studies)]
        here.create(
            replace(definition(_slug(*kind), epsilon_max=EPSILON_OFFERED), tilt=100_000) for kind in kinds
        )
        lifetime = {"DITHER_LIFETIME_EPSILON": str(QUESTIONS * EPSILON_MAX)}
        with here.serve(workers=2, settings=lifetime) as port, ThreadPoolExecutor(2) as pool:
            for kind, outcomes in zip(
                kinds, pool.map(lambda kind: _ask(here, port, *kind), kinds), strict=True
            ):
                for tilt, outcome in zip(TILTS, outcomes, strict=True):
                    found.setdefault((kind[0], kind[1], tilt), []).append(outcome)
    return list(_ratios(found, studies))


def _slug(n: int, correlation: float, number: int) -> str:
    return f"n{n}-r{correlation * 10:.0f}-{number}"


def _ask(here: Installation, port: int, n: int, correlation: float, number: int) -> list[Outcome]:
    slug = _slug(n, correlation, number)
    crowd = people(n, correlation, random.Random(slug))
    rows = [
        f"{slug}-{index},{WIDTH * value:.6f},{QUESTIONS * epsilon:.6f},central"
        for index, (epsilon, value) in enumerate(crowd)
    ]
    send(port, here, slug, "csv", "\n".join(["subject,value,epsilon,trust", *rows]).encode())
    mean = math.fsum(round(WIDTH * value, 6) for _, value in crowd) / n
    outcomes = []
    with Caller(port) as caller:
        for tilt in TILTS:
            path = f"/v1/studies/{slug}/statistics/mean?share={1 / QUESTIONS}&tilt={tilt}"
            answer = caller.call("GET", path, here.analyse)
            outcomes.append(
                Outcome(
                    error=(answer["estimate"] - mean) / WIDTH,
                    holds={
                        name: answer[name]["lower"] <= truth <= answer[name]["upper"]
                        for name, truth in (("interval", mean), ("population_interval", WIDTH / 2))
                    },
                )
            )
    return outcomes


def _ratios(found: dict[tuple[int, float, float], list[Outcome]], studies: int) -> Iterator[Ratio]:
    note = (
        f"coverage: {studies} studies each; r: correlation of value and -ln epsilon; tilt 0: the answers "
        "before there was a tilt"
    )
    for name in ("interval", "population_interval"):
        for (n, correlation, tilt), outcomes in found.items():
            promised = tilt == 0.3 or (tilt == 0.1 and correlation <= 0.2)
            yield Ratio(
                section=name,
                name=f"{name.replace('_', ' ')}, n {n}, r {correlation}, tilt {tilt}",
                unit="covers",
                subject=[sum(outcome.holds[name] for outcome in outcomes) / len(outcomes)],
                baseline=[COVERS],
                goal=1 if promised else None,
                note=note,
            )
    for (n, correlation, tilt), outcomes in found.items():
        if tilt == 0:
            crowds = [people(n, correlation, random.Random(_slug(n, correlation, i))) for i in range(studies)]
            least = math.fsum(map(hindsight, crowds)) / studies
            yield Ratio(
                section="error",
                name=f"error in hindsight beside tilt 0, n {n}, r {correlation}",
                unit="ranges",
                subject=[math.sqrt(least)],
                baseline=[_root_mean_square(outcomes)],
                better="lower",
                note="in hindsight: weights min(epsilon, tau), the best tau of each study, all values known; "
                "no tau can err less",
            )
            continue
        yield Ratio(
            section="error",
            name=f"error beside tilt 0, n {n}, r {correlation}, tilt {tilt}",
            unit="ranges",
            subject=[_root_mean_square(outcomes)],
            baseline=[_root_mean_square(found[n, correlation, 0.0])],
            goal=ERROR if correlation == 0.5 else None,
            better="lower",
            note=note,
        )


def hindsight(crowd: Sequence[tuple[float, float]]) -> float:
    """The smallest mean square error of weights min(epsilon, tau), over all tau, for these very values."""
    epsilons, values = np.array(crowd).T

    def error(tau: float) -> float:
        weights = np.minimum(epsilons, tau)
        mass = float(weights.sum())
        return (float(weights @ values) / mass - float(values.mean())) ** 2 + 2 / mass**2

    return min(error(tau) for tau in np.geomspace(float(epsilons.min()), float(epsilons.max()), 200))


def _root_mean_square(outcomes: Sequence[Outcome]) -> float:
    return math.sqrt(math.fsum(outcome.error**2 for outcome in outcomes) / len(outcomes))
