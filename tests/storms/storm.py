"""A storm by one seed: people, analysts and an admin of three processes, and what explains their answers."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tests.storms.fleet import Fleet, Told, fleet
from tests.storms.history import Anomaly, Call
from tests.storms.requests import (
    Request,
    archiving,
    asking,
    limiting,
    listing,
    offering,
    reading,
    replacing,
    withdrawing,
)
from tests.storms.weather import Chance, Turn

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

    @property
    def told(self) -> list[str]:
        """All that was decided."""
        return self._fleet.weather.told

    @property
    def calls(self) -> list[Call]:
        """All that was asked and answered."""
        return [call for _, call in self._told.calls]

    async def run(self) -> Outcome:
        """Let it happen, and look for what nothing explains."""
        course = Chance(
            draw=self._draw,
            strikes=self._draw.choice((0, 5, 15, 40)),
            stay=self._draw.choice((0, 50, 90)),
        )
        free_attempts = self._draw.choice((0, 1, 3))
        async with fleet(
            self._url, course, name=str(self.seed), processes=PROCESSES, free_attempts=free_attempts
        ) as self._fleet:
            self._told = Told(self._fleet, self._people, self._studies, BUDGET)
            await self._found()
            await self._fleet.weather.blow(self._clients())
            return await self._judged(self._fleet)

    async def _judged(self, fleet: Fleet) -> Outcome:
        unexplained = await self._told.unexplained()
        weather, calls = fleet.weather, self.calls
        return Outcome(
            seed=self.seed,
            story=weather.story,
            turns=weather.steps,
            calls=len(calls),
            unheard=sum(call.told is None for call in calls),
            said=self._told.said,
            struck=weather.struck,
            anomalies=unexplained,
            findings=await fleet.audited(),
            faults=tuple(self._told.faults),
        )

    # ------------------------------------------------------------------------------------ clients

    def _clients(self) -> list[Awaitable[None]]:
        does: list[tuple[str, Callable[[str, random.Random], Awaitable[None]]]] = [
            *((f"{name}/{device}", self._person) for name in self._people for device in ("phone", "web")),
            *((f"analyst-{number}", self._analyst) for number in range(ANALYSTS)),
            ("admin", self._admin),
        ]
        return [client(name, random.Random(f"{self.seed} {name}")) for name, client in does]

    async def _found(self) -> None:
        """Studies, accounts, and people who are there from the start."""
        await self._told.begin()
        for person in self._people:
            offer = offering(person, self._studies[0], self._draw.randrange(101), 1)
            await self._told.call("founder", 0, offer)

    async def _person(self, name: str, draw: random.Random) -> None:
        """One device of a person, who has another one."""
        person = name.partition("/")[0]
        for number in range(ACTIONS):
            study, word = draw.choice(self._studies), draw.choice(DOES)
            value, epsilon = draw.randrange(101), draw.choice(OFFERS)
            match word:
                case "contribute":
                    request = offering(person, study, value, epsilon)
                case "replace":
                    request = replacing(person, study, value, epsilon)
                case "withdraw":
                    request = withdrawing(person, study)
                case _:
                    request = reading(person)
            await self._until_told(name, number, request, draw)

    async def _analyst(self, name: str, draw: random.Random) -> None:
        """Asks with keys, some of them again long after their answer."""
        asked: list[Request] = []
        for number in range(ACTIONS):
            study, key = draw.choice(self._studies), f"{name}-{number}-{self.seed}"
            request = asking(study, draw.choice(SHARES), key, fresh=draw.random() < 0.25)
            if asked and draw.random() < 0.3:
                request = draw.choice(asked)
            elif asked and draw.random() < 0.1:
                request = replace(request, key=asked[0].key)
            elif draw.random() < 0.2:
                request = listing(study)
            else:
                asked.append(request)
            await self._until_told(name, number, request, draw)

    async def _admin(self, name: str, draw: random.Random) -> None:
        """Reads statements, sets budgets, and ends a study now and then."""
        for number in range(ACTIONS):
            person = draw.choice(self._people)
            request = reading(person)
            if draw.random() < 0.3:
                request = limiting(person, draw.choice(BUDGETS))
            elif number == ACTIONS - 1 and draw.random() < 0.5:
                request = archiving(draw.choice(self._studies))
            await self._until_told(name, number, request, draw)

    async def _until_told(self, name: str, number: int, request: Request, draw: random.Random) -> None:
        for attempt in range(TRIES):
            turn = Turn(name, number * TRIES + attempt, None)
            await self._fleet.weather.begin(turn)
            turn.process = draw.randrange(PROCESSES)
            if await self._told.call(name, turn.process, request, turn):
                return
        self._told.faults.append(f"no process answers {request}")
