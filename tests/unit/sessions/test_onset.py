"""A minimum read off all rounds: the median against sums by hand, its interval, who keeps the old rule."""

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.sessions.accuracy import accuracy
from app.sessions.documents import from_document, to_document
from app.sessions.onset import Seen, onset
from app.sessions.response import Tally
from app.sessions.search import Mode, Search, Target, advance, decided, make_rules


def begun(target=Target.MINIMUM, **changes):
    given: dict[str, Any] = {"epsilon": 2 * MICRO, "participants": 10_000}
    return Search(rules=make_rules(target=target, **given | changes))


def expected(fraction, lie=0.0, people=10_000, epsilon=1):
    """The yes that a part of people and liars give in the mean."""
    truth = 1 / (1 + math.exp(-epsilon))
    return round(people * (lie + (1 - lie) * (1 - truth + fraction * (2 * truth - 1))))


def rounds(thresholds, fraction, **changes):
    return tuple(
        Seen(
            threshold=threshold,
            positives=expected(fraction(threshold), **changes),
            answers=changes.get("people", 10_000),
        )
        for threshold in thresholds
    )


def summed(seen, epsilon):
    """The same median, cell by cell, without an array."""
    truth = 1 / (1 + math.exp(-epsilon))
    ends = [0.0, *sorted({one.threshold for one in seen}), 1.0]
    cells = [
        (low + (high - low) * cell / 6, low + (high - low) * (cell + 1) / 6)
        for low, high in pairwise(ends)
        for cell in range(6)
    ]
    rises = [(2.0**-k, 2 ** (k / 3)) for k in range(len(seen) + 2)] + [(0.0, 8.0)]
    terms = {}
    for start, end in cells:
        for width, steep in rises:
            for head in (0.25, 0.5, 1.0):
                for lie, weight in ((0.0, 0.8), (0.02, 0.1), (0.05, 0.1)):
                    value = math.log((end - start) * steep * head**2 * weight)
                    for one in seen:
                        beyond = one.threshold - (start + end) / 2
                        if beyond < 0:
                            part = 0.0
                        elif beyond < width:
                            part = head * beyond / width
                        else:
                            rate = (one.positives / one.answers - lie) / (1 - lie)
                            part = max(head, min(1.0, (rate - 1 + truth) / (2 * truth - 1)))
                        chance = lie + (1 - lie) * (1 - truth + (2 * truth - 1) * part)
                        value += one.positives * math.log(chance)
                        value += (one.answers - one.positives) * math.log(1 - chance)
                    terms[start, end, width, head, lie] = value
    top = max(terms.values())
    masses = [math.fsum(math.exp(v - top) for k, v in terms.items() if k[:2] == cell) for cell in cells]
    left = math.fsum(masses) / 2
    for (start, end), mass in zip(cells, masses, strict=True):
        if left <= mass:
            return start + (end - start) * left / mass
        left -= mass
    raise AssertionError("the halves of a mass add up to it")


@pytest.mark.parametrize(
    ("seen", "epsilon"),
    [
        ([(0.5, 60, 75), (0.25, 30, 75), (0.375, 25, 75), (0.4375, 31, 75)], 1),
        ([(0.5, 20, 75), (0.75, 70, 80), (0.75, 3, 4)], 1),
        ([(0.5, 300, 1000), (0.75, 550, 1000), (0.625, 350, 1000)], 2),
        ([(0.5, 1, 1)], 1),
    ],
)
def test_it_is_the_median_of_the_sum_over_all_heads_rises_and_lies(seen, epsilon):
    made = tuple(Seen(threshold=t, positives=z, answers=n) for t, z, n in seen)
    assert onset(made, epsilon * MICRO) == pytest.approx(summed(made, epsilon), abs=1e-9)


# The rounds of a search that halves, among even values from .3 to .9, believed from .1 on.
THRESHOLDS = (0.5, 0.25, 0.375, 0.3125, 0.34375, 0.359375, 0.3671875, 0.36328125, 0.361328125)


def even(threshold):
    return min(max((threshold - 0.3) / 0.6, 0.0), 1.0)


def test_a_line_is_followed_to_where_it_begins():
    """The last round, which the interval ends at, lies .06 above."""
    assert onset(rounds(THRESHOLDS, even), MICRO) == pytest.approx(0.3, abs=0.02)


def test_all_at_one_point_are_found_between_its_neighbors():
    thresholds = (0.5, 0.75, 0.625, 0.5625, 0.59375, 0.609375)
    found = onset(rounds(thresholds, lambda threshold: float(threshold >= 0.6)), MICRO)
    assert 0.59375 < found < 0.609375


def test_a_twentieth_of_answers_that_are_always_yes_are_no_people_at_the_end_of_the_range():
    """Control: as many people who are there, a part that no lie makes, are."""
    lying = rounds(THRESHOLDS, even, lie=0.05)
    assert onset(lying, MICRO) > 0.27
    assert onset(rounds(THRESHOLDS, lambda threshold: max(0.2, even(threshold))), MICRO) < 0.1


def test_rounds_that_contradict_each_other_have_a_median_all_the_same():
    seen = (Seen(threshold=0.25, positives=9, answers=9), Seen(threshold=0.75, positives=0, answers=9))
    assert 0 <= onset(seen, 40 * MICRO) <= 1


# ------------------------------------------------------------------------------------------ a search


tallies = st.lists(
    st.integers(0, 2000).flatmap(
        lambda answers: st.builds(Tally, answers=st.just(answers), positives=st.integers(0, answers))
    ),
    min_size=1,
    max_size=9,
)


def run(search, given):
    for tally in given[: search.rules.rounds]:
        search = advance(search, tally)
    return search


@given(tallies, st.sampled_from(Mode))
def test_an_interval_has_the_estimate_and_begins_where_a_round_was_not_believed(given, mode):
    search = run(begun(mode=mode, epsilon=8 * MICRO), given)
    low, high = search.interval
    assert low <= search.estimate <= high
    assert high == search.upper
    assert low <= search.lower
    unbelieved = [s.threshold for s in search.steps if decided(search.rules, s) and not s.believed]
    assert low in (0, *unbelieved)
    # None that is nearer would hold it.
    assert not any(low < threshold <= search.estimate for threshold in unbelieved)
    assert accuracy(search).resolution == high - low


@given(tallies)
def test_a_maximum_is_the_minimum_of_the_mirror(given):
    low, high = (run(begun(target), given) for target in (Target.MINIMUM, Target.MAXIMUM))
    # Believed means the same of both, so that their rounds ask mirrored questions.
    assert high.estimate == pytest.approx(GRID_SIZE - low.estimate, abs=1e-3)
    assert high.interval == tuple(GRID_SIZE - end for end in reversed(low.interval))


def test_inside_of_what_is_left_it_is_the_middle():
    search = begun(participants=2**15, epsilon=8 * MICRO)
    while not search.finished:
        search = advance(search, Tally(answers=2700, positives=2700 * (search.threshold > GRID_SIZE // 3)))
    assert search.estimate == (search.lower + search.upper) / 2
    assert search.interval == (search.lower, search.upper)


def test_values_that_thin_out_are_followed_below_what_is_left():
    """Control: the middle of what is left is four times as far off."""
    search = begun(epsilon=MICRO)
    while not search.finished:
        yes = expected(even(search.threshold / GRID_SIZE), people=1111)
        search = advance(search, Tally(answers=1111, positives=yes))
    assert search.estimate < search.lower
    assert search.interval[0] < search.lower < search.interval[1]
    error = abs(search.estimate / GRID_SIZE - 0.3)
    assert 4 * error < abs((search.lower + search.upper) / 2 / GRID_SIZE - 0.3)


def test_a_search_that_began_before_is_read_as_before():
    search = run(begun(epsilon=MICRO), [Tally(answers=1111, positives=p) for p in (600, 380, 420, 350)])
    document = json.loads(json.dumps(to_document(search)))
    assert from_document(Search, document) == search
    document["rules"]["posterior"] = False
    former = from_document(Search, document)
    assert search.estimate < search.lower
    assert former.estimate == (former.lower + former.upper) / 2
    assert former.interval == (former.lower, former.upper)
