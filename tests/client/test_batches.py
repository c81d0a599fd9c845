"""Many contributions at once."""

import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
from dither import (
    BatchProgress,
    InvalidRequest,
    ProblemError,
    Record,
    ResponseError,
    StudyChanged,
    TransportError,
)

from tests.client.service import FakeService, problem

Connect = Callable[..., Any]


def lines(service: FakeService) -> list[list[dict[str, Any]]]:
    """Records of each batch that was sent."""
    return [
        [json.loads(line, parse_float=Decimal) for line in gzip.decompress(request.content).splitlines()]
        for request in service.log
        if request.url.path.endswith("/batch")
    ]


def people(count: int) -> Iterator[Record]:
    return (Record(f"p{number}", number % 120) for number in range(count))


def test_records_are_sent_in_chunks_and_answered_one_by_one(client: Any, service: FakeService) -> None:
    seen: list[BatchProgress] = []
    load = client.contribute_many(
        "commute", people(25), epsilon=1, trust="central", chunk=10, on_progress=seen.append
    )
    assert [len(batch) for batch in lines(service)] == [10, 10, 5]
    assert (load.created, load.unchanged, load.refused, len(load.results)) == (25, 0, 0, 25)
    assert [progress.records for progress in seen] == [10, 20, 25]
    assert len(client.ledger().entries) == 25


def test_refused_records_do_not_sink_the_others(client: Any, service: FakeService) -> None:
    service.lifetime = Decimal(2)
    load = client.contribute_many(
        "commute",
        [
            Record("a", 1),
            Record("b", 500),
            Record("c", 1, epsilon=3),
            Record("d", 1, trust="public"),
            Record("e", 1, epsilon="zero"),
            Record("a", 2),
            Record("a", 1),
            Record("f", 1, trust="nobody"),  # type: ignore[arg-type]  # wrong on purpose
        ],
        epsilon=1,
        trust="central",
    )
    assert [(result.status, result.code) for result in load.results] == [
        ("created", None),
        ("refused", "invalid_request"),
        ("refused", "budget_exhausted"),
        ("created", None),
        ("refused", "invalid_request"),
        ("refused", "already_contributed"),
        ("unchanged", None),
        ("refused", "invalid_request"),
    ]
    assert (load.created, load.unchanged, load.refused) == (2, 1, 5)
    assert [*load] == [*load.results]
    assert [(row, [(bad.field, bad.reason) for bad in found.errors]) for row, found in load.refusals] == [
        (2, [("value", "lies outside the study's range, 0 to 120")]),
        (3, [("epsilon", "too little left")]),
        (5, [("epsilon", "is not a finite decimal number")]),
        (6, [("subject", "another contribution of this subject is live; use replace")]),
        (8, [("trust", "must be central, local or public")]),
    ]
    assert client.ledger().totals == {"a": 1, "c": 0, "d": 0}


def test_own_tags_go_before_the_calls(client: Any, service: FakeService) -> None:
    records = [Record("a", 1, "0.5", "local"), Record("b", 2, trust="public"), Record("c", 3, "0.25")]
    client.contribute_many("commute", records, epsilon=1, trust="central")
    [[first, second, third]] = lines(service)
    assert (first["trust"], first["epsilon"], "value" in first) == ("local", Decimal("0.5"), False)
    assert second == {"subject": "b", "value": 2, "trust": "public"}
    assert third == {"subject": "c", "value": 3, "epsilon": Decimal("0.25"), "trust": "central"}


def test_a_load_that_is_started_again_draws_nothing_twice(connect: Connect, service: FakeService) -> None:
    def load(client: Any) -> Any:
        return client.contribute_many(
            "commute", people(20), epsilon=1, trust="local", chunk=10, check_spent=False
        )

    client = connect()
    client.study("commute")
    service.faults = [service.serve, service.lose, *[httpx.ConnectError("x")] * 4]
    with pytest.raises(TransportError):
        load(client)
    assert {entry.state for entry in client.ledger().entries} == {"accepted", "pending"}
    result = load(connect())
    assert (result.created, result.unchanged) == (0, 20)
    reports: dict[str, set[int]] = {}
    for batch in lines(service):
        for record in batch:
            reports.setdefault(record["subject"], set()).add(record["report"])
    assert len(reports) == 20
    assert all(len(drawn) == 1 for drawn in reports.values())
    assert {entry.state for entry in client.ledger().entries} == {"accepted"}


def test_a_batch_asks_what_its_local_subjects_have_spent(
    connect: Connect, service: FakeService, tmp_path: Any
) -> None:
    other = connect(directory=tmp_path / "other")
    other.contribute("commute", subject="a", value=1, epsilon=1, trust="local")
    other.withdraw("commute", subject="a")
    client = connect()
    client.contribute_many("commute", [Record("a", 1), Record("b", 1)], epsilon=3, trust="local")
    assert [entry.noise_epsilon for entry in client.ledger().entries] == [Decimal(2), Decimal(3)]


def test_max_epsilon_holds_for_each_subject_of_a_batch(connect: Connect, service: FakeService) -> None:
    client = connect(max_epsilon=1)
    client.contribute("sleep", subject="a", value=1, epsilon="0.5", trust="central")
    load = client.contribute_many("commute", [Record("a", 1), Record("b", 1)], epsilon=1, trust="central")
    assert [result.code for result in load.results] == ["max_epsilon_exceeded", None]


def test_a_chunk_that_the_service_refuses_is_raised(client: Any, service: FakeService) -> None:
    client.study("commute")
    service.faults = [problem(413, "document_too_large")]
    with pytest.raises(ProblemError, match="413"):
        client.contribute_many("commute", people(2), epsilon=1, trust="central")
    assert client.ledger().totals == {"p0": 0, "p1": 0}


def test_after_a_lost_answer_a_refused_record_stays_counted(client: Any, service: FakeService) -> None:
    client.study("commute")
    refusal = {"status": "refused", "code": "forbidden"}
    answer = httpx.Response(200, json={"results": [refusal], "created": 0, "unchanged": 0, "refused": 1})
    service.faults = [service.lose, answer]
    load = client.contribute_many("commute", people(1), epsilon=1, trust="central")
    assert load.refused == 1
    assert client.ledger().totals == {"p0": 1}


@pytest.mark.parametrize(
    "document",
    [{"results": []}, {"results": [{"status": "lost"}]}, {"results": None}, {"results": ["created"]}],
)
def test_results_that_do_not_fit_are_an_error(client: Any, service: FakeService, document: Any) -> None:
    client.study("commute")
    service.faults = [httpx.Response(200, json=document)]
    with pytest.raises(ResponseError):
        client.contribute_many("commute", people(1), epsilon=1, trust="central")
    assert [entry.state for entry in client.ledger().entries] == ["pending"]


def test_no_records_send_nothing(client: Any, service: FakeService) -> None:
    assert client.contribute_many("commute", [], trust="central").results == ()
    assert lines(service) == []


@pytest.mark.parametrize("chunk", [0, -1, 1.5, "10", "", True, None, [10]])
def test_a_chunk_holds_something(client: Any, service: FakeService, chunk: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^chunk must be a whole number of at least 1$"):
        client.contribute_many("commute", people(2), epsilon=1, trust="central", chunk=chunk)
    assert service.log == []


def test_a_chunk_may_be_larger_than_any_list(client: Any) -> None:
    load = client.contribute_many("commute", people(2), epsilon=1, trust="central", chunk=10**40)
    assert load.created == 2


async def slowly(_: object) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("listener", "reason"),
    [("", "one argument"), (0, "one argument"), ([print], "one argument"), (slowly, "not async")],
)
def test_what_cannot_be_called_is_refused_before_anything_is_sent(
    client: Any, service: FakeService, listener: Any, reason: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"^on_progress must be .*{reason}"):
        client.contribute_many("commute", people(2), epsilon=1, trust="central", on_progress=listener)
    with pytest.raises(InvalidRequest, match=f"^on_progress must be .*{reason}"):
        client.participate("s1", subject="ada", value=34, on_progress=listener)
    assert service.log == []
    assert client.ledger().entries == ()


@pytest.mark.parametrize("ignore", [0, [1], b"x"])
def test_columns_to_leave_out_are_names(client: Any, service: FakeService, ignore: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^ignore must be a text, or a list of texts$"):
        client.contribute_many("commute", people(2), epsilon=1, trust="central", ignore=ignore)
    assert lines(service) == []


def test_a_changed_study_stops_the_load(connect: Connect, service: FakeService) -> None:
    connect().study("commute")
    service.studies["commute"]["upper"] = 121
    with pytest.raises(StudyChanged):
        connect().contribute_many("commute", people(2), epsilon=1, trust="central")
    assert lines(service) == []
