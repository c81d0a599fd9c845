"""A database that lets a test step in before, within and after a transaction."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.store.database import Database

Result = TypeVar("Result")

Step = Callable[[], Awaitable[None]]


class Crash(Exception):
    """The process is gone: nobody handles this and nobody hears of what was committed."""


@dataclass
class Interception:
    """What happens to the next transaction of a name. A step that raises ends the transaction there.

    Attributes:
        first: Before it begins.
        before_commit: After its last statement.
        after_commit: After its commit, before its caller hears of it.
        fired: Whether it came as far as the commit.
    """

    first: Step | None = None
    before_commit: Step | None = None
    after_commit: Step | None = None
    fired: bool = False


class InterceptedDatabase(Database):
    """The real database with interceptions and a count of what was begun."""

    def __init__(self, engine: AsyncEngine, schema: str | None = None) -> None:
        super().__init__(engine, schema)
        self.interceptions: dict[str, Interception] = {}
        """By name of the transaction; each is used once."""
        self.begun: Counter[str] = Counter()
        """How often a body was run, by name; more than the calls when the database asked for a retry."""

    async def run_tx(
        self,
        name: str,
        body: Callable[[AsyncConnection], Awaitable[Result]],
        *,
        isolation_level: str | None = None,
    ) -> Result:
        interception = self.interceptions.pop(name, None)

        async def intercepted(connection: AsyncConnection) -> Result:
            self.begun[name] += 1
            result = await body(connection)
            if interception is not None:
                interception.fired = True
                if interception.before_commit is not None:
                    await interception.before_commit()
            return result

        if interception is not None and interception.first is not None:
            await interception.first()
        result = await super().run_tx(name, intercepted, isolation_level=isolation_level)
        if interception is not None and interception.after_commit is not None:
            await interception.after_commit()
        return result


async def crash() -> None:
    """A step at which the process dies."""
    raise Crash
