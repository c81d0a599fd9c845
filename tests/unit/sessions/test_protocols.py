"""The protocol of a session: what is asked, what comes of a round, what is published."""

import hashlib
import hmac
import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from dither.device.response import assigned_round

from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE, Grid
from app.core.session import SessionProtocol, Terms
from app.core.study import Relation, StudyDefinition, Trust
from app.sessions.protocol import RoundAnswers
from app.sessions.protocols import SessionSpec, restore_protocol, start_protocol
from app.sessions.search import Mode
from app.sessions.search_protocol import answers_needed_by_default

GRID = Grid(Decimal(-10), Decimal(30))


def study(**changes) -> StudyDefinition:
    fields: dict[str, Any] = {
        "slug": "s",
        "title": "s",
        "lower": GRID.lower,
        "upper": GRID.upper,
        "relation": Relation.REPLACE_ONE,
        "trust": frozenset({Trust.CENTRAL}),
        "epsilon_min": 1,
        "epsilon_max": MICRO,
        "default_share": MICRO,
    }
    return StudyDefinition(**fields | changes)


def running(**changes):
    fields: dict[str, Any] = {
        "protocol": SessionProtocol.MINIMUM,
        "epsilon": 8 * MICRO,
        "mode": Mode.BUDGET_SPLIT,
        "rounds": 2,
        "participants": 100,
    }
    return start_protocol(SessionSpec(**fields | changes), study())


def answers(no: int, yes: int) -> RoundAnswers:
    return RoundAnswers(counts={0: no, 1: yes})


def test_a_protocol_asks_closes_and_tells():
    made = running()
    assert made.terms == Terms(rounds=2, epsilon_per_answer=4 * MICRO, answers_per_person=2)
    assert made.question(GRID) == {
        "threshold": GRID_SIZE // 2,
        "threshold_value": 10.0,
        "direction": "at_most",
    }
    second = made.close(answers(20, 80))
    assert (second.round, second.question(GRID)["threshold_value"]) == (2, 0.0)
    done = second.close(answers(100, 0))
    assert done.round is None
    assert done.result(GRID)["interval"] == {"lower": 0.0, "upper": 10.0}
    assert done.result(GRID)["estimate"] == 5.0
    path = done.progress(GRID)["path"]
    assert [(step["lower"], step["upper"], step["threshold"], step["believed"]) for step in path] == [
        (-10.0, 30.0, 10.0, True),
        (-10.0, 10.0, 0.0, False),
    ]
    assert all(step["decided"] for step in path)
    few = made.close(answers(0, 0))
    assert [step["decided"] for step in few.progress(GRID)["path"]] == [False]
    assert few.question(GRID)["threshold_value"] == 10.0


@pytest.mark.parametrize(
    ("no", "yes", "counted"),
    [(0, 0, False), (50, 0, False), (100, 0, True), (0, 5, True), (20, 10, True), (99, 0, False)],
)
def test_a_protocol_that_is_stopped_counts_its_open_round_where_that_is_evidence(no, yes, counted):
    stopped = running().stop(answers(no, yes))
    assert stopped.round is None
    assert len(stopped.progress(GRID)["path"]) == counted
    assert stopped.result(GRID)["error"]["resolution"] == (20 if counted else 40)


def test_a_stopped_quantile_counts_its_open_round_only_if_it_is_complete():
    made = running(protocol=SessionProtocol.QUANTILE, quantile=0.5)
    assert made.stop(answers(0, 60)).progress(GRID) == {"path": []}
    assert len(made.stop(answers(40, 60)).progress(GRID)["path"]) == 1


@pytest.mark.parametrize(
    "protocol", [SessionProtocol.MINIMUM, SessionProtocol.MAXIMUM, SessionProtocol.QUANTILE]
)
@pytest.mark.parametrize("stopped", [False, True])
def test_a_protocol_survives_its_document(protocol, stopped):
    quantile = 0.25 if protocol is SessionProtocol.QUANTILE else None
    made = running(protocol=protocol, quantile=quantile).close(answers(30, 70))
    made = made.stop(answers(1, 0)) if stopped else made
    restored = restore_protocol(protocol, json.dumps(made.document()))
    assert restored == made
    assert restored.round == (None if stopped else 2)


def test_a_protocol_is_for_single_numbers_whose_owners_may_be_seen():
    spec = SessionSpec(protocol=SessionProtocol.MINIMUM, epsilon=MICRO, participants=1000)
    for unfit in (study(dimension=2), study(relation=Relation.ADD_REMOVE_ONE)):
        with pytest.raises(InvalidRequest) as refusal:
            start_protocol(spec, unfit)
        assert refusal.value.fields[0].field == "protocol"


@pytest.mark.parametrize("participants", [-5, 0, 1, 2**40 + 1, 10**20])
@pytest.mark.parametrize("protocol", list(SessionProtocol))
def test_a_protocol_expects_a_number_of_people_that_there_can_be(protocol, participants):
    centers = ((Decimal(0),), (Decimal(20),))
    spec = SessionSpec(protocol=protocol, epsilon=MICRO, rounds=2, participants=participants, centers=centers)
    with pytest.raises(InvalidRequest) as refusal:
        start_protocol(spec, study())
    assert [error.field for error in refusal.value.fields] == ["participants"]


@pytest.mark.parametrize("participants", [None, 2, 2**40])
def test_a_protocol_of_kmeans_may_expect_nobody_in_particular(participants):
    made = running(
        protocol=SessionProtocol.KMEANS,
        participants=participants,
        centers=((Decimal(0),), (Decimal(20),)),
    )
    assert made.people_per_round == participants


def test_a_person_is_assigned_what_their_device_computes():
    key = bytes(range(16))
    digest = hmac.new(key, "ålice".encode(), hashlib.sha256).digest()
    assert assigned_round(key, "ålice", 7) == 1 + int.from_bytes(digest[:8], "big") % 7
    spread = Counter(assigned_round(key, f"p{number}", 5) for number in range(5000))
    assert spread.keys() == {1, 2, 3, 4, 5}
    assert all(abs(count - 1000) < 6 * 28.3 for count in spread.values())
    assert assigned_round(bytes(16), "p0", 1) == 1


def test_a_round_of_assigned_people_closes_before_all_who_are_expected_have_come():
    assert answers_needed_by_default(1000, assigned=False) == 1000
    for people in (1, 2, 5, 49, 50, 1000, 10**6):
        needed = answers_needed_by_default(people, assigned=True)
        assert 1 <= needed <= people
        assert people / 2 <= needed
    assert answers_needed_by_default(10_000, assigned=True) == 9650


def test_terms_count_answers_from_what_was_spent():
    terms = Terms(rounds=3, epsilon_per_answer=10, epsilon_report=7, answers_per_person=3)
    assert terms.epsilon_total == 37
    assert (terms.cost(first=True), terms.cost(first=False)) == (17, 10)
    assert [terms.answers_given(spent) for spent in (0, 17, 27, 37)] == [0, 1, 2, 3]
