"""No answer leaves before its commit: when the commit fails the client gets a 5xx and no value."""

import json
from collections.abc import Sequence

import asyncpg
import httpx
import pytest

from tests.conftest import LiveServer
from tests.support.databases import execute, run_apart
from tests.support.live import LiveService
from tests.system.load import findings, make_study

pytestmark = pytest.mark.system

CONTRIBUTIONS = "/v1/studies/age/contributions"
RELEASES = "/v1/studies/age/releases"
MEAN = "/v1/studies/age/statistics/mean?estimator=uniform&share=0.2"

REFUSED = "RAISE EXCEPTION 'the commit fails'"
LOST = "PERFORM pg_terminate_backend(pg_backend_pid())"


def failing_commits(way: str) -> Sequence[str]:
    """Statements after which every commit with a contribution or a release in it fails, and nothing else."""
    triggers = [
        f"""CREATE CONSTRAINT TRIGGER fail_commit AFTER {event} ON {table}
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fail_commit()"""
        for table, event in (("release", "INSERT"), ("contribution", "INSERT OR UPDATE"))
    ]
    function = "CREATE FUNCTION fail_commit() RETURNS trigger LANGUAGE plpgsql AS"
    return f"{function} $$ BEGIN {way}; RETURN NULL; END $$", *triggers


async def state(url: str) -> list[object]:
    """Everything that a contribution or a release may change."""
    connection = await asyncpg.connect(url)
    try:
        return [
            [dict(row) for row in await connection.fetch(f"SELECT * FROM {table} ORDER BY 1, 2")]
            for table in ("subject", "contribution", "cohort", "release", "charge", "chain", "idempotency")
        ]
    finally:
        await connection.close()


def assert_no_value(response: httpx.Response) -> None:
    assert 500 <= response.status_code < 600, response.text
    document = response.json()
    assert set(document) == {"type", "title", "status", "code", "detail", "errors", "request_id"}
    assert document["code"] in ("internal_fault", "unavailable")
    assert not any(character.isdigit() for character in document["detail"])


def fill(service: LiveService) -> None:
    make_study(service, "age")
    records = [
        {"subject": f"p{number}", "value": number, "epsilon": 4, "trust": "central"} for number in range(20)
    ]
    with service.client(service.create_token("contribute")) as contributor:
        batch = contributor.post(f"{CONTRIBUTIONS}/batch", json=records)
    assert batch.json()["created"] == len(records)


async def test_a_commit_that_fails_gives_no_value_and_costs_nothing(live_server: LiveServer) -> None:
    service = live_server()
    url = service.database_url
    assert url is not None
    fill(service)
    analyst = service.client(service.create_token("analyse"))
    contributor = service.client(service.create_token("contribute"))
    new = {"subject": "new", "value": 7, "epsilon": 1, "trust": "central"}
    changed = {"value": 7, "epsilon": 4, "trust": "central"}
    question = {"statistic": "mean", "estimator": "uniform", "share": 0.1, "fresh": True}
    with analyst, contributor:
        # Folding is work that may be kept; what follows must change nothing at all.
        assert analyst.post(RELEASES, json=question).status_code == 201
        before = await state(url)
        for way in (REFUSED, LOST):
            run_apart(execute(url, *failing_commits(way)))
            assert_no_value(analyst.get(MEAN))
            assert_no_value(analyst.post(RELEASES, json=question))
            assert_no_value(analyst.post(RELEASES, json=question, headers={"Idempotency-Key": "k"}))
            assert_no_value(contributor.post(CONTRIBUTIONS, json=new))
            assert_no_value(contributor.post(CONTRIBUTIONS, json=new, headers={"Idempotency-Key": "c"}))
            assert_no_value(contributor.post(f"{CONTRIBUTIONS}/batch", json=[new]))
            assert_no_value(contributor.put(f"{CONTRIBUTIONS}/p0", json=changed))
            assert_no_value(contributor.delete(f"{CONTRIBUTIONS}/p0"))
            assert await state(url) == before
            run_apart(execute(url, "DROP FUNCTION fail_commit CASCADE"))

        first = analyst.post(RELEASES, json=question, headers={"Idempotency-Key": "k"})
        again = analyst.post(RELEASES, json=question, headers={"Idempotency-Key": "k"})
        assert (first.status_code, again.status_code) == (201, 201)
        assert first.content == again.content
        assert "estimate" in json.loads(first.content)
        created = [
            contributor.post(CONTRIBUTIONS, json=new, headers={"Idempotency-Key": "c"}) for _ in range(2)
        ]
        assert [response.status_code for response in created] == [201, 201]
        assert created[0].content == created[1].content
    assert await findings(service) == []
