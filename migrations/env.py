"""Alembic's entry: `app.store.migrate` hands over a connection, the `alembic` command brings none."""

import asyncio
import os

from alembic import context
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.store.database import async_url
from app.store.tables import metadata


def run(connection: Connection) -> None:
    """Run what alembic was asked for in one transaction."""
    context.configure(
        connection=connection, target_metadata=metadata, compare_server_default=True, compare_type=True
    )
    with context.begin_transaction():
        # A migration that has to queue behind a long transaction would make everybody queue behind it.
        connection.execute(text("SET LOCAL lock_timeout = '10s'"))
        context.run_migrations()


async def run_with_own_engine() -> None:
    """Connect to DITHER_DATABASE_URL and run."""
    url = os.environ.get("DITHER_DATABASE_URL")
    if not url:
        raise SystemExit("set DITHER_DATABASE_URL to a postgresql:// URL")
    engine = create_async_engine(async_url(url), poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


given = context.config.attributes.get("connection")
if context.is_offline_mode():
    context.configure(dialect_name="postgresql", target_metadata=metadata, literal_binds=True)
    with context.begin_transaction():
        context.run_migrations()
elif given is not None:
    run(given)
else:
    asyncio.run(run_with_own_engine())
