"""The minimum paper's searches: the same as the product's, and within the paper's bounds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE
from app.sessions import search as product
from app.sessions.response import Tally, truth_probability
from app.sessions.search import Depth, Mode, Search, Target, Threshold, make_rules
from dither_research.catalogue import REPRODUCTIONS
from dither_research.minimum import search_errors
from dither_research.people import micro
from dither_research.searching import (
    BetaTail,
    DrawnCrowd,
    FixedCrowd,
    drawn_bound,
    fixed_bound,
    gamma,
    naive_minimum,
    paper_rules,
    search,
)
from dither_research.seeded import seeded

UNIFORM = BetaTail(alpha=1.0, beta=1.0, width=0.3, minimum=-0.2)


@pytest.mark.parametrize("depth", list(Depth))
@pytest.mark.parametrize("people", [2**14, 2**20])
def test_the_papers_rules_are_the_products(people, depth):
    rules = make_rules(
        target=Target.MINIMUM,
        epsilon=micro(4),
        participants=people,
        mode=Mode.BUDGET_SPLIT,
        threshold=Threshold.PAPER,
        rounds=depth,
    )
    # The paper takes the middle of the last interval.
    assert paper_rules(people, 4.0, depth) == replace(rules, posterior=False)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("threshold", list(Threshold))
def test_a_search_ends_where_the_products_does_on_the_same_answers(mode, threshold):
    rules = paper_rules(2**14, 4.0, Depth.LOWER_ALPHA, mode=mode, threshold=threshold)
    (ours,) = search(rules, FixedCrowd(UNIFORM, rules.participants), 1, seeded("step by step"))
    random, crowd = seeded("step by step"), FixedCrowd(UNIFORM, rules.participants)
    truth, state = truth_probability(rules.epsilon_per_answer), Search(rules=rules)
    people = rules.participants if mode is Mode.BUDGET_SPLIT else rules.people_per_round
    while not state.finished:
        point = np.array([2 * state.threshold / GRID_SIZE - 1])
        yes = crowd.at_most(point, random).astype(np.int64)
        if mode is Mode.USER_SPLIT:
            yes = random.hypergeometric(yes, rules.participants - yes, people)
        (positives,) = random.binomial(yes, truth) + random.binomial(people - yes, 1 - truth)
        state = product.advance(state, Tally(answers=people, positives=int(positives)))
    assert ours == pytest.approx(2 * state.estimate / GRID_SIZE - 1, abs=1e-12)


def test_fixed_people_are_the_quantiles_of_their_law():
    points = np.array([-0.5, -0.2, -0.1999, 0.0, 0.1, 0.5])
    people = -0.2 + 0.3 * np.arange(101) / 100
    counts = FixedCrowd(UNIFORM, 101).at_most(points + 1e-12, seeded("x"))
    assert counts.tolist() == [int((people <= point + 1e-12).sum()) for point in points]


def test_drawn_people_are_found_out_about_consistently():
    runs = 20_000
    crowd, random = DrawnCrowd(UNIFORM, 50, runs), seeded("drawn")
    first = crowd.at_most(np.zeros(runs), random)
    assert first.mean() == pytest.approx(50 * 2 / 3, abs=5 * math.sqrt(50 * 2 / 9 / runs))
    crowd.keep(np.arange(runs) % 2 == 0)
    points = np.where(np.arange(runs) % 2 == 0, -0.1, 0.05)
    second = crowd.at_most(points, random)
    lower = np.arange(runs) % 2 == 0
    assert np.all(second[lower] <= first[lower])
    assert np.all(second[~lower] >= first[~lower])
    assert second[lower].mean() == pytest.approx(50 / 3, rel=0.02)
    assert second[~lower].mean() == pytest.approx(50 * 5 / 6, rel=0.02)


def test_the_naive_minimum_has_the_law_of_a_minimum():
    people, runs, random = 200, 20_000, seeded("naive")
    values = -0.2 + 0.3 * random.random((runs, people))
    direct = (values + random.laplace(0, 2.0, (runs, people))).min(axis=1)
    drawn = naive_minimum(UNIFORM, people, 1.0, runs, random)
    assert drawn.mean() == pytest.approx(direct.mean(), abs=0.1)
    assert drawn.std() == pytest.approx(direct.std(), rel=0.05)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_the_constant_of_a_beta_law_bounds_its_tail(alpha, beta):
    """With max instead of min, as printed, alpha = 4, beta = 2 breaks this."""
    tail = BetaTail(alpha=alpha, beta=beta, width=0.6, minimum=-0.5)
    points = -0.5 + 0.6 * np.linspace(0, 1, 1001)
    assert np.all(tail.cumulative(points) >= tail.fatness * (points + 0.5) ** alpha - 1e-12)


def test_control_the_printed_constant_does_not():
    tail = BetaTail(alpha=4.0, beta=2.0, width=1.0, minimum=0.0)
    printed = max(1.0, 5.0)
    assert tail.fatness == 1
    assert float(tail.cumulative(np.array([0.9]))[0]) < printed * 0.9**4


@pytest.mark.long
@pytest.mark.parametrize("depth", list(Depth))
def test_the_papers_mode_keeps_both_theorems_where_they_apply(depth):
    random, applied = seeded("theorems"), 0
    for power in (10, 14, 17, 20):
        for epsilon in (1.0, 4.0):
            rules = paper_rules(2**power, epsilon, depth)
            for alpha in (0.5, 1.0, 2.0):
                for beta, width in ((1.0, 0.3), (2.0, 0.9)):
                    tail = BetaTail(alpha=alpha, beta=beta, width=width, minimum=-1.0)
                    for fixed, bound in ((True, fixed_bound(rules, tail)), (False, drawn_bound(rules, tail))):
                        if math.isinf(bound):
                            continue
                        applied += 1
                        errors = search_errors(
                            rules, 100, random, alpha=alpha, beta=beta, width=width, fixed=fixed
                        )
                        assert errors.mean <= bound
    assert applied >= 30


def test_a_threshold_above_one_is_compared_with_an_estimate_that_can_exceed_it():
    """As published: all are at most 0, and nearly half of the estimates of that fraction are above 1."""
    rules = paper_rules(2**10, 1.0, Depth.UNKNOWN_ALPHA)
    assert gamma(rules) == pytest.approx(1.032, abs=0.001)
    everybody = BetaTail(alpha=1.0, beta=1.0, width=0.3, minimum=-1.0)
    estimates = search(rules, FixedCrowd(everybody, 2**10), 400, seeded("above one"))
    believed_first = float((estimates < 0).mean())
    people, epsilon = rules.participants, rules.epsilon_per_answer
    truth = truth_probability(epsilon)
    # A Normal law of the number of yes, read by the paper's formula.
    needed = people * (gamma(rules) * (2 * truth - 1) + 1 - truth)
    chance = float(ndtr((people * truth - needed) / math.sqrt(people * truth * (1 - truth))))
    assert 0.2 < chance < 0.5
    assert abs(believed_first - chance) < 5 * math.sqrt(chance * (1 - chance) / 400) + 0.02


def test_a_threshold_above_one_errs_less_than_a_walk_to_the_far_end():
    errors = search_errors(paper_rules(2**10, 1.0, Depth.UNKNOWN_ALPHA), 300, seeded("above one"))
    assert 1.0 < errors.mean < 1.3


def test_a_threshold_above_one_is_refused_by_the_product():
    with pytest.raises(InvalidRequest):
        make_rules(
            target=Target.MINIMUM,
            epsilon=micro(1),
            participants=2**10,
            mode=Mode.BUDGET_SPLIT,
            threshold=Threshold.PAPER,
            rounds=Depth.UNKNOWN_ALPHA,
        )


def test_the_errors_are_those_measured_without_this_code():
    """N = 2^20, alpha unknown: paper .0658 and .0171; one answer each: .0077 (Hoeffding), .0010 (exact)."""
    random = seeded("known errors")
    for epsilon, mode, threshold, error in (
        (1.0, Mode.BUDGET_SPLIT, Threshold.PAPER, 0.0658),
        (4.0, Mode.BUDGET_SPLIT, Threshold.PAPER, 0.0171),
        (1.0, Mode.USER_SPLIT, Threshold.HOEFFDING, 0.0077),
        (4.0, Mode.USER_SPLIT, Threshold.EXACT_BINOMIAL, 0.0010),
    ):
        rules = paper_rules(2**20, epsilon, Depth.UNKNOWN_ALPHA, mode=mode, threshold=threshold)
        assert search_errors(rules, 200, random).mean == pytest.approx(error, rel=0.06)


@pytest.mark.long
def test_the_figures_say_what_the_paper_says():
    first = {check.quantity: check for check in REPRODUCTIONS["minimum-figure-1"].reproduce(60).checks}
    assert [c.ours for q, c in first.items() if q.endswith("applies and is exceeded")] == [0]
    (slope,) = [c for q, c in first.items() if q.startswith("error at 2^20")]
    assert slope.ours == pytest.approx(slope.paper, rel=0.1)
    slopes = [c for q, c in first.items() if q.startswith("slope against ln^3 N / N")]
    assert len(slopes) == 4  # alpha 1 and 2, epsilon 1 and 4
    for check in slopes:
        assert check.ours == pytest.approx(check.paper, rel=0.15)
    second = {check.quantity: check for check in REPRODUCTIONS["minimum-figure-2"].reproduce(60).checks}
    assert float(second["smallest error of the naive way"].ours) > 1
    (better,) = [c for q, c in second.items() if q.startswith("one answer each")]
    assert float(better.ours) < 0.25


@pytest.mark.parametrize(("power", "floor"), [(15, 0.0039), (20, 0.00098)])
def test_erratum_a_depth_for_alpha_of_at_least_1_has_its_grid_as_floor_for_less(power, floor):
    """'Known alpha' of the figure is a lower bound of 1: at alpha = 1/2 the error is 2^-L."""
    rules = paper_rules(2**power, 4.0, Depth.LOWER_ALPHA)
    assert 2.0**-rules.rounds == pytest.approx(floor, rel=0.01)
    errors = search_errors(rules, 200, seeded(f"floor {power}"), alpha=0.5)
    assert errors.mean == pytest.approx(floor, rel=0.05)


def test_erratum_a_bounded_density_does_not_make_a_tail_1_fat():
    """Published: any truncated distribution is 1-fat. Beta(2, 1) is bounded and vanishes at the minimum: F
    falls below every C (x - xmin), and its error falls half as fast as that of a 1-fat law."""
    tail = BetaTail(alpha=2.0, beta=1.0, width=1.0, minimum=0.0)
    for constant in (1.0, 0.1, 0.001):
        point = constant / 2
        assert float(tail.cumulative(np.array([point]))[0]) < constant * point
    random = seeded("not 1-fat")
    small, large = (paper_rules(2**power, 4.0, Depth.LOWER_ALPHA) for power in (15, 20))
    fall = {
        alpha: search_errors(large, 100, random, alpha=alpha).mean
        / search_errors(small, 100, random, alpha=alpha).mean
        for alpha in (1.0, 2.0)
    }
    assert fall[2.0] == pytest.approx(math.sqrt(fall[1.0]), rel=0.1)
