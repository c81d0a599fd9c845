"""Quantiles by draws of a cell: scores, shifts, what an interval's ends are, and where there is none."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from dither.device.gaussian import micro_mu2

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import Grid
from app.core.study import Currency, Relation, Trust
from app.estimators.ranks import Draw, RankPlan, target_of
from app.estimators.weighing import Weighing, weigh_public

SECRET = Weighing(relation=Relation.ADD_REMOVE_ONE, weights=(), cap=MICRO, floor=MICRO)
GRID = Grid(Decimal(0), Decimal(100))


def public(people: int, epsilon: int = MICRO) -> Weighing:
    return Weighing(
        relation=Relation.REPLACE_ONE,
        weights=(epsilon,),
        mass=people * epsilon,
        squares=1 / people,
        largest=1 / people,
    )


@pytest.mark.parametrize("shift", [-50, -1, 0, 3, 50])
@pytest.mark.parametrize("rank", [Fraction(1, 2), Fraction(1, 10), Fraction(7, 8)])
def test_a_score_is_the_distance_of_the_target_to_the_ranks_of_a_cell_and_the_best_is_zero(
    rank: Fraction, shift: int
):
    part, whole = rank.as_integer_ratio()
    plan = RankPlan.of(rank, 3, public(100))
    for weights in product((0, 1, 4), repeat=4):
        scores = plan.scores(Draw(rank=rank, shift=shift, scale=1), weights)
        aim = part * sum(weights) + shift
        for cell, score in enumerate(scores):
            least = -math.inf if cell == 0 else whole * sum(weights[:cell])
            most = math.inf if cell == 3 else whole * sum(weights[: cell + 1])
            assert score == -max(0, least - aim, aim - most)
        assert max(scores) == 0


def test_the_true_cell_of_a_quantile_has_the_best_score_even_where_all_share_one_value():
    plan = RankPlan.of(Fraction(9, 10), 4, public(10))
    scores = plan.scores(plan.draws[0], [0, 0, 10 * MICRO, 0, 0])
    assert scores.index(0) == 2
    assert scores.count(0) == 1


def test_the_lower_end_fails_only_by_more_than_its_shift():
    """Brute force: whenever a cell above the quantile's is drawn for the lower end, its score is that bad."""
    for weights in product((0, 1, 3), repeat=5):
        total = sum(weights)
        if not total:
            continue
        for rank in (Fraction(1, 2), Fraction(1, 5), Fraction(4, 5)):
            part, whole = rank.as_integer_ratio()
            cumulated = [whole * sum(weights[: cell + 1]) for cell in range(5)]
            true = next(cell for cell, below in enumerate(cumulated) if below >= part * total)
            plan = RankPlan.of(rank, 4, SECRET)
            for shift in (1, 2, 7):
                low = plan.scores(Draw(rank=rank, shift=-shift, scale=1), weights)
                assert all(score <= -shift for score in low[true + 1 :])
                high = plan.scores(Draw(rank=rank, shift=shift, scale=1), weights)
                assert all(score < -shift or score == -shift for score in high[:true])


def test_few_people_get_the_range_and_their_whole_price_for_the_answer():
    few, many = (
        RankPlan.of(Fraction(1, 2), 1000, public(20)),
        RankPlan.of(Fraction(1, 2), 1000, public(10**5)),
    )
    assert few.draws[1:] == (None, None)
    assert few.draws[0].scale == 4 * MICRO
    assert many.draws[0].scale == 8 * MICRO
    assert None not in many.draws
    tail = RankPlan.of(Fraction(1, 1000), 1000, public(2000))
    assert tail.draws[1] is None
    assert tail.draws[2] is not None
    found = few.read(GRID, [374, None, None])
    assert (found.estimate, found.interval.lower, found.interval.upper) == (37.4, 0, 100)


@pytest.mark.parametrize("answers", [1, 3, 4, 100])
def test_from_the_fourth_answer_on_gaussian_studies_draw_with_smaller_scales(answers: int):
    """4 k and 7.5 sqrt(k) people, for k answers of an epsilon of 1 in all, at a delta of 1e-6."""

    def scale(currency: Currency, offer: int) -> float:
        groups = [Group(trust=Trust.CENTRAL, epsilon=offer // answers, count=10**6)]
        weighing = weigh_public(groups, 10**6, target_of(0, currency), 0.0, currency=currency)
        plan = RankPlan.of(Fraction(1, 2), 1000, weighing)
        assert None not in plan.draws
        return plan.draws[0].scale / 2 / weighing.weights[0]

    laplace, gaussian = scale(Currency.LAPLACE, MICRO), scale(Currency.GAUSSIAN, micro_mu2(MICRO, 10**6))
    assert laplace == pytest.approx(4 * answers, rel=1e-3)
    assert gaussian == pytest.approx(7.49 * math.sqrt(answers), rel=1e-3)
    assert (gaussian < laplace) == (answers >= 4)


def test_an_interval_is_made_of_cells_and_holds_the_estimate():
    plan = RankPlan.of(Fraction(1, 2), 1000, public(10**5))
    assert plan.read(GRID, [500, 490, 512]).interval.lower == pytest.approx(48.9)
    assert plan.read(GRID, [500, 490, 512]).interval.upper == pytest.approx(51.2)
    crossed = plan.read(GRID, [500, 505, 495])
    assert crossed.interval.lower == crossed.interval.upper == crossed.estimate == 50
    assert plan.read(GRID, [0, 0, 0]).interval.lower == 0


def test_unequal_weights_of_a_secret_number_aim_at_the_worst_case_of_both_ends():
    weighing = Weighing(relation=Relation.ADD_REMOVE_ONE, weights=(), cap=4 * MICRO, floor=MICRO)
    _, low, high = RankPlan.of(Fraction(1, 2), 1000, weighing).draws
    assert low is not None
    assert high is not None
    # Those below the quantile weigh 1 and those above 4, or the other way round.
    assert (low.rank, high.rank) == (Fraction(1, 5), Fraction(4, 5))


def test_ends_share_the_risk_by_their_tails():
    _, low, high = RankPlan.of(Fraction(1, 2), 1000, SECRET).draws
    assert low is not None
    assert high is not None
    assert low.shift == -high.shift
    assert 1000 / 2 * math.exp(low.shift / low.scale) == pytest.approx(0.025, rel=1e-4)
