"""The SDK agrees with the vectors that every client of the service must agree with."""

import json
from fractions import Fraction
from typing import Any

import pytest
from dither.device.exact import discrete_laplace
from dither.device.numbers import (
    GRID_BITS,
    Grid,
    NotANumber,
    Number,
    epsilon_limit,
    parse_decimal,
    round_down_to_significant,
)
from dither.device.randomizers import randomizer

from tests.client import make_vectors
from tests.client.bits import BitStream

VECTORS: dict[str, Any] = json.loads(make_vectors.PATH.read_text(encoding="utf-8"))


def test_the_file_is_what_its_generator_writes() -> None:
    assert make_vectors.make() == VECTORS


def test_grid_points_agree() -> None:
    assert VECTORS["grid_bits"] == GRID_BITS
    for row in VECTORS["grid"]:
        grid = Grid(Fraction(row["lower"]), Fraction(row["upper"]))
        assert grid.point(*parse_decimal(row["value"])) == row["point"], row


def test_what_is_no_number_agrees() -> None:
    for text in VECTORS["not_numbers"]:
        with pytest.raises(NotANumber):
            Number.parse(text)


def test_epsilons_agree() -> None:
    for row in VECTORS["epsilons"]:
        assert epsilon_limit(row["epsilon"]) == row["micro"], row
        assert round_down_to_significant(row["micro"]) == row["rounded"], row


def test_noise_agrees() -> None:
    for row in VECTORS["discrete_laplace"]:
        bits = BitStream(bytes.fromhex(row["bits"]))
        assert discrete_laplace(row["numerator"], row["denominator"], bits) == row["noise"], row
        assert bits.used == row["used"], row


def test_reports_agree() -> None:
    for row in VECTORS["reports"]:
        bits = BitStream(bytes.fromhex(row["bits"]))
        assert randomizer("laplace").report(row["point"], row["epsilon"], bits) == row["report"], row


def test_noise_agrees_with_the_algorithm_as_the_paper_states_it() -> None:
    """An independent transcription of arXiv:2004.00010, algorithms 1 and 2, on the same bits."""

    def uniform(n: int, bits: BitStream) -> int:
        width = 0
        while 2**width < n:
            width += 1
        candidate = n
        while candidate >= n:
            candidate = bits(width) if width else 0
        return candidate

    def bernoulli(gamma: Fraction, denominator: int, bits: BitStream) -> bool:
        return uniform(denominator, bits) < gamma * denominator

    def bernoulli_exp(gamma: Fraction, denominator: int, bits: BitStream) -> bool:
        k = 1
        while bernoulli(gamma / k, k * denominator, bits):
            k += 1
        return k % 2 == 1

    def laplace(scale: Fraction, bits: BitStream) -> int:
        t, s = scale.numerator, scale.denominator
        while True:
            u = uniform(t, bits)
            if not bernoulli_exp(Fraction(u, t), t, bits):
                continue
            v = 0
            while bernoulli_exp(Fraction(1), 1, bits):
                v += 1
            x = u + t * v
            y = x // s
            b = bits(1)
            if b == 1 and y == 0:
                continue
            return (1 - 2 * b) * y

    for row in VECTORS["discrete_laplace"]:
        bits = BitStream(bytes.fromhex(row["bits"]))
        assert laplace(Fraction(row["numerator"], row["denominator"]), bits) == row["noise"], row
