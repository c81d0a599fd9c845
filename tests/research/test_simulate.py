"""`dither simulate`: who the simulated people are, how their requests travel, and the command as a whole."""

import asyncio
import io
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import typer
from dither import Measure, Session
from dither._flow import Request
from dither._wire import build
from rich.console import Console

from dither_research.simulate import fleet, processes
from dither_research.simulate.display import interval_left, picture, truth
from dither_research.simulate.fleet import Orders, Tally
from dither_research.simulate.people import Days, generate_values, make_devices, read_values
from dither_research.simulate.transport import Wire
from tests.client.sessions import MINIMUM
from tests.conftest import LiveServer
from tests.support.fleets import open_session, read_session
from tests.system.load import findings, make_study

# ------------------------------------------------------------------------------------ people


def span(lower: int, upper: int, choices: tuple[str, ...] = ()) -> Measure:
    """A measure."""
    return Measure(lower=Decimal(lower), upper=Decimal(upper), choices=choices)


def asked_of(**fields: Any) -> Any:
    """What the people need of a study."""
    plain = {"lower": Decimal("-1.5"), "upper": Decimal(2), "dimension": 1, "choices": (), "measures": {}}
    return SimpleNamespace(**plain | fields)


def test_values_are_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_text("1.5\n\n 2,3 \n4 5 6\n7;8\n")
    assert read_values(file, asked_of()) == ["1.5", ("2", "3"), ("4", "5", "6"), ("7", "8")]
    assert read_values(file, asked_of(choices=("2,3",))) == ["1.5", "2,3", "4 5 6", "7;8"]
    two = asked_of(measures={"income": span(0, 9000), "age": span(18, 98)})
    with pytest.raises(typer.BadParameter, match="income, age"):
        read_values(file, two)
    file.write_text("1200, 44\n")
    assert read_values(file, two) == [{"income": "1200", "age": "44"}]
    file.write_bytes(b"\xff")
    with pytest.raises(typer.BadParameter, match="is not UTF-8"):
        read_values(file, asked_of())
    file.write_text("\n")
    with pytest.raises(typer.BadParameter):
        read_values(file, asked_of())


def test_devices_and_values_are_repeatable_and_values_come_again() -> None:
    devices = make_devices(["1", "2"], 5, prefix="p", seed="x")
    assert devices == make_devices(["1", "2"], 5, prefix="p", seed="x")
    assert devices != make_devices(["1", "2"], 5, prefix="p", seed="y")
    assert [device.value for device in devices] == ["1", "2", "1", "2", "1"]
    assert [device.subject for device in devices] == ["p0", "p1", "p2", "p3", "p4"]


def test_generated_values_lie_in_the_range_and_have_its_dimension() -> None:
    values = generate_values(asked_of(dimension=2), 500, "seed")
    numbers = [Decimal(part) for value in values for part in value]
    assert len(numbers) == 1000
    assert Decimal("-1.5") <= min(numbers) < Decimal("-1.4")
    assert Decimal("1.9") < max(numbers) <= 2
    assert all(isinstance(value, str) for value in generate_values(asked_of(), 5, "seed"))
    assert set(generate_values(asked_of(choices=("red", "green")), 50, "seed")) == {"red", "green"}
    measures = {"a": span(0, 1, ("no", "yes")), "b": span(5, 6)}
    measured = generate_values(asked_of(measures=measures), 50, "seed")
    rows = [value for value in measured if isinstance(value, dict)]
    assert len(rows) == 50
    assert all(set(row) == {"a", "b"} and 5 <= Decimal(str(row["b"])) <= 6 for row in rows)
    assert {row["a"] for row in rows} == {"no", "yes"}
    plane = {"a": Measure(lower=Decimal(0), upper=Decimal(1), dimension=2), "b": span(5, 6)}
    (one,) = generate_values(asked_of(measures=plane), 1, "seed")
    assert isinstance(one, dict)
    assert [isinstance(one[name], tuple) for name in plane] == [True, False]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_stated_share_of_devices_is_online_at_any_time(share: float) -> None:
    days, devices = Days(share=share, seconds=10), make_devices(["1"], 4_000, prefix="p", seed="1")
    for elapsed in (0.0, 3.3, 17.9):
        online = sum(days.until_online(device, elapsed) == 0 for device in devices)
        assert abs(online - 4_000 * share) < 6 * (4_000 * share * (1 - share)) ** 0.5
    for device in devices[:50]:
        wait = days.until_online(device, 0.0)
        assert days.until_online(device, wait + 1e-6) == 0
        left = days.until_offline(device, wait + 1e-6)
        assert left is not None
        assert days.until_online(device, wait + left + 1e-3) > 0
    assert Days(share=1).until_offline(devices[0], 5) is None


# ------------------------------------------------------------------------------------ wires

Answer = Callable[[bytes], Awaitable[bytes | None]]


@asynccontextmanager
async def served(answer: Answer, *, connections: int = 2) -> AsyncIterator[Wire]:
    """A wire to a service that answers each request with these bytes, or cuts the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                reply = await answer(head + await reader.readexactly(length))
                if reply is None:
                    break
                writer.write(reply)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire = Wire(httpx.URL(f"http://127.0.0.1:{port}/base/"), {"authorization": "Bearer t"}, connections)
    try:
        yield wire
    finally:
        await wire.aclose()
        server.close()


def ok(body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def test_requests_travel_with_path_query_headers_and_body() -> None:
    seen: list[bytes] = []

    async def answer(request: bytes) -> bytes:
        seen.append(request)
        return ok(b"hello", b"Retry-After: 7")

    async with served(answer) as wire:
        reply = await wire.send(
            Request(method="POST", path="/v1/x", query=(("a", "1 2"),), body=b"{}", headers=(("k", "v"),))
        )
    assert (reply.status, reply.body, reply.retry_after) == (200, b"hello", "7")
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] in ("POST /base/v1/x?a=1+2 HTTP/1.1", "POST /base/v1/x?a=1%202 HTTP/1.1")
    assert {"authorization: Bearer t", "k: v", "content-length: 2"} <= set(lines)
    assert body == b"{}"


async def test_many_requests_share_few_connections_in_turn() -> None:
    under_way, most = 0, 0

    async def answer(request: bytes) -> bytes:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return ok(request.split(b" ")[1])

    async with served(answer, connections=3) as wire:
        requests = [Request(method="GET", path=f"/{number}") for number in range(50)]
        replies = await asyncio.gather(*map(wire.send, requests))
    assert [reply.body for reply in replies] == [b"/base/%d" % number for number in range(50)]
    assert most == 3


async def test_who_stops_waiting_leaves_the_connection_good_for_others() -> None:
    async def answer(request: bytes) -> bytes:
        await asyncio.sleep(0.05)
        return ok(request.split(b" ")[1])

    async with served(answer, connections=1) as wire:
        waiting = [
            asyncio.create_task(wire.send(Request(method="GET", path=f"/{number}"))) for number in range(4)
        ]
        await asyncio.sleep(0.01)
        waiting[0].cancel()  # its request is on its way
        waiting[1].cancel()  # its turn has not come
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [True, True, False, False]
    assert [result.body for result in results[2:] if not isinstance(result, BaseException)] == [
        b"/base/2",
        b"/base/3",
    ]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (None, httpx.ReadError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", TimeoutError),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", httpx.RemoteProtocolError),
    ],
)
async def test_what_is_no_response_is_one_of_the_faults_that_the_sdk_knows(
    reply: bytes | None, error: type[Exception]
) -> None:
    async def answer(_: bytes) -> bytes | None:
        return reply

    async with served(answer) as wire:
        with pytest.raises(error):
            async with asyncio.timeout(0.5):
                await wire.send(Request(method="GET", path="/"))


async def test_a_service_that_is_not_there_is_a_connection_error() -> None:
    wire = Wire(httpx.URL("http://127.0.0.1:1"), {}, 1)
    for _ in range(2):  # the turn is given back
        with pytest.raises(httpx.ConnectError):
            await wire.send(Request(method="GET", path="/"))


# ---------------------------------------------------------------------------------- pictures


def session(**changes: object) -> Session:
    document = {**MINIMUM, "lower": 0, "upper": 120, **changes}
    for name in ("epsilon_per_answer", "epsilon_total"):
        document[name] = Decimal(str(document[name]))
    return build(Session, document)


def test_what_is_left_of_the_range_follows_the_answers() -> None:
    step = {"lower": 0.0, "upper": 60.0, "threshold": 30.0}
    for protocol, decided, believed, left in (
        ("minimum", True, True, (0, 30)),
        ("minimum", True, False, (30, 60)),
        ("maximum", True, True, (30, 60)),
        ("maximum", True, False, (0, 30)),
        ("minimum", False, False, (0, 60)),
        ("maximum", False, False, (0, 60)),
    ):
        found = session(protocol=protocol, path=[{**step, "believed": believed, "decided": decided}])
        assert list(interval_left(found)) == list(left)
        console = Console(width=100, record=True, file=io.StringIO())
        console.print(picture(7, Tally(online=3, accepted=1_234), found))
        text = console.export_text()
        assert "round 1 of 2" in text
        assert "1,234 taken" in text
    assert interval_left(session()) == (0, 120)


def test_the_truth_is_that_of_the_values() -> None:
    values = ["3", "1.5", "10", "2"]
    assert truth(session(), values) == 1.5
    assert truth(session(protocol="maximum"), values) == 10
    assert truth(session(protocol="quantile", quantile=Decimal("0.5")), values) == 3


# ---------------------------------------------------------------------------------- the command


@pytest.mark.system
def test_a_crowd_in_two_processes_takes_part_and_another_contributes(
    live_server: LiveServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from app.cli import main

    service = live_server()
    capsys.readouterr()  # what the database said
    make_study(service, "age", trust=["local"])
    opened = open_session(service, "age", protocol="maximum", epsilon=4, participants=150, rounds=2)
    values = tmp_path / "values"
    values.write_text("\n".join(str(number % 90) for number in range(200)))
    command = ["simulate", "devices", "--url", service.base_url, "--study", "age", "--json"]
    command += ["--token", service.create_token("contribute"), "--values", str(values)]

    def run(*more: str) -> dict[str, object]:
        with pytest.raises(SystemExit) as end:
            main([*command, *more])
        assert end.value.code == 0
        document: dict[str, object] = json.loads(capsys.readouterr().out)
        return document

    taken = run("--session", opened["id"], "--processes", "2", "--directory", str(tmp_path / "devices"))
    assert (taken["state"], taken["devices"], taken["refused"]) == ("finished", 200, {})
    assert taken["truth"] == 89
    assert isinstance(taken["interval"], list)
    assert taken["interval"][0] <= 89

    given = run("--epsilon", "0.5", "--count", "50", "--prefix", "other-")
    assert (given["answers"], given["refused"]) == (50, {})
    with service.client() as admin:
        budget = admin.get("/v1/subjects/other-7/budget").json()
    assert budget["epsilon"]["spent"] == 0.5

    # A poll with regions: each device answers with one of its choices, and says its label.
    labels = {"region": ["north", "south"]}
    poll = {"trust": ["local"], "choices": ["red", "green", "blue"], "attributes": labels}
    make_study(service, "poll", lower=None, upper=None, **poll)
    start = command.index("--values")
    asked = [*command[:start], "--epsilon", "2", "--count", "40"]
    with pytest.raises(SystemExit) as end:
        main(["poll" if word == "age" else word for word in asked])
    voted = json.loads(capsys.readouterr().out)
    assert (end.value.code, voted["answers"], voted["refused"]) == (0, 40, {})
    assert asyncio.run(findings(service)) == []

    # Which device was refused, and why.
    values.write_text("7\n700\n")
    with pytest.raises(SystemExit) as end:
        main([word for word in [*command, "--prefix", "odd-"] if word != "--json"])
    assert end.value.code == 1
    said = capsys.readouterr().out
    assert "2 devices, 1 answer taken" in said
    assert "1 device refused: invalid_request, as odd-1: value lies outside the study's range" in said
    values.write_text("\n".join(str(number % 90) for number in range(200)))

    # A limit of their own below the price of the session: everybody refuses, and nothing is sent.
    again = open_session(service, "age", protocol="minimum", epsilon=4, participants=150, rounds=2)
    with pytest.raises(SystemExit) as end:
        main([*command, "--session", again["id"], "--epsilon", "3", "--count", "20"])
    assert end.value.code == 1
    assert json.loads(capsys.readouterr().out)["refused"] == {"max_epsilon_exceeded": 20}
    with pytest.raises(SystemExit) as end:
        main([*command, "--session", "00000000-0000-0000-0000-000000000000"])
    assert end.value.code == 1

    # Too few devices to fill the first round: those who are asked in the second one do not wait forever.
    capsys.readouterr()
    with pytest.raises(SystemExit) as end:
        main([*command, "--session", again["id"], "--count", "40", "--patience", "2"])
    said = capsys.readouterr().err
    assert end.value.code == 1
    assert re.search(r"gave up: round 1 of 2 has \d+ answers and waits for \d+: \d+ are missing", said), said


@pytest.mark.system
async def test_a_crowd_helps_to_find_clusters(live_server: LiveServer, tmp_path: Path) -> None:
    """Two clusters far from the first centers, found with an epsilon that hides little."""
    service = live_server(env={"DITHER_LIFETIME_EPSILON": "1000"})
    make_study(service, "places", trust=["central", "local"], dimension=2, epsilon={"min": 1, "max": 1000})
    people = 300
    opened = open_session(
        service,
        "places",
        protocol="kmeans",
        epsilon=900,
        rounds=2,
        centres=[[10, 50], [90, 50]],
        participants=people,
    )
    values: list[tuple[str, ...]] = [("30", "20"), ("70", "80")]
    orders = Orders(
        url=service.base_url,
        token=service.create_token("contribute"),
        directory=tmp_path / "devices",
        study="places",
        session=opened["id"],
        epsilon=None,
        devices=tuple(make_devices([*values], people, prefix="p", seed="1")),
        days=Days(share=1),
        started=time.time(),
        connections=16,
        patience=60,
    )
    tally = await fleet.run(orders, lambda tally, session: None)
    assert (tally.accepted, dict(tally.given)) == (2 * people, {2: people})
    found = read_session(service, opened["id"])
    assert found["state"] == "finished"
    assert found["centres"] == [pytest.approx([30, 20], abs=1), pytest.approx([70, 80], abs=1)]
    assert await findings(service) == []


def test_tallies_of_processes_add_up() -> None:
    one = Tally(online=1, done=2, accepted=30, first=10.0, last=20.0)
    two = Tally(online=4, late=1, accepted=20, first=0.0, last=0.0, finished=True)
    both = one.plus(two)
    assert (both.online, both.done, both.accepted, both.late, both.finished) == (5, 2, 50, 1, True)
    assert (both.first, both.last, both.rate) == (10.0, 20.0, 5.0)
    assert Tally().rate == 0
    assert processes.LOOK_SECONDS > fleet.REPORT_SECONDS
