"""Writes randomizer_vectors.json: `python -m tests.client.make_randomizer_vectors`.

Any client of the service must agree with it: the same bits, the same report.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from dither.device.choices import ChoiceRandomizer, choice_points
from dither.device.exact import discrete_gaussian
from dither.device.gaussian import gaussian_sigma, micro_mu2, pure_epsilon
from dither.device.measures import reports
from dither.device.numbers import GRID_SIZE
from dither.device.randomizers import LocalMechanism, randomizer
from dither.device.response import respond
from dither.device.shapes import duchi_reach, hybrid_share, piecewise_shape, power_of_e

from tests.client.bits import BitStream

PATH = Path(__file__).with_name("randomizer_vectors.json")

EPSILONS = [1, 1_000, 609_352, 609_353, 1_000_000, 2_500_000, 10_000_000, 41_000_000, 1_000_000_000_000]
DELTAS = [
    (100_000, 1),
    (10_000, 1_000_000),
    (1_000_000, 100_000),
    (1_000_000, 10_000_000),
    (20_000_000, 1_000),
]
POINTS = [0, 1, GRID_SIZE // 3, GRID_SIZE // 2, GRID_SIZE]
REPORT_EPSILONS = [10_000, 600_000, 1_000_000, 8_000_000]
OPTIMAL_EPSILONS = [1_034_000, 1_200_000, 2_000_000, 4_000_000]
SIGMAS = [1, 2, 7, 64, 1_000, 536_751_364, 5_000_000_000, 66_084_241_022]
DELTA = 1_000_000
RANGES = [
    *[("laplace", epsilon, 0) for epsilon in (1, 17, 1_010_000, 10_000_000, 1_000_000_000_000)],
    *[("gaussian", epsilon, delta) for epsilon, delta in [*DELTAS, (1_000_000_000_000, 1)]],
]
RESPONSES = [(0, 2, 1_000_000), (1, 2, 50_000), (3, 5, 2_000_000), (0, 4, 20_000_000)]
CHOICES = [
    (place, count, epsilon, delta)
    for count, epsilon, delta in [
        *[(2, 1_000_000, 0), (5, 100_000, 0), (5, 4_000_000, 0), (4, 500_000, 0), (9, 1_000_000, 0)],
        *[(2, 1_000_000, DELTA), (3, 5_000_000, 1_000), (5, 40_000_000, DELTA), (9, 500_000, DELTA)],
    ]
    for place in (0, count - 1)
]
MEASURES: list[list[list[Any]]] = [
    [["hybrid", 0], ["piecewise", GRID_SIZE]],
    [["duchi", 1], [5, 4], ["hybrid", GRID_SIZE // 3]],
    [[2, 1], [9, 0], ["piecewise", 7], ["duchi", GRID_SIZE]],
]
OFFERS = [(300_000, 0), (5_120_000, 0), (20_000_000, 0), (3_000_000, DELTA), (47_000_000, DELTA)]
"""Epsilons and deltas of all measures together. The mu^2 of the last one pays for two reports."""

STREAMS = 3

ABOUT = [
    "below, bernoulli_exp and discrete_laplace are those of vectors.json, `bits` and `used` mean the same as"
    " there, and fractions are not reduced. Bits drawn together are an integer, its highest bit first.",
    "powers: floor(2^128 e^(half_micros / 2,000,000)). Exponents above 64 count as 64.",
    "shapes: N = 2^30, p = power of epsilon (half_micros = 2 epsilon), r = power of its half (half_micros ="
    " epsilon), o = 2^128. duchi A = ceil((N/2)(p + o) / (p - o)). reach = floor((N/2) o / (r - o)), w = 2"
    " reach + 1, drift = ceil(p w (N/2) / (p w - o (w + N))). share = floor(2^32 (r - o) / r), but 0 up to"
    " epsilon = 609352.",
    "duchi(x), x = point - N/2: below(2 A) < A + x gives A, else -A. The report is N/2 plus that.",
    "piecewise(x): draw 29 bits b; m = floor((x drift + b) / 2^29). I = drift (w + N), O = w (drift - N/2)."
    " u = below(w I + 2 drift O). If u < w I: m - reach + floor(u / I). Otherwise y = floor((u - w I) / O) -"
    " drift - reach, and y + w where y >= m - reach. The report is N/2 plus that.",
    "hybrid(x): if share > 0, draw 32 bits; below share: piecewise(x). Otherwise duchi(x).",
    "optimal(x): the last table of client/dither/device/optimal.json (epsilon, until, steps, reports, rows)"
    " with table epsilon <= epsilon < until; none: hybrid(x). step = N / steps; draw as many bits b as step"
    " has zeros; i = floor((x + N/2 + b) / step). Row i, or where there is none row steps - i backwards. Draw"
    " 32 bits: the report is N/2 plus 2^25 times the first one where the sum of the row's weights up to it is"
    " above them.",
    "sigmas: mu2 = the largest integer with delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 -"
    " epsilon/mu), mu^2 = mu2 / 10^6; s = the least integer, at least 64, with s^2 - 9 >= N^2 10^6 / mu2."
    " delta counts 1e-12. pure = the largest integer with e^(pure / 10^6) <= Phi(mu/2) / Phi(-mu/2). All are"
    " decided with what is compared raised by 1e-30 of it. gaussian_vectors.json has thousands more.",
    "discrete_gaussian(s): t = s + 1; y = discrete_laplace(t, 1); keep it if bernoulli_exp((|y| t - s^2)^2,"
    " 2 s^2 t^2), else start again. While its fraction is above 1, bernoulli_exp asks bernoulli_exp(1, 1) and"
    " takes 1 off; the first false is the answer. gaussian: point plus that.",
    "ranges: laplace reports lie at most ceil(64 N 10^6 / epsilon) outside of the grid 0..N, gaussian ones at"
    " most 12 s, both at most 2^62 - N.",
    "choices and measures: where delta is above 0, epsilon stands for pure of its mu2 in what follows.",
    "choices: p = power of epsilon, K = count. Where (K o)^2 + 2 p o <= 2 K o (o + p) + p^2 + o^2: u ="
    " below(p + (K - 1) o); s = 0 if u < p, else 1 + floor((u - p) / o); the report is 2^((place + s) mod K)."
    " Otherwise for each choice from 0 on: the own one is in it if a bit is 1, another one if below(o + p) <"
    " o; the report is the sum of 2^j over those that are in it.",
    "measures: d of them, each a mechanism and a point, or a count of choices and a place. k = 1, or"
    " floor(epsilon / 2,500,000) if that is more, or d if that is less. k times below(those not chosen yet)"
    " gives the place of the next one among these, in their order. Then, in the order of the measures, those"
    " chosen are reported, each with floor(epsilon / k) less what follows its first three digits.",
    "responses: j = below(categories); keep it if j = 0 or bernoulli_exp(epsilon, 10^6), else start again;"
    " the answer is (category + j) mod categories.",
]


def stream(index: int) -> bytes:
    """Bits that look random and are the same everywhere."""
    blocks = [hashlib.sha256(f"dither randomizer {index} {block}".encode()).digest() for block in range(32)]
    return b"".join(blocks)


def make() -> dict[str, Any]:
    """The vectors, as the SDK computes and draws them."""
    return {
        "about": ABOUT,
        "powers": [
            {"half_micros": half_micros, "power": str(power_of_e(half_micros))}
            for half_micros in (1, 2, 1_000_000, 2_000_000, 7_654_321, 127_999_999, 128_000_000, 10**12)
        ],
        "shapes": [_shape(epsilon) for epsilon in EPSILONS],
        "sigmas": [
            {
                "epsilon": epsilon,
                "delta": delta,
                "mu2": micro_mu2(epsilon, delta),
                "sigma": gaussian_sigma(micro_mu2(epsilon, delta)),
                "pure": pure_epsilon(micro_mu2(epsilon, delta)),
            }
            for epsilon, delta in DELTAS
        ],
        "discrete_gaussian": [
            _drawn({"sigma": sigma}, lambda bits, sigma=sigma: discrete_gaussian(sigma, bits), index)
            for sigma in SIGMAS
            for index in range(2 * STREAMS)
        ],
        "reports": [
            _drawn(
                {"mechanism": mechanism, "point": point, "epsilon": epsilon, "delta": delta},
                lambda bits, m=mechanism, p=point, e=epsilon, d=delta: randomizer(m, d).report(p, e, bits),
                number,
            )
            for mechanism in LocalMechanism
            for number, (point, epsilon) in enumerate(
                (point, epsilon)
                for epsilon in REPORT_EPSILONS + (OPTIMAL_EPSILONS if mechanism == "optimal" else [])
                for point in POINTS
            )
            for delta in [1_000_000 if mechanism == "gaussian" else 0]
        ],
        "ranges": [_range(*given) for given in RANGES],
        "choices": [
            _drawn(
                {"place": place, "count": count, "epsilon": epsilon, "delta": delta},
                lambda bits, p=place, k=count, e=epsilon, d=delta: ChoiceRandomizer(k).report(
                    choice_points(k)[p], worth(e, d), bits
                ),
                index,
            )
            for place, count, epsilon, delta in CHOICES
            for index in range(STREAMS)
        ],
        "measures": [
            _drawn(
                {"measures": measures, "epsilon": epsilon, "delta": delta},
                lambda bits, m=measures, e=epsilon, d=delta: _of_measures(m, worth(e, d), bits),
                index,
            )
            for measures in MEASURES
            for epsilon, delta in OFFERS
            for index in range(2)
        ],
        "responses": [
            _drawn(
                {"category": category, "categories": categories, "epsilon": epsilon},
                lambda bits, c=category, k=categories, e=epsilon: respond(c, k, e, bits),
                index,
            )
            for category, categories, epsilon in RESPONSES
            for index in range(STREAMS)
        ],
    }


def worth(epsilon: int, delta: int) -> int:
    """What reports of choices and of measures are randomized with where they cost that much."""
    return pure_epsilon(micro_mu2(epsilon, delta)) if delta else epsilon


def _range(mechanism: str, epsilon: int, delta: int) -> dict[str, Any]:
    found = randomizer(mechanism, delta).range(epsilon)
    return {
        "mechanism": mechanism,
        "epsilon": epsilon,
        "delta": delta,
        "lower": str(found.lower),
        "upper": str(found.upper),
    }


def _of_measures(measures: list[list[Any]], epsilon: int, bits: BitStream) -> list[int | None]:
    devices = [ChoiceRandomizer(own) if isinstance(own, int) else randomizer(own) for own, _ in measures]
    points = [choice_points(own)[at] if isinstance(own, int) else at for own, at in measures]
    drawn = reports(devices, points, epsilon, bits)
    return [drawn.get(place) for place in range(len(measures))]


def _shape(epsilon: int) -> dict[str, int]:
    piecewise = piecewise_shape(epsilon)
    return {
        "epsilon": epsilon,
        "duchi": duchi_reach(epsilon),
        "reach": piecewise.reach,
        "drift": piecewise.drift,
        "share": hybrid_share(epsilon),
    }


def _drawn(given: dict[str, Any], draw: Any, index: int) -> dict[str, Any]:
    data = stream(index)
    bits = BitStream(data)
    outcome = draw(bits)
    return {**given, "bits": data[: -(-bits.used // 8)].hex(), "used": bits.used, "outcome": outcome}


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
