"""Webhooks over HTTP: what is said, in which transaction, and where nothing may be sent."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import httpcore
import pytest

from app.store import outbox
from app.web import webhooks
from tests.api.service import Service, assert_problem, open_service

PATH = "/v1/admin/webhooks"
ALL = ["released", "budget_low", "session_closed", "study_closed"]
SESSION = {"protocol": "minimum", "epsilon": 1, "participants": 10}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Where names lead; others lead nowhere."""
    known: dict[str, str] = {}

    async def addresses_of(host: str, port: int) -> list[str]:
        if host not in known:
            raise OSError("no such name")
        return [known[host]]

    monkeypatch.setattr(webhooks, "addresses_of", addresses_of)
    return known


async def make(service: Service, *events: str, url: str = "https://bot.example/dither") -> dict[str, Any]:
    made = await service.call("POST", PATH, "admin", json={"url": url, "events": events or ALL})
    assert made.status_code == 201, made.text
    return dict(made.json())


async def stored(service: Service) -> list[tuple[str, dict[str, Any]]]:
    """What is in the outbox, without the moments."""
    connection = await asyncpg.connect(service.database_url)
    try:
        bodies = [json.loads(row["body"]) for row in await connection.fetch("SELECT body FROM event")]
    finally:
        await connection.close()
    bodies.sort(key=lambda body: str(body["timestamp"]))
    assert all(body.keys() == {"type", "timestamp", "data"} for body in bodies)
    for body in bodies:
        said = datetime.strptime(body["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        assert abs(datetime.now(UTC) - said) < timedelta(minutes=10)
    return [(body["type"], body["data"]) for body in bodies]


async def ask(service: Service, study: str, share: float, estimator: str = "uniform") -> str:
    wish = {"estimator": estimator, "share": share, "fresh": True, "allow_worse": True}
    asked = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=wish)
    assert asked.status_code == 201, asked.text
    return str(asked.json()["id"])


@pytest.mark.parametrize("relation", ["replace_one", "add_remove_one"])
async def test_what_happens_is_told_and_nothing_about_people(
    service: Service, names: dict[str, str], relation: str
) -> None:
    study = await service.study(
        relation=relation, trust=["central", "local"] if relation == "replace_one" else ["central"]
    )
    await service.crowd(study, 20)
    await make(service)
    estimator = "uniform" if relation == "replace_one" else "transformed"
    path = f"/v1/studies/{study}/releases"
    first, second, third = [await ask(service, study, share, estimator) for share in (0.5, 0.3, 0.1)]
    sessions = []
    if relation == "replace_one":  # The others have no sessions.
        started = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=SESSION)
        assert started.status_code == 201, started.text
        session = started.json()["id"]
        sessions.append(("session_closed", {"study": study, "session": session}))
        await service.call("POST", f"/v1/sessions/{session}/finish", "admin")
    for _ in range(2):
        await service.call("POST", f"/v1/studies/{study}/close", "admin")
        await service.call("POST", f"/v1/studies/{study}/archive", "admin", json={"reason": "over"})
    refused = await service.call("POST", path, "analyse", json={"fresh": True})
    assert refused.status_code == 409
    assert await stored(service) == [
        ("released", {"study": study, "release": first}),
        ("released", {"study": study, "release": second}),
        ("budget_low", {"study": study, "release": second}),
        ("released", {"study": study, "release": third}),
        *sessions,
        ("study_closed", {"study": study, "state": "closed"}),
        ("study_closed", {"study": study, "state": "archived"}),
    ]


async def test_a_webhook_is_told_only_what_it_wants_and_nothing_once_deleted(
    service: Service, names: dict[str, str]
) -> None:
    study = await service.study()
    await service.crowd(study, 20)
    made = await make(service, "study_closed")
    await make(service, "released")
    await ask(service, study, 0.1)
    assert [kind for kind, _ in await stored(service)] == ["released"]
    await service.call("POST", f"/v1/studies/{study}/close", "admin")
    shown = (await service.call("GET", f"{PATH}/{made['id']}", "admin")).json()
    assert shown == {key: value for key, value in made.items() if key != "secret"} | {"waiting": 1}
    for status in (204, 404):
        gone = await service.call("DELETE", f"{PATH}/{made['id']}", "admin")
        assert gone.status_code == status
    assert [kind for kind, _ in await stored(service)] == ["released"]
    trail = (await service.call("GET", "/v1/admin/audit", "admin", params={"target": made["id"]})).json()
    assert [line["action"] for line in trail["items"]] == ["webhook.delete", "webhook.create"]
    assert made["secret"] not in json.dumps(trail)


SPACED = "must be printable ASCII without spaces"
SECURE = "must be an https:// URL"
PORT = "must have a port from 1 to 65535, or none"
PLAIN = "must have no password and no fragment"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://bot.example/", SECURE),
        ("ftp://bot.example/", SECURE),
        ("bot.example", SECURE),
        ("https://", "has no host"),
        ("https://:443/", "has no host"),
        ("https://[::1", "has no host that can be read"),
        ("https://a b.example/", SPACED),
        (" https://bot.example/", SPACED),
        ("https://bót.example/", SPACED),
        ("https://bot.example/a\nb", SPACED),
        ("https://bot.example/\x7f", SPACED),
        ("https://bot.example/\0", SPACED),
        ("https://bot.example:0/", PORT),
        ("https://bot.example:99999/", PORT),
        ("https://bot.example:https/", PORT),
        ("https://user:secret@bot.example/", PLAIN),
        ("https://bot.example/#part", PLAIN),
        ("https://inner.example/", webhooks.PRIVATE),
    ],
)
async def test_an_address_that_nothing_may_be_sent_to_is_refused(
    service: Service, names: dict[str, str], url: str, reason: str
) -> None:
    names["inner.example"] = "10.1.2.3"
    response = await service.call("POST", PATH, "admin", json={"url": url, "events": ["released"]})
    assert_problem(response, "invalid_request", 422, "url")
    assert response.json()["errors"][0]["reason"] == reason


async def test_where_private_addresses_are_allowed_http_is_too(database_url: str) -> None:
    async with open_service(database_url, webhook_private_addresses=True) as service:
        await make(service, "released", url="http://127.0.0.1:9/")
        wish = {"url": "ftp://127.0.0.1/", "events": ["released"]}
        response = await service.call("POST", PATH, "admin", json=wish)
        assert response.json()["errors"][0]["reason"] == "must be an http:// or https:// URL"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1"),
        *("::ffff:10.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "2001:db8::1", "192.0.2.1"),
    ],
)
async def test_an_address_of_a_private_network_is_none_of_the_internet(address: str) -> None:
    assert not webhooks.is_public(address)
    with pytest.raises(httpcore.ConnectError):
        await webhooks.Guarded(private=False).connect_tcp(address.partition("%")[0], 9)


@pytest.mark.parametrize("private", [False, True])
async def test_a_name_that_leads_inside_later_is_not_followed(
    database_url: str, names: dict[str, str], private: bool
) -> None:
    connected = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connected
        connected += 1
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with open_service(database_url, webhook_private_addresses=private) as service:
        names["moving.example"] = "93.184.216.34"
        made = await make(service, "released", url=f"https://moving.example:{port}/")
        names["moving.example"] = "127.0.0.1"
        study = await service.study()
        await service.crowd(study, 20)
        await ask(service, study, 0.1)
        for _ in range(100):
            connection = await asyncpg.connect(database_url)
            attempts = await connection.fetchval("SELECT attempts FROM event")
            await connection.close()
            if attempts and (connected or not private):
                break
            await asyncio.sleep(0.1)
        assert attempts
        await asyncio.sleep(0.2)
        assert (connected > 0) == private
        shown = (await service.call("GET", f"{PATH}/{made['id']}", "admin")).json()
        assert (shown["waiting"], shown["given_up"]) == (1, 0)
    server.close()


async def test_an_event_that_is_not_taken_comes_later_and_later_and_is_given_up_in_the_end(
    service: Service, names: dict[str, str]
) -> None:
    names["bot.example"] = "93.184.216.34"
    study = await service.study()
    await service.crowd(study, 20)
    made = await make(service, "released")
    await ask(service, study, 0.1)
    waits = []
    connection = await asyncpg.connect(service.database_url)
    try:
        for _ in range(outbox.ATTEMPTS):
            await connection.execute("UPDATE event SET due_at = clock_timestamp()")
            (delivery,) = await service.api.services.webhooks.claim(7)
            due = await connection.fetchval(
                "SELECT extract(epoch FROM due_at - clock_timestamp()) FROM event"
            )
            waits.append(round(float(due)))
            await service.api.services.webhooks.settle(delivery.id, taken=False)
    finally:
        await connection.close()
    assert waits == [min(5 * 2**attempt, 6 * 3600) for attempt in range(outbox.ATTEMPTS)]
    assert sum(waits[:-1]) / 86_400 == pytest.approx(4, abs=0.1)
    assert await service.api.services.webhooks.claim(7) == []
    shown = (await service.call("GET", f"{PATH}/{made['id']}", "admin")).json()
    assert (shown["waiting"], shown["given_up"]) == (0, 1)


async def test_processes_that_look_at_once_try_each_event_once(
    service: Service, names: dict[str, str]
) -> None:
    study = await service.study()
    await service.crowd(study, 20)
    for _ in range(30):
        await make(service, "released")
    await ask(service, study, 0.1)
    claims = await asyncio.gather(*(service.api.services.webhooks.claim(7) for _ in range(6)))
    ids = [delivery.id for claim in claims for delivery in claim]
    assert len(ids) == len(set(ids))
