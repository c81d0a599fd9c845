"""One mean from the sums of several answers: its law, its bound, and what it covers as people come and go."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Noise
from app.estimators.calibration import GAUSSIAN_SIGMA
from app.estimators.combined_ratio import CombinedPivot, RatioSums, combined_ratio, pivot_of, two_sums
from app.estimators.hourglass import Hourglass as HourglassEstimator
from app.estimators.hourglass import HourglassPivot
from app.estimators.interface import UNIT_SCALE, Interval
from app.estimators.moments_secret import MOMENT_SCALE
from app.estimators.pivot import ratio
from app.estimators.transformed import Transformed
from app.mechanisms.draw import draw
from app.mechanisms.hourglass import hourglass
from app.mechanisms.hourglass_law import HourglassLaw, pivot_tail
from tests.support.groups import add_remove_one

LAPLACE = DiscreteLaplace(scales=(UNIT_SCALE,) * 2)
NOISES = (
    LAPLACE,
    DiscreteLaplace(scales=(MOMENT_SCALE,) * 3),
    DiscreteGaussian(sigmas=(GAUSSIAN_SIGMA,) * 2),
    DiscreteGaussian(sigmas=(GAUSSIAN_SIGMA,) * 3),
    hourglass(GRID_SIZE, 300_000),
)
QUESTION = add_remove_one(cap=0.3, floor=0.3)


def sums_of(noise: Noise, values: Sequence[float], weight: float = 0.3, exact: bool = False) -> RatioSums:
    """The noisy sums of people at these positions who all weigh the same."""
    pivot = pivot_of(noise)
    first, second = (weight * pivot.unit * total for total in (sum(values), len(values) - sum(values)))
    errors = (0, 0)
    if not exact:
        errors = two_sums(draw(noise, queries=3 if getattr(pivot, "halved", 0) else 2))
    return RatioSums(
        most=weight,
        least=weight,
        pivot=pivot,
        first=round(first) + errors[0],
        second=round(second) + errors[1],
    )


def covers(interval: Interval, truth: float) -> bool:
    return interval.lower <= truth <= interval.upper


# ------------------------------------------------------------------------------------------ law


@pytest.mark.parametrize(
    ("estimator", "delta"),
    [(Transformed(), 0), (Transformed(), 10**6), (HourglassEstimator(), 0)],
    ids=["transformed", "gaussian", "hourglass"],
)
@pytest.mark.parametrize("moments", [1, 2])
def test_of_one_answer_it_is_that_answer(estimator, delta, moments) -> None:
    question = replace(add_remove_one(cap=2.0, floor=0.5), parameters={"moments": moments}, delta=delta)
    plan = estimator.plan([], question)
    pivot = pivot_of(plan.noise)
    values = [round(pivot.unit * total) for total in (40.3, 80.1, 20.9)][: len(plan.queries)]
    first, second = two_sums(values)
    most, least = plan.weighs
    again, found = combined_ratio(
        question, [RatioSums(most=most, least=least, pivot=pivot, first=first, second=second)]
    )
    alone = plan.conclude(values)
    assert again.predicted_error == pytest.approx(plan.predicted_error)
    assert found.standard_error == pytest.approx(alone.standard_error)
    for name in ("interval", "population_interval"):
        mine, its = getattr(found, name), getattr(alone, name)
        assert (mine.lower, mine.upper) == pytest.approx((its.lower, its.upper), abs=1e-7)
        assert mine.coverage == its.coverage
    assert found.details["weights"] == [1]
    assert found.details["noisy_count"] == pytest.approx(alone.details["noisy_count"])


@pytest.mark.parametrize("noise", NOISES, ids=["two", "three", "gaussian", "three gaussian", "hourglass"])
def test_equal_answers_have_the_noise_of_one_over_the_root_of_their_number(noise: Noise) -> None:
    """Closed form: with the same people in K equal answers the precision is K times as much."""
    one = sums_of(noise, [0.25] * 400, exact=True)
    _, alone = combined_ratio(QUESTION, [one])
    for count in (2, 5):
        _, found = combined_ratio(QUESTION, [one] * count)
        assert found.estimate == pytest.approx(0.25)
        assert found.standard_error == pytest.approx(alone.standard_error / math.sqrt(count))
        assert found.details["weights"] == pytest.approx([1 / count] * count)
        assert found.details["noisy_count"] == pytest.approx(400)
        assert found.interval.coverage == "at_least"


def test_the_interval_is_that_of_all_laplaces_together() -> None:
    """Two answers with three times the weight of one: the law of the pivot, convolved on a grid."""
    sums = [sums_of(LAPLACE, [0.4] * 100, weight, exact=True) for weight in (0.1, 0.3)]
    _, found = combined_ratio(QUESTION, sums)
    assert found.details["weights"] == pytest.approx([0.1, 0.9])
    step = 0.002
    grid = np.arange(-15_000, 15_001) * step
    for end in (found.interval.lower, found.interval.upper):
        density = np.zeros(len(grid))
        density[0] = 1
        # c = nu / 2 for noise of variance 2; the whole does not matter.
        for scale in [factor * part for factor in (0.05, 0.15) for part in (1 - end, end)]:
            laplace = np.exp(-np.abs(grid) / scale)
            moved = np.fft.rfft(np.fft.ifftshift(laplace / laplace.sum()))
            density = np.fft.irfft(np.fft.rfft(density) * moved, len(grid))
        away = abs((0.4 - end) * 100 * (0.05 * 0.1 + 0.15 * 0.3))
        assert np.fft.fftshift(density)[np.abs(grid) > away].sum() == pytest.approx(0.05, abs=1e-3)


@pytest.mark.parametrize("level", [0.05, 0.5, 2, 8])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5])
def test_the_law_of_hourglasses_is_inverted(level: float, p: float) -> None:
    """One against its closed form; of two the mixed sum of draws, at most 4.5 deviations of 20,000."""
    noise = hourglass(GRID_SIZE, round(level * 1e6))
    pivot = CombinedPivot(((1.0, HourglassPivot(noise=noise, level=level), 2),))
    law = HourglassLaw(noise=noise, tilt=1 - 2 * p, size=level / GRID_SIZE, times=1)
    generator = np.random.default_rng(7)
    # v is uniform between the reaches given u: see `app.mechanisms.hourglass_law`.
    b, step = math.exp(-level), noise.step / noise.half
    u = np.arange(-int(60 / level) - 1, int(60 / level) + 2)
    beyond = 2 * b * b / (1 - b * b)
    chances = b ** np.abs(u) * (np.abs(u) + step + beyond)
    drawn = generator.choice(u, size=(2, 20_000), p=chances / chances.sum())
    reach = np.abs(drawn) + step
    # A box of reach R + 2 i has the chance b^(2 i) (R + 2 i), by rejection from geometric boxes.
    boxes = _boxes(generator, reach, b * b)
    v = generator.uniform(-1, 1, drawn.shape) * (reach + 2 * boxes)
    total = np.abs((((1 - 2 * p) * drawn + v) * level / 2).sum(axis=0))
    spread = math.sqrt(2 * law.variance)
    assert float(np.mean(total**2)) == pytest.approx(spread**2, rel=0.2)
    for times in (0.5, 1, 2):
        tail = pivot.tail(p, times * spread)
        seen = float(np.mean(total > times * spread))
        assert abs(seen - tail) < 4.5 * math.sqrt(tail * (1 - tail) / 20_000) + 2e-4
    single = CombinedPivot(((1.0, HourglassPivot(noise=noise, level=level), 1),))
    assert single.tail(p, spread) == pivot_tail(noise, 1 - 2 * p, spread * GRID_SIZE / level)


def _boxes(generator: np.random.Generator, reach: np.ndarray, b2: float) -> np.ndarray:
    """i with a chance in proportion to b2^i (reach + 2 i), for each reach."""
    most = 1 + min(4000, int(45 / -math.log(b2)))
    i = np.arange(most)
    found = np.empty(reach.shape, dtype=np.int64)
    for one in np.unique(reach):
        chances = b2**i * (one + 2 * i)
        places = reach == one
        found[places] = generator.choice(i, size=int(places.sum()), p=chances / chances.sum())
    return found


# ---------------------------------------------------------------------------------------- bound


@st.composite
def answers(draws) -> tuple[list[tuple[float, float, float]], list[list[float | None]]]:
    """(least, most, factor) of some answers, and for each person their weight in each, or None."""
    count = draws(st.integers(1, 4))
    ends = []
    for _ in range(count):
        least = draws(st.floats(0.05, 1))
        ends.append((least, least * draws(st.floats(1, 9)), draws(st.floats(0.1, 3))))
    person = st.tuples(*(st.none() | st.floats(least, most) for least, most, _ in ends)).map(list)
    people = draws(st.lists(person.filter(lambda own: any(own)), min_size=1, max_size=6))
    return ends, people


@given(answers())
def test_what_people_weigh_differently_is_bounded(given_answers) -> None:
    """The chain of inequalities of the module, for any people in any of the answers."""
    ends, people = given_answers
    middles = [factor * math.sqrt(least * most) for least, most, factor in ends]
    rho, whole = min(math.sqrt(least / most) for least, most, _ in ends), sum(middles)
    a = [
        sum(factor * own for own, (_, _, factor) in zip(person, ends, strict=True) if own)
        for person in people
    ]
    m = [sum(one for own, one in zip(person, middles, strict=True) if own) for person in people]
    t = sum(a) / sum(m)
    spread = sum((one - t * other) ** 2 for one, other in zip(a, m, strict=True))
    least, most = whole * rho, whole / rho
    assert spread <= (math.sqrt(most) - math.sqrt(least)) ** 2 * sum(a) * (1 + 1e-9) + 1e-12
    assert sum(one**2 for one in a) <= most * sum(a) * (1 + 1e-9)


# ------------------------------------------------------------------------------------- coverage


def simulated(noise: Noise, generator: np.random.Generator) -> tuple[list[RatioSums], float]:
    """Four answers: of 40 people ten leave after each, and fifteen come; and what they are the mean of."""
    people = {person: float(generator.random() < 0.4) for person in range(40)}
    counted: dict[int, tuple[int, float]] = {}
    sums = []
    for turn in range(4):
        sums.append(sums_of(noise, list(people.values())))
        for person, value in people.items():
            counted[person] = (counted.get(person, (0, value))[0] + 1, value)
        for person in list(people)[:10]:
            del people[person]
        came = range(100 * (turn + 1), 100 * (turn + 1) + 15)
        people |= {person: float(generator.random() < 0.7) for person in came}
    whole = sum(times for times, _ in counted.values())
    return sums, sum(times * value for times, value in counted.values()) / whole


STUDIES, ALLOWED = 150, 19


@pytest.mark.long
@pytest.mark.parametrize("noise", NOISES, ids=["two", "three", "gaussian", "three gaussian", "hourglass"])
def test_intervals_cover_the_stated_mean_when_people_come_and_go(noise: Noise) -> None:
    """Of 150 at 95 %, more than 19 miss with a probability below 1e-4; with the noise of one, more do."""
    assert 1 - binom.cdf(ALLOWED, STUDIES, 0.05) < 1e-4
    generator = np.random.default_rng(3)
    missed = alone = 0
    for _ in range(STUDIES):
        sums, truth = simulated(noise, generator)
        _, found = combined_ratio(QUESTION, sums)
        missed += not covers(found.interval, truth)
        # The control: all sums added up, read as if they had the noise of one.
        added = RatioSums(
            most=0.3,
            least=0.3,
            pivot=sums[0].pivot,
            first=sum(one.first for one in sums),
            second=sum(one.second for one in sums),
        )
        alone += not covers(combined_ratio(QUESTION, [added])[1].interval, truth)
    assert missed <= ALLOWED
    assert alone > ALLOWED


@pytest.mark.long
def test_answers_that_were_clipped_are_no_substitute() -> None:
    """At an end of the range: 32 answers, and the mean of what each is when it is moved into the range.

    Of 100 at 95 %, more than 15 miss with a probability below 1e-4.
    """
    studies, answers, allowed, people = 100, 32, 15, 40
    assert 1 - binom.cdf(allowed, studies, 0.05) < 1e-4
    missed = clipped = 0
    for _ in range(studies):
        sums = [sums_of(LAPLACE, [0.0] * people) for _ in range(answers)]
        missed += not covers(combined_ratio(QUESTION, sums)[1].interval, 0.0)
        mean = float(np.mean([float(ratio(one.first, one.second)) for one in sums]))
        clipped += mean > 1.96 * math.sqrt(2 / answers) / (0.3 * people)
    assert missed <= allowed
    assert clipped > allowed


def test_no_number_of_people_changes_a_weight() -> None:
    few, many = (
        combined_ratio(QUESTION, [sums_of(LAPLACE, [0.5] * size, weight) for weight in (0.1, 0.3)])
        for size in (1, 5_000)
    )
    assert few[0].predicted_error == many[0].predicted_error
    assert few[1].details["weights"] == many[1].details["weights"]
