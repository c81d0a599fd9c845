"""Exact decisions: their probabilities, by following all paths."""

import math
from fractions import Fraction

import pytest

from app.core.errors import InternalFault
from app.mechanisms import exact
from app.mechanisms.entropy import system_bits
from tests.client.bits import Script, enumerate_outcomes


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 1000])
def test_below_is_uniform(bound):
    found, left = enumerate_outcomes(lambda bits: exact.below(bound, bits), Fraction(1, 2**12))
    assert set(found) == set(range(bound))
    assert len(set(found.values())) == 1
    assert sum(found.values()) + left == 1
    assert left < Fraction(1, 20)


@pytest.fixture
def uniform(monkeypatch):
    """Let a script answer whole uniform draws, which the test above covers."""

    def scripted(bound: int, bits: Script) -> int:
        return bits.below(bound)

    monkeypatch.setattr(exact, "below", scripted)


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (3, 2), (7, 3), (40, 1)])
def test_exponential_coins_have_their_probability(numerator, denominator):
    found, left = enumerate_outcomes(
        lambda bits: exact.bernoulli_exp(numerator, denominator, bits), Fraction(1, 10**7)
    )
    assert left < Fraction(1, 500)
    true = math.exp(-numerator / denominator)
    assert float(found.get(True, 0)) - 1e-15 <= true <= float(found.get(True, 0) + left) + 1e-15


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (2, 1), (1, 2), (3, 2), (2, 3)])
def test_geometric_numbers_have_their_probabilities(numerator, denominator):
    found, left = enumerate_outcomes(
        lambda bits: exact.geometric(numerator, denominator, bits), Fraction(1, 10**6)
    )
    assert left < Fraction(1, 10)
    b = math.exp(-numerator / denominator)
    for k in range(6):
        assert float(found.get(k, 0)) <= (1 - b) * b**k <= float(found.get(k, 0) + left)


@pytest.mark.usefixtures("uniform")
def test_control_a_coin_that_forgets_the_whole_part_is_seen():
    found, left = enumerate_outcomes(lambda bits: exact.bernoulli_exp(1, 2, bits), Fraction(1, 10**7))
    assert not float(found[True]) <= math.exp(-1.5) <= float(found[True] + left)


def test_bits_come_from_the_operating_system():
    assert len({system_bits(64) for _ in range(100)}) == 100
    assert {system_bits(1) for _ in range(200)} == {0, 1}


def test_no_entropy_is_a_fault(monkeypatch):
    def broken(count):
        raise OSError("no entropy")

    monkeypatch.setattr("app.mechanisms.entropy.secrets.randbits", broken)
    with pytest.raises(InternalFault):
        system_bits(1)
