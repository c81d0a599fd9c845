"""The SDK agrees with the vectors about sessions that every client must agree with."""

import hashlib
import hmac
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from dither import Session, SessionUnsound
from dither._participants import make_report
from dither._sessions import Person, Question, Terms, read_terms, true_category
from dither._wire import build, decode
from dither.device.numbers import GRID_SIZE, MICRO
from dither.device.response import assigned_round, respond

from tests.client import make_session_vectors
from tests.client.bits import BitStream, Seeded
from tests.client.sessions import KMEANS, MINIMUM, SPLIT

VECTORS: dict[str, Any] = json.loads(make_session_vectors.PATH.read_text(encoding="utf-8"))


def terms(document: dict[str, Any], **changes: Any) -> Terms:
    whole = {**document, **changes}
    return read_terms(build(Session, decode(json.dumps(whole).encode())), whole["id"])


def test_the_file_is_what_its_generator_writes() -> None:
    assert json.loads(json.dumps(make_session_vectors.make())) == VECTORS


def test_assignments_agree_with_the_formula() -> None:
    for row in VECTORS["assignments"]:
        key, subject, rounds = bytes.fromhex(row["key"]), row["subject"], row["rounds"]
        assert assigned_round(key, subject, rounds) == row["round"]
        digest = hmac.new(key, subject.encode(), hashlib.sha256).digest()
        assert row["round"] == 1 + int.from_bytes(digest[:8], "big") % rounds


def test_assignments_are_even() -> None:
    counts = Counter(assigned_round(bytes(range(16)), f"p{number}", 10) for number in range(20_000))
    assert set(counts) == set(range(1, 11))
    assert all(abs(count - 2000) < 6 * (20_000 * 0.09) ** 0.5 for count in counts.values())


def test_truths_agree() -> None:
    for row in VECTORS["truths"]:
        protocol = "minimum" if row["direction"] == "at_most" else "maximum"
        person = Person(
            terms=terms(MINIMUM, protocol=protocol), subject="p", points=(row["point"],), asked_in=None
        )
        question = Question(round=1, threshold=row["threshold"], centers=())
        assert true_category(person, question) == row["truth"]


def test_nearest_centers_agree() -> None:
    for row in VECTORS["nearest"]:
        person = Person(terms=terms(KMEANS), subject="p", points=tuple(row["point"]), asked_in=None)
        centers = tuple(map(tuple, row["centres"]))
        assert true_category(person, Question(round=1, threshold=None, centers=centers)) == row["nearest"]


def test_answers_and_reports_agree() -> None:
    for row in VECTORS["answers"]:
        bits = BitStream(bytes.fromhex(row["bits"]))
        truth = int(row["point"] <= row["threshold"])
        assert respond(truth, 2, row["epsilon"], bits) == row["answer"]
        assert bits.used == row["used"]
    for row in VECTORS["reports"]:
        bits = BitStream(bytes.fromhex(row["bits"]))
        assert make_report(row["point"], row["epsilon"], bits) == tuple(row["report"])
        assert bits.used == row["used"]


def test_prices_agree() -> None:
    documents = {"budget_split": MINIMUM, "user_split": SPLIT, "kmeans": KMEANS}
    for row in VECTORS["prices"]:
        changes = {"rounds": row["rounds"], "answers_per_person": row["answers_per_person"]}
        for name in ("epsilon_per_answer", "report_epsilon", "epsilon_total"):
            changes[name] = row[name] / MICRO
        if row["accepted"]:
            assert terms(documents[row["mode"]], **changes).total == row["epsilon_total"]
        else:
            with pytest.raises(SessionUnsound):
                terms(documents[row["mode"]], **changes)


# ------------------------------------------------------------------------------ the randomizers


def test_reports_are_unbiased_and_as_noisy_as_the_service_believes() -> None:
    """Variance of discrete Laplace noise of scale b: 2 b^2 to many digits; six standard errors."""
    draws, epsilon, dimension = 4_000, 2_000_000, 2
    bits = Seeded(7)
    scale = dimension * GRID_SIZE * MICRO / epsilon
    noise = [
        part - place
        for _ in range(draws)
        for part, place in zip(make_report([5, GRID_SIZE], epsilon, bits), (5, GRID_SIZE), strict=True)
    ]
    count = len(noise)
    mean = sum(noise) / count
    variance = sum(one * one for one in noise) / count
    assert abs(mean) < 6 * scale * (2 / count) ** 0.5
    assert abs(variance / (2 * scale**2) - 1) < 6 * (5 / count) ** 0.5


def test_terms_that_are_the_same_compare_equal() -> None:
    assert terms(MINIMUM) == terms(MINIMUM)
    assert terms(MINIMUM).pinned != terms(MINIMUM, participants=5).pinned
    assert replace(terms(MINIMUM), pinned="") != terms(MINIMUM)
