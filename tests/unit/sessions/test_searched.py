"""What searches say of a distribution: against the answers themselves, scipy's fit, and binomial tails."""

import math

import numpy as np
import pytest
from dither.device.shapes import HYBRID_BITS, duchi_reach, hybrid_share, piecewise_shape
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import isotonic_regression
from scipy.stats import binom

from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.estimators.searched_ranks import searched_risk
from app.sessions.response import Tally, truth_probability
from app.sessions.search import Mode, Search, Target, advance, make_rules
from app.sessions.searched import Round, Searched

CELLS = 64
STARTS = tuple(place * GRID_SIZE // CELLS + 1 for place in range(CELLS))

rounds = st.lists(
    st.tuples(st.integers(1, CELLS - 1), st.integers(1, 2000), st.floats(0, 1), st.sampled_from([1, 4])).map(
        lambda one: Round(
            threshold=one[0] * GRID_SIZE // CELLS,
            answers=one[1],
            positives=round(one[2] * one[1]),
            epsilon=one[3] * MICRO,
        )
    ),
    min_size=1,
    max_size=8,
)


def searched(found: list[Round], people: int = 1000) -> Searched:
    return Searched(people=people, reporting=0, rounds=tuple(found), announced=len(found))


@given(rounds, st.floats(0.01, 0.99))
def test_parts_rise_from_nothing_to_all_within_one_and_so_do_their_bounds(found, quantile):
    beside = searched(found).beside(quantile).below(STARTS)
    for parts in (beside.least, beside.parts, beside.most):
        assert len(parts) == CELLS
        assert 0 <= min(parts) <= max(parts) <= 1
        assert list(parts) == sorted(parts)
    assert searched(found).beside(quantile).noise >= 0


@given(rounds)
def test_the_fit_is_the_weighted_isotonic_regression_of_scipy(found):
    """At thresholds of their own; the places between them are on straight lines from block to block."""
    single = list({one.threshold: one for one in found}.values())
    single.sort(key=lambda one: one.threshold)
    fit = isotonic_regression(
        [one.fraction for one in single], weights=[one.precision(0.3) for one in single]
    )
    ours = searched(single).fit(0.3)[1:-1]
    assert [height for _, height, _ in ours] == pytest.approx(np.clip(fit.x[fit.blocks[:-1]], 0, 1).tolist())
    assert [1 / variance for _, _, variance in ours] == pytest.approx(fit.weights.tolist())


@given(rounds)
def test_a_bound_is_where_the_binomial_tail_is_its_risk(found):
    risk = searched_risk() / len(found)
    beside = searched(found).beside(0.5).below(STARTS)
    for one in found:
        truth = truth_probability(one.epsilon)
        cell = one.threshold * CELLS // GRID_SIZE
        # A bound of this round alone is no better than all of them together.
        for part, sign in ((beside.most[cell], 1), (beside.least[cell], -1)):
            chance = 1 - truth + part * (2 * truth - 1)
            tail = (
                binom.cdf(one.positives, one.answers, chance)
                if sign > 0
                else binom.sf(one.positives - 1, one.answers, chance)
            )
            assert tail >= risk * (1 - 1e-6) or part in (0, 1)


@given(rounds, st.floats(0.01, 0.99))
def test_the_variance_lies_between_that_of_one_round_of_all_answers_and_that_of_knowing_nothing(
    found, quantile
):
    pooled = 1 / sum(one.precision(quantile) for one in found)
    noisiest = max(1 / one.precision(quantile) for one in found)
    assert pooled * (1 - 1e-9) <= searched(found).variance(quantile) <= noisiest / 2 + 1 / 3 + pooled


def test_true_answers_give_the_distribution_itself_at_every_threshold():
    values = np.arange(1, 1000) * (GRID_SIZE // 1000)
    rules = make_rules(
        target=Target.QUANTILE,
        quantile=0.3,
        epsilon=40 * MICRO * 10,
        participants=999,
        rounds=10,
        mode=Mode.BUDGET_SPLIT,
    )
    search = Search(rules=rules)
    while not search.finished:
        search = advance(search, Tally(answers=999, positives=int((values <= search.threshold).sum())))
    found = Searched.of([search, Search(rules=rules)], people=999, reporting=5)
    assert found is not None
    assert (found.people, found.reporting, len(found.rounds), found.announced) == (999, 5, 10, 20)
    for one in found.rounds:
        assert one.fraction == pytest.approx((values <= one.threshold).mean())
    beside = found.beside(0.3).below(STARTS)
    at = int(0.3 * CELLS)
    assert abs(beside.parts[at] - (values <= STARTS[at] - 1).mean()) < 0.02
    assert beside.least[at] <= (values <= STARTS[at] - 1).mean() <= beside.most[at]


def test_without_an_answer_there_is_nothing():
    rules = make_rules(target=Target.QUANTILE, quantile=0.5, epsilon=MICRO, participants=100)
    assert Searched.of([], people=0, reporting=0) is None
    assert Searched.of([Search(rules=rules)], people=0, reporting=0) is None


def told(law: str, apart: float, epsilon: int = MICRO) -> float:
    """Fisher's information of one report about a share of one half: values lie at either of two points.

    Args:
        law: Of the reports; `search`: an answer whose threshold lies between the points.
        apart: How far the two are apart, in the middle of the range [range widths].
        epsilon: Of the report [micro-epsilon].
    """

    def of(differences: float, mean: float) -> float:
        return differences**2 / mean

    if law == "search":
        truth = truth_probability(epsilon)
        return 2 * of(2 * truth - 1, 0.5)
    if law == "duchi":
        return 2 * of(apart * GRID_SIZE / (2 * duchi_reach(epsilon)), 0.5)
    if law == "laplace":
        scale, half = MICRO / epsilon, apart / 2

        def density(y: float) -> float:
            first, second = (math.exp(-abs(y - point) / scale) / (2 * scale) for point in (-half, half))
            return of(first - second, (first + second) / 2)

        return 2 * float(quad(density, 0, 50 * scale, points=(half,), limit=200)[0])
    shape = piecewise_shape(epsilon)
    strip = min(2 * shape.drift * apart, shape.window)
    window = 2 * strip * of(shape.inside - shape.outside, (shape.inside + shape.outside) / 2) / shape.total
    share = hybrid_share(epsilon) / 2**HYBRID_BITS if law == "hybrid" else 1.0
    return share * window + (1 - share) * told("duchi", apart, epsilon)


@pytest.mark.parametrize(
    ("law", "tenth", "hundredth"),
    [("laplace", 88, 8571), ("duchi", 100, 10_000), ("piecewise", 7, 71), ("hybrid", 16, 179)],
)
def test_this_many_reports_tell_at_best_as_much_as_one_answer(law: str, tenth: int, hundredth: int):
    """Where only two values are possible, and known: why reports are not joined in."""
    for apart, times in ((0.1, tenth), (0.01, hundredth)):
        assert told("search", apart) / told(law, apart) == pytest.approx(times, abs=0.5)
