"""Nothing leaves before its commit: a commit that fails is a 5xx without a value, and nothing is stored."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
from structlog.testing import capture_logs

from tests.api.service import VALUE, Service, assert_problem

TRIGGER = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'a page of 37.5 is broken' USING ERRCODE = '{state}'; END $$;
    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION refuse();
"""


UNDO = "DROP TRIGGER refuse ON {table}; DROP FUNCTION refuse"

Failing = Callable[..., Awaitable[None]]


@pytest.fixture
async def make_commits_fail(service: Service) -> AsyncIterator[Failing]:
    """A function: from then on a transaction that inserts into a table fails when it commits, not before."""
    broken: list[str] = []
    connection = await asyncpg.connect(service.database_url)

    async def make(table: str, state: str = "P0001") -> None:
        await connection.execute(TRIGGER.format(table=table, state=state))
        broken.append(table)

    try:
        yield make
    finally:
        for table in broken:
            await connection.execute(UNDO.format(table=table))
        await connection.close()


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
async def test_a_contribution_whose_commit_fails_is_not_acknowledged(
    service: Service, study: str, make_commits_fail: Failing, headers: dict[str, str]
) -> None:
    await make_commits_fail("contribution")
    before = await service.rows()
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions", "contribute", json=VALUE, headers=headers
    )
    assert_problem(response, "internal_fault", 500)
    assert "37.5" not in response.text
    assert await service.rows() == before


async def test_a_batch_whose_commit_fails_is_not_acknowledged(
    service: Service, study: str, make_commits_fail: Failing
) -> None:
    await make_commits_fail("contribution")
    before = await service.rows()
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions/batch", "contribute", json=[VALUE]
    )
    assert_problem(response, "internal_fault", 500)
    assert await service.rows() == before


@pytest.mark.parametrize("table", ["release", "charge_block"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "statistics/mean?estimator=adpm"), ("POST", "releases?estimator=adpm")]
)
async def test_a_release_whose_commit_fails_shows_no_value(
    service: Service, make_commits_fail: Failing, method: str, path: str, table: str
) -> None:
    study = await service.study()
    await service.crowd(study)
    await make_commits_fail(table)
    response = await service.call(method, f"/v1/studies/{study}/{path}", "analyse")
    document = assert_problem(response, "internal_fault", 500)
    assert set(response.json()) == {"type", "title", "status", "code", "detail", "errors", "request_id"}
    assert document["errors"] == []
    assert "estimate" not in response.text
    rows = await service.rows()
    assert (rows["release"], rows["charge"]) == (0, 0)
    budget = (await service.call("GET", "/v1/subjects/p1/budget", "admin")).json()
    assert budget["epsilon"]["spent"] == 0


@pytest.mark.parametrize("state", ["57P01", "XX000"])
async def test_a_commit_whose_outcome_is_unknown_is_an_unavailable_service(
    service: Service, study: str, make_commits_fail: Failing, state: str
) -> None:
    await make_commits_fail("contribution", state=state)
    response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=VALUE)
    assert_problem(response, "unavailable", 503)
    assert response.headers["retry-after"] == "1"


async def test_a_fault_is_logged_without_what_the_request_held(
    service: Service, study: str, make_commits_fail: Failing
) -> None:
    await make_commits_fail("contribution")
    with capture_logs() as lines:
        response = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=VALUE)
    assert response.status_code == 500
    failed = [line for line in lines if line["event"] == "request.failed"]
    assert len(failed) == 1
    assert failed[0]["route"] == "/v1/studies/{study}/contributions"
    assert failed[0]["causes"][0]["type"].startswith("sqlalchemy")
    text = json.dumps(lines)
    for secret in ("37.5", "alice", service.tokens["contribute"]):
        assert secret not in text
