"""Studies of vectors: every door for contributions, and exact grid points."""

import json
from typing import Any

import asyncpg
import pytest

from tests.api.service import Service, assert_problem

JSON = {"Content-Type": "application/json"}

ALICE: dict[str, Any] = {"subject": "alice", "value": [0, 50, 100], "epsilon": 1, "trust": "central"}

RECORDS = [
    ALICE,
    {"subject": "bob", "value": [12.5, 25, 99.9999999999], "trust": "public"},
    {"subject": "cyd", "value": [1, 2], "epsilon": 1, "trust": "central"},
    ALICE,
]
CSV = """subject,value,epsilon,trust
alice,0;50;100,1,central
bob,12.5; 25 ;99.9999999999,,public
cyd,1;2,1,central
alice,0;50;100,1,central
"""
FORMS = {
    "application/json": json.dumps(RECORDS),
    "application/x-ndjson": "\n".join(map(json.dumps, RECORDS)),
    "text/csv": CSV,
}


@pytest.fixture
async def space(service: Service) -> str:
    """A study of three coordinates that takes every trust tag."""
    return await service.study(trust=["central", "local", "public"], dimension=3)


async def stored(service: Service) -> dict[bytes, tuple[int | None, list[int] | None]]:
    """Subject -> (value, vector), as the database has them."""
    connection = await asyncpg.connect(service.database_url)
    try:
        rows = await connection.fetch("SELECT subject_id, value, vector FROM contribution")
    finally:
        await connection.close()
    return {row["subject_id"]: (row["value"], row["vector"]) for row in rows}


async def test_a_vector_lives_replaces_and_leaves(service: Service, space: str) -> None:
    path, digest = f"/v1/studies/{space}/contributions", service.api.services.subject_key.digest("alice")
    for status in (201, 200):
        response = await service.call("POST", path, "contribute", json=ALICE)
        assert response.status_code == status, response.text
        assert response.json()["epsilon_used_at_most"] == 1
    assert await stored(service) == {digest: (0, [0, 1 << 29, 1 << 30])}
    other = await service.call("POST", path, "contribute", json={**ALICE, "value": [0, 50, 99]})
    assert_problem(other, "contribution_exists", 409)
    moved = {"value": [100, 0, 0.1], "epsilon": 2, "trust": "central"}
    for _ in range(2):
        assert (await service.call("PUT", f"{path}/alice", "contribute", json=moved)).status_code == 200
    assert await stored(service) == {digest: (0, [1 << 30, 0, round((1 << 30) / 1000)])}
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert await stored(service) == {digest: (None, None)}
    assert (await service.api.services.ledger.audit()).clean
    assert (await service.call("POST", path, "contribute", json=ALICE)).status_code == 201
    assert await stored(service) == {digest: (0, [0, 1 << 29, 1 << 30])}


@pytest.mark.parametrize("form", FORMS)
async def test_batches_hold_vectors(service: Service, space: str, form: str) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{space}/contributions/batch",
        "contribute",
        content=FORMS[form],
        headers={"Content-Type": form},
    )
    results = response.json()["results"]
    assert [result["status"] for result in results] == ["created", "created", "refused", "unchanged"]
    assert results[2]["errors"] == [{"field": "value", "reason": "must be an array of 3 numbers"}]
    key = service.api.services.subject_key
    assert await stored(service) == {
        key.digest("alice"): (0, [0, 1 << 29, 1 << 30]),
        key.digest("bob"): (0, [1 << 27, 1 << 28, 1073741824]),
    }
    assert (await service.api.services.ledger.audit()).clean


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"value": 5}, ["value"]),
        ({"value": "[0,50,100]"}, ["value"]),
        ({"value": [1, 2, 3, 4]}, ["value"]),
        ({"value": []}, ["value"]),
        ({"value": {"0": 1, "1": 2, "2": 3}}, ["value"]),
        ({"value": [1, 101, -1]}, ["value.1", "value.2"]),
        ({"value": [None, "5", [5]]}, ["value.0", "value.1", "value.2"]),
        ({"value": [True, 5, float("nan")]}, ["value.0", "value.2"]),
        ({"report": 5}, ["report"]),
        ({"trust": "local", "report": [0, 1, 2]}, ["trust", "value"]),
        ({"epsilon": 0, "value": [0, 0, 101]}, ["epsilon", "value.2"]),
    ],
)
async def test_a_bad_vector_is_refused_by_coordinate(
    service: Service, space: str, changes: dict[str, Any], fields: list[str]
) -> None:
    path = f"/v1/studies/{space}/contributions"
    document = json.dumps({**ALICE, **changes})
    response = await service.call("POST", path, "contribute", content=document, headers=JSON)
    assert_problem(response, "invalid_request", 422, *fields)
    assert await stored(service) == {}


async def test_a_value_without_coordinates_is_refused(service: Service, space: str) -> None:
    document = {"subject": "alice", "epsilon": 1, "trust": "central"}
    path = f"/v1/studies/{space}/contributions"
    assert_problem(
        await service.call("POST", path, "contribute", json=document), "invalid_request", 422, "value"
    )


async def test_local_people_are_sent_to_sessions(service: Service, space: str) -> None:
    document = {"subject": "lou", "report": 5, "epsilon": 1, "trust": "local"}
    path = f"/v1/studies/{space}/contributions"
    problem = assert_problem(
        await service.call("POST", path, "contribute", json=document), "invalid_request", 422, "trust"
    )
    assert "3 coordinates" in problem["errors"][0]["reason"]
    assert "session" in problem["errors"][0]["reason"]


async def test_a_number_does_not_become_a_vector(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    response = await service.call("POST", path, "contribute", json={**ALICE, "value": [5]})
    assert_problem(response, "invalid_request", 422, "value")


async def test_a_vector_does_not_saturate(service: Service, space: str) -> None:
    saturation = await service.call("GET", f"/v1/studies/{space}/saturation", "analyse")
    assert saturation.json() == {"epsilon": None}


async def test_an_altered_vector_is_found_by_the_audit(service: Service, space: str) -> None:
    await service.call("POST", f"/v1/studies/{space}/contributions", "contribute", json=ALICE)
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute("UPDATE contribution SET vector = vector[1:2]")
        [finding] = (await service.api.services.ledger.audit()).findings
        assert "dimension" in finding.rule
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("UPDATE contribution SET value = NULL")
    finally:
        await connection.close()


@pytest.mark.long
async def test_refusals_of_a_batch_do_not_grow_without_bound(service: Service) -> None:
    wide = await service.study(dimension=11)
    records = [
        {**ALICE, "subject": str(number), "value": [101 if number >> bit & 1 else 0 for bit in range(11)]}
        for number in range(2048)
    ]
    response = await service.call(
        "POST", f"/v1/studies/{wide}/contributions/batch", "contribute", json=records
    )
    results = response.json()["results"]
    assert [result["status"] for result in results] == ["created"] + ["refused"] * 2047
    assert len({json.dumps(result["errors"]) for result in results[1:]}) < 1000
    assert {result["code"] for result in results[1:]} == {"invalid_request"}
