"""A browser without a screen: cookies, forms with their tokens, and the origin that browsers send."""

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import httpx

from app.core.numbers import Headline, headline
from app.dashboard.requests import TOKEN_FIELD
from tests.api.service import Service

ORIGIN = "http://test"
_TOKEN = re.compile(rf'name="{TOKEN_FIELD}" value="([0-9a-f]*)"')


class Browser:
    """One browser of a service in this process."""

    def __init__(self, service: Service) -> None:
        transport = service.client._transport
        self.client = httpx.AsyncClient(transport=transport, base_url=ORIGIN)
        self.service = service
        self.page = ""

    async def get(self, path: str) -> httpx.Response:
        """Open a page; redirects are not followed."""
        response = await self.client.get(path)
        self.page = response.text
        return response

    async def post(
        self, path: str, fields: Mapping[str, str] | None = None, *, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a form of the page that was opened last."""
        found = _TOKEN.search(self.page)
        form = {**(fields or {}), TOKEN_FIELD: found[1] if found else ""}
        response = await self.client.post(path, data=form, headers={"Origin": ORIGIN, **(headers or {})})
        if response.status_code != 303:
            self.page = response.text
        return response

    async def log_in(self, token: str) -> httpx.Response:
        """Log in with a token, or with that of a role."""
        await self.get("/dashboard/login")
        return await self.post("/dashboard/login", {"token": self.service.tokens.get(token, token)})

    def cookies(self) -> dict[str, Any]:
        """The cookies that it holds."""
        return {cookie.name: cookie.value for cookie in self.client.cookies.jar}


def text_of(page: str) -> str:
    """What somebody reads on a page."""
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))


def within(
    answer: Mapping[str, Any], name: str = "estimate", interval: str = "interval", statistic: str = ""
) -> Headline:
    """An estimate of a document and one of its intervals as pages show them, no more exact than that."""
    return headline(answer[name], answer[interval]["lower"], answer[interval]["upper"], statistic)
