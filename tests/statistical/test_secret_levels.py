"""Secret studies where those who ask for much privacy have other values: coverage, width, and predictions."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist

import numpy as np
import pytest

from app.core.epsilon import MICRO
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators.pivot import LinearPivot, PivotReader
from app.estimators.shares import UNIT, SharesPlan
from app.estimators.transformed import mean_of, predicted_error
from app.estimators.weighing import weigh_secret
from app.services.statistics.levels import Level, Numbered, levels_of
from app.services.statistics.offered import Offered
from app.services.statistics.questions import Ask, Resolved, resolve
from tests.statistical import Z

pytestmark = pytest.mark.statistical

TIERS = np.array([0.1, 0.25, 0.5, 1, 2, 4])
STUDY = StudyDefinition(
    slug="incomes",
    title="Incomes",
    lower=Decimal(0),
    upper=Decimal(1),
    relation=Relation.ADD_REMOVE_ONE,
    trust=frozenset({Trust.CENTRAL}),
    epsilon_min=MICRO // 10,
    epsilon_max=4 * MICRO,
    epsilons=tuple(round(one * MICRO) for one in TIERS),
    default_share=MICRO // 10,
)
RUNS = 4_000
LEAST = 0.94
"""The coverage that is wanted; an interval that has .95 has .94 less than once in 500 times of RUNS."""

SETTINGS = [(people, going) for people in (300, 3_000, 20_000) for going in (0.0, 0.2, 0.6)]
EDGES = np.array([0.1, 0.2, 0.35])


def drawn(people: int, going: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Offers, equally often of each tier, and skewed values whose logs go with -ln offer this much."""
    rng = np.random.default_rng(seed)
    private = rng.standard_normal(people)
    logs = going * private + math.sqrt(1 - going**2) * rng.standard_normal(people)
    offers = TIERS[(np.argsort(np.argsort(-private)) * len(TIERS)) // people]
    return offers, np.clip(np.exp(0.6 * logs) / 5, 0, 1)


def weights(resolved: Resolved, offers: np.ndarray) -> np.ndarray:
    return np.array([resolved.offer(round(one * MICRO)) for one in offers]) / MICRO


def tails(scales: tuple[float, float], x: np.ndarray) -> np.ndarray:
    """P(|a Lap + b Lap'| > x) for scales a and b that differ, exact."""
    a, b = scales
    return (a**2 * np.exp(-x / a) - b**2 * np.exp(-x / b)) / (a**2 - b**2)


def measured_first(resolved: Resolved, offers: np.ndarray, seed: int, runs: int) -> list[list[Numbered]]:
    """What runs of the measurement in front of an answer find."""
    first = Offered.of(STUDY, resolved, ())
    cells = np.array([np.sum(offers * MICRO == level) for level in first.levels])
    noise = np.random.default_rng(seed).laplace(size=(runs, len(cells))) * MICRO / np.array(first.weights)
    at_least = np.cumsum((cells + noise)[:, ::-1], axis=1)[:, ::-1]
    return [
        [
            Numbered(least=level, most=level, people=people, deviation=first.deviations[level])
            for level, people in zip(first.levels, found, strict=True)
        ]
        for found in at_least
    ]


def chosen_after(
    resolved: Resolved, offers: np.ndarray, published: list[Numbered], seed: int
) -> list[tuple[Resolved, list[Numbered], int]]:
    """The questions that are answered, what is known then, and how many of RUNS answer each."""
    if not resolved.asks_first:
        return [(resolved, published, RUNS)]
    found: dict[int, tuple[Resolved, list[Numbered], int]] = {}
    for numbers in measured_first(resolved, offers, seed, RUNS // 20):
        question = resolved.offered(STUDY, [*numbers, *published])
        assert question.level is not None
        _, known, runs = found.get(question.level.least, (question, numbers, 0))
        found[question.level.least] = question.rest, known, runs + 20
    return list(found.values())


def default_answers(offers: np.ndarray, values: np.ndarray, published: list[Numbered], seed: int):
    """RUNS answers to the question that says nothing, by level: what is known, whether intervals hold."""
    asked = resolve(STUDY, Ask()).leveled(STUDY, published)
    rng = np.random.default_rng(seed)
    for resolved, known, runs in chosen_after(asked, offers, published, seed):
        assert resolved.level is not None
        own = weights(resolved, offers)
        assert resolved.level.equal
        mean = float(np.average(values, weights=own > 0))
        noise = rng.laplace(size=(2, runs))
        first = np.dot(own, values) + noise[0]
        second = np.dot(own, 1 - values) + noise[1]
        pivot = np.abs((1 - mean) * np.maximum(first, 0) - mean * np.maximum(second, 0))
        # The hull of what is not rejected holds the mean where that itself is not.
        held = (first + second <= 0) | (tails((1 - mean, mean), pivot) >= 0.05)
        total = np.maximum(first, 0) + np.maximum(second, 0)
        estimates = np.where(total > 0, np.maximum(first, 0) / np.where(total > 0, total, 1), 0.5)
        counts = np.maximum(first + second, 0) / own.max()
        yield resolved, known, held, estimates, counts, mean


def half_width(resolved: Resolved, offers: np.ndarray, values: np.ndarray) -> float:
    """Of the interval where noise is 0 [range widths]."""
    own, question = weights(resolved, offers), resolved.question(STUDY, people=None)
    reader = mean_of(question)
    first, second = float(np.dot(own, values)), float(np.dot(own, 1 - values))
    lower, upper = reader.dataset_hull(first, second, first / (first + second), 0.05)
    return (upper - lower) / 2


def best_width(offers: np.ndarray, values: np.ndarray) -> float:
    asks = [Ask(least_epsilon=level) for level in levels_of(STUDY)]
    return min(half_width(resolve(STUDY, ask).leveled(STUDY, ()), offers, values) for ask in asks)


@pytest.mark.parametrize(("people", "going"), SETTINGS)
def test_default_means_hold_are_narrow_and_miss_by_what_was_predicted(people: int, going: float) -> None:
    offers, values = drawn(people, going, seed=people)
    best = best_width(offers, values)
    # 1. The first answer: it measures first how many offer how much.
    firsts = list(default_answers(offers, values, [], seed=1))
    assert np.concatenate([held for _, _, held, *_ in firsts]).mean() >= LEAST
    widths = [half_width(one, offers, values) for one, *_ in firsts]
    runs = [len(held) for _, _, held, *_ in firsts]
    assert np.average(widths, weights=runs) <= 1.5 * best
    # 2. The next one knows the number that the first one published, too.
    one, known, _, _, counts, _ = max(firsts, key=lambda answers: len(answers[2]))
    level = one.level
    assert level is not None
    published = [Numbered(least=level.least, most=level.most, people=float(np.median(counts))), *known]
    [(second, _, held, estimates, _, mean)] = default_answers(offers, values, published, seed=2)
    assert held.mean() >= LEAST
    assert half_width(second, offers, values) <= 1.5 * best
    question = second.question(STUDY, people=None)
    predicted = predicted_error(question, mean_of(question))
    assert 0.8 <= predicted / math.sqrt(np.mean((estimates - mean) ** 2)) <= 1.3


@pytest.mark.parametrize(("people", "going"), SETTINGS)
def test_default_shares_by_bin_hold(people: int, going: float) -> None:
    offers, values = drawn(people, going, seed=people + 1)
    resolved, *_ = chosen_after(resolve(STUDY, Ask()).leveled(STUDY, ()), offers, [], seed=6)[0]
    own, bins = weights(resolved, offers), np.searchsorted(EDGES, values)
    number = len(EDGES) + 1
    noise = np.random.default_rng(3).laplace(size=(number, RUNS))
    noisy = np.array([[own[bins == one].sum()] for one in range(number)]) + noise
    total = noisy.sum(axis=0)
    for one in range(number):
        share = float(np.average(bins == one, weights=own > 0))
        law = LinearPivot(first=1, second=number - 1, unit=1.0)
        reader = PivotReader(grid=UNIT, cap=own.max(), floor=own.max(), pivot=law)
        # P(|pivot| > x) at the share, on a grid of x that is read between its points.
        at = np.linspace(0, 60, 400)
        tail = np.array([law.tail(share, x) for x in at])
        inside, others = np.maximum(noisy[one], 0), np.maximum(total - noisy[one], 0)
        pivot = np.abs((1 - share) * inside - share * others)
        held = (total <= 0) | (np.interp(pivot, at, tail) >= 0.05)
        assert held.mean() >= LEAST
        for run in range(3):
            sums = float(noisy[one, run]), float(total[run] - noisy[one, run])
            center = max(sums[0], 0) / max(max(sums[0], 0) + max(sums[1], 0), 1e-9)
            lower, upper = reader.dataset_hull(*sums, center, 0.05)
            assert (lower <= share <= upper) or not held[run]


@pytest.mark.parametrize("people", [3_000, 20_000])
def test_control_weights_by_offers_without_a_tilt_miss_the_mean(people: int) -> None:
    """As answers were made before: the interval of weights between .1 and 4 at a tilt of 0."""
    offers, values = drawn(people, 0.6, seed=people)
    own = offers / 10
    reader = PivotReader(grid=UNIT, cap=0.4, floor=0.01, pivot=LinearPivot())
    noise = np.random.default_rng(4).laplace(size=(100, 2))
    held = []
    for one, other in noise:
        first, second = float(np.dot(own, values)) + one, float(np.dot(own, 1 - values)) + other
        lower, upper = reader.dataset_hull(first, second, first / (first + second), 0.05)
        held.append(lower <= values.mean() <= upper)
    assert np.mean(held) < 0.5
    # With what unequal weights may do it holds, whatever they do, and says little.
    wide = PivotReader(grid=UNIT, cap=0.4, floor=0.01, pivot=LinearPivot(), tilt=1.0)
    first, second = float(np.dot(own, values)), float(np.dot(own, 1 - values))
    lower, upper = wide.dataset_hull(first, second, first / (first + second), 0.05)
    assert lower <= values.mean() <= upper


def test_a_share_of_a_bin_misses_by_what_was_predicted() -> None:
    offers, values = drawn(3_000, 0.6, seed=7)
    level = Level.of(STUDY, MICRO, MICRO)
    resolved = resolve(STUDY, Ask(least_epsilon=MICRO)).leveled(STUDY, ())
    own, bins, number = weights(resolved, offers), np.searchsorted(EDGES, values), len(EDGES) + 1
    weighing = weigh_secret((), cap=level.top // 10, floor=level.floor // 10, tilt=1.0)
    plan = SharesPlan(bins=number, weighing=weighing, people=float((own > 0).sum()))
    noise = np.random.default_rng(5).laplace(size=(number, RUNS))
    exact = np.array([[own[bins == one].sum()] for one in range(number)])
    shares = (exact + noise) / (exact + noise).sum(axis=0)
    missed = math.sqrt(np.mean((shares - exact / exact.sum()) ** 2))
    assert 0.8 <= plan.predicted_error / missed <= 1.3
    assert Z * math.sqrt(5 / (number * RUNS)) < 0.15


def few(measured: bool) -> float:
    """How often intervals hold of 30 people near an end, at a level that noise chooses.

    Args:
        measured: Whether that is the noise of what is measured first; else of the answers at all levels.
    """
    offers, values = drawn(30, 0.0, seed=30)
    values, rng = values / 4, np.random.default_rng(3)
    asked = resolve(STUDY, Ask()).leveled(STUDY, ())
    held, totals = [], []
    for level in TIERS:
        own = (offers >= level) * level / 10
        mean = float(np.average(values, weights=own > 0))
        noise = rng.laplace(size=(2, RUNS))
        first, second = np.dot(own, values) + noise[0], np.dot(own, 1 - values) + noise[1]
        pivot = np.abs((1 - mean) * np.maximum(first, 0) - mean * np.maximum(second, 0))
        held.append((first + second <= 0) | (tails((1 - mean, mean), pivot) >= 0.05))
        totals.append(first + second)
    if measured:
        found = measured_first(asked, offers, 8, RUNS)
        chosen = np.argmax(np.array([[one.people for one in run] for run in found]) * TIERS, axis=1)
    else:
        chosen = np.argmax(np.array(totals), axis=0)
    return float(np.array(held)[chosen, np.arange(RUNS)].mean())


def test_intervals_hold_at_the_level_that_is_measured_first() -> None:
    assert few(measured=True) >= LEAST


def test_control_a_level_that_the_noise_of_its_own_answer_chooses_misses() -> None:
    """An interval that has .94 has less than .92 in RUNS answers less than once in 10^6 times."""
    assert few(measured=False) < 0.92


LEVELED = [
    replace(STUDY, epsilons=(), epsilon_min=round(least * MICRO), epsilon_max=round(most * MICRO))
    for least, most in ((0.1, 10), (1, 10), (0.01, 5))
]
LISTED = replace(STUDY, epsilons=(MICRO // 10, MICRO, 5 * MICRO), epsilon_max=5 * MICRO)


def offered_in(study: StudyDefinition, people: int) -> dict[str, np.ndarray]:
    """What this many people may offer."""
    levels, places = np.array(levels_of(study)) / MICRO, (np.arange(people) + 0.5) / people
    normal = np.array([NormalDist().inv_cdf(place) for place in places])

    def fitted(offers: np.ndarray) -> np.ndarray:
        offers = np.clip(offers, levels[0], study.epsilon_max / MICRO)
        return levels[np.searchsorted(levels, offers + 1e-9, side="right") - 1]

    return {
        "least": np.full(people, levels[0]),
        "middle": np.full(people, levels[len(levels) // 2]),
        "highest": np.full(people, levels[-1]),
        "equally often": levels[(places * len(levels)).astype(int)],
        "about .5": fitted(0.5 * np.exp(normal)),
        "about 1": fitted(np.exp(normal)),
        "half": np.where(places < 0.5, levels[0], levels[-1]),
    }


def errors_of_first_answers(*, measured: bool) -> np.ndarray:
    """The error of first answers over that at the best level, for each study, number and profile.

    Args:
        measured: Whether they measure first who offers how much; else they are about a guess.
    """
    rng, found = np.random.default_rng(9), []
    for study, people in itertools.product((*LEVELED, LISTED), (300, 1_000, 10_000)):
        asked = resolve(study, Ask()).leveled(study, ())
        levels, share = np.array(levels_of(study)) / MICRO, study.default_share / MICRO
        weighed = np.array(Offered.of(study, asked, ()).weights) / MICRO
        for offers in offered_in(study, people).values():
            cells = np.array([np.sum(np.isclose(offers, level)) for level in levels])
            mass = np.cumsum(cells[::-1])[::-1] * levels
            # Half of the range is what no one errs by more.
            errors = np.minimum(0.5, 1 / np.maximum(share * mass, 1e-9))
            squares = []
            for _ in range(25):
                at_least = np.cumsum((cells + rng.laplace(size=len(cells)) / weighed)[::-1])[::-1]
                numbers = [
                    Numbered(least=round(level * MICRO), most=round(level * MICRO), people=number)
                    for level, number in zip(levels, at_least, strict=True)
                ]
                level = asked.offered(study, numbers if measured else []).level
                assert level is not None
                own = errors[np.searchsorted(levels, level.least / MICRO - 1e-9)]
                squares.append(min(0.5, own / (0.8 if measured else 1)) ** 2)
            found.append(math.sqrt(np.mean(squares)) / errors.min())
    return np.array(found)


def test_a_first_answer_errs_little_more_than_one_at_the_best_level() -> None:
    """At this seed 1.44 times as much on average, and 4.1 times at most."""
    errors = errors_of_first_answers(measured=True)
    assert np.exp(np.log(errors).mean()) < 1.5
    assert errors.max() < 4.5


def predictions(*, discounted: bool) -> dict[int, np.ndarray]:
    """Predicted over real errors at the level that is chosen, by the number of people: medians of settings.

    Args:
        discounted: Whether numbers say how much noise is in them.
    """
    rng, found = np.random.default_rng(10), dict[int, list[float]]()
    for study, people in itertools.product((*LEVELED, LISTED), (300, 1_000, 10_000)):
        asked = resolve(study, Ask()).leveled(study, ())
        levels, first = np.array(levels_of(study)) / MICRO, Offered.of(study, asked, ())
        weighed = np.array(first.weights) / MICRO
        for offers in offered_in(study, people).values():
            cells = np.array([np.sum(np.isclose(offers, level)) for level in levels])
            real, ratios = np.cumsum(cells[::-1])[::-1], []
            for _ in range(40):
                at_least = np.cumsum((cells + rng.laplace(size=len(cells)) / weighed)[::-1])[::-1]
                numbers = [
                    Numbered(
                        least=level,
                        most=level,
                        people=number,
                        deviation=first.deviations[level] if discounted else 0.0,
                    )
                    for level, number in zip(first.levels, at_least, strict=True)
                ]
                level = asked.offered(study, numbers).level
                assert level is not None
                assert level.size is not None
                # As errors are: half of the range is what no one errs by more.
                weight = 0.8 * study.default_share / MICRO * level.least / MICRO
                there = real[first.levels.index(level.least)]
                real_error, predicted = (min(0.5, 1 / max(weight * n, 1e-9)) for n in (there, level.size))
                ratios.append(predicted / real_error)
            found.setdefault(people, []).append(float(np.median(ratios)))
    return {people: np.array(ratios) for people, ratios in found.items()}


def test_what_is_predicted_allows_for_a_number_that_was_lucky_to_be_chosen() -> None:
    """At this seed 1.0 to 1.1 on average of settings; most lie within the goal."""
    for ratios in predictions(discounted=True).values():
        assert 0.9 < np.exp(np.log(ratios).mean()) < 1.2
        assert np.mean((ratios > 0.8) & (ratios < 1.3)) > 0.7


def test_control_the_number_itself_promises_too_much_of_few_people() -> None:
    few_people = predictions(discounted=False)[300]
    assert np.exp(np.log(few_people).mean()) < 0.85


def test_control_a_first_answer_about_a_guess_errs_many_times_as_much() -> None:
    errors = errors_of_first_answers(measured=False)
    assert np.exp(np.log(errors).mean()) > 2
    assert errors.max() > 100, "it is about no one"
