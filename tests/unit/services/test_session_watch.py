"""The watch over sessions that close by time, where the database is down."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
import structlog
from structlog.testing import capture_logs

from app.core.clock import SystemClock
from app.services.sessions import session_watch
from app.services.sessions.session_watch import SessionWatch


async def watched(monkeypatch: pytest.MonkeyPatch, *looks: bool) -> list[str]:
    """What is logged of looks that succeed, or fail, one after the other."""
    done = asyncio.Event()
    rest = iter(looks)

    async def close_due(_: SessionWatch) -> int:
        look = next(rest, None)
        if look is None:
            done.set()
        elif not look:
            raise OSError("connection refused")
        return 0

    async def stop() -> None:
        pass

    monkeypatch.setattr(session_watch, "WATCH_SECONDS", 0)
    monkeypatch.setattr(SessionWatch, "close_due", close_due)
    unused = cast(Any, SimpleNamespace(stop=stop))
    with capture_logs() as lines:
        watch = SessionWatch(unused, SystemClock(), unused, unused)
        async with watch.watching():
            await asyncio.wait_for(done.wait(), 30)
    return [line["event"] for line in lines]


async def test_an_outage_is_one_line_and_its_end_another(monkeypatch: pytest.MonkeyPatch) -> None:
    structlog.reset_defaults()
    said = await watched(monkeypatch, True, False, False, False, True, True, False, True)
    outage = ["session_watch_failed", "session_watch_recovered"]
    assert said == [*outage, *outage]


async def test_without_an_outage_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await watched(monkeypatch, True, True) == []
