"""The stores of docs/how-to/backend.md, word by word: on a real PostgreSQL, and on what Redis promises."""

import re
import threading
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from dither import Client, Participation, Retry, Store

from tests.client.service import FakeService
from tests.client.sessions import MINIMUM
from tests.support.live import ROOT


class Redis:
    """GET, SET NX and the one script, as a server does them: one after the other."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}
        self.lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        return self.rows.get(key)

    def set(self, key: str, value: bytes, *, nx: bool) -> bool | None:
        assert nx
        with self.lock:
            return None if key in self.rows else not self.rows.update({key: value})

    def eval(self, script: str, keys: int, key: str, before: bytes, after: bytes) -> int:
        assert keys == 1
        assert re.search(r"GET.*~= ARGV\[1\] then return 0.*SET.*ARGV\[2\].*return 1", script, re.DOTALL)
        with self.lock:
            if self.rows.get(key) != before:
                return 0
            self.rows[key] = after
            return 1


@pytest.fixture(params=["PostgresStore", "RedisStore"])
def store(request: pytest.FixtureRequest) -> Store:
    page = (ROOT / "docs" / "how-to" / "backend.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    [block] = [block for block in blocks if f"class {request.param}:" in block]
    exec(block, names)
    if request.param == "RedisStore":
        return names["RedisStore"](Redis())
    url = request.getfixturevalue("empty_database_url")
    [statement] = re.findall(r"CREATE TABLE dither_ledger \(.*\)", page)
    with psycopg.connect(url) as connection:
        connection.execute(statement)
    return names["PostgresStore"](url)


def test_a_store_replaces_what_was_loaded_and_nothing_else(store: Store) -> None:
    assert store.load("ada") is None
    assert not store.save("ada", b"other", b"1")
    assert store.save("ada", None, b"1")
    assert not store.save("ada", None, b"2")
    assert not store.save("ada", b"other", b"2")
    assert store.load("ada") == b"1"
    assert store.save("ada", b"1", b"\0\xff")
    assert store.load("ada") == b"\0\xff"
    assert store.load("bob") is None


def test_two_backends_on_one_store_send_one_report(store: Store) -> None:
    service = FakeService()
    clients = [
        Client(
            "https://dither.example",
            "t",
            store=store,
            transport=service.transport,
            retry=Retry(base_seconds=0),
        )
        for _ in range(2)
    ]
    started, faults = threading.Barrier(2), []

    def contribute(client: Client) -> None:
        started.wait()
        try:
            client.contribute("commute", subject="ada", value=34, epsilon=1, trust="local")
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=contribute, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len({body["report"] for body in service.sent("POST")}) == 1
    [entry] = clients[0].ledger("ada").entries
    assert entry.state == "accepted"


def test_two_backends_on_one_store_take_part_as_one(store: Store) -> None:
    """In a session: each round has one answer, and what was given is counted once."""
    service = FakeService()
    service.sessions.put(MINIMUM | {"rounds": 5, "answers_per_person": 5, "epsilon_per_answer": 0.2})
    started, parts = threading.Barrier(2), list[Participation]()

    def take_part() -> None:
        client = Client("https://dither.example", "t", store=store, transport=service.transport)
        started.wait()
        parts.append(client.participate("s1", subject="ada", value=34))

    threads = [threading.Thread(target=take_part) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(parts) == 2
    sent = [body for request, body in service.requests("POST") if request.url.path.endswith("/answers")]
    drawn = {(body["round"], body["answer"]) for body in sent}
    assert sorted(number for number, _ in drawn) == [1, 2, 3, 4, 5]
    reader = Client("https://dither.example", "t", store=store, transport=service.transport)
    assert reader.ledger("ada").totals == {"ada": Decimal(1)}
