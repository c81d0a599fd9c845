"""How far off are answers that people get by default, beside those of other libraries, and do intervals hold?

Five comparisons, of answers drafted as the service drafts them; `--only` runs one of them:

- `plain`: means, variances and histograms of values of four kinds, all people offering the same, and all of
  it used, beside OpenDP, diffprivlib and plain Laplace noise.
- `quantiles`: medians, quartiles and the quantile .9 of the same people, see `benchmarks.quantiles`.
- `tiers`: six epsilons, the first answer at a tenth of each beside a fresh one.
- `choice`: the same people, fresh answers by `auto` beside those by `optimal`.
- `secret`: studies whose number of people is secret, with epsilons that go together with values or not.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from app.core.epsilon import MICRO
from app.services.statistics.questions import Ask
from benchmarks import peers, quantiles
from benchmarks.drafts import Answer, Crowd, drafted, fill, half_width, publish
from benchmarks.peers import People
from benchmarks.report import Ratio
from benchmarks.services import Installation, installation

DRAWS, QUICK_DRAWS = 400, 8
PLAIN_GOAL = 1.1
"""Error beside plain Laplace noise of the same offers, and beside other libraries."""
HALF_WIDTH_GOAL = 2.0
"""Of an interval, beside what 95 % of errors stay below."""

TIERS = (0.1, 0.25, 0.5, 1, 2, 4)
TIER_PEOPLE = (300, 3_000)
TIER_CROWDS, TIER_DRAWS = 20, 10
SHARE = MICRO // 10
FRESH_GOAL = 1.4
CHOICE_GOAL = 1.05
CHOICE_DRAWS = 100

SECRET_CROWDS = {300: (20, 50), 3_000: (10, 150), 20_000: (5, 400)}
"""By people of a study: how many studies, and how often each is asked. Twice the standard error of a
coverage of .95 is .010 to .014."""
QUICK_CROWDS = {300: (1, 2)}
BIN_DRAWS = 0.1
"""How often for its bins, of which an answer has ten, in parts of that."""
CORRELATIONS = (0.0, 0.2, 0.6)
COVERS = 0.94
BEST_CAP_GOAL = 1.5
PREDICTED = (0.8, 1.3)
EPSILON_MEDIAN = 0.5
EPSILON_RANGE = (0.05, 4.0)
"""What a new study accepts."""
VALUE_SPREAD = 0.15

HISTOGRAMS = (
    "diffprivlib's histogram protects whether a person is there, which moves one bin; the others protect a "
    "person's value, which moves two"
)

QUESTIONS: Mapping[str, Ask] = {
    "mean": Ask(share=MICRO),
    "histogram": Ask(statistic="histogram", share=MICRO),
    "two bins": Ask(statistic="histogram", share=MICRO, parameters={"bins": "2"}),
}


def run(*, quick: bool, only: str | None = None) -> list[Ratio]:
    """All comparisons, or one of `COMPARISONS`."""
    with installation() as here, here.serve(workers=1, settings={"DITHER_LIFETIME_EPSILON": "1000"}) as port:
        return [
            ratio
            for name, compare in COMPARISONS.items()
            if only in (None, name)
            for ratio in compare(here, port, quick=quick)
        ]


# ------------------------------------------------------------------------------ beside other libraries


def plain(here: Installation, port: int, *, quick: bool) -> Iterator[Ratio]:
    """Errors beside those of other libraries, and half-widths beside the errors that there are."""
    draws = QUICK_DRAWS if quick else DRAWS
    often = dict.fromkeys(("mean", "variance", "histogram"), draws)
    for people, known in peers.answers(list(peers.crowds()), often):
        crowd = Crowd.plain(f"{people.name}-{len(people.values)}", people)
        fill(here, port, crowd)
        answers = drafted(here, crowd.slug, {name: (ask, draws) for name, ask in QUESTIONS.items()})
        ours = _parts(answers)
        yield _plain_laplace("mean", people, people.errors("mean", _estimates(ours["mean"])))
        yield _plain_laplace("one of two bins", people, _errors_of_two_bins(people, answers["two bins"]))
        for library, theirs in known.items():
            yield from _beside(people, library, ours, theirs)
        yield from _half_widths(people, ours)


def _parts(answers: Mapping[str, Sequence[Answer]]) -> dict[str, list[list[Answer]]]:
    """Of each statistic and draw, the numbers that are its answer, with their intervals."""
    return {
        "mean": [[answer] for answer in answers["mean"]],
        "variance": [[answer["variance"]] for answer in answers["mean"]],
        "histogram": [
            [{**one, "estimate": one["share"]} for one in answer["bins"]] for answer in answers["histogram"]
        ],
    }


def _estimates(parts: Sequence[Sequence[Answer]]) -> list[list[float]]:
    """An estimate is null where nothing but a bound can be said: the middle of its interval, then."""
    return [
        [
            statistics.fmean((one["interval"]["lower"], one["interval"]["upper"]))
            if one["estimate"] is None
            else one["estimate"]
            for one in draw
        ]
        for draw in parts
    ]


def _errors_of_two_bins(people: People, answers: Sequence[Answer]) -> list[float]:
    """Of the share of the upper half of the range, which includes its middle, as a part of all people."""
    true = float(np.mean(people.values >= people.lower + people.width / 2))
    return [answer["bins"][1]["share"] - true for answer in answers]


def _plain_laplace(name: str, people: People, errors: Sequence[float]) -> Ratio:
    return Ratio.of_mean_squares(
        errors,
        [math.sqrt(2) / len(people.values) / peers.EPSILON],
        section="accuracy: plain",
        name=f"{name} of {people.name}, n {len(people.values):,}, beside Laplace noise",
        goal=PLAIN_GOAL,
        root=True,
        note=f"plain: all people offer epsilon {peers.EPSILON:g}, and the share is 1; Laplace noise of the "
        "same offers errs by W sqrt(2) / (n epsilon)",
    )


def _beside(
    people: People,
    library: str,
    ours: Mapping[str, Sequence[Sequence[Answer]]],
    theirs: peers.Answers,
) -> Iterator[Ratio]:
    for name, parts in ours.items():
        others = people.errors(name, theirs[name]) if theirs[name] else []
        if not any(others):
            continue  # No answer, or never an error: values that are all equal.
        yield Ratio.of_mean_squares(
            people.errors(name, _estimates(parts)),
            others,
            section=f"accuracy: {library}",
            name=f"{name} of {people.name}, n {len(people.values):,}, beside {library}",
            goal=None if (library, name) == ("diffprivlib", "histogram") else PLAIN_GOAL,
            root=True,
            note=HISTOGRAMS if library == "diffprivlib" else "",
        )


def _half_widths(people: People, ours: Mapping[str, Sequence[Sequence[Answer]]]) -> Iterator[Ratio]:
    unit = {"variance": people.width**2, "histogram": 1}
    for name, parts in ours.items():
        errors = [abs(error) for error in people.errors(name, _estimates(parts))]
        real = float(np.quantile(errors, 0.95))
        if real == 0:
            continue
        halves = [half_width(one) for draw in parts for one in draw]
        yield Ratio(
            section="accuracy: half-widths",
            name=f"half-width: {name} of {people.name}, n {len(people.values):,}",
            unit="ranges",
            subject=[statistics.fmean(halves) / unit.get(name, people.width)],
            baseline=[real],
            goal=HALF_WIDTH_GOAL,
            better="lower",
            note="half-widths of intervals of 95 %, beside what 95 % of errors stay below",
        )


# ----------------------------------------------------------------------------------------------- tiers


def tiers(here: Installation, port: int, *, quick: bool) -> Iterator[Ratio]:
    """The first answer at a tenth of each epsilon, with weights for later shares, beside a fresh one."""
    crowds, draws = (2, 3) if quick else (TIER_CROWDS, TIER_DRAWS)
    question = {"mean": (Ask(share=SHARE), draws)}
    for n in TIER_PEOPLE:
        errors: dict[bool, list[float]] = {False: [], True: []}
        predicted: dict[bool, list[float]] = {False: [], True: []}
        for number in range(crowds):
            source = np.random.default_rng((n, number))
            crowd = _of_tiers(f"tiers-{n}-{number}", source.uniform(0, 100, n))
            fill(here, port, crowd)
            for fresh in errors:
                for answer in drafted(here, crowd.slug, question, fresh=fresh)["mean"]:
                    errors[fresh].append((answer["estimate"] - crowd.values.mean()) / 100)
                    predicted[fresh].append(answer["predicted_error"] / 100)
        name = f"first answer of tiers, n {n:,}, beside a fresh one"
        epsilons = ", ".join(f"{one:g}" for one in TIERS)
        yield from _measured_and_predicted(
            (errors[False], errors[True]),
            (predicted[False], predicted[True]),
            section="accuracy: tiers",
            names=(name, f"the same, as predicted, n {n:,}"),
            goal=FRESH_GOAL,
            note=f"tiers: epsilons {epsilons}, equally often, share {SHARE / MICRO}",
        )


def _measured_and_predicted(
    errors: tuple[list[float], list[float]],
    predicted: tuple[list[float], list[float]],
    *,
    section: str,
    names: tuple[str, str],
    goal: float,
    note: str,
) -> Iterator[Ratio]:
    """Errors of some answers beside those of others [ranges], as measured and as predicted."""
    yield Ratio.of_mean_squares(*errors, section=section, name=names[0], goal=goal, root=True, note=note)
    subject, baseline = ([statistics.fmean(one)] for one in predicted)
    yield Ratio(
        section=section,
        name=names[1],
        unit="ranges",
        subject=subject,
        baseline=baseline,
        goal=goal,
        better="lower",
        note=note,
    )


def _of_tiers(slug: str, values: np.ndarray) -> Crowd:
    epsilons = np.array(TIERS)[np.arange(len(values)) % len(TIERS)]
    return Crowd(slug=slug, lower=0, upper=100, epsilons=epsilons, values=values.round(6))


def choice(here: Installation, port: int, *, quick: bool) -> Iterator[Ratio]:
    """Fresh answers by the estimator that `auto` takes, beside those by `optimal`."""
    crowds, draws = (2, 3) if quick else (TIER_CROWDS, CHOICE_DRAWS)
    asks = {name: (Ask(share=SHARE, estimator=name), draws) for name in ("auto", "optimal")}
    for n in TIER_PEOPLE:
        errors: dict[str, list[float]] = {name: [] for name in asks}
        predicted: dict[str, list[float]] = {name: [] for name in asks}
        for number in range(crowds):
            crowd = _of_tiers(f"choice-{n}-{number}", np.random.default_rng((n, number)).uniform(0, 100, n))
            fill(here, port, crowd)
            for name, answers in drafted(here, crowd.slug, asks, fresh=True).items():
                errors[name] += [(one["estimate"] - crowd.values.mean()) / 100 for one in answers]
                predicted[name] += [one["predicted_error"] / 100 for one in answers]
        name = f"auto beside optimal, tiers, n {n:,}"
        yield from _measured_and_predicted(
            (errors["auto"], errors["optimal"]),
            (predicted["auto"], predicted["optimal"]),
            section="accuracy: choice",
            names=(name, f"{name}, as predicted"),
            goal=CHOICE_GOAL,
            note=f"choice: the tiers' people, share {SHARE / MICRO}",
        )


# ---------------------------------------------------------------------------------------------- secret


def secret(here: Installation, port: int, *, quick: bool) -> Iterator[Ratio]:
    """Whether intervals hold, how wide they are, and what was predicted, where presence is secret."""
    for n, (crowds, draws) in (QUICK_CROWDS if quick else SECRET_CROWDS).items():
        for correlation in CORRELATIONS:
            found = Secret()
            for number in range(crowds):
                crowd = correlated(n, correlation, number)
                fill(here, port, crowd)
                publish(here, crowd.slug, Ask(share=SHARE))
                asks = {
                    "mean": (Ask(share=SHARE), draws),
                    "bins": (Ask(statistic="histogram", share=SHARE), max(2, round(BIN_DRAWS * draws))),
                }
                answers = drafted(here, crowd.slug, asks, fresh=True)
                found.note_means(crowd, answers["mean"])
                found.note_bins(crowd, answers["bins"])
            yield from found.ratios(f"n {n:,}, r {correlation}")


def correlated(n: int, correlation: float, number: int) -> Crowd:
    """A secret study; epsilons are lognormal, and value and -ln epsilon are correlated."""
    source = np.random.default_rng((n, round(correlation * 10), number))
    deviation, other = source.normal(size=n), source.normal(size=n)
    epsilons = np.clip(EPSILON_MEDIAN * np.exp(deviation), *EPSILON_RANGE)
    values = 0.5 + VALUE_SPREAD * (math.sqrt(1 - correlation**2) * other - correlation * deviation)
    return Crowd(
        slug=f"secret-{n}-{correlation * 10:.0f}-{number}",
        lower=0,
        upper=100,
        epsilons=epsilons,
        values=(100 * np.clip(values, 0, 1)).round(6),
        relation="add_remove_one",
    )


class Secret:
    """What answers of secret studies of one kind were."""

    def __init__(self) -> None:
        self.holds: dict[str, list[bool]] = {"mean": [], "bins": []}
        self.halves: dict[str, list[float]] = {"mean": [], "bins": []}
        self.best: dict[str, list[float]] = {"mean": [], "bins": []}
        self.errors: list[float] = []
        self.predicted: list[float] = []

    def note_means(self, crowd: Crowd, answers: Sequence[Answer]) -> None:
        """Note means: the truth is that of the people whom an answer says it is about."""
        for answer in answers:
            truth = float(crowd.values[_asked(crowd, answer)].mean())
            self._note("mean", answer, truth, 100)
            self.errors.append((answer["estimate"] - truth) / 100)
            self.predicted.append(answer["predicted_error"] / 100)

        def mean(among: np.ndarray) -> list[float]:
            return [float(among.mean()) / 100]

        self.best["mean"].append(best_half_width(crowd, _tilt(answers[0]), mean, of_mean))

    def note_bins(self, crowd: Crowd, answers: Sequence[Answer]) -> None:
        """Note the bins of histograms."""
        edges = np.linspace(crowd.lower, crowd.upper, peers.BINS + 1)

        def shares(among: np.ndarray) -> list[float]:
            return list(np.histogram(among, edges)[0] / len(among))

        for answer in answers:
            for one, truth in zip(answer["bins"], shares(crowd.values[_asked(crowd, answer)]), strict=True):
                self._note("bins", one, truth, 1)
        self.best["bins"].append(best_half_width(crowd, _tilt(answers[0]), shares, of_bin))

    def _note(self, name: str, answer: Answer, truth: float, width: float) -> None:
        interval = answer["interval"]
        self.holds[name].append(interval["lower"] <= truth <= interval["upper"])
        self.halves[name].append(half_width(answer) / width)

    def ratios(self, kind: str) -> Iterator[Ratio]:
        """Coverage, half-widths, and what was predicted."""
        note = (
            "secret: epsilons lognormal about 0.5, r: correlation of value and -ln epsilon, share 0.1 after "
            "a first answer; best cap: the narrowest interval of any least and largest weight, all known"
        )
        for name in self.holds:
            yield Ratio(
                section="accuracy: secret",
                name=f"coverage: {name}, secret, {kind}",
                unit="covers",
                subject=[statistics.fmean(self.holds[name])],
                baseline=[COVERS],
                goal=1,
                note=note,
            )
            yield Ratio(
                section="accuracy: secret",
                name=f"half-width: {name}, secret, {kind}, beside the best cap",
                unit="ranges",
                subject=[statistics.fmean(self.halves[name])],
                baseline=[statistics.fmean(self.best[name])],
                goal=BEST_CAP_GOAL,
                better="lower",
                note=note,
            )
        for goal, better in zip(PREDICTED, ("higher", "lower"), strict=True):
            yield Ratio(
                section="accuracy: secret",
                name=f"predicted error, secret, {kind}, beside the realized one",
                unit="ranges",
                subject=[statistics.fmean(self.predicted)],
                baseline=[math.sqrt(statistics.fmean(error**2 for error in self.errors))],
                goal=goal,
                better=better,  # type: ignore[arg-type]  # one of two words
                note=note,
            )


def _tilt(answer: Answer) -> float:
    """What is assumed of epsilons and values; nothing where a question does not say."""
    return float(answer["parameters"].get("tilt", 1))


def _asked(crowd: Crowd, answer: Answer) -> np.ndarray:
    """Who an answer is about: those who offered at least what it says; all where it says nothing."""
    asked: np.ndarray = crowd.epsilons >= (answer.get("least_epsilon") or 0)
    return asked


_LAPLACE = np.random.default_rng(1).laplace(size=(20_000, peers.BINS))


def of_mean(mean: float) -> float:
    """The 95 % half-width of a mean, times the total weight: two sums, each with Laplace noise of scale 1."""
    return float(np.quantile(np.abs((1 - mean) * _LAPLACE[:, 0] - mean * _LAPLACE[:, 1]), 0.95))


def of_bin(part: float) -> float:
    """That of a bin: each bin has the noise, and all of them together are the whole."""
    return float(np.quantile(np.abs(_LAPLACE[:, 0] - part * _LAPLACE.sum(axis=1)), 0.95))


def best_half_width(
    crowd: Crowd,
    tilt: float,
    read: Callable[[np.ndarray], Sequence[float]],
    noise_of: Callable[[float], float],
) -> float:
    """The narrowest half-width that a least and a largest weight give, in the mean over what is read.

    Weights in [f, c] move a mean in [0, 1] by at most (sqrt c - sqrt f) / (sqrt c + sqrt f), of which the
    tilt is assumed.
    """
    levels = np.geomspace(*EPSILON_RANGE, 24)
    least = math.inf
    for at, floor in enumerate(levels):
        among = crowd.epsilons >= floor
        if among.sum() < 2:
            break
        noise = statistics.fmean(map(noise_of, read(crowd.values[among])))
        for cap in levels[at:]:
            weight = SHARE / MICRO * float(np.minimum(crowd.epsilons[among], cap).sum())
            moved = (math.sqrt(cap) - math.sqrt(floor)) / (math.sqrt(cap) + math.sqrt(floor))
            least = min(least, noise / weight + tilt * moved)
    return least


COMPARISONS: Mapping[str, Callable[..., Iterable[Ratio]]] = {
    "plain": plain,
    "quantiles": quantiles.compare,
    "tiers": tiers,
    "choice": choice,
    "secret": secret,
}
"""What is compared, in this order."""
