"""Schedules: each time is asked once, within a quota, and what comes of it is said."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import asyncpg
import pytest

from app.core.errors import Unavailable
from app.core.schedule import Every, time_after
from app.services.admin.schedules import Schedules
from app.web.schedules import Asker
from tests.api.service import Service


async def sql(service: Service, statement: str, *values: object) -> list[Any]:
    """Rows of the database."""
    connection = await asyncpg.connect(service.database_url)
    try:
        return list(await connection.fetch(statement, *values))
    finally:
        await connection.close()


async def scheduled(service: Service, study: str, **wish: Any) -> dict[str, Any]:
    """A new schedule whose first time is far off."""
    document = {"every": "week", "quota": 10, "starts_at": "2100-01-04T09:00:00Z", **wish}
    made = await service.call("POST", f"/v1/studies/{study}/schedules", "admin", json=document)
    assert made.status_code == 201, made.text
    return dict(made.json())


async def read(service: Service, schedule: dict[str, Any]) -> dict[str, Any]:
    """A schedule as it is now."""
    path = f"/v1/studies/{schedule['study']}/schedules/{schedule['id']}"
    return dict((await service.call("GET", path, "analyse")).json())


async def come(service: Service, schedule: dict[str, Any]) -> dict[str, Any]:
    """Let the next time of a schedule come, and what came of it; the service looks for it, too."""
    await sql(service, "UPDATE schedule SET due_at = now() - interval '1 hour' WHERE id = $1", schedule["id"])
    for _ in range(200):
        await Asker(service.api.services, service.api.work).ask_next()
        found = await read(service, schedule)
        if found["due_at"] is None or found["due_at"] > datetime.now(UTC).isoformat():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("nobody asked")


async def charged(service: Service) -> int:
    """How many releases there are."""
    return (await service.rows())["release"]


async def test_newcomers_alone_are_asked_each_time(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, newcomers=True)
    assert (schedule["share"], schedule["newcomers"], schedule["until"]) == (0.2, True, None)
    first = await come(service, schedule)
    assert (first["answered"], first["refusal"]) == (1, None)
    # No one came: the answer stands, and no one pays.
    before = await service.rows()
    again = await come(service, schedule)
    assert (again["answered"], again["release"]) == (2, first["release"])
    assert (await service.rows())["charge"] == before["charge"]
    for number in range(50):
        await service.contribute(study, f"new{number}")
    third = await come(service, schedule)
    assert third["release"] != first["release"]
    answer = (await service.call("GET", f"/v1/releases/{third['release']}", "analyse")).json()
    assert (answer["people"], answer["share"], answer["refines"]) == (150, 0.2, first["release"])
    for person in ("p1", "new1"):
        budget = (await service.call("GET", f"/v1/subjects/{person}/budget", "contribute")).json()
        assert budget["epsilon"]["spent"] == pytest.approx(0.2), person


async def test_a_share_is_taken_again_until_it_is_reached(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, until=0.5)
    shares = []
    for _ in range(3):
        schedule = await come(service, schedule)
        assert schedule["refusal"] is None
        found = await service.call("GET", f"/v1/releases/{schedule['release']}", "analyse")
        shares.append(found.json()["share"])
    assert shares == [0.2, 0.4, 0.5]
    assert schedule["due_at"] is None
    budget = (await service.call("GET", "/v1/subjects/p1/budget", "contribute")).json()
    assert budget["epsilon"]["spent"] == pytest.approx(0.5)


async def test_what_a_question_has_taken_already_counts(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    path = f"/v1/studies/{study}/releases"
    stands = (await service.call("POST", path, "analyse", json={"share": 0.3})).json()["id"]
    schedule = await scheduled(service, study, question={"share": 0.2}, until=0.5)
    releases = []
    for _ in range(3):
        schedule = await come(service, schedule)
        releases.append(schedule["release"])
    assert schedule["due_at"] is None
    assert releases[0] == stands
    assert len(set(releases)) == 3
    budget = (await service.call("GET", "/v1/subjects/p1/budget", "contribute")).json()
    assert budget["epsilon"]["spent"] == pytest.approx(0.5)


async def test_where_the_number_of_people_is_secret_each_answer_is_paid_until_the_share(
    service: Service,
) -> None:
    study = await service.study(relation="add_remove_one")
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, until=0.5)
    releases = []
    for _ in range(3):
        schedule = await come(service, schedule)
        assert schedule["refusal"] is None
        releases.append(schedule["release"])
    assert schedule["due_at"] is None
    assert len(set(releases)) == 3
    used = await sql(service, "SELECT share FROM usage WHERE token_id = $1 ORDER BY at", schedule["token_id"])
    assert [row["share"] for row in used] == [200_000, 200_000, 100_000]


async def test_a_schedule_never_takes_more_than_its_quota(service: Service) -> None:
    for relation in ("replace_one", "add_remove_one"):
        study = await service.study(relation=relation)
        await service.crowd(study)
        schedule = await scheduled(service, study, question={"share": 0.2}, until=1, quota=0.5)
        made = [(await come(service, schedule))["refusal"] for _ in range(4)]
        assert made == [None, None, "quota_exhausted", "quota_exhausted"]
        [used] = await sql(service, "SELECT sum(share) FROM usage WHERE token_id = $1", schedule["token_id"])
        assert used["sum"] == 400_000
        # Its quota is that of its token: an admin may raise it.
        path = f"/v1/admin/tokens/{schedule['token_id']}/quota"
        more = await service.call("PUT", path, "admin", json={"share": 1, "period_seconds": 31_536_000})
        assert more.status_code == 200, more.text
        assert (await come(service, schedule))["refusal"] is None


async def test_a_refusal_is_told_and_asked_again(service: Service) -> None:
    study = await service.study()
    wish = {"url": "https://webhooks.invalid/", "events": ["schedule_refused"]}
    hook = (await service.call("POST", "/v1/admin/webhooks", "admin", json=wish)).json()["id"]
    schedule = await scheduled(service, study, question={"share": 0.2}, newcomers=True)
    assert (await come(service, schedule))["refusal"] == "no_contributions"
    [event] = await sql(
        service, "SELECT body::jsonb -> 'data' AS data FROM event WHERE webhook_id = $1", hook
    )
    assert event["data"] == (
        f'{{"code": "no_contributions", "study": "{study}", "schedule": "{schedule["id"]}"}}'
    )
    await service.crowd(study)
    after = await come(service, schedule)
    assert (after["refusal"], after["answered"]) == (None, 1)


async def test_what_a_schedule_does_is_in_the_trail(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, newcomers=True)
    release = (await come(service, schedule))["release"]
    path = f"/v1/studies/{study}/schedules/{schedule['id']}"
    assert (await service.call("DELETE", path, "admin")).status_code == 204
    assert (await service.call("GET", path, "admin")).status_code == 404
    trail = await service.call("GET", f"/v1/admin/audit?target={schedule['id']}", "admin")
    lines = trail.json()["items"]
    assert [line["action"] for line in lines] == ["schedule.delete", "schedule.ask", "schedule.create"]
    assert lines[1]["actor"] == schedule["token_id"]
    assert lines[1]["detail"] == {"study": study, "release": release}
    assert (lines[2]["detail"]["share"], lines[2]["detail"]["quota"]) == (0.2, 10)
    other = await scheduled(service, study, question={"share": 0.2}, until=0.5, quota=0.7)
    trail = await service.call("GET", f"/v1/admin/audit?target={other['id']}", "admin")
    [line] = trail.json()["items"]
    assert (line["detail"]["until"], line["detail"]["quota"]) == (0.5, 0.7), "as they were given"
    [token] = await sql(service, "SELECT revoked_at FROM token WHERE id = $1", schedule["token_id"])
    assert token["revoked_at"] is not None


async def test_a_schedule_whose_token_is_revoked_asks_nothing(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, newcomers=True)
    revoked = await service.call("DELETE", f"/v1/admin/tokens/{schedule['token_id']}", "admin")
    assert revoked.status_code == 204
    await sql(service, "UPDATE schedule SET due_at = now() WHERE id = $1", schedule["id"])
    assert not await Asker(service.api.services, service.api.work).ask_next()
    assert await charged(service) == 0


async def test_a_study_that_ended_is_not_asked_again(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, newcomers=True)
    await service.call("POST", f"/v1/studies/{study}/archive", "admin", json={"reason": "over"})
    ended = await come(service, schedule)
    assert (ended["refusal"], ended["due_at"]) == ("study_archived", None)
    document = {"question": {}, "every": "day", "newcomers": True, "quota": 1}
    refused = await service.call("POST", f"/v1/studies/{study}/schedules", "admin", json=document)
    assert (refused.status_code, refused.json()["code"]) == (409, "study_archived")


async def test_a_time_that_a_process_did_not_survive_has_one_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = await service.study()
    await service.crowd(study)
    schedule = await scheduled(service, study, question={"share": 0.2}, until=0.8)

    async def lost(*_: object) -> None:
        raise Unavailable("the process died")

    with monkeypatch.context() as patched:
        patched.setattr(Schedules, "settle", lost)
        await sql(service, "UPDATE schedule SET due_at = now() WHERE id = $1", schedule["id"])
        for _ in range(100):
            try:
                await Asker(service.api.services, service.api.work).ask_next()
            except Unavailable:
                break
            if await charged(service):
                break
            await asyncio.sleep(0.05)
        for _ in range(100):
            if await charged(service):
                break
            await asyncio.sleep(0.05)
    assert await charged(service) == 1
    # Claimed: no one else asks, and then everyone may.
    assert not await Asker(service.api.services, service.api.work).ask_next()
    await sql(service, "UPDATE schedule SET claimed_until = now() WHERE id = $1", schedule["id"])
    for _ in range(100):
        await Asker(service.api.services, service.api.work).ask_next()
        found = await read(service, schedule)
        if found["answered"]:
            break
        await asyncio.sleep(0.05)
    assert (found["answered"], await charged(service)) == (1, 1)


async def test_many_that_look_at_once_ask_once(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    schedules = [
        await scheduled(service, study, question={"share": 0.1, "estimator": name}, until=1)
        for name in ("uniform", "adpm", "kvh")
    ]
    await sql(service, "UPDATE schedule SET due_at = now() - interval '3 days'")
    asker = Asker(service.api.services, service.api.work)
    for _ in range(20):
        await asyncio.gather(*(asker.ask_next() for _ in range(6)))
    for _ in range(100):
        states = [await read(service, one) for one in schedules]
        if all(one["answered"] for one in states):
            break
        await asyncio.sleep(0.05)
    assert [one["answered"] for one in states] == [1, 1, 1]
    assert await charged(service) == 3
    # Three days were missed and are not made up for.
    assert all(one["due_at"] > datetime.now(UTC).isoformat() for one in states)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"question": {"share": 0.1}}, "until"),
        ({"question": {"share": 0.1}, "newcomers": True, "until": 0.5}, "until"),
        ({"question": {"share": 2}, "newcomers": True}, "question.share"),
        ({"question": {"statistic": "mode"}, "newcomers": True}, "question.statistic"),
        ({"question": {"estimator": "none"}, "newcomers": True}, "question.estimator"),
        ({"question": {"fresh": True}, "newcomers": True}, "question.fresh"),
        ({"question": {"allow_worse": True}, "newcomers": True}, "question.allow_worse"),
        ({"question": {"until": 3}, "newcomers": True}, "question.until"),
        ({"question": {"where": "region:north"}, "newcomers": True}, "question.where"),
        ({"question": {}, "newcomers": True, "every": "hour"}, "every"),
        ({"question": {}, "newcomers": True, "quota": 0}, "quota"),
        ({"question": {}, "newcomers": True, "starts_at": "tomorrow"}, "starts_at"),
        ({"question": [], "newcomers": True}, "question"),
    ],
)
async def test_a_bad_schedule_is_refused_by_field(service: Service, wish: Any, field: str) -> None:
    path = f"/v1/studies/{await service.study()}/schedules"
    document = {"every": "day", "quota": 1, **wish}
    refused = await service.call("POST", path, "admin", json=document)
    assert refused.status_code == 422, refused.text
    assert field in [one["field"] for one in refused.json()["errors"]]


async def test_newcomers_of_a_secret_number_are_not_asked_alone(service: Service) -> None:
    path = f"/v1/studies/{await service.study(relation='add_remove_one')}/schedules"
    document = {"question": {"share": 0.1}, "every": "day", "newcomers": True, "quota": 1}
    refused = await service.call("POST", path, "admin", json=document)
    assert [one["field"] for one in refused.json()["errors"]] == ["newcomers"]


async def test_two_secret_worlds_have_the_same_schedules(service: Service) -> None:
    told = []
    for people in (0, 1, 30):
        study = await service.study(relation="add_remove_one")
        for number in range(people):
            await service.contribute(study, f"{study}-{number}")
        schedule = await scheduled(service, study, question={"share": 0.4}, until=1, quota=0.9)
        states = [await come(service, schedule) for _ in range(3)]
        told.append([(one["answered"], one["refusal"], one["release"] is None) for one in states])
    assert (
        told[0] == told[1] == told[2] == [(1, None, False), (2, None, False), (2, "quota_exhausted", False)]
    )


def test_times_keep_their_day_and_hour() -> None:
    start = datetime(2028, 1, 31, 9, tzinfo=UTC)
    for every in Every:
        now, times = start - timedelta(seconds=1), []
        for _ in range(40):
            now = time_after(start, every, now)
            times.append(now)
            assert time_after(start, every, now - timedelta(microseconds=1)) == now
        assert times[0] == start
        assert {time.time() for time in times} == {start.time()}
        assert {str(b - a) for a, b in pairwise(times)} <= {
            Every.DAY: {"1 day, 0:00:00"},
            Every.WEEK: {"7 days, 0:00:00"},
            Every.MONTH: {f"{days} days, 0:00:00" for days in (28, 29, 30, 31)},
        }[every]
    assert [
        time_after(start, Every.MONTH, datetime(2028, month, 15, tzinfo=UTC)).day for month in (2, 4, 5)
    ] == [
        29,
        30,
        31,
    ]
