"""Batches over HTTP: three forms, gzip, one result a record, nothing stored of a malformed document."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest

from app.services.contributing import contributions
from app.services.work import Work
from app.store.database import Database
from tests.api.service import Service, assert_problem, open_service

RECORDS = [
    {"subject": "a", "value": 1, "epsilon": 1, "trust": "central"},
    {"subject": "b", "report": 12345, "epsilon": 0.5, "trust": "local"},
    {"subject": "c", "value": 3, "trust": "public"},
    {"subject": "d", "value": 1000, "epsilon": 1, "trust": "central"},
    {"subject": "a", "value": 1, "epsilon": 1, "trust": "central"},
    {"subject": "a", "value": 2, "epsilon": 1, "trust": "central"},
]
STATUSES = ["created", "created", "created", "refused", "unchanged", "refused"]
COUNTS = {"created": 3, "unchanged": 1, "refused": 2}

CSV = """subject,value,report,epsilon,trust
a,1,,1,central
b,,12345,0.5,local
c,3,,,public
d,1000,,1,central
a,1,,1,central
a,2,,1,central
"""

FORMS = {
    "json": ("application/json", json.dumps(RECORDS, indent=1)),
    "json with charset": ("application/json; charset=utf-8", json.dumps(RECORDS)),
    "ndjson": ("application/x-ndjson", "\n".join(json.dumps(record) for record in RECORDS)),
    "ndjson, other name": (
        "application/ndjson",
        "\r\n\r\n".join(json.dumps(record) for record in RECORDS) + "\n",
    ),
    "csv": ("text/csv", CSV),
    "csv from a spreadsheet": ("text/csv; charset=utf-8", "\ufeff" + CSV.replace("\n", "\r\n")),
}


async def send(
    service: Service, study: str, content: bytes | AsyncIterator[bytes], form: str, **headers: str
):
    return await service.call(
        "POST",
        f"/v1/studies/{study}/contributions/batch",
        "contribute",
        content=content,
        headers={"Content-Type": form, **{name.replace("_", "-"): value for name, value in headers.items()}},
    )


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("compressed", [False, True])
async def test_every_record_gets_its_result(
    service: Service, study: str, name: str, compressed: bool
) -> None:
    form, text = FORMS[name]
    content, headers = text.encode(), {}
    if compressed:
        content, headers = gzip.compress(content), {"Content_Encoding": "gzip"}
    response = await send(service, study, content, form, **headers)
    assert response.status_code == 200, response.text
    document = response.json()
    assert [result["status"] for result in document["results"]] == STATUSES
    assert {name: document[name] for name in COUNTS} == COUNTS
    refused = [result for result in document["results"] if result["status"] == "refused"]
    assert [result["code"] for result in refused] == ["invalid_request", "contribution_exists"]
    assert [(one["errors"][0]["field"], one["row"]) for one in refused] == [("value", 4), ("subject", 6)]
    again = (await send(service, study, content, form, **headers)).json()
    assert (again["created"], again["unchanged"], again["refused"]) == (0, 4, 2)


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", FORMS)
async def test_the_document_may_arrive_in_any_pieces(
    service: Service, study: str, name: str, size: int
) -> None:
    form, text = FORMS[name]
    content = gzip.compress(text.encode())

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(content), size):
            yield content[start : start + size]

    response = await send(service, study, pieces(), form, Content_Encoding="gzip")
    assert [result["status"] for result in response.json()["results"]] == STATUSES


async def test_gzip_may_have_several_members(service: Service, study: str) -> None:
    lines = FORMS["ndjson"][1].encode().splitlines(keepends=True)
    content = b"".join(gzip.compress(line) for line in lines)
    response = await send(service, study, content, "application/x-ndjson", Content_Encoding="gzip")
    assert [result["status"] for result in response.json()["results"]] == STATUSES


async def test_an_empty_batch_is_a_batch(service: Service, study: str) -> None:
    for form, text in (("application/json", "[]"), ("application/x-ndjson", ""), ("text/csv", "subject\n")):
        response = await send(service, study, text.encode(), form)
        assert response.json() == {"results": [], "created": 0, "unchanged": 0, "refused": 0}


GOOD = json.dumps([RECORDS[0]]).encode()

MALFORMED = {
    "not gzip": (GOOD, "application/json", {"Content_Encoding": "gzip"}),
    "truncated gzip": (gzip.compress(GOOD)[:-1], "application/json", {"Content_Encoding": "gzip"}),
    "empty gzip": (b"", "application/json", {"Content_Encoding": "gzip"}),
    "wrong checksum": (
        gzip.compress(GOOD)[:-8] + b"\0" * 8,
        "application/json",
        {"Content_Encoding": "gzip"},
    ),
    "something behind gzip": (gzip.compress(GOOD) + b"x", "application/json", {"Content_Encoding": "gzip"}),
    "zlib instead of gzip": (zlib.compress(GOOD), "application/json", {"Content_Encoding": "gzip"}),
    "an object": (json.dumps(RECORDS[0]).encode(), "application/json", {}),
    "empty": (b"", "application/json", {}),
    "unclosed": (GOOD[:-1], "application/json", {}),
    "no comma": (GOOD[:-1] + GOOD[1:], "application/json", {}),
    "comma at the end": (GOOD[:-1] + b",]", "application/json", {}),
    "two arrays": (GOOD + GOOD, "application/json", {}),
    "nesting bomb": (b"[" * 100_000, "application/json", {}),
    "invalid UTF-8 at the end": (GOOD + b"\xff", "application/json", {}),
    "broken UTF-8 at the end": (GOOD + b"\xc3", "application/json", {}),
    "invalid UTF-8 in NDJSON": (GOOD[1:-1] + b"\n\xff", "application/x-ndjson", {}),
    "endless line": (GOOD[1:-1] + b"\n" + b"x" * 100_000, "application/x-ndjson", {}),
    "no header": (b"", "text/csv", {}),
    "unknown column": (b"subject,value,epsilon,trust,note\na,1,1,central,x\n", "text/csv", {}),
    "column twice": (b"subject,value,value\na,1,1\n", "text/csv", {}),
    "no subject column": (b"value,epsilon\n1,1\n", "text/csv", {}),
    "unclosed quotes": (b'subject,value,epsilon,trust\na,1,1,central\n"b,1,1,central\n', "text/csv", {}),
    "NUL in CSV": (b"subject,value,epsilon,trust\n\x00,1,1,central\x00\n" + b"\xff", "text/csv", {}),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_nothing_of_a_malformed_document_is_stored(service: Service, study: str, name: str) -> None:
    content, form, headers = MALFORMED[name]
    before = await service.rows()
    response = await send(service, study, content, form, **headers)
    assert_problem(response, "malformed_document", 400)
    assert await service.rows() == before


async def test_a_line_that_is_not_json_is_one_refused_record(service: Service, study: str) -> None:
    lines = [
        json.dumps(RECORDS[0]),
        '{"subject":',
        '{"subject":"x","subject":"y"}',
        "5",
        json.dumps(RECORDS[1]),
    ]
    document = (await send(service, study, "\n".join(lines).encode(), "application/x-ndjson")).json()
    assert [result.get("code") for result in document["results"]] == [
        None,
        "malformed_json",
        "duplicate_key",
        "invalid_request",
        None,
    ]


HELD = {"subject": "p", "value": 1, "epsilon": 8, "trust": "central"}

REFUSED = {
    "contribution_exists": HELD | {"value": 2},
    "budget_exhausted": {"subject": "elsewhere", "value": 1, "epsilon": 3, "trust": "central"},
    "epsilon_below_spent": {"subject": "left", "value": 1, "epsilon": 0.5, "trust": "central"},
    "invalid_request": {"subject": "new", "value": 1000, "epsilon": 20, "trust": "central"},
}


async def test_a_refused_record_says_what_the_single_request_says_and_its_row(service: Service) -> None:
    study = await service.study()
    await service.contribute(await service.study(), "elsewhere", epsilon=8)
    for record in (HELD, {"subject": "left", "value": 1, "epsilon": 1, "trust": "central"}):
        await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 1})
    await service.call("DELETE", f"/v1/studies/{study}/contributions/left", "contribute")
    records = [HELD, *REFUSED.values()]
    response = await send(service, study, json.dumps(records).encode(), "application/json")
    first, *results = response.json()["results"]
    assert first == {"status": "unchanged"}
    assert [result["row"] for result in results] == [2, 3, 4, 5]
    for (code, record), result in zip(REFUSED.items(), results, strict=True):
        single = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
        problem = single.json()
        assert result["code"] == problem["code"] == code
        fields = [error["field"] for error in problem["errors"]]
        assert fields
        assert [error["field"] for error in result["errors"]] == fields
        if code != "budget_exhausted":  # Of a budget a batch says no sums.
            assert result["errors"] == problem["errors"]


async def test_a_line_that_is_not_json_says_where(service: Service, study: str) -> None:
    lines = [json.dumps(RECORDS[0]), "", '{"subject": x}', "5"]
    response = await send(service, study, "\n".join(lines).encode(), "application/x-ndjson")
    _, line, number = response.json()["results"]
    reason = "the document is not JSON: Expecting value at character 12"
    assert line["errors"] == [{"field": "record", "reason": reason}]
    assert number["errors"] == [{"field": "record", "reason": "must be an object"}]
    assert (line["row"], number["row"]) == (2, 3)


async def test_after_a_thousand_different_refusals_records_say_what_to_do(
    service: Service, study: str
) -> None:
    records = [RECORDS[0] | {f"field{number}": 1} for number in range(1_100)]
    results = (await send(service, study, json.dumps(records).encode(), "application/json")).json()["results"]
    assert results[0]["errors"] == [{"field": "field0", "reason": "unknown field"}]
    assert results[-1]["errors"][0]["field"] == "record"
    assert "send it again" in results[-1]["errors"][0]["reason"]
    assert [result["row"] for result in results] == list(range(1, 1_101))


async def test_a_batch_that_is_sent_again_changes_nothing_with_a_key_and_without(
    service: Service, study: str
) -> None:
    first = await send(service, study, GOOD, "application/json", Idempotency_Key="once")
    before = await service.rows()
    for headers in ({"Idempotency_Key": "once"}, {}):
        again = await send(service, study, GOOD, "application/json", **headers)
        assert again.status_code == 200
        assert again.json()["unchanged"] == first.json()["created"] > 0
        assert await service.rows() == before


@pytest.mark.parametrize("beside", ["9" * 5_000, "[" * 30 + "1" + "]" * 30])
async def test_a_duplicate_key_refuses_its_record_only_whatever_stands_beside_it(
    service: Service, study: str, beside: str
) -> None:
    good = json.dumps(RECORDS[0])
    content = f'[{{"subject":"x","subject":"y","value":{beside}}},{good}]'.encode()
    response = await send(service, study, content, "application/json")
    assert response.status_code == 200, response.text
    assert [result.get("code") for result in response.json()["results"]] == ["duplicate_key", None]


async def test_too_deep_a_record_beside_a_duplicate_key_is_malformed(service: Service, study: str) -> None:
    deep = "[" * 10_000 + "]" * 10_000
    content = f'[[{{"subject":"x","subject":"y"}},{deep}]]'.encode()
    response = await send(service, study, content, "application/json")
    assert_problem(response, "malformed_document", 400)


@pytest.mark.parametrize("form", [None, "text/plain", "application/xml", "text/csv; charset=utf-16"])
async def test_other_forms_are_refused(service: Service, study: str, form: str | None) -> None:
    headers = {} if form is None else {"Content-Type": form}
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions/batch", "contribute", content=GOOD, headers=headers
    )
    assert_problem(response, "unsupported_media_type", 415)


async def test_other_codings_are_refused(service: Service, study: str) -> None:
    response = await send(service, study, GOOD, "application/json", Content_Encoding="br")
    assert_problem(response, "unsupported_media_type", 415)


async def test_the_limit_counts_decompressed_bytes(database_url: str) -> None:
    async with open_service(database_url, max_batch_bytes=100_000) as service:
        study = await service.study()
        bomb = gzip.compress(b"\n" * 50_000_000)
        assert len(bomb) < 100_000
        before = await service.rows()
        response = await send(service, study, bomb, "application/x-ndjson", Content_Encoding="gzip")
        assert_problem(response, "document_too_large", 413)
        response = await send(service, study, b"\n" * 100_001, "application/x-ndjson")
        assert_problem(response, "document_too_large", 413)

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"\n" * 10_000

        response = await send(service, study, endless(), "application/x-ndjson")
        assert_problem(response, "document_too_large", 413)
        assert await service.rows() == before


@pytest.mark.long
async def test_many_results_arrive_in_order(service: Service, study: str) -> None:
    rows = [f"p{number},{number % 150},1,central" for number in range(45_000)]
    content = "\n".join(["subject,value,epsilon,trust", *rows]).encode()
    document = (await send(service, study, content, "text/csv")).json()
    expected = ["created" if number % 150 <= 100 else "refused" for number in range(45_000)]
    assert [result["status"] for result in document["results"]] == expected
    assert document["created"] == expected.count("created")


async def test_a_closed_study_recognises_the_records_that_it_holds(service: Service, study: str) -> None:
    content = json.dumps(RECORDS).encode()
    await send(service, study, content, "application/json")
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    before = await service.rows()
    late = [*RECORDS, {"subject": "late", "value": 1, "epsilon": 1, "trust": "central"}]
    response = await send(service, study, json.dumps(late).encode(), "application/json")
    assert response.status_code == 200
    document = response.json()
    assert [result.get("code", result["status"]) for result in document["results"]] == [
        "unchanged",
        "unchanged",
        "unchanged",
        "invalid_request",
        "unchanged",
        "study_closed",
        "study_closed",
    ]
    assert (document["created"], document["unchanged"], document["refused"]) == (0, 4, 3)
    response = await send(service, study, json.dumps(late[-1:]).encode(), "application/json")
    assert_problem(response, "study_closed", 409)
    assert await service.rows() == before


async def test_one_persons_many_records_are_decided_as_if_they_came_one_by_one(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction: a thousand of them, each refused, were a thousand."""
    study = await service.study()
    await service.contribute(await service.study(), "p", epsilon=8)
    records = [
        *(
            {"subject": "p", "value": 1, "epsilon": 3 + number % 7, "trust": "central"}
            for number in range(300)
        ),
        {"subject": "p", "value": 1, "epsilon": 2, "trust": "central"},
        {"subject": "p", "value": 1, "epsilon": 2, "trust": "central"},
        {"subject": "p", "value": 2, "epsilon": 2, "trust": "central"},
        {"subject": "p", "value": 1, "epsilon": 2, "trust": "central"},
    ]
    transactions: list[str] = []
    run_tx = Database.run_tx

    async def counted(database: Database, name: str, *rest: Any) -> Any:
        transactions.append(name)
        return await run_tx(database, name, *rest)

    monkeypatch.setattr(Database, "run_tx", counted)
    expected = ["budget_exhausted"] * 300 + ["created", "unchanged", "contribution_exists", "unchanged"]
    response = await send(service, study, json.dumps(records).encode(), "application/json")
    assert [one.get("code", one["status"]) for one in response.json()["results"]] == expected
    assert transactions.count("contribution.accept") == 1
    again = await send(service, study, json.dumps(records).encode(), "application/json")
    expected = ["contribution_exists"] * 300 + ["unchanged", "unchanged", "contribution_exists", "unchanged"]
    assert [one.get("code", one["status"]) for one in again.json()["results"]] == expected
    assert transactions.count("contribution.accept") == 2


async def test_too_many_batches_at_once_wait_and_are_refused(service: Service, study: str) -> None:
    work = service.api.work
    object.__setattr__(service.api, "work", Work(batches=1, patience=0.01))
    try:
        async with service.api.work.turn(uuid4(), batch=True):
            response = await send(service, study, GOOD, "application/json")
            assert_problem(response, "unavailable", 503)
        assert (await send(service, study, GOOD, "application/json")).status_code == 200
    finally:
        service.api.work.close()
        object.__setattr__(service.api, "work", work)


async def test_a_batch_ends_when_its_client_leaves(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored by then stays, and the batch sent again finds it; nothing follows."""
    study = await service.study()
    monkeypatch.setattr(contributions, "CHUNK", 100)
    records = [
        {"subject": f"p{number}", "value": 1, "epsilon": 1, "trust": "central"} for number in range(2_000)
    ]
    document = [{"type": "http.request", "body": json.dumps(records).encode(), "more_body": False}]
    left, transactions, sent = asyncio.Event(), 0, list[Any]()
    run_tx = Database.run_tx

    async def counted(database: Database, name: str, *rest: Any) -> Any:
        nonlocal transactions
        done = await run_tx(database, name, *rest)
        transactions += name == "contribution.accept"
        if transactions == 3:
            left.set()
        return done

    async def receive() -> Any:
        if document:
            return document.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        sent.append(message)

    monkeypatch.setattr(Database, "run_tx", counted)
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/v1/studies/{study}/contributions/batch",
        "raw_path": b"",
        "root_path": "",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {service.tokens['contribute']}".encode()),
            (b"content-type", b"application/json"),
        ],
        "state": {"api": service.api},
    }
    before = (await service.rows())["contribution"]
    await service.app(scope, receive, collect)
    assert sent == []
    stored = (await service.rows())["contribution"] - before
    assert 300 <= stored <= 500  # three chunks are under way at a time
    again = await send(service, study, json.dumps(records).encode(), "application/json")
    assert (again.json()["unchanged"], again.json()["created"]) == (stored, 2_000 - stored)


async def test_records_that_give_none_have_the_query_s_epsilon_and_trust(
    service: Service, study: str
) -> None:
    rows = "Subject, VALUE ,epsilon,trust\na,1,,\nb,2,0.25,\nc,3,,public\nd,4,9999999,\n"
    answer = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions/batch?epsilon=0.5&trust=central",
        "contribute",
        content=rows,
        headers={"Content-Type": "text/csv"},
    )
    results = answer.json()["results"]
    assert [result["status"] for result in results] == ["created", "created", "created", "refused"]
    for subject, epsilon in (("a", 0.5), ("b", 0.25), ("c", 0)):
        budget = await service.call("GET", f"/v1/subjects/{subject}/budget", "contribute")
        assert budget.json()["epsilon"]["reserved"] == epsilon
    for name, text in (("trust", "nobody"), ("epsilon", "much"), ("epsilon", "0"), ("epsilon", "1e9")):
        path = f"/v1/studies/{study}/contributions/batch?{name}={text}"
        assert_problem(await service.call("POST", path, "contribute", json=[]), "invalid_request", 422, name)
