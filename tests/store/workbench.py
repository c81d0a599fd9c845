"""The real services on a real database, as several API processes would run them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg

from app.core.clock import Clock, SystemClock
from app.core.contribution import Offer
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.principal import Principal, Role
from app.core.study import Relation, Study, StudyDefinition, Trust
from app.services import Services
from app.services.admin.ledger import Finding
from app.services.contributing.batches import Batch
from app.services.replies import Idempotency
from app.services.statistics.questions import Ask
from app.services.subjects import SubjectKey
from app.store import cohorts
from app.store.database import Database

KEY = SubjectKey(bytes(range(32)))

TOKEN = UUID(int=1)

LIFETIME_EPSILON = 10 * MICRO
LIFETIME_DELTA = 10_000_000

EVERY_TRUST = frozenset(Trust)

SHARE_ONE = MICRO

_slugs = count(1)


def definition(**changes: Any) -> StudyDefinition:
    """A study from 0 to 1 that takes everything, unless told otherwise."""
    fields: dict[str, Any] = {
        "slug": f"study-{next(_slugs)}",
        "title": "A question",
        "lower": Decimal(0),
        "upper": Decimal(1),
        "relation": Relation.REPLACE_ONE,
        "trust": EVERY_TRUST,
        "epsilon_min": MICRO // 100,
        "epsilon_max": 100 * MICRO,
        "default_share": SHARE_ONE,
    }
    return StudyDefinition(**fields | changes)


def offer(
    name: str,
    *,
    epsilon: float = 1,
    value: float = 0.5,
    trust: Trust = Trust.CENTRAL,
    sender: UUID = TOKEN,
) -> Offer:
    """What somebody contributes. `value` is a position in the study's range, for local reports too."""
    return Offer(
        subject=KEY.digest(name),
        sender=sender,
        trust=trust,
        asked=0 if trust is Trust.PUBLIC else round(epsilon * MICRO),
        epsilon=0 if trust is Trust.PUBLIC else round(epsilon * MICRO),
        value=round(value * GRID_SIZE),
    )


def of_offers(relation: Relation, ask: Ask, least: float = 1) -> Ask:
    """The question, where the number of people is secret about those who offered at least this.

    Else the service chooses by what noisy answers say, and who pays would be left to chance.
    """
    return ask if relation is Relation.REPLACE_ONE else replace(ask, least_epsilon=round(least * MICRO))


def in_mu2(one: Offer, study: Study) -> Offer:
    """The same offer to a study with Gaussian noise."""
    amount = 0 if one.trust is Trust.PUBLIC else study.definition.amount(one.asked)
    return replace(one, epsilon=amount, currency=study.definition.noise)


def batch(offers: Sequence[Offer], *, dimension: int = 1) -> Batch:
    """A document with these records."""
    made = Batch(TOKEN, dimension)
    for one in offers:
        made.admit(one)
    return made


def key(name: str, request: str = "the request") -> Idempotency:
    """An idempotency key."""
    return Idempotency.about_nobody(TOKEN, name, request.encode())


ADMIN = Principal(token_id=TOKEN, name="admin", roles=frozenset({Role.ADMIN}), studies=None, subject=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """One database and some processes' worth of services on it.

    Attributes:
        url: The database, for statements of the test's own.
        services: The first process.
        replicas: All of them, each with its own pool and its own caches.
    """

    url: str
    services: Services
    replicas: tuple[Services, ...]

    async def study(self, **changes: Any) -> Study:
        """Make a study."""
        return (await self.services.studies.create(definition(**changes), ADMIN))[0]

    async def crowd(self, study: Study, people: int, *, epsilon: float = 1, prefix: str = "crowd") -> None:
        """Let many people contribute the same offer."""
        offers = [offer(f"{prefix}-{number}", epsilon=epsilon) for number in range(people)]
        result = await self.services.contributions.apply_batch(study, batch(offers))
        assert result.created == people

    async def fetch(self, query: str, *arguments: object) -> list[dict[str, Any]]:
        """Rows of a query, read by a bystander."""
        async with connected(self.url) as connection:
            return [dict(row) for row in await connection.fetch(query, *arguments)]

    async def value(self, query: str, *arguments: object) -> Any:
        """The one value of a query."""
        async with connected(self.url) as connection:
            return await connection.fetchval(query, *arguments)

    async def execute(self, *statements: str) -> None:
        """Run statements in one transaction."""
        async with connected(self.url) as connection, connection.transaction():
            for statement in statements:
                await connection.execute(statement)

    async def findings(self) -> Sequence[Finding]:
        """What the audit finds."""
        return (await self.services.ledger.audit()).findings

    async def assert_clean(self) -> None:
        """The audit finds nothing."""
        assert await self.findings() == []

    async def reserved(self, name: str) -> int:
        """What somebody reserves over all studies [micro-epsilon]."""
        return (await self.services.budgets.statement(KEY.digest(name))).account.reserved

    async def members(self, study: Study) -> int:
        """How many people the study's folded cohorts hold."""
        query = "SELECT coalesce(sum(count), 0)::int FROM cohort WHERE study_id = $1"
        return int(await self.value(query, study.id))

    async def fold(self, study: Study) -> None:
        """Seal and fold, as a release does first."""
        await self.services.database.run_tx("test.seal", lambda c: cohorts.seal(c, study.id))
        await self.services.database.run_tx("test.fold", lambda c: cohorts.fold(c, study.id))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection that no service knows of."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def workbench(
    url: str,
    *,
    replicas: int = 1,
    pool_size: int = 10,
    databases: Sequence[Database] = (),
    clock: Clock | None = None,
) -> AsyncIterator[Workbench]:
    """Open services on a migrated database.

    Args:
        url: The database.
        replicas: How many processes there seem to be.
        pool_size: Connections of each.
        databases: Databases of the test's making for the first replicas.
        clock: Where all of them take the time from; the operating system's if not given.
    """
    async with AsyncExitStack() as stack:
        built = []
        opened = [Database.open(url, pool_size=pool_size) for _ in range(replicas - len(databases))]
        for database in (*databases, *opened):
            stack.push_async_callback(database.close)
            built.append(
                Services.build(
                    database,
                    clock or SystemClock(),
                    KEY,
                    lifetime_epsilon=LIFETIME_EPSILON,
                    lifetime_gaussian=(LIFETIME_EPSILON, LIFETIME_DELTA),
                )
            )
        bench = Workbench(url=url, services=built[0], replicas=tuple(built))
        await bench.execute(
            f"""INSERT INTO token (id, name, roles, hash, created_at)
                VALUES ('{TOKEN}', 'test', '{{admin}}', 'test', now()) ON CONFLICT DO NOTHING"""
        )
        yield bench
