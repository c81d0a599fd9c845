"""Fixtures: the application on a fresh database, and browsers of it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.api.service import Service, open_service
from tests.dashboard.browser import Browser


@pytest_asyncio.fixture
async def service(database_url: str) -> AsyncIterator[Service]:
    """The application with a token of each role."""
    async with open_service(database_url) as service:
        yield service


@pytest_asyncio.fixture
async def browser(service: Service) -> AsyncIterator[Browser]:
    """A browser that nobody is logged in with."""
    browser = Browser(service)
    yield browser
    await browser.client.aclose()


@pytest_asyncio.fixture
async def admin(browser: Browser) -> Browser:
    """A browser that an admin is logged in with."""
    await browser.log_in("admin")
    return browser


@pytest_asyncio.fixture
async def analyst(service: Service) -> AsyncIterator[Browser]:
    """A browser of its own that an analyst is logged in with."""
    browser = Browser(service)
    await browser.log_in("analyse")
    yield browser
    await browser.client.aclose()
