"""Sessions on the workbench: started with a few words, answered by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from dither.device.response import assigned_round

from app.core.clock import SystemClock
from app.core.epsilon import MICRO
from app.core.session import Answer, Given, SessionProtocol
from app.core.study import Study
from app.services import Services
from app.services.sessions.answer_intake import take_answers
from app.services.sessions.rounds import Rounds
from app.services.sessions.session_cache import Session
from app.services.sessions.sessions import Schedule
from app.sessions.protocols import SessionSpec
from app.sessions.search import Mode
from app.store.contributions import Allowance
from tests.store.workbench import ADMIN, KEY, LIFETIME_EPSILON, TOKEN, Workbench


class HandClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 31, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def pass_seconds(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


def spec(**changes: Any) -> SessionSpec:
    """A minimum in three rounds that everybody answers with an epsilon of 2, unless told otherwise."""
    fields: dict[str, Any] = {
        "protocol": SessionProtocol.MINIMUM,
        "epsilon": 6 * MICRO,
        "mode": Mode.BUDGET_SPLIT,
        "rounds": 3,
        "participants": 100,
    }
    return SessionSpec(**fields | changes)


def schedule(**changes: Any) -> Schedule:
    """Nothing but an admin or the deadline ends anything, unless told otherwise."""
    fields: dict[str, Any] = {"answers_per_round": None, "round_seconds": None, "deadline_seconds": 1000}
    return Schedule(**fields | changes)


@dataclass(frozen=True)
class Stage:
    """A session and the processes that run it."""

    bench: Workbench
    id: UUID
    key: bytes | None
    rounds: int

    @classmethod
    async def set(
        cls, bench: Workbench, study: Study, *, when: Schedule | None = None, **wished: Any
    ) -> "Stage":
        made = await bench.services.sessions.create(
            study,
            spec(**wished),
            when or schedule(),
            ADMIN,
            render=lambda session: session.definition.id.bytes,
        )
        session = await bench.services.sessions.get(UUID(bytes=made))
        return cls(bench, session.definition.id, session.definition.assignment_key, session.terms.rounds)

    def made(self, name: str, round_number: int, answer: int = 1) -> Answer:
        """What somebody's device sends."""
        assigned = None if self.key is None else assigned_round(self.key, name, self.rounds)
        return Answer(
            subject=KEY.digest(name), sender=TOKEN, round=round_number, assigned=assigned, answer=answer
        )

    async def answer(
        self, name: str, round_number: int, answer: int = 1, *, services: Services | None = None
    ) -> Given:
        """Somebody answers, at one of the processes."""
        process = services or self.bench.services
        session = await process.sessions.find(self.id)
        return await process.answers.take(session, self.made(name, round_number, answer))

    async def everybody(self, names: Sequence[str], round_number: int, answer: int = 1) -> None:
        """All of them answer, one after the other."""
        for name in names:
            await self.answer(name, round_number, answer)

    async def group(self, answers: Sequence[Answer]) -> list[str]:
        """What becomes of answers that are committed together."""
        session = await self.now()
        taken = await self.bench.services.database.run_tx(
            "test.group",
            lambda c: take_answers(
                c,
                session.definition,
                session.terms,
                answers,
                rounds=Rounds(SystemClock()),
                allowance=Allowance(epsilon=LIFETIME_EPSILON),
            ),
        )
        return [one.outcome.value for one in taken.given]

    async def close(self, round_number: int) -> Session:
        """An admin closes a round."""
        return await self.bench.services.sessions.close_round(self.id, round_number, ADMIN)

    async def finish(self) -> Session:
        """An admin ends it."""
        return await self.bench.services.sessions.finish(self.id, ADMIN)

    async def now(self) -> Session:
        """As it stands."""
        return await self.bench.services.sessions.get(self.id)

    async def stored(self, round_number: int) -> int:
        """Answers that are stored for a round."""
        query = "SELECT count(*) FROM answer WHERE session_id = $1 AND round = $2"
        return int(await self.bench.value(query, self.id, round_number))

    async def held(self, name: str) -> tuple[int, int]:
        """What somebody reserves and has spent in the session [micro-epsilon]."""
        statement = await self.bench.services.budgets.statement(KEY.digest(name))
        lines = [line for line in statement.sessions if line.session == str(self.id)]
        return (lines[0].epsilon, lines[0].spent) if lines else (0, 0)
