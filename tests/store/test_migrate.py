"""Migrations: up, down, in step with the tables, one at a time, and never from an unknown place."""

import asyncio
import time

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.core.errors import SchemaMismatch
from app.store import migrate
from app.store.database import async_url
from app.store.tables import metadata
from tests.support.databases import execute


async def differences(url: str) -> list[object]:
    engine = create_async_engine(async_url(url), poolclass=NullPool)
    async with engine.connect() as connection:
        found = await connection.run_sync(
            lambda sync: compare_metadata(
                MigrationContext.configure(sync, opts={"compare_type": True, "compare_server_default": True}),
                metadata,
            )
        )
    await engine.dispose()
    return list(found)


async def downgrade(url: str, revision: str = "base") -> None:
    engine = create_async_engine(async_url(url), poolclass=NullPool)
    config = migrate._config()

    def down(connection: object) -> None:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)

    async with engine.begin() as connection:
        await connection.run_sync(down)
    await engine.dispose()


@pytest.fixture
async def migrated_url(empty_database_url: str) -> str:
    """A migrated database that no other test gets, since these tests change its schema."""
    await migrate.upgrade(empty_database_url)
    return empty_database_url


async def test_migrations_make_the_tables_that_the_code_declares(migrated_url):
    assert await differences(migrated_url) == []


@pytest.mark.long
async def test_everything_can_be_taken_back_and_made_again(migrated_url):
    await downgrade(migrated_url)
    assert await migrate.current_revision(migrated_url) is None
    done = await migrate.upgrade(migrated_url)
    assert (done.before, done.after) == (None, migrate.head_revision())
    assert await differences(migrated_url) == []


async def test_services_that_start_together_migrate_once(empty_database_url):
    done = await asyncio.gather(*(migrate.upgrade(empty_database_url) for _ in range(4)))
    assert sorted(one.before or "" for one in done) == ["", *[migrate.head_revision()] * 3]


async def test_an_empty_database_is_told_to_migrate(empty_database_url):
    with pytest.raises(SchemaMismatch, match="no schema yet: run `dither migrate`"):
        await migrate.require_head(empty_database_url)


async def test_a_schema_of_another_version_is_refused_and_left_alone(migrated_url):
    await execute(migrated_url, "UPDATE alembic_version SET version_num = 'future'")
    for attempt in (migrate.require_head, migrate.upgrade):
        with pytest.raises(SchemaMismatch, match="does not know"):
            await attempt(migrated_url)
    assert await migrate.current_revision(migrated_url) == "future"


async def test_a_database_that_starts_late_is_waited_for_and_no_password_is_shown():
    url = "postgresql://someone:hunter2@127.0.0.1:9/nothing"
    started = time.monotonic()
    with pytest.raises(migrate.DatabaseUnreachable) as refusal:
        await migrate.require_head(url, patience_seconds=0.3)
    assert time.monotonic() - started >= 0.3
    assert "hunter2" not in str(refusal.value)


async def test_an_old_server_is_refused(migrated_url, monkeypatch):
    monkeypatch.setattr(migrate, "MINIMUM_SERVER_VERSION", 99)
    with pytest.raises(SchemaMismatch, match="PostgreSQL 99 or newer is needed"):
        await migrate.upgrade(migrated_url)
