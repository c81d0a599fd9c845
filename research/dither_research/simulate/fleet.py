"""Devices of one process: the SDK as a device runs it, many times over.

All of them share one asynchronous client, so they share connections, polls and the ledger's fsyncs, and one
directory: the ledger is kept by subject.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from dither import AsyncClient, DitherError, Participation, ProblemError, Session, TransportError

from dither_research.simulate.people import Days, Device
from dither_research.simulate.transport import CrowdClient

REPORT_SECONDS = 0.25
"""Time between two reports of how far it is."""

REPORTS_A_LOOK = 4
"""Reports between two looks at the session itself."""

ARRIVING = 32
ARRIVAL_SECONDS = 0.01
"""Devices that start at a time, and the pause between: the first do not wait for the last."""

COME_BACK_SECONDS = 0.5
"""How long a device waits before it retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the devices of one process do.

    Attributes:
        url, token: Where the service is, and as whom to talk to it.
        directory: Of the ledger.
        study: Contribute to it, where there is no session.
        session: Take part in it.
        epsilon: Of each contribution; with a session the most that a device gives, None without a limit.
        devices: All of this process.
        days: Who is online when.
        started: When the days begin [s since the epoch].
        connections: Limit of connections at a time.
        patience: Time without a success, or an answer to the open round, after which it gives up [s].
    """

    url: str
    token: str
    directory: Path
    study: str
    session: str | None
    epsilon: Decimal | None
    devices: tuple[Device, ...]
    days: Days
    started: float
    connections: int
    patience: float


@dataclass(slots=True)
class Tally:
    """What the devices have done so far.

    Attributes:
        online: Devices that are online now.
        done: Devices that have nothing left to do.
        accepted: Answers, or contributions, that the service took.
        late: Answers that came when their round was closed.
        returned: How often a device went offline before it was done.
        unanswered: How often a device got no answer, and tried again later.
        refused: Devices that were refused, or refused themselves, by code.
        reasons: Of each code, the first device that was refused with it, and why.
        given: By how many answers a device gave: how many devices.
        finished: Whether a device has seen the session finished.
        first, last: When the first and the last success was [s since the epoch]; 0 without any.
    """

    online: int = 0
    done: int = 0
    accepted: int = 0
    late: int = 0
    returned: int = 0
    unanswered: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    given: Counter[int] = field(default_factory=Counter)
    finished: bool = False
    first: float = 0.0
    last: float = 0.0

    def plus(self, other: "Tally") -> "Tally":
        """What both have done together."""
        return Tally(
            online=self.online + other.online,
            done=self.done + other.done,
            accepted=self.accepted + other.accepted,
            late=self.late + other.late,
            returned=self.returned + other.returned,
            unanswered=self.unanswered + other.unanswered,
            refused=self.refused + other.refused,
            reasons=other.reasons | self.reasons,
            given=self.given + other.given,
            finished=self.finished or other.finished,
            first=min(filter(None, (self.first, other.first)), default=0.0),
            last=max(self.last, other.last),
        )

    @property
    def rate(self) -> float:
        """Successes a second, from the first to the last."""
        return self.accepted / (self.last - self.first) if self.last > self.first else 0.0


Report = Callable[[Tally, Session | None], None]
"""Takes what the devices have done, and the session as it is, where there was a look at it."""


async def run(orders: Orders, report: Report) -> Tally:
    """Let all devices do what they are there for.

    Args:
        orders: What that is.
        report: Called from time to time, and at the end.

    Raises:
        TransportError: nothing succeeded for longer than the patience.
        DitherError: the open round of the session got no answer for as long, and does not close.
        ProblemError: the service refuses all devices: a wrong token, an unknown study or session.
        DeviceRefusal: the description is refused.
    """
    client = CrowdClient(
        orders.url,
        orders.token,
        directory=orders.directory,
        max_epsilon=orders.epsilon if orders.session is not None else None,
        connections=orders.connections,
    )
    async with client:
        # Once for all, so that a common fault is reported once.
        await client.study(orders.study)
        if orders.session is not None:
            await client.session(orders.session)
        fleet = _Fleet(orders, client)
        tasks: list[asyncio.Task[None]] = []
        crowd = asyncio.create_task(fleet.gather(tasks))
        try:
            for number in itertools.count():
                await asyncio.wait([crowd], timeout=REPORT_SECONDS)
                looked = orders.session is not None and (number % REPORTS_A_LOOK == 0 or crowd.done())
                session = await fleet.look() if looked else None
                report(fleet.tally, session)
                if crowd.done():
                    break
                if session is not None:
                    fleet.check_progress(session)
            await crowd
        finally:
            for task in (crowd, *tasks):
                task.cancel()
            await asyncio.gather(crowd, *tasks, return_exceptions=True)
        return fleet.tally


class _Fleet:
    def __init__(self, orders: Orders, client: AsyncClient) -> None:
        self.tally = Tally()
        self._orders = orders
        self._client = client
        self._last_success = self._moved = time.monotonic()
        self._reached: tuple[int | None, object] | None = None
        self._over = asyncio.Event()

    async def gather(self, tasks: list[asyncio.Task[None]]) -> None:
        """Start all devices, some at a time, and wait until they are done."""
        for device in self._orders.devices:
            tasks.append(asyncio.create_task(self.live(device)))
            if len(tasks) % ARRIVING == 0:
                await asyncio.sleep(ARRIVAL_SECONDS)
        await asyncio.gather(*tasks)

    async def live(self, device: Device) -> None:
        """A device comes and goes until it has nothing left to do."""
        days, answers = self._orders.days, 0

        def count(part: Participation) -> None:
            nonlocal answers
            if len(part.rounds) > answers:
                answers = len(part.rounds)
                self._succeed()
            else:
                self.tally.late += 1

        while not self._over.is_set():
            pause = days.until_online(device, self._elapsed)
            if pause:
                await self._offline(pause)
                continue
            self.tally.online += 1
            try:
                async with asyncio.timeout(days.until_offline(device, self._elapsed)):
                    await self._act(device, count)
                break
            except TimeoutError:
                self.tally.returned += 1
            except TransportError:
                await self._come_back()
            except ProblemError as problem:
                if problem.status not in (429, 502, 503, 504):
                    self._refused(device, problem)
                    break
                await self._come_back()
            except DitherError as refusal:
                self._refused(device, refusal)
                break
            finally:
                self.tally.online -= 1
        self.tally.done += 1
        self.tally.given[answers] += 1

    async def look(self) -> Session | None:
        """The session as it is; None where the service does not answer."""
        with suppress(TransportError, ProblemError):
            return await self._client.session(self._orders.session or "")
        return None

    def check_progress(self, session: Session) -> None:
        """Give up on a round that does not fill: devices that are asked in later ones would wait forever.

        Raises:
            DitherError: no answer came for too long, and its time, if it has one, is over.
        """
        answers, wanted = session.raw["answers"], session.answers_per_round
        if session.round is None or (session.round, answers) != self._reached:
            self._reached, self._moved = (session.round, answers), time.monotonic()
        elif time.monotonic() - self._moved > self._orders.patience + (session.round_seconds or 0):
            missing = "closes when an admin does it" if wanted is None else f"waits for {wanted}"
            if wanted is not None and isinstance(answers, int):
                missing += f": {wanted - answers} are missing"
            raise DitherError(
                f"gave up: round {session.round} of {session.rounds} has {answers} answers and {missing}; "
                f"none came for {self._orders.patience:g} s (--patience)"
            )

    async def _act(self, device: Device, count: Callable[[Participation], None]) -> None:
        orders = self._orders
        if orders.session is not None:
            assert not isinstance(device.value, dict), "a study of measures holds no session"
            part = await self._client.participate(
                orders.session, subject=device.subject, value=device.value, on_progress=count
            )
            if part.finished:
                self.tally.finished = True
                self._over.set()
            return
        await self._client.contribute(
            orders.study,
            subject=device.subject,
            value=device.value,
            epsilon=orders.epsilon,
            trust="local",
            attributes=device.attributes or None,
            check_spent=False,  # no other device has these subjects
        )
        self._succeed()

    def _refused(self, device: Device, refusal: DitherError) -> None:
        self.tally.refused[refusal.code] += 1
        self.tally.reasons.setdefault(refusal.code, f"{device.subject}: {refusal}")

    @property
    def _elapsed(self) -> float:
        return time.time() - self._orders.started

    def _succeed(self) -> None:
        self.tally.accepted += 1
        self._last_success = time.monotonic()
        self.tally.last = time.time()
        self.tally.first = self.tally.first or self.tally.last

    async def _offline(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()

    async def _come_back(self) -> None:
        """Try again later.

        Raises:
            TransportError: no device has got an answer for too long.
        """
        self.tally.unanswered += 1
        if time.monotonic() - self._last_success > self._orders.patience:
            raise TransportError(f"no success for {self._orders.patience:g} seconds")
        await asyncio.sleep(COME_BACK_SECONDS)
