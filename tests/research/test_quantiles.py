"""The search for a quantile errs at most 0.75 times as much as one that halves, and its interval holds."""

import math

import pytest

from app.sessions import quantile as reading
from app.sessions.search import Mode
from dither_research.minimum_default import ratio
from dither_research.quantiles import AT_MOST, SHAPES, compare, covers, measure, quantile_rules, rank_error
from dither_research.seeded import seeded

PEOPLE = 10_000
RUNS = 200
SIGMAS = 4.75
"""One-sided: an estimated mean strays this far with probability 1e-6."""


@pytest.fixture(scope="module")
def settings():
    return compare(PEOPLE, 1.0, RUNS, seeded("quantiles"))


def test_the_rank_error_is_at_most_three_quarters_of_that_of_halving(settings):
    """Passes wrongly with probability 1e-6; what is true lies near .65."""
    found = ratio([(ours.errors, former.errors) for ours, former in settings.values()])
    assert found.value * math.exp(SIGMAS * found.uncertainty) <= AT_MOST


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_smaller_for_every_shape(settings, shape):
    pairs = [(ours.errors, former.errors) for (name, _), (ours, former) in settings.items() if name == shape]
    found = ratio(pairs)
    assert found.value * math.exp(SIGMAS * found.uncertainty) < 1


def test_it_takes_the_same_answers_rounds_and_epsilon():
    ours, former = (quantile_rules(PEOPLE, 1.0, 0.5, halving=halving) for halving in (False, True))
    assert (ours.rounds, ours.people_per_round, ours.epsilon_per_answer, ours.answers_per_person) == (
        former.rounds,
        former.people_per_round,
        former.epsilon_per_answer,
        former.answers_per_person,
    )


def test_control_halving_against_itself_gains_nothing():
    random = seeded("quantiles, control")
    rules = quantile_rules(PEOPLE, 1.0, 0.5, halving=True)

    def errors(shape):
        return measure(rules, shape, RUNS, random).errors

    pairs = [(errors(shape), errors(shape)) for shape in SHAPES.values()]
    found = ratio(pairs)
    assert found.value * math.exp(-SIGMAS * found.uncertainty) > AT_MOST


# ------------------------------------------------------------------------------------------ coverage


def plateau(x):
    """The hardest law: two fifths of the range where hardly less than half are below, and all the others."""
    return x / 0.6 if x < 0.3 else 0.5 - 1e-9 if x < 0.7 else 0.5 + (x - 0.7) / 0.6


LAWS = {**SHAPES, "plateau": plateau}
SEARCHES = 400
FEWEST = 0.95 - SIGMAS * math.sqrt(0.95 * 0.05 / SEARCHES)
"""A law that is covered 95 times in a hundred is below it with probability 1e-6."""


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("law", LAWS)
def test_an_interval_has_the_quantile_and_a_rank_is_as_near_as_stated(law, mode):
    found = measure(quantile_rules(PEOPLE, 1.0, 0.5, mode=mode), LAWS[law], SEARCHES, seeded(f"{law} {mode}"))
    assert found.covered >= FEWEST
    assert found.rank_kept >= FEWEST


def test_control_tests_that_are_not_split_over_the_rounds_miss_too_often(monkeypatch):
    """And so do the intervals that are left by halving."""
    random, rules = seeded("coverage, control"), quantile_rules(PEOPLE, 1.0, 0.5)
    monkeypatch.setattr(reading, "FAILURE", reading.FAILURE * rules.rounds)
    assert measure(rules, plateau, SEARCHES, random).covered < FEWEST
    halving = quantile_rules(PEOPLE, 1.0, 0.5, halving=True)
    assert measure(halving, SHAPES["even"], SEARCHES, random).covered < FEWEST


def test_a_tie_has_every_rank_of_its_people():
    def half_at_the_middle(x):
        return 0.25 if x < 0.5 else 0.75

    middle = 2**29
    assert rank_error(half_at_the_middle, 0.5, middle) == 0
    assert rank_error(half_at_the_middle, 0.5, middle - 0.5) == 0.25
    assert rank_error(half_at_the_middle, 0.5, middle + 0.5) == 0.25
    assert covers(half_at_the_middle, 0.5, middle, middle)
    assert not covers(half_at_the_middle, 0.5, 0, middle - 1)
    assert not covers(half_at_the_middle, 0.5, middle + 1, 2**30)
