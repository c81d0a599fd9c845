"""A storm by one seed: people, analysts and an admin of three processes, and what explains their answers."""

import asyncio
import hashlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
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
from tests.storms.weather import (
    BLOCKERS,
    BLOCKERS_ON_WORKERS,
    PROCESS,
    TURN,
    AtOnce,
    Turn,
    Weather,
    governed,
)

PROCESSES = 3
ANALYSTS = 3
ACTIONS = 5
"""Of each client."""

PEOPLE = ("ann", "bob", "eve", "joe")
STUDIES = ("one", "two")
BUDGET = 3
OFFERS = (1, 2)
BUDGETS = (2, 3, 4)
SHARES = (1, 2, 3, 4)
DOES = ("contribute", "contribute", "contribute", "replace", "withdraw", "statement", "statement")
TRIES = 60
"""After which a client gives up where it gets no answer. In the worst weather two of three tries get none:
twenty in a row come now and then, sixty never."""

DAY = 86_400.0

UNHEARD = (429, 500, 503)
"""Statuses that tell nothing of what was done."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sends; the document as JSON."""

    method: str
    path: str
    document: str = ""
    key: str = ""
    role: str = "admin"

    @property
    def does(self) -> tuple[Any, ...]:
        """What a call does, for the models, and after it whom it is about."""
        document = json.loads(self.document or "{}")
        match self.method, self.path.partition("?")[0].split("/")[2:]:
            case "POST", ("studies", study, "contributions"):
                return ("contribute", study, document["value"], micro(document["epsilon"]))
            case "PUT", ("studies", study, "contributions", _):
                return ("replace", study, document["value"], micro(document["epsilon"]))
            case "DELETE", ("studies", study, "contributions", _):
                return ("withdraw", study)
            case "GET", ("subjects", _, "budget"):
                return ("statement",)
            case "PUT", ("admin", "subjects", _, "budget"):
                return ("budget", micro(document["epsilon"]))
            case "POST", ("studies", study, "archive"):
                return ("archive", study)
            case "GET", ("studies", study, "releases"):
                return ("list", study)
            case "POST", ("studies", study, "releases"):
                return ("ask", study, micro(document["share"]), document["fresh"], self.key)
        raise AssertionError(f"{self} is no request of a storm")

    @property
    def person(self) -> str:
        """Whom it is about; empty: no single person."""
        match self.path.split("/")[2:]:
            case ("studies", _, "contributions"):
                return str(json.loads(self.document)["subject"])
            case ("studies", _, "contributions", person) | ("subjects", person, _):
                return person
            case ("admin", "subjects", person, _):
                return person
        return ""


def sending(method: str, path: str, document: Any = None, key: str = "", role: str = "admin") -> Request:
    """A request with a document."""
    return Request(method, path, "" if document is None else json.dumps(document), key, role)


def micro(epsilon: float) -> int:
    """An epsilon of the wire in micro-epsilon."""
    return round(epsilon * MICRO)


def digest(content: bytes) -> str:
    """Of an answer."""
    return hashlib.sha256(content).hexdigest()[:12]


def told_by(request: Request, response: httpx.Response) -> tuple[Any, ...] | None:
    """What a response says, in the models' words; None where it says nothing of what was done."""
    if response.status_code in UNHEARD:
        return None
    document = response.json() if response.content else {}
    if not response.is_success:
        return (document["code"],)
    match request.does[0]:
        case "contribute":
            return ("created" if response.status_code == 201 else "unchanged",)
        case "replace":
            return ("replaced",)
        case "ask":
            word = "made" if response.status_code == 201 else "stands"
            return (word, document["id"], digest(response.content))
        case "list":
            return ("listed", *sorted(item["id"] for item in document["items"]))
        case "statement":
            account = document["epsilon"]
            lines = sorted(
                (line["study"], line["live"], micro(line["epsilon"]), micro(line["spent"]))
                for line in document["studies"]
            )
            return ("shows", *(micro(account[name]) for name in ("total", "reserved", "spent")), *lines)
    return ("ok",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a storm came to.

    Attributes:
        seed: Of it.
        story: Digest of all that was decided.
        turns: How many statements and requests had their turn.
        calls, unheard: How many requests there were, and of how many nobody heard.
        said: How often what was answered.
        struck: How often each strike fell.
        anomalies: Histories that nothing explains.
        findings: Of the audit.
        faults: What else must not be: requests that were answered with 500, or by no process at all.
    """

    seed: int
    story: str
    turns: int
    calls: int
    unheard: int
    said: Counter[str]
    struck: Counter[str]
    anomalies: tuple[Anomaly, ...]
    findings: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def well(self) -> bool:
        """Whether everything is explained."""
        return not (self.anomalies or self.findings or self.faults)

    def __str__(self) -> str:
        """In one line, and more where something is wrong."""
        line = (
            f"seed {self.seed}: {self.turns} turns, {self.calls} calls, {self.unheard} unheard, "
            f"{self.struck.total()} strikes, story {self.story}"
        )
        return "\n".join([line, *map(str, self.anomalies), *self.findings, *self.faults])


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


class Storm:
    """Clients, who try again until they are answered, and what they were told.

    Args:
        seed: Of everything.
        url: A migrated database. Storms with other seeds may have been there.
    """

    def __init__(self, seed: int, url: str) -> None:
        self.seed = seed
        self._url = url
        self._draw = random.Random(seed)
        self._people = tuple(f"{name}-{seed}" for name in PEOPLE)
        self._studies = tuple(f"{name}-{seed}" for name in STUDIES)
        self._moment = 0
        self._calls: list[tuple[Request, Call]] = []
        self._said: Counter[str] = Counter()
        self._faults: list[str] = []
        self._processes: list[Process] = []
        self._tokens: dict[str, str] = {}

    @property
    def told(self) -> list[str]:
        """All that was decided."""
        return self._weather.told

    @property
    def calls(self) -> list[Call]:
        """All that was asked and answered."""
        return [call for _, call in self._calls]

    async def run(self) -> Outcome:
        """Let it happen, and look for what nothing explains."""
        asyncio.get_running_loop().set_default_executor(AtOnce())
        control = await asyncpg.connect(self._url)
        distributed = await control.fetchval("SELECT count(*) FROM pg_extension WHERE extname = 'citus'")
        self._weather = Weather(
            draw=self._draw,
            control=control,
            blockers=BLOCKERS_ON_WORKERS if distributed else BLOCKERS,
            die=self._die,
            strikes=self._draw.choice((0, 5, 15, 40)),
            stay=self._draw.choice((0, 50, 90)),
        )
        app = create_app(
            Settings(
                database_url=self._url,
                subject_key=SUBJECT_KEY,
                log_level="error",
                # A request waits for its turn however long the machine takes.
                request_timeout_seconds=DAY,
            )
        )
        try:
            with governed(self._weather, free_attempts=self._draw.choice((0, 1, 3))):
                async with AsyncExitStack() as stack:
                    for number in range(PROCESSES):
                        process = Process(app=app, number=number)
                        self._processes.append(process)
                        stack.push_async_callback(process.end)
                        await process.start()
                    await self._found()
                    clients = asyncio.gather(*self._clients())
                    try:
                        await self._weather.blow(clients)
                    finally:
                        clients.cancel()
                        done = await asyncio.gather(clients, return_exceptions=True)
                    if isinstance(done[0], Exception):
                        raise done[0]
                    return await self._judged()
        finally:
            await control.close()

    async def _die(self, number: int) -> None:
        """All that a process has begun ends where it is, its sessions with it, and it starts again."""
        process, own = self._processes[number], asyncio.current_task()
        self._weather.busy += 1
        try:
            for pid in self._weather.sessions.pop(number, ()):
                await self._weather.end(pid)
            # In the order in which they began: that of a set is by their addresses.
            ended, process.tasks = [task for task in process.tasks if task is not own], {}
            for task in ended:
                task.cancel()
            if ended:
                await asyncio.wait(ended)
            # The new process has nothing of the request at which the former one died.
            await asyncio.create_task(process.again(), context=Context())
        finally:
            self._weather.busy -= 1

    # ------------------------------------------------------------------------------------ clients

    def _clients(self) -> list[Awaitable[None]]:
        does: list[tuple[str, Callable[[str, random.Random], Awaitable[None]]]] = [
            *((f"{name}/{device}", self._person) for name in self._people for device in ("phone", "web")),
            *((f"analyst-{number}", self._analyst) for number in range(ANALYSTS)),
            ("admin", self._admin),
        ]
        return [client(name, random.Random(f"{self.seed} {name}")) for name, client in does]

    async def _found(self) -> None:
        """Tokens, studies, accounts, and people who are there from the start."""
        for role in ("admin", "analyse", "contribute"):
            _, self._tokens[role] = await self._processes[0].services.tokens.create(
                name=f"{role} {self.seed}", roles={Role(role)}, actor="storm"
            )
        terms = {"lower": 0, "upper": 100, "default_share": 1, "epsilon": {"min": 1, "max": 2}}
        for study in self._studies:
            await self._must(sending("POST", "/v1/studies", {"slug": study, **terms}))
        for person in self._people:
            await self._must(self._budget(person, BUDGET))
            await self._call(
                "founder", 0, self._offer(person, self._studies[0], self._draw.randrange(101), 1)
            )

    async def _must(self, request: Request) -> None:
        response = await self._send(0, request)
        assert response is not None
        assert response.is_success, response.text

    async def _person(self, name: str, draw: random.Random) -> None:
        """One device of a person, who has another one."""
        person = name.partition("/")[0]
        for number in range(ACTIONS):
            study, word = draw.choice(self._studies), draw.choice(DOES)
            value, epsilon = draw.randrange(101), draw.choice(OFFERS)
            own, given = f"/v1/studies/{study}/contributions/{person}", {"value": value, "epsilon": epsilon}
            match word:
                case "contribute":
                    request = self._offer(person, study, value, epsilon)
                case "replace":
                    request = sending("PUT", own, {**given, "trust": "central"}, role="contribute")
                case "withdraw":
                    request = sending("DELETE", own, role="contribute")
                case _:
                    request = sending("GET", f"/v1/subjects/{person}/budget")
            await self._until_told(name, number, request, draw)

    async def _analyst(self, name: str, draw: random.Random) -> None:
        """Asks with keys, some of them again long after their answer."""
        asked: list[Request] = []
        for number in range(ACTIONS):
            study, key = draw.choice(self._studies), f"{name}-{number}-{self.seed}"
            document = {
                "statistic": "mean",
                "estimator": "uniform",
                "share": draw.choice(SHARES) / 4,
                "fresh": draw.random() < 0.25,
                "allow_worse": True,
            }
            request = sending("POST", f"/v1/studies/{study}/releases", document, key, "analyse")
            if asked and draw.random() < 0.3:
                request = draw.choice(asked)
            elif asked and draw.random() < 0.1:
                request = replace(request, key=asked[0].key)
            elif draw.random() < 0.2:
                request = sending("GET", f"/v1/studies/{study}/releases?limit=100")
            else:
                asked.append(request)
            await self._until_told(name, number, request, draw)

    async def _admin(self, name: str, draw: random.Random) -> None:
        """Reads statements, sets budgets, and ends a study now and then."""
        for number in range(ACTIONS):
            person = draw.choice(self._people)
            request = sending("GET", f"/v1/subjects/{person}/budget")
            if draw.random() < 0.3:
                request = self._budget(person, draw.choice(BUDGETS))
            elif number == ACTIONS - 1 and draw.random() < 0.5:
                path = f"/v1/studies/{draw.choice(self._studies)}/archive"
                request = sending("POST", path, {"reason": "the storm"})
            await self._until_told(name, number, request, draw)

    def _offer(self, person: str, study: str, value: int, epsilon: int) -> Request:
        document = {"subject": person, "value": value, "epsilon": epsilon, "trust": "central"}
        return sending("POST", f"/v1/studies/{study}/contributions", document, role="contribute")

    def _budget(self, person: str, epsilon: int) -> Request:
        document = {"epsilon": epsilon, "reason": "the storm"}
        return sending("PUT", f"/v1/admin/subjects/{person}/budget", document)

    async def _until_told(self, name: str, number: int, request: Request, draw: random.Random) -> None:
        for attempt in range(TRIES):
            turn = Turn(name, number * TRIES + attempt, None)
            await self._weather.begin(turn)
            turn.process = draw.randrange(PROCESSES)
            if await self._call(name, turn.process, request, turn):
                return
        self._faults.append(f"no process answers {request}")

    async def _call(self, name: str, process: int, request: Request, turn: Turn | None = None) -> bool:
        """Send a request once and note what came of it; whether it was answered."""
        self._moment += 1
        call = Call(who=name, does=request.does, told=None, began=self._moment)
        response = await self._send(process, request, turn)
        self._moment += 1
        told = None if response is None else told_by(request, response)
        if response is not None and response.status_code == 500:
            self._faults.append(f"500 for {request}")
        if told is not None:
            call = replace(call, told=told, ended=self._moment)
            self._said[told[0]] += 1
        self._calls.append((request, call))
        return told is not None

    async def _send(self, number: int, request: Request, turn: Turn | None = None) -> httpx.Response | None:
        """The response of a process; None where it died before it answered."""
        process = self._processes[number]
        headers = {"Authorization": f"Bearer {self._tokens[request.role]}"}
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

    # ------------------------------------------------------------------------------------ what explains it

    async def _judged(self) -> Outcome:
        """Ask for everything again, and look for orders that explain it all."""
        reads = [sending("GET", f"/v1/subjects/{person}/budget") for person in self._people]
        lists = [sending("GET", f"/v1/studies/{study}/releases?limit=100") for study in self._studies]
        keys = dict.fromkeys(request for request, _ in self._calls if request.key)
        for request in (*keys, *reads, *lists):
            await self._call("late", 0, request)
        known = {study: await self._known(study) for study in self._studies}
        histories: list[tuple[str, Model, Sequence[Call]]] = []
        charges = [
            self._charge(study, release, amounts)
            for study, releases in known.items()
            for release, (_, amounts) in releases.items()
        ]
        for person in self._people:
            own = [
                call for request, call in self._calls if request.person == person or call.does[0] == "archive"
            ]
            model = Person(start=Account(total=BUDGET * MICRO))
            histories.append((person, model, [*own, *charges]))
        answers = {
            release: (study, one)
            for study, releases in known.items()
            for release, (one, _) in releases.items()
        }
        asked = [call for call in self.calls if call.does[0] in ("ask", "list", "archive")]
        histories.append(("answers", Questions(known=answers), asked))
        audited = await self._processes[0].services.ledger.audit()
        return Outcome(
            seed=self.seed,
            story=self._weather.story,
            turns=self._weather.steps,
            calls=len(self._calls),
            unheard=sum(call.told is None for _, call in self._calls),
            said=self._said,
            struck=self._weather.struck,
            anomalies=tuple(anomalies(histories)),
            findings=tuple(map(str, audited.findings)),
            faults=tuple(self._faults),
        )

    async def _known(self, study: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        """The answers in the ledger: the digest of each, and what it charged [micro-epsilon]."""
        listed = await self._send(0, sending("GET", f"/v1/studies/{study}/releases?limit=100"))
        assert listed is not None
        known: dict[str, tuple[str, tuple[int, ...]]] = {}
        for item in listed.json()["items"]:
            path = f"/v1/releases/{item['id']}"
            shown = await self._send(0, sending("GET", path))
            plain = await self._send(0, sending("GET", path, role="analyse"))
            assert shown is not None
            assert plain is not None
            amounts = {micro(charge["epsilon"]) for charge in shown.json()["charges"]}
            known[item["id"]] = digest(plain.content), tuple(sorted(amounts))
        return known

    def _charge(self, study: str, release: str, amounts: tuple[int, ...]) -> Call:
        """The moment of a release, between the first request that can have made it and its first answer."""
        asked = [call for _, call in self._calls if call.does[:2] == ("ask", study)]
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
