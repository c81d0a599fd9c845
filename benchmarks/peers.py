"""What other libraries answer: OpenDP in this process, diffprivlib in an environment of its own."""

import json
import math
import subprocess
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import opendp.prelude as dp

EPSILON = 1.0
BINS = 10
CELLS = 1000
"""Candidates of a quantile, of peers that need them."""

SIZES = (1_000, 10_000)
RANKS = {"median": (0.5,), "quantile .9": (0.9,), "quartiles": (0.25, 0.5, 0.75)}
"""Of each statistic that is made of quantiles."""

ENVIRONMENT = Path(__file__).parents[1] / ".venv" / "peers" / "bin" / "python"
PROGRAM = Path(__file__).with_name("diffprivlib_answers.py")

Answers = Mapping[str, Sequence[Sequence[float]]]
"""Of each statistic, one or several numbers a draw."""


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Values that all people contribute at the same epsilon.

    Attributes:
        name: What they are.
        lower, upper: The declared range.
        values: One a person.
    """

    name: str
    lower: int
    upper: int
    values: np.ndarray

    @property
    def width(self) -> int:
        """Of the range."""
        return self.upper - self.lower

    def errors(self, statistic: str, answers: Sequence[Sequence[float]]) -> list[float]:
        """Of every number of every draw [range widths, or their square for a variance, or parts of all]."""
        found = np.asarray(answers, dtype=float)
        match statistic:
            case "mean":
                return list((found - self.values.mean()).ravel() / self.width)
            case "variance":
                return list((found - self.values.var()).ravel() / self.width**2)
            case "histogram":
                counts, _ = np.histogram(self.values, BINS, (self.lower, self.upper))
                return list((found - counts / len(self.values)).ravel())
            case _:
                low, high = np.transpose([self.quantile(q) for q in RANKS[statistic]])
                return list(np.maximum(0, np.maximum(low - found, found - high)).T.ravel() / self.width)

    def quantile(self, q: float) -> tuple[float, float]:
        """Where all that is a quantile of the values begins, and where it ends [data's unit]."""
        ordered, place = np.sort(self.values), q * len(self.values)
        return float(ordered[math.ceil(place) - 1]), float(ordered[min(math.floor(place), len(ordered) - 1)])


def crowds() -> Iterator[People]:
    """The kinds of values of the goals, in both sizes, the same on every run."""
    for n in SIZES:
        source = np.random.default_rng(n)
        incomes = np.minimum(source.lognormal(math.log(38_000), 0.7, n).round(), 500_000)
        yield People("incomes", 0, 500_000, incomes)
        yield People("minutes", 0, 240, np.minimum(source.gamma(2.0, 18.0, n).round(), 240))
        yield People("uniform", 0, 100, source.uniform(0, 100, n).round(2))
        yield People("equal", 0, 100, np.full(n, 10.0))


def whole() -> Iterator[People]:
    """Whole numbers of few kinds, in the sizes of small studies: ratings, and ages."""
    for n in (100, 300, 1_000):
        source = np.random.default_rng(n)
        ratings = source.choice([1.0, 2.0, 3.0, 4.0, 5.0], n, p=[0.05, 0.1, 0.25, 0.4, 0.2])
        yield People("ratings", 1, 5, ratings)
        yield People("ages", 0, 120, np.clip(source.normal(42, 16, n).round(), 18, 95))


def answers(
    everyone: Sequence[People], often: Mapping[str, int]
) -> Iterator[tuple[People, Mapping[str, Answers]]]:
    """What each library answers to each statistic, as often as it says, by the name of the library."""
    others = of_diffprivlib(everyone, often)
    for number, people in enumerate(everyone):
        known = {"OpenDP": of_opendp(people, often)}
        yield people, known | ({"diffprivlib": others[number]} if others else {})


def of_opendp(people: People, often: Mapping[str, int]) -> Answers:
    """OpenDP's answers, of pure epsilon, the number of people being public."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dp.enable_features("contrib", "floating-point")
    values, n = [float(value) for value in people.values], len(people.values)
    bounds = float(people.lower), float(people.upper)
    domain = dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=n)
    space = domain, dp.symmetric_distance()
    edges = [float(edge) for edge in np.linspace(*bounds, BINS + 1)]
    candidates = [float(value) for value in np.linspace(*bounds, CELLS + 1)]

    def noisy(transformation: dp.Transformation) -> Callable[[], np.ndarray]:
        """Add Laplace noise to what a transformation finds. It is worked out once, and noise drawn often."""
        exact, output = transformation(values), (transformation.output_domain, transformation.output_metric)
        moved = transformation.map(2)
        added = dp.binary_search_chain(lambda scale: output >> dp.m.then_laplace(scale), moved, EPSILON)
        return lambda: np.atleast_1d(added(exact))

    def rank(q: float, epsilon: float) -> Callable[[], float]:
        scored = space >> dp.t.then_quantile_score_candidates(candidates, q)
        scores, output = scored(values), (scored.output_domain, scored.output_metric)
        moved = scored.map(2)
        chosen = dp.binary_search_chain(
            lambda scale: output >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True),
            moved,
            epsilon,
            bounds=(1e-9, 1e40),
        )
        return lambda: candidates[chosen(scores)]

    def made(statistic: str) -> Callable[[], np.ndarray | list[float]]:
        match statistic:
            case "mean":
                return noisy(space >> dp.t.then_mean())
            case "variance":
                return noisy(space >> dp.t.then_variance())
            case "histogram":
                binned = space >> dp.t.then_find_bin(edges[1:-1])
                counted = noisy(
                    binned >> dp.t.then_count_by_categories(list(range(BINS - 1)), null_category=True)
                )
                return lambda: counted() / n
            case _:
                ranks = RANKS[statistic]
                drawn = [rank(q, EPSILON / len(ranks)) for q in ranks]
                return lambda: [one() for one in drawn]

    found = {}
    for statistic, draws in often.items():
        draw = made(statistic)
        found[statistic] = [list(draw()) for _ in range(draws)]
    return found


def of_diffprivlib(everyone: Sequence[People], often: Mapping[str, int]) -> Sequence[Answers]:
    """diffprivlib's answers for each crowd; none where `make peers` has not installed it."""
    if not ENVIRONMENT.exists():
        return []
    wanted = {
        "crowds": [
            {"values": list(people.values), "lower": people.lower, "upper": people.upper}
            for people in everyone
        ],
        "epsilon": EPSILON,
        "bins": BINS,
        "often": dict(often),
    }
    done = subprocess.run(
        [ENVIRONMENT, "-P", PROGRAM], input=json.dumps(wanted), stdout=subprocess.PIPE, text=True, check=True
    )
    found: Sequence[Answers] = json.loads(done.stdout)
    return found
