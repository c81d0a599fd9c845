"""Fixtures: services on a fresh database."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.store.workbench import Workbench, workbench


@pytest_asyncio.fixture
async def bench(database_url: str) -> AsyncIterator[Workbench]:
    """One process."""
    async with workbench(database_url) as made:
        yield made


@pytest_asyncio.fixture
async def cluster(database_url: str) -> AsyncIterator[Workbench]:
    """Three processes on one database."""
    async with workbench(database_url, replicas=3) as made:
        yield made
