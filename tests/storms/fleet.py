"""Several processes of the service on one database, what clients were told, and what explains it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any

import asyncpg
import httpx
from fastapi import FastAPI

from app.core.epsilon import MICRO
from app.core.principal import Role
from app.main import create_app
from app.services import Services
from app.settings import Settings
from tests.api.service import SUBJECT_KEY
from tests.storms.history import Anomaly, Call, Model, anomalies
from tests.storms.models import Account, Person, Questions
from tests.storms.requests import (
    Request,
    digest,
    founding,
    limiting,
    listing,
    micro,
    reading,
    sending,
    told_by,
)
from tests.storms.weather import (
    BLOCKERS,
    BLOCKERS_ON_WORKERS,
    PROCESS,
    TURN,
    AtOnce,
    Course,
    Turn,
    Weather,
    governed,
)

DAY = 86_400.0


@dataclass
class Process:
    """One of several, with what it has begun."""

    app: FastAPI
    number: int
    open: AsyncExitStack = field(default_factory=AsyncExitStack)
    tasks: dict[asyncio.Task[httpx.Response], None] = field(default_factory=dict)
    transport: httpx.ASGITransport = field(init=False)
    services: Services = field(init=False)

    async def start(self) -> None:
        """Begin, with nothing in memory."""
        PROCESS.set(self.number)
        self.open = AsyncExitStack()
        state = await self.open.enter_async_context(self.app.router.lifespan_context(self.app))
        assert state is not None
        self.services = state["api"].services

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            await self.app({**scope, "state": dict(state)}, receive, send)

        self.transport = httpx.ASGITransport(with_state, raise_app_exceptions=False)

    async def end(self) -> None:
        """End what is open."""
        await self.open.aclose()

    async def again(self) -> None:
        """Start after a death."""
        await self.end()
        await self.start()


@dataclass
class Fleet:
    """Processes on one database.

    Attributes:
        weather: In what order all goes on.
        processes: By number.
        tokens: By role.
    """

    weather: Weather = field(init=False)
    processes: list[Process] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)

    async def die(self, number: int) -> None:
        """All that a process has begun ends where it is, its sessions with it, and it starts again."""
        process, own = self.processes[number], asyncio.current_task()
        self.weather.busy += 1
        try:
            for pid in self.weather.sessions.pop(number, ()):
                await self.weather.end(pid)
            # In the order in which they began: that of a set is by their addresses.
            ended, process.tasks = [task for task in process.tasks if task is not own], {}
            for task in ended:
                task.cancel()
            if ended:
                await asyncio.wait(ended)
            # The new process has nothing of the request at which the former one died.
            await asyncio.create_task(process.again(), context=Context())
        finally:
            self.weather.busy -= 1

    async def send(self, number: int, request: Request, turn: Turn | None = None) -> httpx.Response | None:
        """The response of a process; None where it died before it answered."""
        process = self.processes[number]
        headers = {"Authorization": f"Bearer {self.tokens[request.role]}"}
        if request.document:
            headers["Content-Type"] = "application/json"
        if request.key:
            headers["Idempotency-Key"] = request.key
        content = request.document.encode() or None
        sent = httpx.Request(request.method, f"http://storm{request.path}", headers=headers, content=content)
        transport = process.transport

        async def send() -> httpx.Response:
            TURN.set(turn)
            PROCESS.set(number)
            response = await transport.handle_async_request(sent)
            await response.aread()
            return response

        task = asyncio.create_task(send())
        process.tasks[task] = None
        await asyncio.wait({task})
        process.tasks.pop(task, None)
        return None if task.cancelled() else task.result()

    async def audited(self) -> tuple[str, ...]:
        """The findings of the audit."""
        return tuple(map(str, (await self.processes[0].services.ledger.audit()).findings))


@contextlib.asynccontextmanager
async def fleet(
    url: str, course: Course, *, name: str, processes: int, free_attempts: int
) -> AsyncIterator[Fleet]:
    """Processes that run.

    Args:
        url: A migrated database.
        course: What decides about the order of all that they do.
        name: Of its tokens.
        processes: How many.
        free_attempts: How often a release is tried without a lock.
    """
    asyncio.get_running_loop().set_default_executor(AtOnce())
    app = create_app(
        Settings(
            database_url=url,
            subject_key=SUBJECT_KEY,
            log_level="error",
            # A request waits for its turn however long the machine takes.
            request_timeout_seconds=DAY,
        )
    )
    control = await asyncpg.connect(url)
    try:
        distributed = await control.fetchval("SELECT count(*) FROM pg_extension WHERE extname = 'citus'")
        made = Fleet()
        made.weather = Weather(
            course=course,
            control=control,
            blockers=BLOCKERS_ON_WORKERS if distributed else BLOCKERS,
            die=made.die,
        )
        with governed(made.weather, free_attempts=free_attempts):
            async with AsyncExitStack() as stack:
                for number in range(processes):
                    process = Process(app=app, number=number)
                    made.processes.append(process)
                    stack.push_async_callback(process.end)
                    await process.start()
                for role in ("admin", "analyse", "contribute"):
                    _, made.tokens[role] = await made.processes[0].services.tokens.create(
                        name=f"{role} {name}", roles={Role(role)}, actor="storm"
                    )
                yield made
    finally:
        await control.close()


@dataclass
class Told:
    """What clients asked a fleet, and what they were told.

    Attributes:
        fleet: Whom they ask.
        people, studies: Whom and what they ask about.
        budget: What each person has at the beginning [epsilon].
        calls: Requests and what came of them.
        said: How often what was answered.
        faults: What must not be: requests that were answered with 500, or by no process at all.
    """

    fleet: Fleet
    people: Sequence[str]
    studies: Sequence[str]
    budget: int
    calls: list[tuple[Request, Call]] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    _moment: int = 0

    async def begin(self) -> None:
        """Make the studies and the budgets, which are no part of the history."""
        budgets = [limiting(person, self.budget) for person in self.people]
        for request in (*map(founding, self.studies), *budgets):
            response = await self.fleet.send(0, request)
            assert response is not None
            assert response.is_success, response.text

    async def call(self, name: str, process: int, request: Request, turn: Turn | None = None) -> bool:
        """Send a request once and note what came of it; whether it was answered."""
        self._moment += 1
        call = Call(who=name, does=request.does, told=None, began=self._moment)
        response = await self.fleet.send(process, request, turn)
        self._moment += 1
        told = None if response is None else told_by(request, response)
        if response is not None and response.status_code == 500:
            self.faults.append(f"500 for {request}")
        if told is not None:
            call = replace(call, told=told, ended=self._moment)
            self.said[told[0]] += 1
        self.calls.append((request, call))
        return told is not None

    async def unexplained(self) -> tuple[Anomaly, ...]:
        """Ask for everything again, and look for orders that explain it all: what has none."""
        keys = dict.fromkeys(request for request, _ in self.calls if request.key)
        for request in (*keys, *map(reading, self.people), *map(listing, self.studies)):
            await self.call("late", 0, request)
        known = {study: await self._known(study) for study in self.studies}
        histories: list[tuple[str, Model, Sequence[Call]]] = []
        charges = [
            self._charge(study, release, amounts)
            for study, releases in known.items()
            for release, (_, amounts) in releases.items()
        ]
        for person in self.people:
            own = [
                call for request, call in self.calls if request.person == person or call.does[0] == "archive"
            ]
            model = Person(start=Account(total=self.budget * MICRO))
            histories.append((person, model, [*own, *charges]))
        answers = {
            release: (study, one)
            for study, releases in known.items()
            for release, (one, _) in releases.items()
        }
        asked = [call for _, call in self.calls if call.does[0] in ("ask", "list", "archive")]
        histories.append(("answers", Questions(known=answers), asked))
        return tuple(anomalies(histories))

    async def _known(self, study: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The answers in the ledger: the digest of each, and what it charged [micro-epsilon]."""
        listed = await self.fleet.send(0, listing(study))
        assert listed is not None
        known: dict[str, tuple[str, tuple[int, ...]]] = {}
        for item in listed.json()["items"]:
            path = f"/v1/releases/{item['id']}"
            shown = await self.fleet.send(0, sending("GET", path))
            plain = await self.fleet.send(0, sending("GET", path, role="analyse"))
            assert shown is not None
            assert plain is not None
            amounts = {micro(charge["epsilon"]) for charge in shown.json()["charges"]}
            known[item["id"]] = digest(plain.content), tuple(sorted(amounts))
        return known

    def _charge(self, study: str, release: str, amounts: tuple[int, ...]) -> Call:
        """The moment of a release, between the first request that can have made it and its first answer."""
        asked = [call for _, call in self.calls if call.does[:2] == ("ask", study)]
        told = [call for call in asked if call.told is not None and release in call.told]
        questions = {call.does for call in told if call.told is not None and call.told[0] == "made"}
        makers = [call for call in asked if call.does in questions or not questions]
        return Call(
            who="service",
            does=("charge", study, amounts),
            told=("charged",),
            began=min(call.began for call in makers),
            ended=min((call.ended for call in told), default=float("inf")),
        )
