"""What others notice of a bad neighbor with one token, or with none, beside a calm service."""

import asyncio
import contextlib
import gzip
import http.client
import json
import multiprocessing
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path

import psutil

from app.core.principal import Role
from benchmarks.load import Load, quantile
from benchmarks.releases import fill
from benchmarks.report import Ratio
from benchmarks.services import START_SECONDS, Caller, Installation, Refused, installation
from benchmarks.studies import contribution_requests, definition

RATE_GOAL, LATENCY_GOAL, RELEASE_GOAL, AFTER_GOAL = 0.5, 10.0, 5.0, 1.5
MEMORY_LIMIT_MB = 700.0

CONNECTIONS = 16
PACE = 40.0
"""Contributions a second of which latencies are taken."""

RELEASES = 5

FILL = 2.0
"""Seconds that people contribute before anything is measured."""

WARM_UP = 2.0
"""Seconds that an attack goes on before others are measured."""

CALM_AGAIN = 5.0
"""Seconds after an attack from which on releases are to be as quick as before it."""

STUDY, OTHER, LABELED, RELEASED = "age", "hostile", "labeled", "released"
"""Contributed to by others, attacked, planned for, and asked. Who is in the last one stays the same: how long
its releases take does not depend on how much was stored meanwhile."""

LABELS, PEOPLE, EPSILONS = 1_000, 20_000, 6
"""Of the studies that are planned for and asked."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One kind of bad neighbor.

    Attributes:
        connections: How many at once.
        pause: Seconds between two requests of one connection.
        strike: Sends one request, given a port and a token; returns when it is answered or cut off.
        role: Of the token.
    """

    connections: int
    pause: float
    strike: Callable[[int, str], None]
    role: Role = Role.CONTRIBUTE


def _send(port: int, token: str, path: str, headers: dict[str, str], body: bytes) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    try:
        connection.request(
            "POST",
            f"/v1/studies/{OTHER}/contributions{path}",
            body,
            {"Authorization": f"Bearer {token}", **headers},
        )
        connection.getresponse().read()
    finally:
        connection.close()


def duplicate_keys(port: int, token: str) -> None:
    """A document of 46 kB whose last key is its first but one."""
    names = [f'"{number}":0' for number in range(5_000)]
    body = ("{" + ",".join([*names, names[-1]]) + "}").encode()
    _send(port, token, "", {"Content-Type": "application/json"}, body)


def quoted_lines(port: int, token: str) -> None:
    """A CSV of some hundred bytes in gzip, which is one quote and a quarter of a million line ends."""
    body = gzip.compress(b'subject,value,epsilon,trust\n"' + b"\n" * 250_000)
    _send(port, token, "/batch", {"Content-Type": "text/csv", "Content-Encoding": "gzip"}, body)


def endless_header(port: int, token: str) -> None:
    """15 MB of headers and no end, without a token, at most 3 MB a second."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        line = b"X-Endless: " + b"x" * 8_000 + b"\r\n"
        for _ in range(50):
            connection.sendall(line * 37)
            time.sleep(0.1)


def unknown_names(port: int, token: str) -> None:
    """10 MB of records of which each has a thousand field names that no other record has."""
    _send(port, token, "/batch", {"Content-Type": "application/json"}, _unknown_names())


def many_values(port: int, token: str) -> None:
    """1 MB of values of one person."""
    _send(port, token, "/batch", {"Content-Type": "application/json"}, _many_values())


def plan_by_labels(port: int, token: str) -> None:
    """A plan for each of a thousand labels, which costs its asker nothing."""
    with Caller(port) as caller:
        caller.call("GET", f"/v1/studies/{LABELED}/plan?by=group", token)


def refused_batch(port: int, token: str) -> None:
    """Some 100 kB in gzip of a megabyte of records, whose last one breaks off."""
    _send(port, token, "/batch", {"Content-Type": "text/csv", "Content-Encoding": "gzip"}, _broken_off())


@cache
def _broken_off() -> bytes:
    lines = [f"person-{n},{n * 7919 % 120},0.{n * 31 % 90 + 10},central\n" for n in range(40_000)]
    return gzip.compress(("subject,value,epsilon,trust\n" + "".join(lines) + '"').encode())


@cache
def _unknown_names() -> bytes:
    """Made once: an attack costs its sender little."""
    records = (",".join(f'"{record}-{name}":0' for name in range(1_000)) for record in range(700))
    return ("[" + ",".join("{" + record + "}" for record in records) + "]").encode()


@cache
def _many_values() -> bytes:
    records = (
        f'{{"subject":"one","value":{n % 100}.{n},"epsilon":1,"trust":"central"}}' for n in range(15_000)
    )
    return ("[" + ",".join(records) + "]").encode()


ATTACKS: dict[str, Sequence[Attack]] = {
    "duplicate keys": [Attack(2, 1.0, duplicate_keys)],
    "quoted CSV in gzip": [Attack(8, 0.5, quoted_lines)],
    "endless headers": [Attack(20, 0.5, endless_header)],
    "hostile batches": [Attack(1, 0.5, unknown_names), Attack(1, 0.5, many_values)],
}
ALL = "all four"
HEAVY: dict[str, Sequence[Attack]] = {
    "eight planners": [Attack(8, 0.0, plan_by_labels, Role.ANALYSE)],
    "three refused batches": [Attack(3, 0.0, refused_batch)],
}
"""Work for which no one pays, in a loop."""


@contextmanager
def under(attacks: Sequence[Attack], port: int, tokens: Mapping[Role, str]) -> Iterator[None]:
    """The attacks go on within the block, in a process of their own."""
    if not attacks:
        yield
        return
    context = multiprocessing.get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_attack, args=(attacks, port, tokens, begun), daemon=True)
    process.start()
    try:
        if not begun.wait(START_SECONDS):
            raise RuntimeError("the attack did not begin")
        time.sleep(WARM_UP)
        yield
    finally:
        process.kill()
        process.join()


def _attack(attacks: Sequence[Attack], port: int, tokens: Mapping[Role, str], begun: Event) -> None:
    def neighbor(attack: Attack) -> None:
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException, Refused):
                attack.strike(port, tokens[attack.role])
            time.sleep(attack.pause)

    threads = [
        threading.Thread(target=neighbor, args=(attack,), daemon=True)
        for attack in attacks
        for _ in range(attack.connections)
    ]
    for thread in threads:
        thread.start()
    begun.set()
    for thread in threads:
        thread.join()


@dataclass
class Seen:
    """What others see: one number a round."""

    rate: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    release: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def run(*, quick: bool) -> list[Ratio]:
    """A round has a calm service and each attack on a service of its own, just started."""
    rounds, seconds = (1, 1.0) if quick else (3, 5.0)
    conditions: dict[str, Sequence[Attack]] = {"": (), **ATTACKS}
    conditions[ALL] = [attack for attacks in ATTACKS.values() for attack in attacks]
    conditions |= HEAVY
    if quick:
        conditions = {name: conditions[name] for name in ("", ALL, *HEAVY)}
    seen = {name: Seen() for name in conditions}
    with installation() as here:
        for slug in (STUDY, OTHER):
            here.create_study(definition(slug))
        people = PEOPLE // 10 if quick else PEOPLE
        labeled = here.create_study(definition(LABELED, labels=LABELS))
        asyncio.run(fill(here.url, {labeled: people}, EPSILONS, labels=LABELS))
        asyncio.run(fill(here.url, {here.create_study(definition(RELEASED)): people}, EPSILONS))
        tokens = {role: here.token(role) for role in (Role.CONTRIBUTE, Role.ANALYSE)}
        prefixes = cycle(f"{number}" for number in range(10**6))
        for _ in range(rounds):
            for name, attacks in conditions.items():
                with here.serve_command() as server:
                    _fill(server.port, here, next(prefixes))
                    with under(attacks, server.port, tokens):
                        _measure(server.port, here, next(prefixes), seconds, seen[name])
                    time.sleep(CALM_AGAIN if attacks else 0)
                    seen[name].after.append(_releases(server.port, here))
                    seen[name].memory.append(_peak_mb(server.pid))
    return [ratio for name in conditions if name for ratio in _ratios(name, seen[name], seen[""])]


def _fill(port: int, here: Installation, prefix: str) -> None:
    """People in the way of later ones; the first requests also warm the service up."""
    with Load(port, CONNECTIONS) as load:
        load.saturate(contribution_requests(STUDY, here.contribute, f"fill-{prefix}"), FILL).expect("201")
    _release(port, here)


def _measure(port: int, here: Installation, prefix: str, seconds: float, seen: Seen) -> None:
    requests = contribution_requests(STUDY, here.contribute, prefix)
    with Load(port, CONNECTIONS) as load:
        seen.rate.append(load.saturate(requests, seconds).expect("201").rate)
    with Load(port, CONNECTIONS) as load:
        seen.p99.append(quantile(load.pace(requests, seconds, PACE).expect("201").latencies, 0.99))
    seen.release.append(_releases(port, here))


def _releases(port: int, here: Installation) -> float:
    """Seconds of a new release, the median of several."""
    return statistics.median(_release(port, here) for _ in range(RELEASES))


def _release(port: int, here: Installation) -> float:
    """Seconds of a new release."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = json.dumps(
        {"statistic": "mean", "estimator": "uniform", "share": 0.0001, "fresh": True, "allow_worse": True}
    )
    headers = {"Authorization": f"Bearer {here.analyse}", "Content-Type": "application/json"}
    started = time.perf_counter()
    connection.request("POST", f"/v1/studies/{RELEASED}/releases", body, headers)
    response = connection.getresponse()
    answer = response.read()
    took = time.perf_counter() - started
    connection.close()
    if response.status != 201:
        raise RuntimeError(f"the release was answered {response.status}: {answer[:500]!r}")
    return took


def _peak_mb(pid: int) -> float:
    """The largest resident size that the process ever had."""
    status = Path(f"/proc/{psutil.Process(pid).pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _ratios(name: str, attacked: Seen, calm: Seen) -> list[Ratio]:
    note = (
        f"hostile: one process; {CONNECTIONS} connections of others; p99 of {PACE:.0f} contributions a "
        f"second; releases again {CALM_AGAIN:.0f} s after the attack; attacks from one token of their own, "
        "endless headers from none; baseline: the same, calm"
    )

    def ratio(
        what: str, unit: str, subject: list[float], baseline: list[float], goal: float, better
    ) -> Ratio:
        return Ratio(
            section="hostile",
            name=f"{what}: {name}",
            unit=unit,
            subject=subject,
            baseline=baseline,
            goal=goal,
            better=better,
            note=note,
        )

    limits = [MEMORY_LIMIT_MB] * len(attacked.memory)
    return [
        ratio("contributions", "1/s", attacked.rate, calm.rate, RATE_GOAL, "higher"),
        ratio("p99", "s", attacked.p99, calm.p99, LATENCY_GOAL, "lower"),
        ratio("release", "s", attacked.release, calm.release, RELEASE_GOAL, "lower"),
        ratio("release, after", "s", attacked.after, calm.after, AFTER_GOAL, "lower"),
        ratio("memory, of 700 MB", "MB", attacked.memory, limits, 1.0, "lower"),
    ]
