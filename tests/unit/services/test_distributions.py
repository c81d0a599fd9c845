"""Histograms and percentiles of epsilons."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.figures import Percentile
from app.services.admin.distributions import MOST_BINS, bins_up_to, distribution, epsilon_edges

AMOUNTS = st.integers(0, 10**13)
WEIGHTED = st.lists(st.tuples(AMOUNTS, st.integers(1, 1000)), max_size=30)


@given(st.integers(0, 10**15))
def test_bins_reach_up_to_the_largest_amount_and_are_readable(largest: int):
    width, bins = bins_up_to(largest)
    assert 1 <= bins <= MOST_BINS
    assert width * (bins - 1) < max(largest, 1) <= width * bins
    assert str(width).rstrip("0") in ("1", "2", "5")


@given(WEIGHTED)
def test_everybody_is_in_one_bin_and_the_total_is_exact(weighted):
    largest = max((amount for amount, _ in weighted), default=0)
    found = distribution(weighted, (50, 100), largest=largest)
    assert sum(found.counts) == sum(people for _, people in weighted)
    assert found.total == sum(amount * people for amount, people in weighted)


@given(WEIGHTED.filter(bool), st.integers(1, 100))
def test_a_percentile_is_the_smallest_amount_that_so_many_do_not_exceed(weighted, percent: int):
    found = distribution(weighted, (percent,), largest=1)
    everybody = sorted(amount for amount, people in weighted for _ in range(people))
    rank = -(-len(everybody) * percent // 100)
    assert found.percentiles == (Percentile(percent=percent, epsilon=everybody[rank - 1]),)


def test_nobody_has_no_percentiles():
    assert distribution([], (50,), largest=0).percentiles == ()


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_edges_of_epsilons_hold_everybody(one: int, other: int):
    smallest, largest = sorted((one, other))
    edges = epsilon_edges(smallest, largest)
    assert list(edges) == sorted(set(edges))
    assert edges[0] <= smallest < edges[1]
    assert edges[-2] <= largest < edges[-1]
