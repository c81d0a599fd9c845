"""What each step costs as a function of people, studies, epsilons, labels and workers: time, bytes, memory.

A ladder of databases, each filled by batches over HTTP and then asked; `benchmarks.cost_model` fits models to
the points, and `benchmarks.scale_page` writes the page.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import asyncpg
import psutil

from app.sessions.search import Mode
from benchmarks import cost_model
from benchmarks.answers import answers, open_session
from benchmarks.batches import send
from benchmarks.dashboard import PAGES, Reader, await_figures, log_in
from benchmarks.load import Load
from benchmarks.points import PIECE, Cost, Point, Size, read, write
from benchmarks.releases import release
from benchmarks.report import Ratio
from benchmarks.services import Caller, Installation, installation
from benchmarks.studies import contribution_requests, definition

CONNECTIONS = 16
SECONDS = 3.0
"""How long single contributions and answers come."""
LATER = 5
NEW = 1_000
"""People who come after a release and before another."""
PAGES_READ = 9
EVERY = 0.5
"""How often memory is looked at [s]."""
MEMORY_GOAL = 500e6
WITHIN = 1.5
"""A prediction of the largest point is wrong by at most this factor."""
LARGEST = 1_000_000
QUICK_LARGEST = 10_000


def ladder(largest: int) -> list[Size]:
    """People up to a number, and at a tenth of it each of the other things apart."""
    tenth = max(largest // 10, 1_000)
    return [
        *(Size(people=people) for people in steps(largest)),
        *(Size(people=tenth, epsilons=epsilons) for epsilons in (10, 1_000)),
        *(Size(people=tenth, labels=labels) for labels in (10, 50)),
        *(Size(people=tenth, studies=studies) for studies in (3, 10)),
        Size(people=tenth, workers=2),
    ]


def steps(largest: int) -> list[int]:
    """1, 3, 10, 30 ... hundredths of a number up to it."""
    return [largest // 100, 3 * largest // 100, largest // 10, 3 * largest // 10, largest]


def run(*, quick: bool, largest: int | None = None, result: Path | None = None) -> list[Ratio]:
    """Measure the ladder, then one point of ten times as much, and compare it with what the ladder predicts.

    Args:
        quick: A smoke test.
        largest: People of the point that is predicted.
        result: Where points are kept; those that it has are not measured again.
    """
    largest = largest or (QUICK_LARGEST if quick else LARGEST)
    known = [Size(people=largest // 100), Size(people=largest // 10)] if quick else ladder(largest // 10)
    sizes = [*known, Size(people=largest)]
    points = read(result) if result is not None and result.exists() else []
    for size in sizes:
        if size not in [point.size for point in points]:
            points.append(measure(size))
            if result is not None:
                write(result, points)
    held_out = next(point for point in points if point.size == sizes[-1])
    return [*verdicts([point for point in points if point.size in known], held_out), memory(held_out)]


def verdicts(known: Sequence[Point], held_out: Point) -> list[Ratio]:
    """What was measured at the largest point beside what the others predict for it."""
    compared = cost_model.compare(known, held_out)
    return [
        Ratio(
            section="scale",
            name=name,
            unit=one.unit,
            subject=[one.measured],
            baseline=[one.predicted],
            goal=WITHIN,
            better="lower",
            note=f"scale: measured with {held_out.size.people:,} people, beside what models of up to "
            f"{max(point.size.people for point in known):,} people predict",
        )
        for name, one in compared.items()
    ]


def memory(point: Point) -> Ratio:
    """Memory of the service beside what it may take."""
    return Ratio(
        section="scale",
        name=f"memory of the service with {point.size.people:,} people",
        unit="byte",
        subject=[point.service_memory],
        baseline=[MEMORY_GOAL],
        goal=1.0,
        better="lower",
    )


# -------------------------------------------------------------------------------------- one point


def measure(size: Size) -> Point:
    """Fill a database of its own and ask it everything."""
    print(f"{time.strftime('%H:%M:%S')} {size}", file=sys.stderr, flush=True)
    point = Point(size=size)
    with installation() as here:
        for number in range(size.studies):
            here.create_study(definition(f"s{number}", epsilon_max=Decimal(1), labels=size.labels))
        cookie = here.use(log_in)
        with here.serve(workers=size.workers) as port, _Meter(here, point) as meter:
            _fill(port, here, meter)
            point.filled = asyncio.run(table_bytes(here.url))
            point.relations = asyncio.run(relation_bytes(here.url))
            _ask(port, here, meter)
            _load(port, here, meter)
            _look(port, here, meter, cookie)
            point.asked = asyncio.run(table_bytes(here.url))
            point.rows = asyncio.run(table_rows(here.url))
            point.cohorts = point.rows["cohort"]
            with meter.step("audit", 1):
                findings = here.use(lambda services: services.ledger.audit()).findings
    if findings:
        raise RuntimeError(f"the audit of {size} found {findings}")
    return point


def contributions(size: Size, first: int, last: int) -> bytes:
    """Some people's contributions; each has the same to say in every study."""
    lines = []
    for number in range(first, last):
        epsilon = (100_000 + number % size.epsilons * (900_000 // size.epsilons)) / 1e6
        # A label goes through all epsilons before the next one comes.
        group = f"g{number // size.epsilons % size.labels}"
        label = f',"attributes":{{"group":"{group}"}}' if size.labels > 1 else ""
        lines.append(
            f'{{"subject":"person-{number}","value":{number * 7919 % 12_000 / 100},"epsilon":{epsilon},'
            f'"trust":"central"{label}}}'
        )
    return "\n".join(lines).encode()


def _fill(port: int, here: Installation, meter: "_Meter") -> None:
    size = meter.point.size
    for study in range(size.studies):
        for first in range(0, size.people, PIECE):
            last = min(first + PIECE, size.people)
            body = contributions(size, first, last)
            with meter.step("batch of new people" if study == 0 else "batch", last - first):
                send(port, here, f"s{study}", "ndjson", body)


def _ask(port: int, here: Installation, meter: "_Meter") -> None:
    with meter.step("first release", 1):
        release(port, here, "s0", "optimal")
    for _ in range(LATER):
        with meter.step("release", 1):
            release(port, here, "s0", "optimal")
    size = meter.point.size
    send(port, here, "s0", "ndjson", contributions(size, size.people, size.people + NEW))
    with meter.step("release after new people", 1):
        release(port, here, "s0", "optimal")
    if size.labels > 1:
        with Caller(port) as caller:
            for number in range(1, LATER + 1):
                question = {"statistic": "mean", "by": "group", "share": number / 1_000}
                with meter.step("release by label", 1):
                    caller.call("POST", "/v1/studies/s0/releases", here.analyse, question)


def _load(port: int, here: Installation, meter: "_Meter") -> None:
    here.create_study(definition("single"))
    for name, requests in (
        ("contribution", contribution_requests("single", here.contribute, "single")),
        (
            "session answer",
            answers(open_session(here, Mode.USER_SPLIT, 1, "single"), here.contribute, "s", 1),
        ),
    ):
        with Load(port, CONNECTIONS) as load:
            load.saturate(requests, SECONDS / 3)
            with meter.step(name, 0) as cost:
                cost.count = load.saturate(requests, SECONDS).expect("201").statuses.total()


def _look(port: int, here: Installation, meter: "_Meter", cookie: str) -> None:
    with Caller(port) as caller:
        for number in range(PAGES_READ):
            with meter.step("budget of a person", 1):
                caller.call("GET", f"/v1/subjects/person-{number}/budget", here.contribute)
    reader = Reader(port=port, cookie=cookie)
    with meter.step("figures of all people", 1) as cost:
        reader.first_byte("/dashboard/budgets")
        cost.seconds = await_figures(here)
    for name, path in PAGES.items():
        for _ in range(PAGES_READ):
            with meter.step(f"page {name}", 1) as cost:
                _, cost.seconds = reader.first_byte(path.replace("n-7", "s0"))


class _Meter:
    """Clocks, and a thread that looks at memory."""

    def __init__(self, here: Installation, point: Point) -> None:
        self.point = point
        self._url = here.url
        self._postgres = asyncio.run(_postmaster(here.url))
        self._ended = threading.Event()
        self._watching = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Meter":
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watching.join()

    @contextmanager
    def step(self, name: str, count: int) -> Iterator[Cost]:
        """Note what happens here."""
        wal, service, database = self._wal(), _processor(self._service()), _processor(self._server())
        cost = Cost(count=count)
        started = time.perf_counter()
        yield cost
        cost.seconds = cost.seconds or time.perf_counter() - started
        # The time of a process that has ended is its parent's, a moment later.
        time.sleep(0.05)
        cost.service = _processor(self._service()) - service
        cost.database = _processor(self._server()) - database
        cost.wal = self._wal() - wal
        self.point.costs.setdefault(name, []).append(cost)

    def _watch(self) -> None:
        while not self._ended.wait(EVERY):
            self.point.service_memory = max(self.point.service_memory, _memory(self._service()))
            self.point.database_memory = max(self.point.database_memory, _memory(self._server()))

    def _service(self) -> list[psutil.Process]:
        return [one for one in psutil.Process().children(recursive=True) if one.name() != "postgres"]

    def _server(self) -> list[psutil.Process]:
        return [self._postgres, *self._postgres.children(recursive=True)]

    def _wal(self) -> int:
        return int(asyncio.run(_one(self._url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")))


def _processor(processes: Sequence[psutil.Process]) -> float:
    """Seconds of processes, and of children of theirs that ended."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def _memory(processes: Sequence[psutil.Process]) -> int:
    total = 0
    for process in processes:
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


TABLES = """
    SELECT CASE relname WHEN 'charge_block' THEN 'charge' ELSE relname END, pg_total_relation_size(oid)
    FROM pg_class
    WHERE relkind IN ('r', 'm') AND relnamespace = 'public'::regnamespace
"""
RELATIONS = """
    SELECT c.relname, pg_table_size(c.oid) FROM pg_class c
    LEFT JOIN pg_index i ON i.indexrelid = c.oid LEFT JOIN pg_class t ON t.oid = i.indrelid
    WHERE coalesce(t.relname, c.relname) IN ('contribution', 'subject') AND c.relkind IN ('r', 'i')
"""


async def table_bytes(url: str) -> dict[str, int]:
    """Bytes of each table, with its indexes."""
    return await _pairs(url, TABLES)


async def relation_bytes(url: str) -> dict[str, int]:
    """Bytes of the two large tables and of each of their indexes."""
    return await _pairs(url, RELATIONS)


async def table_rows(url: str) -> dict[str, int]:
    """Rows of the tables that grow."""
    return {
        table: int(await _one(url, f"SELECT count(*) FROM {table}"))
        for table in (
            "subject",
            "contribution",
            "cohort",
            "lineage",
            "charge",
            "release",
            "answer",
            "enrolment",
        )
    }


async def _pairs(url: str, query: str) -> dict[str, int]:
    connection = await asyncpg.connect(url)
    try:
        return dict(await connection.fetch(query))
    finally:
        await connection.close()


async def _one(url: str, query: str):
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def _postmaster(url: str) -> psutil.Process:
    """The parent of every connection's process."""
    connection = await asyncpg.connect(url)
    try:
        return psutil.Process(await connection.fetchval("SELECT pg_backend_pid()")).parent()
    finally:
        await connection.close()
