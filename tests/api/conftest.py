"""Fixtures: the application on a fresh database."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.api.service import Service, open_service


@pytest_asyncio.fixture
async def service(database_url: str) -> AsyncIterator[Service]:
    """The application with a token of each role."""
    async with open_service(database_url) as service:
        yield service


@pytest_asyncio.fixture
async def study(service: Service) -> str:
    """A study that takes every kind of contribution."""
    return await service.study(trust=["central", "local", "public"], local_mechanism="laplace")
