"""A ledger that somebody with the database changed, with hashes that fit again where the forger made them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncEngine

from app.services.admin.ledger import AuditReport, Ledger
from app.store.database import Connection, Database, Result, open_engine
from app.store.ledger import links
from app.store.pieces import sealed
from app.store.sql import Sql, driver

# A row of the view `charge` is a place in two arrays of its release.
_CHANGE_CHARGE = """
    CREATE FUNCTION change_charge() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'INSERT' THEN
            DELETE FROM charge_block WHERE release_id = OLD.release_id AND cohorts = ARRAY[OLD.cohort_id];
            UPDATE charge_block SET (cohorts, amounts) = (
                SELECT array_agg(cohort ORDER BY cohort), array_agg(amount ORDER BY cohort)
                FROM unnest(cohorts, amounts) AS kept (cohort, amount) WHERE cohort <> OLD.cohort_id
            ) WHERE release_id = OLD.release_id;
        END IF;
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        INSERT INTO charge_block VALUES (NEW.release_id, ARRAY[NEW.cohort_id], ARRAY[NEW.epsilon])
        ON CONFLICT (release_id) DO UPDATE SET (cohorts, amounts) = (
            SELECT array_agg(cohort ORDER BY cohort), array_agg(amount ORDER BY cohort)
            FROM unnest(charge_block.cohorts || NEW.cohort_id, charge_block.amounts || NEW.epsilon)
                AS kept (cohort, amount)
        );
        RETURN NEW;
    END $$
"""

UNLOCK = (
    "ALTER TABLE release DISABLE TRIGGER append_only",
    "ALTER TABLE charge_block DISABLE TRIGGER append_only",
    _CHANGE_CHARGE,
    """CREATE TRIGGER change_charge INSTEAD OF INSERT OR UPDATE OR DELETE ON charge
       FOR EACH ROW EXECUTE FUNCTION change_charge()""",
)
"""Whoever owns the database can change what is only ever added to, here one charge at a time."""

LOCK = (
    "DROP FUNCTION change_charge CASCADE",
    "ALTER TABLE charge_block ENABLE TRIGGER append_only",
    "ALTER TABLE release ENABLE TRIGGER append_only",
)

REHASH = Sql("UPDATE release SET hash = :hash WHERE number = :number")
RELINK = Sql("UPDATE release SET previous_hash = :hash WHERE number = :number + 1")
MOVE_HEAD = Sql("UPDATE chain SET (number, hash) = (SELECT number, hash FROM release WHERE number = :number)")


class OpenTransaction(Database):
    """A database that is read through one transaction, which sees its own changes."""

    def __init__(self, engine: AsyncEngine, connection: Connection) -> None:
        super().__init__(engine)
        self._connection = connection

    async def run_tx(
        self,
        name: str,
        body: Callable[[Connection], Awaitable[Result]],
        *,
        isolation_level: str | None = None,
    ) -> Result:
        return await body(self._connection)


@asynccontextmanager
async def tampered(
    url: str, statements: Sequence[str]
) -> AsyncIterator[tuple[Connection, Callable[[], Awaitable[AuditReport]]]]:
    """The database after these statements and its audit; all is rolled back afterwards."""
    engine = open_engine(url)
    try:
        async with engine.connect() as connection:
            transaction = driver(connection).transaction()
            await transaction.start()
            for statement in statements:
                changed = await driver(connection).execute(statement)
                assert not changed.endswith(" 0"), f"nothing was tampered with: {statement}"
            yield connection, Ledger(OpenTransaction(engine, connection)).audit
            await transaction.rollback()
    finally:
        await engine.dispose()


async def audited(url: str, statements: Sequence[str]) -> AuditReport:
    """What the audit finds after these statements, which are then rolled back."""
    async with tampered(url, statements) as (_, audit):
        return await audit()


async def reseal(connection: Connection) -> None:
    """Let releases say of their pieces what these are now."""
    for piece in [piece async for piece in sealed(connection) if piece.said != piece.kept]:
        document = await driver(connection).fetchval("SELECT noise FROM release WHERE id = $1", piece.release)
        for said in document.get("pieces" if "pieces" in document else "apart", ()):
            if said["number"] == piece.number:
                said["digest"] = piece.kept
        write = "UPDATE release SET noise = CAST($2 AS jsonb) WHERE id = $1"
        await driver(connection).execute(write, piece.release, json.dumps(document))


async def forge(connection: Connection, numbers: Iterable[int]) -> None:
    """Give releases the hashes that fit what they hold now, each to its successor as well but the last."""
    last = 0
    for number in numbers:
        if last:
            found = {link.number: link.hash async for link in links(connection)}
            await RELINK.run(connection, number=last, hash=found[last])
        fitting = {link.number: link.recomputed async for link in links(connection)}
        await REHASH.run(connection, number=number, hash=fitting[number])
        last = number
