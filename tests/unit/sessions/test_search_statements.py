"""Searches: what answers decide, what they are stored as, and how far off the result can be."""

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.sessions.accuracy import accuracy, missed_fraction
from app.sessions.documents import from_document, to_document
from app.sessions.response import Tally, truth_probability
from app.sessions.search import (
    Mode,
    Rules,
    Search,
    Target,
    Threshold,
    advance,
    decisive,
    least_positives,
    make_rules,
)


def rules(**changes) -> Rules:
    fields: dict[str, Any] = {
        "target": Target.MINIMUM,
        "epsilon": 2 * MICRO,
        "participants": 1000,
        "rounds": 4,
        "mode": Mode.BUDGET_SPLIT,
        "threshold": Threshold.EXACT_BINOMIAL,
    }
    return make_rules(**fields | changes)


tallies = st.integers(0, 2000).flatmap(
    lambda answers: st.builds(Tally, answers=st.just(answers), positives=st.integers(0, answers))
)


@given(st.lists(tallies, max_size=6), st.sampled_from(Target), st.sampled_from(Threshold))
def test_a_search_survives_its_document(rounds, target, threshold):
    quantile = 1 / 3 if target is Target.QUANTILE else None
    search = Search(
        rules=rules(target=target, threshold=threshold, rounds=6, quantile=quantile, epsilon=4 * MICRO)
    )
    for tally in rounds:
        search = advance(search, tally)
    assert from_document(Search, json.loads(json.dumps(to_document(search)))) == search


def test_a_document_that_is_none_is_refused():
    document: dict[str, Any] = to_document(Search(rules=rules()))
    for broken in (
        {},
        {**document, "format": 99},
        {**document, "lower": None, "steps": [{}]},
        {**document, "rules": {**document["rules"], "mode": "other"}},
        {**document, "steps": 5},
    ):
        with pytest.raises(InternalFault):
            from_document(Search, broken)


@given(tallies, st.sampled_from([Target.MINIMUM, Target.MAXIMUM]))
def test_a_round_halves_the_interval_or_decides_nothing(tally, target):
    before = Search(rules=rules(target=target))
    after = advance(before, tally)
    assert after.round == 2
    if decisive(before.rules, tally.answers):
        assert after.upper - after.lower == GRID_SIZE // 2
        towards = after.upper < GRID_SIZE if target is Target.MINIMUM else after.lower > 0
        assert towards == (tally.positives >= least_positives(before.rules, tally.answers))
    else:
        assert (after.lower, after.upper) == (0, GRID_SIZE)
        assert not after.steps[0].believed


def test_a_round_that_nobody_answers_decides_nothing():
    for target, quantile in ((Target.MINIMUM, None), (Target.MAXIMUM, None), (Target.QUANTILE, 0.5)):
        after = advance(Search(rules=rules(target=target, quantile=quantile)), Tally(answers=0, positives=0))
        assert (after.lower, after.upper, after.steps[0].fraction) == (0, GRID_SIZE, None)


def test_a_round_that_cannot_be_closed_like_this_is_a_fault():
    search = Search(rules=rules(rounds=1))
    for tally in (Tally(answers=1, positives=2), Tally(answers=1, positives=-1)):
        with pytest.raises(InternalFault):
            advance(search, tally)
    with pytest.raises(InternalFault):
        advance(advance(search, Tally(answers=500, positives=0)), Tally(answers=500, positives=0))


# ------------------------------------------------------------------------------------------ accuracy


def belief(rules: Rules, answers: int, true_yes: int) -> float:
    """Probability, exactly, that a round with so many true yes is believed."""
    truth = truth_probability(rules.epsilon_per_answer)
    honest = binom.pmf(np.arange(true_yes + 1), true_yes, truth)
    lying = binom.pmf(np.arange(answers - true_yes + 1), answers - true_yes, 1 - truth)
    positives = np.convolve(honest, lying)
    return float(positives[least_positives(rules, answers) :].sum())


@pytest.mark.parametrize("threshold", Threshold)
@pytest.mark.parametrize("answers", [200, 1000, 5000])
@pytest.mark.parametrize("epsilon", [4, 8])
def test_what_a_round_can_miss_is_missed_as_seldom_as_stated(threshold, answers, epsilon):
    made = rules(threshold=threshold, epsilon=epsilon * MICRO)
    for failure in (0.05, 0.001):
        fraction = missed_fraction(made, answers, failure)
        if fraction == 1:
            continue
        noticed = belief(made, answers, math.ceil(Fraction(fraction) * answers))
        assert 1 - noticed <= failure
        # The control: a third of it is missed far more often.
        assert 1 - belief(made, answers, int(fraction * answers / 3)) > 2 * failure


def test_the_statement_holds_for_the_whole_search():
    """The exact probability that some round goes wrong, for a crowd that lies at one point."""
    made = rules(epsilon=8 * MICRO, participants=2000)
    search = Search(rules=made)
    while not search.finished:
        search = advance(search, Tally(answers=2000, positives=0))
    statement = accuracy(search)
    assert statement.resolution == GRID_SIZE // 16
    assert statement.undecided_rounds == 0
    wrong = 4 * belief(made, 2000, 0)
    missing = math.ceil(Fraction(statement.missed_fraction) * 2000)
    assert wrong <= statement.failure_probability
    assert 4 * (1 - belief(made, 2000, missing)) <= statement.failure_probability
    assert statement.failure_probability <= math.exp(-made.failure_exponent) * 1.000001


def test_more_people_and_more_epsilon_miss_less():
    fractions = [missed_fraction(rules(epsilon=4 * MICRO), answers, 0.01) for answers in (100, 1000, 10_000)]
    assert fractions == sorted(fractions, reverse=True)
    assert fractions[-1] < fractions[0] / 5
    richer = missed_fraction(rules(epsilon=16 * MICRO), 1000, 0.01)
    assert richer < missed_fraction(rules(epsilon=4 * MICRO), 1000, 0.01)


def test_for_a_quantile_it_is_how_far_the_rank_can_be_off():
    made = rules(target=Target.QUANTILE, quantile=0.5, epsilon=8 * MICRO)
    off = missed_fraction(made, 1000, 0.01)
    assert 0.02 < off < 0.2
    assert 1 - belief(made, 1000, math.ceil((0.5 + off) * 1000)) <= 0.01
    assert belief(made, 1000, math.floor((0.5 - off) * 1000)) <= 0.01


def test_a_search_without_a_decision_says_so():
    search = advance(Search(rules=rules()), Tally(answers=1, positives=1))
    statement = accuracy(search)
    assert (statement.missed_fraction, statement.failure_probability) == (1, 0)
    assert (statement.undecided_rounds, statement.resolution) == (1, GRID_SIZE)
