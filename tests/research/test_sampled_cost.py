"""The price of a sample: against the worst ratio of densities, and rounded to the safe side."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.core.errors import InternalFault
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.estimators.interface import UNIT_SCALE, Query
from dither_research.sampled_cost import sampled_cost, sampled_costs
from tests.support.groups import central, public

HALF = Fraction(1, 2)


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("span", [0.05, 0.5, 2.0])
def test_the_price_is_the_worst_ratio_of_densities_of_any_two_values(probability, span):
    """A person at x adds a term c in [-h, h] with probability p; b = 1, densities on a fine grid."""
    outputs = np.linspace(-8, 8, 401)
    terms = np.linspace(-span, span, 21)
    densities = np.array(
        [
            (1 - probability) * np.exp(-np.abs(outputs)) + probability * np.exp(-np.abs(outputs - c))
            for c in terms
        ]
    )
    worst = max(float(np.log(densities / other).max()) for other in densities)
    cost = sampled_cost(Fraction(probability), Fraction(span)) / 1e6
    assert cost == pytest.approx(worst, abs=1.1e-6)


@given(bits=st.integers(1, 2**48), displacement=st.fractions(0, 300, max_denominator=10**6))
def test_it_is_rounded_up_to_the_next_micro_and_no_further(bits, displacement):
    p = Fraction(bits, 2**48)
    with mpmath.workdps(400):
        s = mpmath.exp(mpmath.mpf(displacement.numerator) / displacement.denominator)
        exact = mpmath.log((1 - p + p * s) / (1 - p + p / s)) * 10**6
        cost = sampled_cost(p, displacement)
        assert exact - mpmath.mpf(10) ** -20 <= cost < exact + 1 + mpmath.mpf(10) ** -20


def test_nobody_pays_for_a_sample_they_are_never_in_and_all_pay_for_one_they_are_always_in():
    assert sampled_cost(Fraction(0), Fraction(5)) == 0
    assert sampled_cost(Fraction(1), Fraction(1, 3)) == 666_667


@given(bits=st.integers(1, 2**48 - 1), displacement=st.fractions(0, 50, max_denominator=10**4))
@example(bits=2**48 - 1, displacement=Fraction(0))
@example(bits=2**48 - 1, displacement=HALF)
def test_a_rarer_place_in_the_sample_never_costs_more(bits, displacement):
    less, more = Fraction(bits, 2**48), Fraction(bits + 1, 2**48)
    assert sampled_cost(less, displacement) <= sampled_cost(more, displacement)


def test_huge_epsilons_neither_overflow_nor_lose_their_price():
    assert sampled_cost(1 - Fraction(1, 2**48), Fraction(500_000)) == pytest.approx(
        (500_000 + 48 * math.log(2)) * 1e6, rel=1e-12
    )


@pytest.mark.parametrize(("p", "h"), [(Fraction(-1, 2), HALF), (Fraction(3, 2), HALF), (HALF, -HALF)])
def test_what_is_no_sample_has_no_price(p, h):
    with pytest.raises(InternalFault):
        sampled_cost(p, h)


# ------------------------------------------------------------------------------ as part of a release


def price(queries, inclusion, *, scales=(UNIT_SCALE,), relation=Relation.REPLACE_ONE, groups=None):
    groups = groups or [central(1.0), central(0.5)]
    noise = DiscreteLaplace(scales=scales)
    return sampled_costs(queries, noise, relation, groups, inclusion)


def centered(*weights):
    return Query(sum_weights=tuple(2 * w for w in weights), count_weights=tuple(-w for w in weights))


def test_each_group_pays_for_its_own_probability():
    costs = price([centered(500_000, 500_000)], (Fraction(1), HALF))
    assert costs == [1_000_000, 500_001]  # exactly half an epsilon, and the slack of the logarithm


def test_public_people_are_free_in_a_sample_too():
    assert price([centered(500_000, 9)], (HALF, HALF), groups=[central(1.0), public()])[1] == 0


def test_what_a_sample_cannot_be_is_refused():
    with pytest.raises(InternalFault):  # values not about the middle of the range
        price([Query(sum_weights=(5, 5), count_weights=(0, 0))], (HALF, HALF))
    with pytest.raises(InternalFault):  # two queries on one sample
        price([centered(1, 0), centered(0, 1)], (HALF, HALF), scales=(UNIT_SCALE, UNIT_SCALE))
    with pytest.raises(InternalFault):
        price([centered(1, 1), centered(0, 1)], (HALF, HALF))
    with pytest.raises(InternalFault):  # presence would show
        price([centered(1, 1)], (HALF, HALF), relation=Relation.ADD_REMOVE_ONE)
    with pytest.raises(InternalFault):
        price([centered(1, 1)], (HALF,))
    with pytest.raises(InternalFault):
        price([centered(1, 1)], (HALF, HALF), scales=(0.0,))
