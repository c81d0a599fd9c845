"""Writes session_vectors.json: `python -m tests.client.make_session_vectors`.

Any client of the service must agree with it about sessions: when somebody is asked, what the truth is, and
what the same bits make of it.
"""

import json
from pathlib import Path
from typing import Any

from dither._participants import make_report
from dither.device.numbers import GRID_SIZE
from dither.device.response import assigned_round, respond

from tests.client.bits import BitStream
from tests.client.make_randomizer_vectors import stream

PATH = Path(__file__).with_name("session_vectors.json")

HALF = GRID_SIZE // 2
KEYS = [bytes(16), bytes(range(16)), b"\xff" * 16]
SUBJECTS = ["ada", "bob", "Zoë", "人-7", "x" * 256]
CENTRES = [[0, 0], [HALF, HALF], [GRID_SIZE, GRID_SIZE], [HALF, 0]]

ABOUT = [
    "assignments: 1 + (the first 8 bytes of HMAC-SHA256(key, subject as UTF-8), highest first) mod rounds.",
    "truths: somebody at a grid point; at_most: point <= threshold, at_least: point >= threshold; 1 is yes.",
    "nearest: the number, from 0, of the centre with the least sum of squared differences, an exact"
    " integer; the first of equals. Centres and points are on the grid of 2^30 steps.",
    "answers: the truth, 1 or 0, through `responses` of randomizer_vectors.json with 2 categories; a nearest"
    " centre goes through them with one category a centre. epsilon is that of an answer [micro-epsilon].",
    "reports: discrete_laplace of vectors.json for each coordinate in turn, with numerator = dimension * 2^30"
    " * 10^6 and denominator = epsilon [micro-epsilon], plus the coordinate.",
    "prices: accepted is whether a device may answer: budget_split and kmeans have answers_per_person ="
    " rounds, user_split has 1, and answers_per_person * epsilon_per_answer + report_epsilon is at most"
    " epsilon_total [micro-epsilon].",
]


def make() -> dict[str, Any]:
    """The vectors, as the SDK computes and draws them."""
    return {
        "about": ABOUT,
        "assignments": [
            {
                "key": key.hex(),
                "subject": subject,
                "rounds": rounds,
                "round": assigned_round(key, subject, rounds),
            }
            for key in KEYS
            for subject in SUBJECTS
            for rounds in (1, 10, 30)
        ],
        "truths": [
            {
                "direction": direction,
                "point": point,
                "threshold": threshold,
                "truth": int(point <= threshold if direction == "at_most" else point >= threshold),
            }
            for direction in ("at_most", "at_least")
            for point in (0, HALF - 1, HALF, HALF + 1, GRID_SIZE)
            for threshold in (0, HALF, GRID_SIZE)
        ],
        "nearest": [
            {"centres": CENTRES, "point": point, "nearest": _nearest(point)}
            for point in ([0, 0], [HALF, 1], [HALF // 2, HALF // 2], [GRID_SIZE, 0], [3, GRID_SIZE])
        ],
        "answers": [_answer(point, epsilon, index) for index, (point, epsilon) in enumerate(ANSWERS)],
        "reports": [_report(point, epsilon, index) for index, (point, epsilon) in enumerate(REPORTS)],
        "prices": [
            {**dict(zip(PRICE_NAMES, price, strict=True)), "accepted": _affordable(*price)}
            for price in PRICES
        ],
    }


ANSWERS = [(0, 1_000_000), (HALF, 250_000), (HALF + 1, 1_000), (GRID_SIZE, 8_000_000), (HALF - 1, 1)]
REPORTS = [([HALF], 1_000_000), ([0, GRID_SIZE], 500_000), ([1, 2, 3], 7_000_000)]
PRICE_NAMES = (
    "mode",
    "rounds",
    "answers_per_person",
    "epsilon_per_answer",
    "report_epsilon",
    "epsilon_total",
)
PRICES = [
    ("budget_split", 4, 4, 250_000, 0, 1_000_000),
    ("budget_split", 4, 4, 250_001, 0, 1_000_000),
    ("budget_split", 4, 3, 250_000, 0, 1_000_000),
    ("user_split", 10, 1, 1_000_000, 0, 1_000_000),
    ("user_split", 10, 10, 100_000, 0, 1_000_000),
    ("kmeans", 3, 3, 250_000, 250_000, 1_000_000),
    ("kmeans", 3, 3, 250_000, 250_001, 1_000_000),
]


def _nearest(point: list[int]) -> int:
    squares = [sum((a - b) ** 2 for a, b in zip(centre, point, strict=True)) for centre in CENTRES]
    return squares.index(min(squares))


def _affordable(mode: str, rounds: int, answers: int, epsilon: int, report: int, total: int) -> bool:
    return answers == (1 if mode == "user_split" else rounds) and answers * epsilon + report <= total


def _answer(point: int, epsilon: int, index: int) -> dict[str, Any]:
    """An answer to: is yours at most the middle of the range?"""
    data = stream(index)
    bits = BitStream(data)
    given = {"direction": "at_most", "point": point, "threshold": HALF, "epsilon": epsilon}
    answer = respond(int(point <= HALF), 2, epsilon, bits)
    return {**given, "bits": data[: -(-bits.used // 8)].hex(), "used": bits.used, "answer": answer}


def _report(point: list[int], epsilon: int, index: int) -> dict[str, Any]:
    data = stream(index)
    bits = BitStream(data)
    report = make_report(point, epsilon, bits)
    given = {"point": point, "epsilon": epsilon}
    return {**given, "bits": data[: -(-bits.used // 8)].hex(), "used": bits.used, "report": list(report)}


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
