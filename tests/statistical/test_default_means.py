"""What a mean that is asked without any choice errs by, beside noise alone and beside what plans say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.services.statistics import whole_plans
from app.services.statistics.piece_noise import step_scale
from dither_research.histories import STUDY, History

pytestmark = pytest.mark.statistical

DRAWS = 4_000
TIERS = (100_000, 250_000, 500_000, MICRO, 2 * MICRO, 4 * MICRO)
FIRST = 100_000
TILT = 100_000

Floats = NDArray[np.float64]


def incomes(random: np.random.Generator, people: int) -> Floats:
    return np.clip(random.lognormal(math.log(30_000), 0.8, people) / 250_000, 0, 1)


def minutes(random: np.random.Generator, people: int) -> Floats:
    return np.clip(random.gamma(2.0, 15.0, people) / 240, 0, 1)


def uniform(random: np.random.Generator, people: int) -> Floats:
    return random.random(people)


def all_equal(_: np.random.Generator, people: int) -> Floats:
    return np.full(people, 0.1)


class Mean:
    """An answer for cohorts, as weights of one person each, the scale of its noise, and what shrinks it."""

    def __init__(self, counts: Floats, weights: Floats, scale: float, shrinkage: float) -> None:
        mass = float(counts @ weights)
        self.counts, self.person = counts, weights / mass
        self.scale, self.shrinkage = scale / mass / GRID_SIZE, shrinkage

    def errors(self, means: Floats, random: np.random.Generator) -> Floats:
        """Errors about the dataset of as many answers as there are rows of the means of cohorts."""
        weighed = means @ (self.counts * self.person) + random.laplace(0, self.scale, len(means))
        answers = np.clip(0.5 + self.shrinkage * (weighed - 0.5), 0, 1)
        return answers - means @ (self.counts / self.counts.sum())

    def error(self, means: Floats, random: np.random.Generator) -> float:
        return float(np.sqrt(np.mean(self.errors(means, random) ** 2)))


def joined(values: list[Floats], epsilons: tuple[int, ...], tilt: int = TILT) -> History:
    history = History(study=replace(STUDY, tilt=tilt), estimator="auto", tilt=tilt)
    for epsilon, own in zip(epsilons, values, strict=True):
        history.join(epsilon, np.round(own * GRID_SIZE).astype(int).tolist())
    return history


def counts_of(history: History) -> Floats:
    return np.array([cohort.count for cohort in history.live], dtype=np.float64)


def first_answer(history: History, share: int) -> tuple[Mean, float]:
    """The first answer to the question, and the error that it is planned to have."""
    step = history.plan(share)
    assert step is not None
    (piece,) = step.pieces
    weights = dict(zip(piece.column("cohort_id"), piece.column("weight"), strict=True))
    shrinkage = step.plan.conclude([0, 0, 0, 0]).details.get("shrinkage", 1.0)
    weighed = np.array([float(weights.get(cohort.id, 0)) for cohort in history.live])
    scale = step_scale(piece.unit, piece.share)
    return Mean(counts_of(history), weighed, scale, shrinkage), step.plan.predicted_error


def fresh_answer(history: History, share: int) -> tuple[Mean, float]:
    """An answer with noise of its own, whose weights are for its share alone."""
    plan, people = history.plan_fresh(share)
    assert isinstance(plan.noise, DiscreteLaplace)
    weights = np.array([float(plan.queries[0].sum_weights[place]) for place in people.places])
    shrinkage = plan.conclude([0, 0]).details.get("shrinkage", 1.0)
    return Mean(counts_of(history), weights, plan.noise.scales[0], shrinkage), plan.predicted_error


@pytest.mark.parametrize("people", [1_000, 10_000])
@pytest.mark.parametrize("draw", [incomes, minutes, uniform, all_equal])
def test_the_default_errs_no_more_than_noise_alone(draw, people):
    """Of the same offers, of which all is spent, or the default share: 10 % more at most."""
    random = np.random.default_rng([people, *draw.__name__.encode()])
    values = draw(random, people)
    history = joined([values], (MICRO,))
    means = np.full((DRAWS, 1), float(np.mean(values)))
    for share in (MICRO, FIRST):
        mean, _ = first_answer(history, share)
        noise = np.sqrt(2) * MICRO / share / people
        assert mean.error(means, random) <= 1.1 * noise


def test_control_an_answer_drawn_in_by_how_people_are_sampled_errs_many_times_as_much():
    """One part in the root of n of the distance from the middle: what auto took before."""
    random, people = np.random.default_rng(b"control"[0]), 10_000
    history = joined([all_equal(random, people)], (MICRO,))
    mean, _ = first_answer(history, MICRO)
    drawn_in = Mean(mean.counts, mean.person, mean.scale * GRID_SIZE, 1 / (1 + 1 / math.sqrt(people)))
    assert drawn_in.error(np.full((DRAWS, 1), 0.1), random) > 10 * np.sqrt(2) / people


@pytest.mark.parametrize("people", [300, 3_000])
def test_the_first_answer_of_tiers_errs_little_more_than_a_fresh_one(people):
    """Planned and seen, for values that go with no epsilon: at most 1.4 times; at share 1 seen, 1.2 times."""
    random = np.random.default_rng([people, *b"tiers"])
    for draw in (incomes, minutes, uniform):
        values = [draw(random, people // len(TIERS)) for _ in TIERS]
        history = joined(values, TIERS)
        random.shuffle(pool := np.concatenate(values))
        orders = [random.permutation(pool).reshape(len(TIERS), -1).mean(axis=1) for _ in range(DRAWS // 2)]
        means = np.array(orders)
        first, planned = first_answer(history, FIRST)
        fresh, planned_fresh = fresh_answer(history, FIRST)
        assert planned <= 1.4 * planned_fresh
        assert first.error(means, random) <= 1.4 * fresh.error(means, random)
        whole = Mean(first.counts, first.person, first.scale * GRID_SIZE * FIRST / MICRO, 1.0)
        assert whole.error(means, random) <= 1.2 * fresh_answer(history, MICRO)[0].error(means, random)


def test_control_weights_for_share_1_err_more_than_twice_as_much_at_a_tenth(monkeypatch):
    monkeypatch.setattr(whole_plans, "planned_share", lambda _: MICRO)
    random = np.random.default_rng([*b"whole"])
    history = joined([uniform(random, 500) for _ in TIERS], TIERS)
    first, planned = first_answer(history, FIRST)
    fresh, planned_fresh = fresh_answer(history, FIRST)
    means = np.full((DRAWS, len(TIERS)), 0.5)
    assert planned > 1.4 * planned_fresh
    assert first.error(means, random) > 1.4 * fresh.error(means, random)


@pytest.mark.parametrize("people", [300, 3_000])
@pytest.mark.parametrize("share", [FIRST, MICRO])
def test_what_is_planned_is_seen(people, share):
    """Values at the ends of the range, which have the variance that is assumed, and no tilt."""
    random = np.random.default_rng([people, share, *b"planned"])
    each = people // len(TIERS)
    history = joined([random.integers(0, 2, each).astype(float) for _ in TIERS], TIERS, tilt=0)
    means = random.binomial(each, 0.5, (DRAWS, len(TIERS))) / each
    for mean, planned in (first_answer(history, share), fresh_answer(history, share)):
        assert 0.8 <= planned / mean.error(means, random) <= 1.3


def test_control_the_error_about_the_population_is_not_what_is_seen():
    random, people = np.random.default_rng([*b"population"]), 3_000
    history = joined([random.integers(0, 2, people).astype(float)], (MICRO,), tilt=0)
    means = random.binomial(people, 0.5, (DRAWS, 1)) / people
    mean, _ = first_answer(history, MICRO)
    step = history.plan(MICRO)
    assert step is not None
    assert (step.plan.population_error or 0) > 1.3 * mean.error(means, random)
