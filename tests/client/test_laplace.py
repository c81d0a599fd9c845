"""The noise on the device is exactly what it is said to be."""

import math
import secrets
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from dither.device import exact as _laplace
from dither.device.exact import below, bernoulli_exp, discrete_laplace, geometric
from dither.device.numbers import GRID_SIZE, MICRO
from dither.device.randomizers import Randomizer, randomizer
from scipy import stats

from tests.client.bits import BitStream, Script, Seeded, enumerate_outcomes

ALPHA = 1e-6
"""Level of each statistical test here. They are seeded, so their verdict does not change."""

SAMPLE_SIZE = 100_000
"""At this size and level each test rejects a scale that is 5 % off; the controls show it."""


def law(scale: Fraction, x: int) -> mpmath.mpf:
    """Probability of x under discrete Laplace noise: (1 - e^(-1/b)) / (1 + e^(-1/b)) * e^(-|x|/b)."""
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    return (1 - ratio) / (1 + ratio) * ratio ** abs(x)


LAPLACE = randomizer("laplace")

# -- exactly, on a small scale


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 8, 1000])
def test_below_is_uniform(bound: int) -> None:
    found, left = enumerate_outcomes(lambda bits: below(bound, bits), Fraction(1, 2**12))
    assert set(found) == set(range(bound))
    assert len(set(found.values())) == 1
    assert sum(found.values()) + left == 1
    assert left < Fraction(1, 20)  # what is left are rejections, which start again


@pytest.fixture
def uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a script answer whole uniform draws, which the test above covers, so that its paths stay short."""

    def scripted(bound: int, bits: Script) -> int:
        return bits.below(bound)

    monkeypatch.setattr(_laplace, "below", scripted)


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize(
    ("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (2, 3), (3, 2), (7, 3), (40, 1)]
)
def test_bernoulli_exp_has_its_probability(numerator: int, denominator: int) -> None:
    found, left = enumerate_outcomes(
        lambda bits: bernoulli_exp(numerator, denominator, bits), Fraction(1, 10**8)
    )
    assert left < Fraction(1, 500)
    probability = float(found.get(True, 0))
    assert (
        probability - 1e-12 <= law_of_bernoulli(numerator, denominator) <= probability + float(left) + 1e-12
    )


@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (2, 1), (1, 2), (3, 2), (2, 3)])
def test_geometric_numbers_have_their_probabilities(numerator: int, denominator: int) -> None:
    found, left = enumerate_outcomes(lambda bits: geometric(numerator, denominator, bits), Fraction(1, 10**6))
    assert left < Fraction(1, 10)
    b = math.exp(-numerator / denominator)
    for k in range(6):
        assert float(found.get(k, 0)) <= (1 - b) * b**k <= float(found.get(k, 0) + left)


@pytest.mark.usefixtures("uniform")
def test_control_a_coin_that_forgets_the_whole_part_is_seen() -> None:
    found, left = enumerate_outcomes(lambda bits: bernoulli_exp(1, 2, bits), Fraction(1, 10**7))
    assert not float(found[True]) <= math.exp(-1.5) <= float(found[True] + left)


def law_of_bernoulli(numerator: int, denominator: int) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(numerator) / denominator)


def off_the_law(draw: Callable[[Script], int], scale: Fraction) -> list[int]:
    """Values whose exact probability the law does not allow, whatever the paths not followed give."""
    found, left = enumerate_outcomes(draw, Fraction(1, 400_000))
    assert left < Fraction(1, 4)
    return [
        x
        for x in range(-4, 5)
        if not float(found.get(x, 0)) <= law(scale, x) <= float(found.get(x, 0) + left)
    ]


@pytest.mark.long
@pytest.mark.usefixtures("uniform")
@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1), (1, 2), (3, 2), (4, 2), (1, 3)])
def test_discrete_laplace_has_its_probabilities(numerator: int, denominator: int) -> None:
    scale = Fraction(numerator, denominator)
    assert off_the_law(lambda bits: discrete_laplace(numerator, denominator, bits), scale) == []


@pytest.mark.usefixtures("uniform")
def test_the_exact_test_sees_a_zero_that_counts_twice_and_a_wrong_scale() -> None:
    def twice(bits: Script) -> int:
        """The algorithm without the rejection of minus zero, at scale 1."""
        v = 0
        while bernoulli_exp(1, 1, bits):
            v += 1
        return -v if bits(1) else v

    assert 0 in off_the_law(twice, Fraction(1))
    assert off_the_law(lambda bits: discrete_laplace(1, 1, bits), Fraction(6, 5)) != []


# -- statistically, at any scale


def chi_square(sample: list[int], scale: Fraction) -> float:
    """P-value of a sample against the law, on cells of expected size 25 or more."""
    b = float(scale)
    cells = 40
    # Ends of cells of about the same probability; the continuous Laplace law is close enough to choose them.
    inner = [stats.laplace.ppf(i / cells, scale=b) for i in range(1, cells)]
    ends = sorted({math.floor(end) for end in inner})
    cumulative = [0.0, *(float(below_or_equal(scale, end)) for end in ends), 1.0]
    expected = [len(sample) * (high - low) for low, high in pairwise(cumulative)]
    assert min(expected) >= 25
    counts = Counter(sum(x > end for end in ends) for x in sample)
    observed = [counts[cell] for cell in range(len(expected))]
    return float(stats.chisquare(observed, expected).pvalue)


def below_or_equal(scale: Fraction, x: int) -> mpmath.mpf:
    """Distribution function of discrete Laplace noise."""
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    if x < 0:
        return ratio ** (-x) / (1 + ratio)
    return 1 - ratio ** (x + 1) / (1 + ratio)


def mean_size(sample: list[int], scale: Fraction) -> float:
    """Two-sided p-value of the mean of |x|, which is what a wrong scale changes most."""
    ratio = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
    mean = 2 * ratio / (1 - ratio**2)
    variance = 2 * ratio / (1 - ratio) ** 2 - mean**2
    z = (sum(map(abs, sample)) / len(sample) - mean) / mpmath.sqrt(variance / len(sample))
    return float(2 * stats.norm.sf(abs(float(z))))


SCALES = [Fraction(7, 3), Fraction(1000, 7), Fraction(GRID_SIZE * MICRO, 1_230_000)]


def verdicts(sample: list[int], scale: Fraction) -> list[bool]:
    """Whether the sample passes the tests of its shape and of its size."""
    return [test(sample, scale) > ALPHA for test in (chi_square, mean_size)]


@pytest.mark.parametrize("scale", SCALES)
def test_samples_follow_the_law(scale: Fraction) -> None:
    bits = Seeded(20300131)
    sample = [discrete_laplace(scale.numerator, scale.denominator, bits) for _ in range(SAMPLE_SIZE)]
    assert all(verdicts(sample, scale))


@pytest.mark.parametrize("error", [Fraction(20, 21), Fraction(21, 20)])
@pytest.mark.parametrize("scale", SCALES[::2])
def test_a_scale_that_is_five_percent_off_is_seen(scale: Fraction, error: Fraction) -> None:
    bits = Seeded(20300131)
    wrong = scale * error
    sample = [discrete_laplace(wrong.numerator, wrong.denominator, bits) for _ in range(SAMPLE_SIZE)]
    assert not any(verdicts(sample, scale))


def test_noise_that_lost_its_low_bits_is_seen() -> None:
    bits = Seeded(20300131)
    sample = [discrete_laplace(7, 3, bits) // 2 * 2 for _ in range(SAMPLE_SIZE)]
    assert chi_square(sample, Fraction(7, 3)) < ALPHA


# -- reports


def test_a_report_is_the_point_plus_noise_of_the_right_scale() -> None:
    epsilon = 1_230_000
    point = GRID_SIZE // 3
    bits = Seeded(7)
    sample = [LAPLACE.report(point, epsilon, bits) - point for _ in range(SAMPLE_SIZE)]
    assert all(verdicts(sample, Fraction(GRID_SIZE * MICRO, epsilon)))


def test_two_values_of_one_person_are_epsilon_apart_at_most() -> None:
    # log p(x | q) - log p(x | q') = (|x - q'| - |x - q|) / b, which 2**30 / b bounds.
    for epsilon in (1, 999, 1_230_000, 10**12):
        scale = Fraction(GRID_SIZE * MICRO, epsilon)
        assert GRID_SIZE / scale == Fraction(epsilon, MICRO)


@pytest.mark.parametrize(("point", "epsilon"), [(-1, 1), (GRID_SIZE + 1, 1), (0, 0), (0, -1)])
def test_a_report_needs_a_point_on_the_grid_and_some_epsilon(point: int, epsilon: int) -> None:
    with pytest.raises(ValueError, match="report"):
        LAPLACE.report(point, epsilon)


def test_noise_comes_from_the_operating_system_unless_a_test_says_otherwise() -> None:
    assert _laplace.discrete_laplace.__defaults__ == (secrets.randbits,)
    assert Randomizer.report.__defaults__ == (secrets.randbits,)
    assert len({LAPLACE.report(0, MICRO) for _ in range(10)}) == 10


def test_no_entropy_means_no_report() -> None:
    with pytest.raises(EOFError):
        LAPLACE.report(0, MICRO, BitStream(b""))
