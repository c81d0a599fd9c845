"""A quantile read off all rounds: what is asked next, the fit, and what the interval says."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.sessions.documents import from_document, to_document
from app.sessions.quantile import FAILURE, SearchReading
from app.sessions.response import ClosedRound, Tally
from app.sessions.search import Mode, Search, Target, advance, make_rules

READING = SearchReading(quantile=0.3, epsilon=2 * MICRO, rounds=10)


def step(threshold, positives, answers=1000):
    return ClosedRound(
        lower=0,
        upper=GRID_SIZE,
        threshold=threshold,
        answers=answers,
        positives=positives,
        fraction=None,
        believed=False,
    )


def begun(quantile=0.5, **changes):
    given: dict[str, Any] = {"epsilon": 4 * MICRO, "participants": 10_000, "rounds": 8}
    given["mode"] = Mode.BUDGET_SPLIT
    return Search(rules=make_rules(target=Target.QUANTILE, quantile=quantile, **given | changes))


steps = st.lists(
    st.integers(1, 3000).flatmap(
        lambda answers: st.builds(
            step,
            st.integers(1, 2**10 - 1).map(lambda place: place * GRID_SIZE // 2**10),
            st.integers(0, answers),
            st.just(answers),
        )
    ),
    max_size=6,
)


@given(steps)
def test_the_next_round_asks_about_the_posterior_median(rounds):
    """Against a sum over a fine grid of the range."""
    points: Any = (np.arange(2**14) + 0.5) * GRID_SIZE / 2**14
    likelihood: Any = np.zeros(len(points))
    for seen in rounds:
        deviation = math.sqrt(READING.chance * (1 - READING.chance) / seen.answers)
        apart = np.clip((seen.positives / seen.answers - READING.chance) / deviation, -8, 8)
        likelihood += np.where(points <= seen.threshold, norm.logcdf(apart), norm.logsf(apart))
    masses = np.exp(likelihood - likelihood.max())
    cumulated = np.cumsum(masses) / masses.sum()
    asked = READING.next_threshold(rounds, 0, GRID_SIZE)
    place = min(int(np.searchsorted(points, asked)), len(points) - 1)
    assert abs(cumulated[place] - 0.5) <= 4 * masses.max() / masses.sum()


def test_without_an_answer_it_is_the_middle():
    assert READING.next_threshold([], 0, GRID_SIZE) == GRID_SIZE // 2
    assert READING.next_threshold([step(7, 0, 0)], 0, GRID_SIZE) == GRID_SIZE // 2
    assert READING.next_threshold([step(7, 500)], 41, 42) == 41


@pytest.mark.parametrize("answers", [1, 40, 700])
def test_evidence_is_an_exact_test_at_a_part_of_the_level(answers):
    level = FAILURE / READING.rounds
    for positives in range(answers + 1):
        assert READING.above(positives, answers) == (
            binom.sf(positives - 1, answers, READING.chance) <= level
        )
        assert READING.below(positives, answers) == (binom.cdf(positives, answers, READING.chance) <= level)


def test_the_fit_is_read_where_the_fractions_cross_the_quantile():
    def at(threshold, fraction, answers=100_000):
        return step(threshold, round(answers * (READING.chance + (fraction - 0.3) * math.tanh(1))), answers)

    rounds = [at(100, 0.1), at(300, 0.5), at(200, 0.2)]
    assert READING.estimate(rounds, 0, GRID_SIZE) == pytest.approx(200 + 100 * 0.1 / 0.3, abs=0.05)
    # One out of order is pooled with its neighbor, by the number of answers: .425 at 375.
    rounds.append(at(400, 0.4, 300_000))
    assert READING.estimate(rounds, 0, GRID_SIZE) == pytest.approx(200 + 175 * 0.1 / 0.225, abs=0.05)
    assert READING.estimate(rounds, 210, 220) == 220
    assert READING.estimate(rounds, 290, 300) == 290


@given(steps)
def test_an_estimate_lies_in_the_range_and_its_rank_is_stated_within_it(rounds):
    if not any(seen.answers for seen in rounds):
        return
    estimate = READING.estimate(rounds, 0, GRID_SIZE)
    assert 0 <= estimate <= GRID_SIZE
    assert READING.rank_error(rounds, estimate) <= 0.7


def test_a_rank_is_bounded_as_clopper_and_pearson_do():
    """One round at the estimate: the rank stated is where its answers would have half of the level."""
    seen = step(500, 400)
    truth = 1 / (1 + math.exp(-2))
    off = READING.rank_error([seen], 500)
    ends = [1 - truth + (READING.quantile + side * off) * (2 * truth - 1) for side in (-1, 1)]
    tails = [binom.sf(399, 1000, ends[0]), binom.cdf(400, 1000, ends[1])]
    assert min(abs(tail - FAILURE / 20) for tail in tails) < 1e-9


tallies = st.lists(
    st.integers(0, 2000).flatmap(
        lambda answers: st.builds(Tally, answers=st.just(answers), positives=st.integers(0, answers))
    ),
    min_size=1,
    max_size=8,
)


@given(tallies, st.sampled_from([0.01, 0.5, 0.9]))
def test_whatever_is_answered_the_interval_only_narrows_and_has_what_is_asked_and_found(rounds, quantile):
    search = begun(quantile)
    for tally in rounds:
        after = advance(search, tally)
        assert search.lower <= after.lower <= after.upper <= search.upper
        assert after.lower <= after.threshold <= after.upper
        assert after.lower <= after.estimate <= after.upper
        search = after


@given(tallies)
def test_a_restart_asks_the_same_question_and_finds_the_same(rounds):
    search = begun()
    for tally in rounds:
        restored = from_document(Search, json.loads(json.dumps(to_document(search))))
        search = advance(search, tally)
        again = advance(restored, tally)
        assert (again.threshold, again.estimate, again) == (search.threshold, search.estimate, search)


def test_the_open_question_is_stored_and_not_computed_again():
    """So that no other build of the mathematics asks another one."""
    document = to_document(advance(begun(), Tally(answers=1000, positives=450)))
    moved = from_document(Search, document | {"asked": document["asked"] + 1})
    assert moved.threshold == document["asked"] + 1


def test_a_search_that_began_by_halving_goes_on_by_halving():
    document = json.loads(json.dumps(to_document(begun())))
    del document["asked"], document["rules"]["posterior"]
    search = from_document(Search, document)
    for positives in (0, 1000):
        search = advance(search, Tally(answers=1000, positives=positives))
    assert (search.lower, search.upper) == (GRID_SIZE // 2, 3 * GRID_SIZE // 4)
    assert search.estimate == (search.lower + search.upper) / 2
