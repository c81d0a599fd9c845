"""Schedules of a real service: each time has one answer, through kill -9 and with several processes."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService

pytestmark = [pytest.mark.system, pytest.mark.long]

SCHEDULES, ROUNDS = 4, 3

SHARE = 0.02


def sql(service: LiveService, statement: str, *values: object) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(service.database_url)
        try:
            return list(await connection.fetch(statement, *values))
        finally:
            await connection.close()

    return asyncio.run(run())


def settled(service: LiveService) -> bool:
    """Whether no time is due; of what a process did not survive, time passes."""
    sql(
        service,
        "UPDATE schedule SET claimed_until = now() WHERE claimed_until < now() + interval '597 seconds'",
    )
    return not sql(service, "SELECT 1 FROM schedule WHERE due_at <= now()")


def test_each_time_has_one_answer_through_kills_with_several_processes(live_server: LiveServer) -> None:
    service = live_server(processes=2)
    people = [{"subject": f"p{n}", "value": n % 10, "epsilon": 4, "trust": "central"} for n in range(200)]
    with service.client() as admin, service.client(service.create_token("contribute")) as app:
        for number in range(SCHEDULES):
            slug = f"study-{number}"
            wish = {"slug": slug, "lower": 0, "upper": 10}
            assert admin.post("/v1/studies", json=wish).status_code == 201
            mine = [one | {"subject": f"{slug}-{one['subject']}"} for one in people]
            assert app.post(f"/v1/studies/{slug}/contributions/batch", json=mine).json()["created"] == 200
            document = {
                "question": {"share": SHARE},
                "every": "day",
                "until": 1,
                "quota": 1,
                "starts_at": "2100-01-01T09:00:00Z",
            }
            made = admin.post(f"/v1/studies/{slug}/schedules", json=document)
            assert made.status_code == 201, made.text
    for turn in range(ROUNDS):
        sql(service, "UPDATE schedule SET due_at = now()")
        time.sleep(0.2 + 0.4 * turn)
        service.kill(turn % 2)
        deadline = time.monotonic() + 90
        while not settled(service):
            assert time.monotonic() < deadline, "nobody asked"
            time.sleep(0.3)
        service.start(turn % 2)
    rows = sql(
        service,
        """
        SELECT answered, refusal,
               (SELECT count(*) FROM release WHERE study_id = schedule.study_id) AS releases,
               (SELECT sum(share) FROM usage WHERE token_id = schedule.token_id) AS used
        FROM schedule
        """,
    )
    assert [tuple(row) for row in rows] == [(ROUNDS, None, ROUNDS, round(ROUNDS * SHARE * 1e6))] * SCHEDULES
    asked = sql(service, "SELECT count(*) AS times FROM audit WHERE action = 'schedule.ask' GROUP BY target")
    assert [row["times"] for row in asked] == [ROUNDS] * SCHEDULES
    due = sql(service, "SELECT min(due_at) AS first FROM schedule")[0]["first"]
    assert due > datetime.now(UTC)
