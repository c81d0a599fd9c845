"""The noisy binary search: halves the grid, believes what the rules say, and finds what is looked for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.core.epsilon import MICRO
from app.core.errors import InternalFault, InvalidRequest
from app.core.grid import GRID_SIZE
from app.sessions.response import Tally, estimate_fraction, truth_probability
from app.sessions.search import (
    MAX_ROUNDS,
    Depth,
    Mode,
    Search,
    Target,
    Threshold,
    advance,
    conclusive,
    least_positives,
    make_rules,
    people_needed,
    truthful,
)
from dither_research.seeded import seeded

PEOPLE = 2**14


def rules(target=Target.MINIMUM, **changes):
    given = {"target": target, "epsilon": 2 * MICRO, "participants": PEOPLE}
    if target is Target.QUANTILE:
        given["quantile"] = 0.5
    return make_rules(**(given | changes))


def honest(search, points):
    """Run to the end with everybody telling the truth."""
    while not search.finished:
        people = len(points)
        yes = sum(truthful(search.rules.target, point, search.threshold) for point in points)
        truth = truth_probability(search.rules.epsilon_per_answer)
        # What randomized answers would show in the mean.
        expected = yes * truth + (people - yes) * (1 - truth)
        search = advance(search, Tally(answers=people, positives=round(expected)))
    return search


# -------------------------------------------------------------------------------------------- price


@pytest.mark.parametrize("epsilon", [40, 999_999, MICRO, 7_000_003])
@pytest.mark.parametrize("mode", list(Mode))
def test_all_answers_of_a_person_cost_at_most_epsilon(epsilon, mode):
    found = rules(mode=mode, epsilon=epsilon, participants=2**39, rounds=7)
    assert found.answers_per_person == (7 if mode is Mode.BUDGET_SPLIT else 1)
    assert found.answers_per_person * found.epsilon_per_answer <= epsilon
    assert found.answers_per_person * (found.epsilon_per_answer + 1) > epsilon


def test_control_one_more_answer_would_cost_more():
    found = rules(mode=Mode.BUDGET_SPLIT, rounds=7)
    assert (found.answers_per_person + 1) * found.epsilon_per_answer > found.epsilon


# --------------------------------------------------------------------------------------- advancing


@pytest.mark.parametrize("target", [Target.MINIMUM, Target.MAXIMUM])
def test_believed_answers_keep_the_half_at_the_side_of_the_target(target):
    search = Search(rules=rules(target))
    everybody, nobody = Tally(answers=4000, positives=4000), Tally(answers=4000, positives=0)
    left, right = (advance(search, tally) for tally in (everybody, nobody))
    if target is Target.MAXIMUM:
        left, right = right, left
    assert (left.lower, left.upper) == (0, GRID_SIZE // 2)
    assert (right.lower, right.upper) == (GRID_SIZE // 2, GRID_SIZE)
    assert left.round == right.round == 2


def test_a_search_ends_at_one_grid_step():
    search = Search(rules=rules(rounds=MAX_ROUNDS, epsilon=40 * MICRO, participants=2**20))
    points = [123_456_789] * 2**10
    search = honest(search, points)
    assert search.upper - search.lower == 1
    assert search.lower < 123_456_789 <= search.upper
    with pytest.raises(InternalFault):
        advance(search, Tally(answers=1, positives=0))


@pytest.mark.parametrize("positives", [-1, 11])
def test_an_impossible_tally_is_a_fault(positives):
    with pytest.raises(InternalFault):
        advance(Search(rules=rules()), Tally(answers=10, positives=positives))


def test_what_was_closed_is_remembered():
    search = advance(Search(rules=rules()), Tally(answers=4000, positives=3000))
    (step,) = search.steps
    assert (step.lower, step.upper, step.threshold) == (0, GRID_SIZE, GRID_SIZE // 2)
    assert step.fraction == pytest.approx(estimate_fraction(3000, 4000, 2 * MICRO))
    assert step.believed


def test_a_tie_says_yes():
    assert truthful(Target.MINIMUM, 5, 5)
    assert truthful(Target.QUANTILE, 5, 5)
    assert truthful(Target.MAXIMUM, 5, 5)
    assert not truthful(Target.MINIMUM, 6, 5)
    assert not truthful(Target.MAXIMUM, 4, 5)


def test_a_maximum_is_the_minimum_of_the_mirror():
    low = Search(rules=rules(rounds=8))
    high = Search(rules=rules(Target.MAXIMUM, rounds=8))
    for positives in (4000, 0, 3000, 2000, 900, 100, 0, 3999):
        tally = Tally(answers=4000, positives=positives)
        low, high = advance(low, tally), advance(high, tally)
        assert (high.lower, high.upper) == (GRID_SIZE - low.upper, GRID_SIZE - low.lower)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_a_quantile_of_truthful_answers_is_the_quantile(quantile):
    points = [round(GRID_SIZE * (0.2 + 0.6 * (index + 0.5) / 2000)) for index in range(2000)]
    found = honest(Search(rules=rules(Target.QUANTILE, quantile=quantile, rounds=9)), points)
    assert found.estimate / GRID_SIZE == pytest.approx(0.2 + 0.6 * quantile, abs=2.0**-8)


def test_the_error_of_exact_answers_is_half_of_the_last_interval():
    """Algorithm 1: at most 2^-L of half the range."""
    for start in (1, 2**20, 2**29 - 1, 2**29 + 12345, GRID_SIZE):
        found = honest(Search(rules=rules(rounds=10, epsilon=40 * MICRO)), [start] * 2000)
        assert abs(found.estimate - start) <= GRID_SIZE * 2.0**-11


# -------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(("participants", "rounds"), [(2**10, 6), (2**15, 12), (2**20, 21)])
def test_nothing_chosen_means_the_whole_epsilon_once_and_the_depth_for_an_unknown_alpha(participants, rounds):
    found = rules(participants=participants)
    assert (found.mode, found.threshold) == (Mode.USER_SPLIT, Threshold.EXACT_BINOMIAL)
    assert found.rounds == rounds == math.ceil(math.log2(participants) ** 2 / (2 * math.log2(1000)))
    assert found.failure_exponent == pytest.approx(math.log(participants) ** 2 / (2 * math.log(1000)))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_a_known_alpha_gives_the_depth_of_corollary_1(alpha):
    found = rules(participants=2**20, rounds=Depth.LOWER_ALPHA, alpha=alpha)
    assert found.rounds == round(20 / (2 * alpha))
    assert found.failure_exponent == pytest.approx(math.log(2**20) / (2 * alpha))


@pytest.mark.parametrize(
    "wrong",
    [
        {"participants": 1},
        {"rounds": 0},
        {"rounds": MAX_ROUNDS + 1},
        {"alpha": 0.0},
        {"alpha": math.inf},
        {"quantile": 0.5},
        {"target": Target.QUANTILE, "quantile": 1.0},
        {"target": Target.QUANTILE, "quantile": None},
        {"mode": Mode.BUDGET_SPLIT, "epsilon": 5, "rounds": 6},
    ],
)
def test_rules_that_cannot_be_meant_are_refused(wrong):
    with pytest.raises(InvalidRequest):
        rules(**wrong)


def test_erratum_a_threshold_above_1_is_refused_with_the_people_it_would_take():
    """Published: the search runs all the same, and walks to the far end."""
    risky = {"mode": Mode.BUDGET_SPLIT, "threshold": Threshold.PAPER, "epsilon": MICRO}
    with pytest.raises(InvalidRequest, match=r"at least \d+"):
        rules(**risky, participants=2**10)
    accepted = rules(**risky, participants=2**14)
    needed = people_needed(replace(accepted, participants=2))
    assert conclusive(replace(accepted, participants=needed))
    assert not conclusive(replace(accepted, participants=needed - 1))


@pytest.mark.parametrize("threshold", list(Threshold))
@pytest.mark.parametrize("answers", [1, 30, 700, 2**14])
def test_everybody_saying_yes_is_believed_where_anything_is(threshold, answers):
    found = rules(threshold=threshold)
    needed = least_positives(found, answers)
    assert 1 <= needed <= answers + 1
    assert least_positives(found, answers + 1) in (needed, needed + 1)


def test_no_answers_are_no_evidence():
    for threshold in Threshold:
        search = advance(Search(rules=rules(threshold=threshold)), Tally(answers=0, positives=0))
        assert not search.steps[0].believed
        assert search.steps[0].fraction is None


def test_the_exact_threshold_is_split_over_the_rounds():
    """P(Binomial(n, 1 - q) >= k) <= exp(-h) / L: summed, not scipy's tail."""
    found = rules()
    answers = found.people_per_round
    lie = 1 - truth_probability(found.epsilon_per_answer)
    allowed = math.exp(-found.failure_exponent) / found.rounds

    def tail(count):
        return math.fsum(
            math.exp(
                math.lgamma(answers + 1)
                - math.lgamma(k + 1)
                - math.lgamma(answers - k + 1)
                + k * math.log(lie)
                + (answers - k) * math.log1p(-lie)
            )
            for k in range(count, answers + 1)
        )

    needed = least_positives(found, answers)
    assert tail(needed) <= allowed < tail(needed - 1)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_search_among_people_who_all_lie_right_rarely_goes_left(mode):
    """With everybody at the far end each of 1000 rounds is wrong with probability exp(-h) / L at most.
    Seeded; with fresh numbers it would fail with probability below 1e-6. Control: answers two standard
    deviations above what such people send."""
    found = rules(mode=mode, participants=2**12, rounds=10, epsilon=3 * MICRO)
    answers, lie = found.people_per_round, 1 - truth_probability(found.epsilon_per_answer)
    random = seeded(f"right {mode}")
    searches = 100

    def mistakes(extra):
        wrong = 0
        for _ in range(searches):
            search = Search(rules=found)
            while not search.finished:
                positives = min(answers, int(random.binomial(answers, lie)) + extra)
                search = advance(search, Tally(answers=answers, positives=positives))
            wrong += sum(step.believed for step in search.steps)
        return wrong

    chance = math.exp(-found.failure_exponent) / found.rounds
    expected = searches * found.rounds * chance
    allowed = expected + 4.75 * math.sqrt(expected) + 8  # above the Poisson law's tail of 1e-6
    assert mistakes(0) <= allowed
    deviation = math.ceil(2 * math.sqrt(answers * lie * (1 - lie)))
    assert mistakes(deviation) > allowed


@pytest.mark.parametrize("target", list(Target))
def test_simulated_people_are_found(target):
    """2^16 people, uniform between .3 and .6 of the range; found within .02, where .067 of them lie, which is
    more than 10 standard deviations of a round's answers. Seeded; false alarms below 1e-6."""
    found = rules(target, participants=2**16, epsilon=4 * MICRO, rounds=10)
    truth = truth_probability(found.epsilon_per_answer)
    random = seeded(f"people {target}")
    wanted = {Target.MINIMUM: 0.3, Target.MAXIMUM: 0.6, Target.QUANTILE: 0.45}[target]
    for _ in range(10):
        points = np.rint(GRID_SIZE * random.uniform(0.3, 0.6, 2**16))
        order, search = random.permutation(2**16), Search(rules=found)
        size = found.people_per_round
        while not search.finished:
            asked = points[order[(search.round - 1) * size : search.round * size]]
            ask = search.threshold
            yes = asked >= ask if target is Target.MAXIMUM else asked <= ask
            answers = np.where(random.random(size) < truth, yes, ~yes)
            search = advance(search, Tally(answers=size, positives=int(answers.sum())))
        assert search.estimate / GRID_SIZE == pytest.approx(wanted, abs=0.02)
