"""Local reports on the device: exactly private, exactly unbiased, and as noisy as the service believes."""

import json
import secrets
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from dither.device import exact as _exact
from dither.device import optimal as _optimal
from dither.device import randomizers as _randomizers
from dither.device import response as _response
from dither.device import shapes as _shapes
from dither.device.exact import discrete_gaussian
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.numbers import GRID_SIZE
from dither.device.randomizers import LocalMechanism, Randomizer, randomizer
from dither.device.response import respond
from scipy import stats

from tests.client import make_gaussian_vectors, make_randomizer_vectors
from tests.client.bits import BitStream, Seeded, enumerate_outcomes
from tests.support.reports import report_range

VECTORS: dict[str, Any] = json.loads(make_randomizer_vectors.PATH.read_text(encoding="utf-8"))
EPSILONS = [1, 999, 123_000, 609_352, 609_353, 1_000_000, 4_000_000, 20_000_000, 45_000_000, 10**12]
HALF = GRID_SIZE // 2

# -- the vectors


def test_the_file_is_what_its_generator_writes() -> None:
    assert make_randomizer_vectors.make() == VECTORS


def power(exponent: Fraction) -> mpmath.mpf:
    return mpmath.exp(mpmath.mpf(exponent.numerator) / exponent.denominator)


@pytest.mark.parametrize("row", VECTORS["powers"], ids=lambda row: str(row["half_micros"]))
def test_powers_are_floors_of_the_exact_ones(row: dict[str, Any]) -> None:
    with mpmath.workdps(120):
        exponent = min(Fraction(row["half_micros"], 2_000_000), Fraction(64))
        assert int(row["power"]) == int(mpmath.floor(power(exponent) * 2**128))


@pytest.mark.parametrize("row", VECTORS["shapes"], ids=lambda row: str(row["epsilon"]))
def test_shapes_agree_with_their_description_in_high_precision(row: dict[str, Any]) -> None:
    """Real numbers with 200 digits in place of cut powers. The cut may cost one step of a long range."""
    with mpmath.workdps(200):
        epsilon = min(Fraction(row["epsilon"], 10**6), Fraction(64))
        p, r = power(epsilon), power(epsilon / 2)
        assert 0 <= row["duchi"] - mpmath.ceil(HALF * (p + 1) / (p - 1)) <= 1
        assert 0 <= row["reach"] - mpmath.floor(HALF / (r - 1)) <= 1
        w = 2 * row["reach"] + 1
        assert 0 <= row["drift"] - mpmath.ceil(p * w * HALF / (p * w - w - GRID_SIZE)) <= 1
        share = mpmath.floor(2**32 * (1 - 1 / r)) if row["epsilon"] > 609_352 else 0
        assert row["share"] == share


@pytest.mark.parametrize("row", VECTORS["sigmas"], ids=lambda row: f"{row['epsilon']}-{row['delta']}")
def test_sigmas_are_the_least_that_keep_delta(row: dict[str, Any]) -> None:
    with mpmath.workdps(60):
        epsilon = mpmath.mpf(row["epsilon"]) / 10**6

        def delta(sigma: mpmath.mpf) -> mpmath.mpf:
            mu = GRID_SIZE / sigma
            first = mpmath.ncdf(mu / 2 - epsilon / mu)
            return 10**12 * (first - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))

        sigma = mpmath.mpf(row["sigma"])
        assert delta(mpmath.sqrt(sigma**2 - 9)) < row["delta"]
        assert delta(GRID_SIZE / mpmath.sqrt(mpmath.mpf(row["mu2"] + 1) / 10**6)) > row["delta"]
        assert (sigma - 1) ** 2 - 9 < mpmath.mpf(GRID_SIZE) ** 2 * 10**6 / row["mu2"]
        assert row["pure"] == mpmath.floor(10**6 * pure(row["mu2"]))


def pure(mu2: int) -> mpmath.mpf:
    half = mpmath.sqrt(mpmath.mpf(mu2) / 10**6) / 2
    return mpmath.log(mpmath.ncdf(half) / mpmath.ncdf(-half))


def worth(row: dict[str, Any]) -> int:
    """What reports are randomized with: epsilon, or the pure one that its mu^2 pays for."""
    with mpmath.workdps(60):
        delta = row["delta"]
        return int(10**6 * pure(micro_mu2(row["epsilon"], delta))) if delta else int(row["epsilon"])


@pytest.mark.long
def test_the_file_of_offers_is_what_its_generator_writes() -> None:
    assert make_gaussian_vectors.text() == make_gaussian_vectors.PATH.read_text(encoding="utf-8")


BOUGHT = json.loads(make_gaussian_vectors.PATH.read_text(encoding="utf-8"))
OFFERS = BOUGHT["offers"]


def test_a_sigma_is_the_least_that_mu2_pays_for_and_at_least_64() -> None:
    for text, sigma in BOUGHT["sigmas"]:
        mu2 = Fraction(int(text), 10**6)
        assert Fraction(GRID_SIZE**2, sigma**2 - 9) <= mu2
        assert sigma == 64 or Fraction(GRID_SIZE**2, (sigma - 1) ** 2 - 9) > mu2
    assert len({sigma for _, sigma in BOUGHT["sigmas"]}) > 100


@pytest.mark.parametrize("row", [row for row in OFFERS[:600:10] if row[2]], ids=lambda row: f"{row[:2]}")
def test_offers_are_bought_as_exactly_as_real_numbers_with_200_digits_say(row: list[int]) -> None:
    epsilon, delta, mu2, sigma, own = row

    def spent(amount: int) -> mpmath.mpf:
        mu, cost = mpmath.sqrt(mpmath.mpf(amount) / 10**6), mpmath.mpf(epsilon) / 10**6
        return mpmath.ncdf(mu / 2 - cost / mu) - mpmath.exp(cost) * mpmath.ncdf(-mu / 2 - cost / mu)

    with mpmath.workdps(200):
        assert spent(mu2) * 10**12 <= delta < spent(mu2 + 1) * 10**12
        assert own == mpmath.floor(10**6 * pure(mu2))
        assert sigma == mpmath.ceil(mpmath.sqrt(mpmath.mpf(GRID_SIZE) ** 2 * 10**6 / mu2 + 9))


@pytest.mark.parametrize("row", VECTORS["ranges"], ids=lambda row: f"{row['mechanism']}-{row['epsilon']}")
def test_ranges_are_so_many_scales_about_the_grid(row: dict[str, Any]) -> None:
    scale = Fraction(GRID_SIZE * 10**6, row["epsilon"])
    if row["mechanism"] == "gaussian":
        scale = Fraction(gaussian_sigma(micro_mu2(row["epsilon"], row["delta"])))
    reach = min(-(-(12 if row["delta"] else 64) * scale // 1), 2**62 - GRID_SIZE)
    assert (int(row["lower"]), int(row["upper"])) == (-reach, GRID_SIZE + reach)


class Transcript:
    """The samplers as randomizer_vectors.json describes them, in other words than the SDK's."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.bits = BitStream(bytes.fromhex(row["bits"]))

    def below(self, n: int) -> int:
        width, candidate = len(f"{n - 1:b}") if n > 1 else 0, n
        while candidate >= n:
            candidate = self.bits(width) if width else 0
        return candidate

    def laplace(self, t: int) -> int:
        while True:
            u = self.below(t)
            if not self.bernoulli_exp(u, t):
                continue
            v = 0
            while self.bernoulli_exp(1, 1):
                v += 1
            sign = self.bits(1)
            if not (sign == 1 and u + t * v == 0):
                return (1 - 2 * sign) * (u + t * v)

    def bernoulli_exp(self, numerator: int, denominator: int) -> bool:
        while numerator > denominator:
            if not self.bernoulli_exp(1, 1):
                return False
            numerator -= denominator
        k = 1
        while self.below(k * denominator) < numerator:
            k += 1
        return k % 2 == 1

    def gaussian(self, s: int) -> int:
        t = s + 1
        while True:
            y = self.laplace(t)
            if self.bernoulli_exp((abs(y) * t - s * s) ** 2, 2 * s * s * t * t):
                return y

    def duchi(self, x: int, shape: dict[str, int]) -> int:
        a = shape["duchi"]
        return a if self.below(2 * a) < a + x else -a

    def piecewise(self, x: int, shape: dict[str, int]) -> int:
        h, d = shape["reach"], shape["drift"]
        w = 2 * h + 1
        m = (x * d + self.bits(29)) // 2**29
        inside, outside = d * (w + GRID_SIZE), w * (d - HALF)
        u = self.below(w * inside + 2 * d * outside)
        if u < w * inside:
            return m - h + u // inside
        others = (u - w * inside) // outside
        y = others - d - h
        return y + w if y >= m - h else y

    def hybrid(self, x: int, shape: dict[str, int]) -> int:
        if shape["share"] and self.bits(32) < shape["share"]:
            return self.piecewise(x, shape)
        return self.duchi(x, shape)

    def optimal(self, x: int, shape: dict[str, int]) -> int:
        path = Path(_optimal.__file__).with_name("optimal.json")
        fitting = [one for one in json.loads(path.read_text()) if one[0] <= shape["epsilon"] < one[1]]
        if not fitting:
            return self.hybrid(x, shape)
        _, _, steps, reports, rows = fitting[-1]
        zeros = (GRID_SIZE // steps).bit_length() - 1
        i = (x + HALF + self.bits(zeros)) >> zeros
        row = rows[i] if i < len(rows) else rows[steps - i][::-1]
        ticket = self.bits(32)
        return int(next(y for j, y in enumerate(reports) if sum(row[: j + 1]) > ticket)) * 2**25

    def choice(self, k: int, place: int, epsilon: int) -> int:
        o, p = 1 << 128, _shapes.power_of_e(2 * epsilon)
        if is_single(k, epsilon):
            u = self.below(p + (k - 1) * o)
            return int(2 ** ((place + (0 if u < p else 1 + (u - p) // o)) % k))
        found = [self.bits(1) == 1 if j == place else self.below(o + p) < o for j in range(k)]
        return sum(2**j for j in range(k) if found[j])


def is_single(k: int, epsilon: int) -> bool:
    ratio = _shapes.power_of_e(2 * epsilon) / (1 << 128)
    return k <= 1 + ratio + (2 + 2 * ratio**2) ** 0.5


def test_reports_agree_with_another_transcription() -> None:
    for row in VECTORS["reports"]:
        transcript, x = Transcript(row), row["point"] - HALF
        epsilon, mechanism = row["epsilon"], row["mechanism"]
        shape = make_randomizer_vectors._shape(epsilon)
        if mechanism == "gaussian":
            outcome = row["point"] + transcript.gaussian(gaussian_sigma(micro_mu2(epsilon, row["delta"])))
        elif mechanism == "laplace":
            continue  # test_vectors.py
        else:
            outcome = HALF + getattr(transcript, mechanism)(x, shape)
        assert (outcome, transcript.bits.used) == (row["outcome"], row["used"]), row


def test_reports_of_choices_agree_with_another_transcription() -> None:
    for row in VECTORS["choices"]:
        transcript = Transcript(row)
        outcome = transcript.choice(row["count"], row["place"], worth(row))
        assert (outcome, transcript.bits.used) == (row["outcome"], row["used"]), row
    for pays_mu2 in (True, False):
        rows = [row for row in VECTORS["choices"] if (row["delta"] > 0) == pays_mu2]
        assert {is_single(row["count"], worth(row)) for row in rows} == {True, False}


def test_reports_of_some_measures_agree_with_another_transcription() -> None:
    for row in VECTORS["measures"]:
        transcript, measures = Transcript(row), row["measures"]
        left, epsilon = list(range(len(measures))), worth(row)
        count = min(max(int(epsilon / 2.5e6), 1), len(measures))
        chosen = sorted(left.pop(transcript.below(len(left))) for _ in range(count))
        each = int(f"{epsilon // count}"[:3].ljust(len(f"{epsilon // count}"), "0"))
        shape = make_randomizer_vectors._shape(each)
        outcome: list[int | None] = [None] * len(measures)
        for place in chosen:
            own, at = measures[place]
            if isinstance(own, int):
                outcome[place] = transcript.choice(own, at, each)
            else:
                outcome[place] = HALF + getattr(transcript, own)(at - HALF, shape)
        assert (outcome, transcript.bits.used) == (row["outcome"], row["used"]), row
    assert {sum(one is not None for one in row["outcome"]) for row in VECTORS["measures"]} == {1, 2, 3, 4}


def test_noise_and_answers_agree_with_another_transcription() -> None:
    for row in VECTORS["discrete_gaussian"]:
        transcript = Transcript(row)
        assert (transcript.gaussian(row["sigma"]), transcript.bits.used) == (row["outcome"], row["used"])
    for row in VECTORS["responses"]:
        transcript, k = Transcript(row), row["categories"]
        while True:
            j = transcript.below(k)
            if j == 0 or transcript.bernoulli_exp(row["epsilon"], 10**6):
                break
        assert (row["category"] + j) % k == row["outcome"]


# -- exactly, on a grid of a few steps

SMALL = 4


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same mechanisms on the grid 0..4, and scripts that answer whole uniform draws."""
    caches = [_shapes.duchi_reach, _shapes.piecewise_shape]
    for module in (_shapes, _randomizers):
        monkeypatch.setattr(module, "GRID_SIZE", SMALL, raising=False)
        monkeypatch.setattr(module, "HALF", SMALL // 2)
    for module in (_randomizers, _exact, _response):
        monkeypatch.setattr(module, "below", lambda bound, bits: bits.below(bound), raising=False)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def law(mechanism: str, offset: int, epsilon: int) -> dict[int, Fraction]:
    """Exact probabilities of a bounded report."""
    device = randomizer(mechanism)
    found, left = enumerate_outcomes(lambda bits: device.draw(offset, epsilon, bits), Fraction(0))
    assert left == 0
    return found


@pytest.mark.usefixtures("small_grid")
@pytest.mark.parametrize("epsilon", [600_000, 1_000_000, 2_345_678, 4_000_000])
@pytest.mark.parametrize("mechanism", ["duchi", "piecewise"])
def test_bounded_reports_are_exactly_private_unbiased_and_as_noisy_as_stated(
    mechanism: str, epsilon: int
) -> None:
    laws = {offset: law(mechanism, offset, epsilon) for offset in range(-SMALL // 2, SMALL // 2 + 1)}
    support = set(laws[0])
    noise = randomizer(mechanism).noise(epsilon)
    allowed = report_range(LocalMechanism(mechanism), epsilon)
    for offset, probabilities in laws.items():
        assert sum(probabilities.values()) == 1
        assert set(probabilities) == support
        assert sum(p * y for y, p in probabilities.items()) == offset
        variance = sum(p * y * y for y, p in probabilities.items()) - offset**2
        at = noise.constant + noise.curvature * offset**2
        assert at * (1 - 1e-12) <= variance <= at + Fraction(1, 4)
        assert all(SMALL // 2 + y in allowed for y in probabilities)
    most = max(a[y] / b[y] for a in laws.values() for b in laws.values() for y in support)
    with mpmath.workdps(50):
        assert mpmath.mpf(most.numerator) / most.denominator <= power(Fraction(epsilon, 10**6))


@pytest.mark.usefixtures("small_grid")
def test_control_a_range_one_step_shorter_is_not_private(monkeypatch: pytest.MonkeyPatch) -> None:
    epsilon = 1_000_000
    reach = _shapes.duchi_reach(epsilon)
    monkeypatch.setattr(_randomizers, "duchi_reach", lambda _: reach - 1)
    ends = [law("duchi", offset, epsilon) for offset in (-SMALL // 2, SMALL // 2)]
    most = max(ends[1][y] / ends[0][y] for y in ends[0])
    assert float(most) > float(power(Fraction(epsilon, 10**6)))


@pytest.mark.usefixtures("small_grid")
@pytest.mark.parametrize("epsilon", [1_000_000, 2_000_000])
def test_hybrid_is_the_stated_mixture(monkeypatch: pytest.MonkeyPatch, epsilon: int) -> None:
    monkeypatch.setattr(_randomizers, "HYBRID_BITS", 3)
    share = Fraction(_shapes.hybrid_share(epsilon) >> 29, 8)
    monkeypatch.setattr(_randomizers, "hybrid_share", lambda _: int(share * 8))
    mixture = law("hybrid", 1, epsilon)
    parts = law("piecewise", 1, epsilon), law("duchi", 1, epsilon)
    for y in parts[0] | parts[1]:
        assert mixture.get(y, 0) == share * parts[0].get(y, 0) + (1 - share) * parts[1].get(y, 0)


@pytest.mark.parametrize(("category", "categories"), [(0, 2), (1, 2), (2, 3), (4, 7)])
def test_one_round_of_an_answer_weighs_lies_by_an_exponential(
    monkeypatch: pytest.MonkeyPatch, category: int, categories: int
) -> None:
    """All steps are equally likely; the truth is always kept, a lie with probability e^-epsilon."""
    coins: list[tuple[int, int]] = []

    def coin(numerator: int, denominator: int, bits: object) -> bool:
        coins.append((numerator, denominator))
        return True

    monkeypatch.setattr(_response, "bernoulli_exp", coin)
    answers = []
    for step in range(categories):
        monkeypatch.setattr(_response, "below", lambda bound, bits, step=step: step)
        answers.append(respond(category, categories, 1_234_567))
        assert len(coins) == step  # none for the truth, which step 0 is
    assert answers[0] == category
    assert sorted(answers) == list(range(categories))
    assert set(coins) == {(1_234_567, 1_000_000)}


@pytest.mark.parametrize("sigma", [1, 2, 7, 1000, 5_000_000_000])
def test_one_round_of_gaussian_noise_has_gaussian_weights(
    monkeypatch: pytest.MonkeyPatch, sigma: int
) -> None:
    """The law of Laplace noise times the probability with which it is kept is that of Gaussian noise."""
    kept: list[Fraction] = []

    def coin(numerator: int, denominator: int, bits: object) -> bool:
        kept.append(Fraction(numerator, denominator))
        return True

    monkeypatch.setattr(_exact, "bernoulli_exp", coin)
    exponents = set()
    for noise in (0, 1, -1, sigma, -3 * sigma, 5 * sigma + 1):

        def laplace(t: int, s: int, bits: object, noise: int = noise) -> int:
            assert (t, s) == (sigma + 1, 1)
            return noise

        monkeypatch.setattr(_exact, "discrete_laplace", laplace)
        assert discrete_gaussian(sigma) == noise
        exponents.add(kept[-1] + Fraction(abs(noise), sigma + 1) - Fraction(noise**2, 2 * sigma**2))
    assert len(exponents) == 1


@pytest.mark.usefixtures("small_grid")
def test_exponential_coins_above_one_have_their_probability() -> None:
    found, left = enumerate_outcomes(lambda bits: _exact.bernoulli_exp(5, 2, bits), Fraction(1, 10**8))
    assert left < Fraction(1, 10**4)
    assert float(found[True]) <= float(power(Fraction(-5, 2))) <= float(found[True] + left)


# -- algebraically, on the real grid


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_shapes_of_the_real_grid_are_private_and_unbiased(epsilon: int) -> None:
    shape, reach = _shapes.piecewise_shape(epsilon), _shapes.duchi_reach(epsilon)
    with mpmath.workdps(60):
        bound = power(min(Fraction(epsilon, 10**6), Fraction(64)))
        for most in (Fraction(shape.inside, shape.outside), Fraction(reach + HALF, reach - HALF)):
            assert mpmath.mpf(most.numerator) / most.denominator <= bound
    # E[report] - N/2 = m w (I - O) / total with m = x D / (N/2)
    slope = Fraction(shape.window * (shape.inside - shape.outside), shape.total) * shape.drift / HALF
    assert slope == 1


@pytest.mark.parametrize("epsilon", [1_000, 600_000, 1_000_000, 8_000_000])
def test_little_of_epsilon_is_lost_to_rounding(epsilon: int) -> None:
    shape, reach = _shapes.piecewise_shape(epsilon), _shapes.duchi_reach(epsilon)
    for most in (Fraction(shape.inside, shape.outside), Fraction(reach + HALF, reach - HALF)):
        spent = float(mpmath.log(mpmath.mpf(most.numerator) / most.denominator)) * 1e6
        assert epsilon * (1 - 1e-6) < spent


# -- by simulation

RUNS = 20_000
Z = 4.9
"""Two-sided Normal quantile of 1e-6."""


def sample(mechanism: Any, point: int, epsilon: int) -> np.ndarray:
    bits, device = Seeded(20301121), randomizer(mechanism, 10**6 if mechanism == "gaussian" else 0)
    return np.array([device.report(point, epsilon, bits) for _ in range(RUNS)], dtype=np.float64)


@pytest.mark.parametrize("point", [0, GRID_SIZE // 3, GRID_SIZE])
@pytest.mark.parametrize("epsilon", [500_000, 2_000_000])
@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_reports_have_the_stated_mean_variance_and_range(mechanism: Any, epsilon: int, point: int) -> None:
    reports = sample(mechanism, point, epsilon)
    kind, delta = LocalMechanism(mechanism), 10**6 if mechanism == "gaussian" else 0
    variance = randomizer(kind, delta).noise(epsilon).at(point)
    allowed = report_range(kind, epsilon, delta)
    assert all(int(report) in allowed for report in reports)
    assert abs(reports.mean() - point) < Z * (variance / RUNS) ** 0.5
    errors = (reports - point) ** 2
    assert abs(errors.mean() - variance) < Z * errors.std() / RUNS**0.5 + variance * 1e-9


@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_control_reports_about_another_point_are_seen(mechanism: Any) -> None:
    reports = sample(mechanism, GRID_SIZE // 3, 2_000_000)
    variance = randomizer(mechanism, 10**6).noise(2_000_000).at(GRID_SIZE // 3)
    wrong = GRID_SIZE // 3 + GRID_SIZE // 15
    assert abs(reports.mean() - wrong) > Z * (variance / RUNS) ** 0.5


@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (0.95, False), (1.05, False)])
def test_gaussian_noise_follows_its_law_and_errors_of_five_percent_are_seen(scale: float, fits: bool) -> None:
    sigma = 40
    bits = Seeded(20301121)
    draws = np.array([discrete_gaussian(round(sigma * scale), bits) for _ in range(RUNS)])
    cells = np.clip(draws // 5, -20, 19)
    z = np.arange(-400, 401)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    expected = np.bincount(np.clip(z // 5, -20, 19) + 20, weights) / weights.sum() * RUNS
    observed = np.bincount(cells + 20, minlength=40)
    assert expected.min() > 25
    p_value = stats.chisquare(observed, expected).pvalue
    assert (p_value > 1e-6) == fits


@pytest.mark.parametrize(("epsilon", "fits"), [(1_000_000, True), (900_000, False), (1_100_000, False)])
def test_answers_follow_their_law_and_errors_of_ten_percent_are_seen(epsilon: int, fits: bool) -> None:
    bits = Seeded(20301121)
    answers = [respond(2, 4, epsilon, bits) for _ in range(2 * RUNS)]
    weights = np.exp([0.0, 0.0, 1.0, 0.0])
    p_value = stats.chisquare(np.bincount(answers), weights / weights.sum() * 2 * RUNS).pvalue
    assert (p_value > 1e-6) == fits


# -- what is refused, and where bits come from


@pytest.mark.parametrize("mechanism", LocalMechanism)
@pytest.mark.parametrize(("point", "epsilon"), [(-1, 1), (GRID_SIZE + 1, 1), (0, 0), (0, -1)])
def test_a_report_needs_a_point_on_the_grid_and_some_epsilon(
    mechanism: Any, point: int, epsilon: int
) -> None:
    with pytest.raises(ValueError, match="report"):
        randomizer(mechanism, 10**6).report(point, epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 1), (1, 0), (1, 10**12), (-1, 1)])
def test_gaussian_noise_needs_an_epsilon_and_a_delta(epsilon: int, delta: int) -> None:
    with pytest.raises(ValueError, match=r"Gaussian|negative"):
        gaussian_sigma(micro_mu2(epsilon, delta))


@pytest.mark.parametrize(("category", "categories", "epsilon"), [(0, 1, 1), (2, 2, 1), (-1, 2, 1), (0, 2, 0)])
def test_an_answer_needs_a_category_and_some_epsilon(category: int, categories: int, epsilon: int) -> None:
    with pytest.raises(ValueError, match="answer"):
        respond(category, categories, epsilon)


def test_bits_come_from_the_operating_system_unless_a_test_says_otherwise() -> None:
    for drawn in (Randomizer.report, discrete_gaussian, respond):
        assert drawn.__defaults__ == (secrets.randbits,)


@pytest.mark.parametrize("mechanism", LocalMechanism)
def test_no_entropy_means_no_report(mechanism: Any) -> None:
    with pytest.raises(EOFError):
        randomizer(mechanism, 10**6).report(0, 1_000_000, BitStream(b""))
