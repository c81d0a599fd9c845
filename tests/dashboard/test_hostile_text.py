"""Text that no database column takes, in every address, form and cookie of the pages: never a fault."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.dashboard import rendering
from app.dashboard.requests import GUEST_COOKIE, LOGIN_COOKIE, PERSON_COOKIE, TOKEN_FIELD
from app.services.admin.logins import form_token
from app.web import visitors
from tests.api.test_hostile_text import HOSTILE, HOSTILE_BYTES, in_turn
from tests.dashboard.browser import ORIGIN
from tests.dashboard.test_permissions import KEYS, PAGES, Stage
from tests.dashboard.test_permissions import stage as stage

REFUSED = {400, 404, 422}

TEMPLATES = Path(rendering.__file__).parent / "templates"

NAMES = sorted(
    {
        name
        for page in TEMPLATES.glob("*.html")
        for name in re.findall(r'name="([a-z_0-9]+)"', page.read_text())
    }
    | {"cursor", "like", "unknown"}
)
"""Every field of a form: some pages have it in their address."""

LINK = ("GET", "/dashboard/person/open/{link}")
"""The one page that looks at nothing that it is asked with: a link is used by its form."""


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """One address sends thousands of forms here."""
    monkeypatch.setattr(visitors, "OF_AN_ADDRESS", 10**6)
    monkeypatch.setattr(visitors, "OF_A_LINK", 10**6)


class Visitor:
    """Sends what no browser would, as who may see the page."""

    def __init__(self, stage: Stage, method: str, path: str) -> None:
        allowed, self.fields = PAGES[method, path]
        who = next((who for who in ("admin", "analyse", "person") if who in allowed), "nobody")
        self.client, self.method, self.path = stage.service.client, method, path
        self.concrete = path.format(**stage.parts)
        self.cookies = stage.cookies[who] or {GUEST_COOKIE: "a guest"}

    async def send(self, path: str, *, form: str = "", cookies: bytes | None = None) -> httpx.Response:
        if cookies is None:
            cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items()).encode()
        headers = [(b"Cookie", cookies), (b"Origin", ORIGIN.encode())]
        if self.method == "GET":
            return await self.client.get(path, headers=headers)
        token = form_token(next(iter(self.cookies.values())))
        content = f"{TOKEN_FIELD}={token}&{form}".encode()
        headers.append((b"Content-Type", b"application/x-www-form-urlencoded"))
        return await self.client.post(path, content=content, headers=headers)


@pytest.fixture
def senders(stage: Stage) -> Iterator[Visitor]:
    return (Visitor(stage, method, path) for method, path in KEYS)


def assert_refused(response: httpx.Response, *what: object) -> None:
    assert response.status_code in REFUSED, (*what, response.status_code)


@pytest.mark.long
async def test_every_address_of_a_page_refuses_text_that_cannot_be_kept(senders: Iterator[Visitor]) -> None:
    texts = tuple(HOSTILE.values())
    for number, visitor in enumerate(senders):
        named = (
            f"{name}={text}" for place, name in enumerate(NAMES) for text in in_turn(texts, number + place)
        )
        for query in (*(f"{text}=1" for text in texts), *named):
            address = f"{visitor.concrete}?{query}"
            assert_refused(await visitor.send(address), visitor.method, address)


@pytest.mark.long
async def test_every_part_of_a_pages_path_refuses_text_that_cannot_be_kept(stage: Stage) -> None:
    for method, path in KEYS:
        for name in re.findall(r"\{(\w+)\}", path):
            for text in HOSTILE.values():
                visitor = Visitor(stage, method, path)
                address = path.format(**{**stage.parts, name: text})
                response = await visitor.send(address)
                if (method, path) == LINK and "%00" in text:
                    assert response.status_code == 200
                else:
                    assert_refused(response, method, address)


@pytest.mark.long
async def test_every_field_of_a_form_refuses_text_that_cannot_be_kept(senders: Iterator[Visitor]) -> None:
    texts = tuple(HOSTILE.values())
    for number, visitor in enumerate(senders):
        if visitor.method != "POST":
            continue
        forms = [f"{name}={text}" for text in texts for name in (*visitor.fields, text)]
        others = enumerate(name for name in NAMES if name not in visitor.fields)
        forms += [f"{name}={text}" for place, name in others for text in in_turn(texts, number + place)]
        for form in forms:
            assert_refused(await visitor.send(visitor.concrete, form=form), visitor.path, form)


@pytest.mark.long
async def test_no_cookie_is_a_fault(senders: Iterator[Visitor]) -> None:
    for visitor in senders:
        for text in HOSTILE_BYTES:
            for name in (LOGIN_COOKIE, PERSON_COOKIE, GUEST_COOKIE, "dither_sign_in"):
                cookies = name.encode() + b"=" + text
                response = await visitor.send(visitor.concrete, cookies=cookies)
                assert response.status_code < 500, (visitor.path, cookies)
