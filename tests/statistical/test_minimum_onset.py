"""A minimum read off all rounds beside the middle of what is left, and what the interval states.

Simulated coins, seeded; each verdict with a false alarm in a million.
"""

import math

import numpy as np
import pytest

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.sessions.accuracy import accuracy
from app.sessions.response import Tally, truth_probability
from app.sessions.search import Search, Target, advance, make_rules
from dither_research.minimum import Errors
from dither_research.minimum_default import ratio
from dither_research.seeded import seeded
from dither_research.simulation import average

pytestmark = pytest.mark.statistical

SIGMAS = 4.75
RUNS = 80
AT_MOST = 0.6
"""Of the error of the middle, in the geometric mean over the laws; .44 is measured."""

LAWS = {
    "even": lambda random, people: 0.3 + 0.6 * random.random(people),
    "incomes": lambda random, people: np.clip(0.175 * np.exp(0.6 * random.standard_normal(people)), 0, 1),
    "ages": lambda random, people: 0.15 + 0.6 * random.beta(1.3, 2, people),
    "dense at the minimum": lambda random, people: 0.3 + 0.3 * random.beta(0.7, 1, people),
}


def search(random, values, epsilon=MICRO):
    """A search over these people, each in a round that is drawn."""
    found = Search(rules=make_rules(target=Target.MINIMUM, epsilon=epsilon, participants=values.size))
    truth, turns = truth_probability(epsilon), random.integers(1, found.rules.rounds + 1, values.size)
    while not found.finished:
        there = values[turns == found.round] * GRID_SIZE <= found.threshold
        yes = int(there.sum())
        positives = random.binomial(yes, truth) + random.binomial(there.size - yes, 1 - truth)
        found = advance(found, Tally(answers=there.size, positives=int(positives)))
    return found


def errors(distances):
    mean, uncertainty = average(np.array(distances))
    return Errors(mean=mean, low=0, high=0, uncertainty=uncertainty)


@pytest.fixture(scope="module")
def settings():
    """(errors of the estimate, errors of the middle of what is left), by law."""
    found = {}
    for name, law in LAWS.items():
        random = seeded(f"onset, {name}")
        read, middle = [], []
        for _ in range(RUNS):
            values = law(random, 10_000)
            made = search(random, values)
            read.append(abs(made.estimate / GRID_SIZE - values.min()))
            middle.append(abs((made.lower + made.upper) / 2 / GRID_SIZE - values.min()))
        found[name] = errors(read), errors(middle)
    return found


def test_an_estimate_errs_at_most_three_fifths_as_much_as_the_middle_of_what_is_left(settings):
    found = ratio(list(settings.values()))
    assert found.value * math.exp(SIGMAS * found.uncertainty) <= AT_MOST
    for ours, middle in settings.values():
        assert ours.mean < middle.mean


def test_control_the_middle_against_itself_gains_nothing(settings):
    found = ratio([(middle, middle) for _, middle in settings.values()])
    assert found.value * math.exp(-SIGMAS * found.uncertainty) > AT_MOST


@pytest.mark.parametrize("law", LAWS)
def test_an_interval_holds_what_it_states(law):
    """Control: a statement that people are at or below its lower end, too, fails far more often."""
    random, runs = seeded(f"interval, {law}"), 200
    held = lower = 0
    for _ in range(runs):
        values = LAWS[law](random, 1000)
        made = search(random, values)
        low, high = (end / GRID_SIZE for end in made.interval)
        few = float((values < low).mean()) <= accuracy(made).missed_fraction
        held += few and values.min() <= high
        lower += few and values.min() <= low
    failure = accuracy(made).failure_probability
    fewest = 1 - failure - SIGMAS * math.sqrt(failure * (1 - failure) / runs)
    assert held / runs >= fewest
    assert lower / runs < fewest
