"""Steps of shares in studies with Gaussian noise: their price, and the noise that they end with.

Verdicts: the mean of (noise / sigma)^2 over `CHAINS` chains of two sums is 1 for Gaussian noise of that
sigma, with a standard error of .063 (the fourth moment is 3): `Z` of them allow .64 to 1.36. Half the
precision has a mean of 2 and a standard error of .13: missed at 5 of them.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.gaussian import effective_variance
from app.accounting.price import Rates
from app.accounting.prices import price_at
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, square
from app.core.piece import Piece
from app.core.study import Currency, Relation
from app.estimators.calibration import GAUSSIAN_SIGMA
from app.mechanisms.entropy import system_bits
from app.mechanisms.refined_gaussian import more_gaussian, part_sigma
from app.services.statistics import whole_plans
from app.services.statistics.piece_noise import NOISES, THIRDS
from app.services.statistics.steps import MeanStep, take
from app.services.statistics.whole_plans import planned_share
from tests.statistical import Z
from tests.statistical.test_steps import COHORTS, STUDY, charged, steps_to

CHAINS = 250
GAUSSIAN = replace(STUDY, delta=1_000_000)
UNEVEN = (MICRO // 20, MICRO // 2, MICRO - 1, MICRO)
PARTS = st.lists(st.integers(1, MICRO), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def tenths() -> list[MeanStep]:
    return steps_to(*(MICRO * tenth // 10 for tenth in range(1, 11)), study=GAUSSIAN)


@pytest.fixture(scope="module")
def uneven() -> list[MeanStep]:
    return steps_to(*UNEVEN, study=GAUSSIAN)


def noises(chain: list[MeanStep]) -> list[float]:
    """What one chain leaves in both of its means, in standard deviations of one answer at share 1."""
    state: Piece | None = None
    for step in chain:
        (planned,) = step.pieces
        if state is not None:
            planned = replace(planned, scale=state.scale, sums=state.sums)
        _, taken = take(replace(step, pieces=(planned,)), COHORTS)
        (state,) = taken.changed
    assert state is not None
    weights = {member.cohort_id: member.weight for member in state.members}
    first = sum(weights[cohort.id] * cohort.total for cohort in COHORTS)
    second = sum(weights[cohort.id] * cohort.total_squares for cohort in COHORTS)
    assert state.first % 1 == state.second % 1 == 0
    return [
        (state.first - state.share * first) / (state.share * state.unit),
        (state.second - state.share * second) / (state.share * state.unit / 3),
    ]


def verdict(samples: list[float]) -> bool:
    """Whether noise is Gaussian noise of sigma 1, by its mean square."""
    squares = np.square(samples)
    return abs(float(squares.mean()) - 1) <= Z * math.sqrt(2 / squares.size)


def whole_of(first: int, **asked: str) -> list[MeanStep]:
    """One answer at share 1 with the weights of steps that begin with another share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(whole_plans, "planned_share", lambda _: planned_share(first))
        return steps_to(MICRO, study=GAUSSIAN, **asked)


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
@pytest.mark.parametrize("shares", [UNEVEN, tuple(MICRO * tenth // 10 for tenth in range(1, 11))])
def test_steps_charge_what_one_whole_answer_does(estimator: str, shares: tuple[int, ...]) -> None:
    chain = steps_to(*shares, study=GAUSSIAN, estimator=estimator)
    assert charged(chain) == charged(whole_of(shares[0], estimator=estimator))
    assert len(chain[-1].pieces) == 1
    (piece,) = chain[-1].pieces
    # By the closed form: mu^2 = D^2 / (sigma^2 - 9), of an offer that is used but for the rounding.
    for member in piece.members:
        mu2 = (Fraction(member.weight) * GRID_SIZE) ** 2 / (Fraction(piece.unit) ** 2 - 9)
        assert member.charged == math.ceil(mu2 * MICRO)
    offers = {cohort.id: cohort.epsilon for cohort in COHORTS}
    assert all(offers[cohort] >= cost for cohort, cost in charged(chain).items())
    if estimator == "adpm":
        assert charged(chain)[1] >= offers[1] - 1


def test_the_last_step_says_the_error_of_one_answer(tenths: list[MeanStep], uneven: list[MeanStep]) -> None:
    for chain, first in ((tenths, MICRO // 10), (uneven, UNEVEN[0])):
        (once,) = whole_of(first)
        assert chain[-1].plan.predicted_error == pytest.approx(once.plan.predicted_error, rel=1e-12)


@given(PARTS, st.integers(1, 1 << 40))
def test_what_draws_cost_in_all_is_what_the_share_does(parts: list[int], sigma: int) -> None:
    """However a share is divided up; the average of the draws is as good as one draw."""
    variance = effective_variance(float(sigma + 64))
    sigmas = [part_sigma(variance, part) for part in parts]
    spent = sum(1 / Fraction(one * one - 9) for one in sigmas)
    assert spent <= Fraction(sum(parts)) / (variance * MICRO)
    average = Fraction(
        sum((part * one) ** 2 for part, one in zip(parts, sigmas, strict=True)), sum(parts) ** 2
    )
    one = variance * MICRO / sum(parts) + 9
    # Sigmas are whole numbers: each is less than one above the real one.
    assert average <= one * (1 + Fraction(2, min(sigmas))) ** 2


@pytest.mark.parametrize("more", range(-12, 13))
def test_a_draw_has_the_least_whole_sigma_that_its_part_pays_for(more: int) -> None:
    """At variances around a square, where what discreteness costs decides."""
    for root, part in ((100, MICRO), (10**6, MICRO // 4), (2**50, 1)):
        variance = Fraction((root**2 + more) * part, MICRO)
        sigma = part_sigma(variance, part)
        assert (sigma - 1) ** 2 - 9 < variance * MICRO / part <= sigma**2 - 9


@pytest.mark.parametrize(("unit", "finer"), [(GAUSSIAN_SIGMA, 4), (THIRDS, 9)])
@given(st.integers(0, 32), st.integers(0, 32), st.integers(1, 10**9), st.integers(1, MICRO))
def test_the_price_of_both_sums_holds_for_all_neighbors(
    unit: float, finer: int, one: int, other: int, weight: int, share: int
) -> None:
    """Brute force over a grid of values, also of pieces that versions up to 1.0 began."""
    noise = NOISES[Currency.GAUSSIAN]
    assert noise.squares(unit) == finer
    price = noise.price(unit, share)(weight)
    variance = effective_variance(unit) * MICRO / share
    points = one * GRID_SIZE // 32, other * GRID_SIZE // 32
    first, second = points[1] - points[0], square(points[1]) - square(points[0])
    mu2 = weight**2 * (first**2 / variance + second**2 / (variance / finer))
    assert mu2 * MICRO <= price
    assert price == math.ceil(noise.cost(weight, share, unit))


@given(st.integers(1, 10**9), st.integers(1, MICRO), st.integers(1, 4 * MICRO))
def test_weights_and_shares_are_the_largest_that_a_sum_buys(weight: int, share: int, cost: int) -> None:
    for noise in NOISES.values():
        bought = noise.weight(cost, share)
        assert noise.cost(bought, share, noise.unit) <= cost < noise.cost(bought + 1, share, noise.unit)
        most = noise.share(cost, weight, noise.unit)
        assert noise.cost(weight, most, noise.unit) <= cost < noise.cost(weight, most + 1, noise.unit)


def test_a_part_that_is_none_is_refused() -> None:
    with pytest.raises(InternalFault):
        more_gaussian(0, 1, Fraction(10_000), 0, system_bits)


def test_squares_with_a_quarter_of_the_sigma_would_cost_more() -> None:
    """Control of the price: half and a third of the sigma are free, a quarter is not."""
    variance = effective_variance(2.0**40)
    column = ((0, 1000, 0, 0), (1, 0, 0, 1000))
    alone = price_at(Rates.of_variances([variance]), Relation.REPLACE_ONE)(column[:1])
    for finer in (4, 9):
        assert (
            price_at(Rates.of_variances([variance, variance / finer]), Relation.REPLACE_ONE)(column) == alone
        )
    assert price_at(Rates.of_variances([variance, variance / 16]), Relation.REPLACE_ONE)(column) > alone


@pytest.mark.statistical
def test_steps_end_with_the_noise_of_one_answer(tenths: list[MeanStep], uneven: list[MeanStep]) -> None:
    for chain in (tenths, uneven):
        assert verdict([left for _ in range(CHAINS) for left in noises(chain)])


@pytest.mark.statistical
def test_control_a_chain_that_ends_half_way_is_caught(tenths: list[MeanStep]) -> None:
    """Without the last five draws: noise of share .5 has twice the variance."""
    assert not verdict([left for _ in range(CHAINS) for left in noises(tenths[:5])])
