"""A backend without a disk: no ledger for what needs none, and ledgers in a store of the application's."""

import threading
from decimal import Decimal
from typing import Any

import httpx
import pytest
from dither import (
    AlreadyContributed,
    Client,
    DirectoryRequired,
    InvalidRequest,
    LedgerError,
    MaxEpsilonExceeded,
    Record,
    SessionChanged,
    TransportError,
)

from tests.client.service import FakeService
from tests.client.sessions import MINIMUM

ADA: dict[str, Any] = {"subject": "ada", "value": 34, "epsilon": 1, "trust": "local"}


class Memory:
    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.lock = threading.Lock()
        self.overtakers: list[Any] = []

    def load(self, subject: str) -> bytes | None:
        return self.rows.get(subject)

    def save(self, subject: str, before: bytes | None, after: bytes) -> bool:
        if self.overtakers:
            self.overtakers.pop()()
        with self.lock:
            if self.rows.get(subject) != before:
                return False
            self.rows[subject] = after
            return True


@pytest.fixture
def store() -> Memory:
    return Memory()


def test_central_and_public_values_need_no_ledger(connect: Any, service: FakeService) -> None:
    client = connect(directory=None)
    central = ADA | {"trust": "central"}
    statuses = [client.contribute("commute", **central).status for _ in range(2)]
    assert statuses == ["created", "unchanged"]
    client.contribute("commute", subject="bob", value=3, trust="public")
    assert client.replace("commute", **(central | {"value": 40})).status == "replaced"
    rows = [Record("cyd", 1), Record("dan", 2, trust="local")]
    load = client.contribute_many("commute", rows, epsilon=1, trust="central")
    assert [(result.status, result.code) for result in load.results] == [
        ("created", None),
        ("refused", "directory_required"),
    ]
    client.withdraw("commute", subject="ada")
    with pytest.raises(DirectoryRequired, match="directory or a store"):
        client.contribute("commute", **ADA)


def test_a_report_in_a_store_is_drawn_once(connect: Any, service: FakeService, store: Memory) -> None:
    for status in ("created", "unchanged"):
        client = connect(directory=None, store=store)
        assert client.contribute("commute", **ADA).status == status
    first, second = service.sent("POST")
    assert first == second
    with pytest.raises(AlreadyContributed):
        connect(directory=None, store=store).contribute("commute", **(ADA | {"value": 35}))
    assert store.rows.keys() == {"ada"}
    assert len(store.rows["ada"]) < 2_000


def test_what_got_no_answer_is_sent_again_and_not_drawn_again(
    connect: Any, service: FakeService, store: Memory
) -> None:
    client = connect(directory=None, store=store)
    client.study("commute")
    service.faults = [service.serve, *[service.lose] * 5]  # the budget, then the report
    with pytest.raises(TransportError):
        client.contribute("commute", **ADA)
    [entry] = client.ledger("ada").entries
    assert entry.state == "pending"
    client.contribute("commute", **ADA)
    assert len({body["report"] for body in service.sent("POST")}) == 1


def test_of_two_who_decide_at_once_one_decides_again(
    connect: Any, service: FakeService, store: Memory
) -> None:
    client = connect(directory=None, store=store)
    other = Client("https://dither.example", "t", store=store, transport=service.transport)
    store.overtakers = [lambda: other.contribute("commute", **ADA)]
    assert client.contribute("commute", **ADA).status == "unchanged"
    assert len({body["report"] for body in service.sent("POST")}) == 1


def test_many_people_have_a_ledger_each_and_a_limit_each(
    connect: Any, service: FakeService, store: Memory
) -> None:
    client = connect(directory=None, store=store, max_epsilon=2)
    people = [(f"p{number}", number, 1, "local") for number in range(5)]
    rows = [*people, ("p0", 0, 1, "local"), ("p1", 9, 1, "local"), ("p2", 2, 3, "central")]
    load = client.contribute_many("commute", rows)
    assert [result.code for result in load.results[5:]] == [
        None,
        "already_contributed",
        "already_contributed",
    ]
    assert (load.created, load.unchanged, load.refused) == (5, 1, 2)
    with pytest.raises(MaxEpsilonExceeded):
        client.contribute("sleep", subject="p0", value=7, epsilon=2, trust="central")
    assert client.ledger("p0").totals == {"p0": Decimal(1)}
    with pytest.raises(InvalidRequest, match="subject"):
        client.ledger()
    client.withdraw("commute", subject="p0")
    assert [entry.state for entry in client.ledger("p0").entries] == ["withdrawn"]


def test_a_store_that_fails_lets_nothing_go(connect: Any, service: FakeService, store: Memory) -> None:
    client = connect(directory=None, store=store)

    def broken(*_: object) -> Any:
        raise OSError("gone")

    store.save = broken  # type: ignore[method-assign,assignment]  # breaks it
    with pytest.raises(LedgerError, match="the store failed: OSError: gone"):
        client.contribute("commute", **ADA)
    assert service.sent("POST") == []
    store.save = lambda *_: False  # type: ignore[method-assign]
    with pytest.raises(LedgerError, match="faster than it can be written"):
        client.contribute("commute", **ADA)
    store.rows["ada"] = b"no ledger at all, and longer than a key"
    with pytest.raises(LedgerError, match="no ledger"):
        client.contribute("commute", **ADA)
    assert service.sent("POST") == []


def test_a_ledger_is_in_one_place(store: Memory, tmp_path: Any) -> None:
    with pytest.raises(InvalidRequest, match="store"):
        Client("https://dither.example", "t", directory=tmp_path, store=store)


# --------------------------------------------------------------------------------- sessions


def answers(service: FakeService) -> list[dict[str, Any]]:
    return [body for request, body in service.requests("POST") if request.url.path.endswith("/answers")]


def test_taking_part_needs_a_directory_or_a_store(connect: Any) -> None:
    with pytest.raises(DirectoryRequired, match="a directory or a store"):
        connect(directory=None).participate("s1", subject="ada", value=1)


def test_a_person_takes_part_with_a_ledger_in_a_store(
    connect: Any, service: FakeService, store: Memory
) -> None:
    service.sessions.put(MINIMUM)
    client = connect(directory=None, store=store)
    part = client.participate("s1", subject="ada", value=34)
    assert (part.rounds, part.epsilon) == ((1, 2), Decimal(1))
    assert store.rows.keys() == {"ada"}
    [entry] = client.ledger("ada").sessions
    assert (entry.session, entry.counted) == ("s1", Decimal(1))
    sent = len(answers(service))
    again = connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    assert (again.rounds, len(answers(service))) == ((1, 2), sent)
    with pytest.raises(AlreadyContributed):
        connect(directory=None, store=store).participate("s1", subject="ada", value=35)


def test_an_answer_is_in_the_store_before_it_is_sent_and_is_not_drawn_again(
    connect: Any, service: FakeService, store: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = iter([1, 0, 1])
    monkeypatch.setattr("dither._participants.respond", lambda *_: next(draws))
    service.sessions.put(MINIMUM)
    held: list[bytes] = []

    def lose(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/answers"):
            held.append(store.rows["ada"])
            raise httpx.ConnectError("gone", request=request)
        return service.serve(request)

    service.faults = [lose] * 20
    with pytest.raises(TransportError):
        connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    assert held
    assert set(held) == {store.rows["ada"]}
    service.faults = []
    part = connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    assert part.rounds == (1, 2)
    assert [body["answer"] for body in answers(service)][-2:] == [1, 0]
    assert {body["answer"] for body in answers(service) if body["round"] == 1} == {1}


def test_of_two_who_answer_at_once_one_answer_leaves(
    connect: Any, service: FakeService, store: Memory
) -> None:
    service.sessions.put(MINIMUM | {"rounds": 10, "answers_per_person": 10, "epsilon_per_answer": 0.1})
    other = Client("https://dither.example", "t", store=store, transport=service.transport)
    store.overtakers = [lambda: other.participate("s1", subject="ada", value=34)]
    connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    by_round: dict[int, set[int]] = {}
    for body in answers(service):
        by_round.setdefault(body["round"], set()).add(body["answer"])
    assert by_round.keys() == {*range(1, 11)}
    assert all(len(drawn) == 1 for drawn in by_round.values())


def test_a_changed_session_and_a_limit_are_held_by_what_the_store_has(
    connect: Any, service: FakeService, store: Memory
) -> None:
    service.sessions.put(MINIMUM)
    client = connect(directory=None, store=store, max_epsilon=1)
    client.participate("s1", subject="ada", value=34)
    with pytest.raises(MaxEpsilonExceeded):
        client.contribute("commute", **ADA)
    service.sessions.put(MINIMUM | {"upper": 1000.0})
    with pytest.raises(SessionChanged):
        connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    assert len(answers(service)) == 2


def test_a_store_that_fails_lets_no_answer_go(connect: Any, service: FakeService, store: Memory) -> None:
    service.sessions.put(MINIMUM)
    store.save = lambda *_: False  # type: ignore[method-assign]
    with pytest.raises(LedgerError, match="faster than it can be written"):
        connect(directory=None, store=store).participate("s1", subject="ada", value=34)
    assert answers(service) == []
