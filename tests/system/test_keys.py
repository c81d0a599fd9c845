"""Two processes, five contributors, five analysts whose every request has a key: no key is ever forgotten."""

import asyncio
from contextlib import suppress
from itertools import count

import pytest

from tests.conftest import LiveServer
from tests.system.load import Crowd, Reply, at_once, findings, make_study

pytestmark = pytest.mark.system

CONTRIBUTORS, ANALYSTS = 5, 5

LATER = 100
"""People who come before the retries: answers for which they would be asked would be others."""


def question(number: int) -> dict[str, object]:
    """Means whose share rises, and histograms; most of them have been given that share by all."""
    share = min(1.0, 0.1 + number // 40 * 0.1)
    if number % 4 == 3:
        return {"statistic": "histogram", "bins": 4, "share": share, "allow_worse": True}
    return {"share": share, "allow_worse": True}


@pytest.mark.parametrize("keys", [200, pytest.param(2_000, marks=pytest.mark.slow)])
async def test_no_key_has_another_answer_later(live_server: LiveServer, keys: int) -> None:
    service = live_server(processes=2)
    make_study(service, "load", epsilon={"min": 1, "max": 1})
    path, names = "/v1/studies/load", count()
    contributors = Crowd(service, service.create_token("contribute"))
    analysts = Crowd(service, service.create_token("analyse"))

    async def contribute() -> Reply:
        number = next(names)
        record = {"subject": f"p{number}", "value": number % 100, "epsilon": 1, "trust": "central"}
        return await contributors.post(f"{path}/contributions", record, turn=number)

    async def ask(number: int) -> Reply:
        return await analysts.post(f"{path}/releases", question(number), turn=number, key=f"k{number}")

    async def go_on() -> None:
        while True:
            assert (await contribute()).status == 201

    async with contributors, analysts:
        assert {reply.status for reply in await at_once(range(50), lambda _: contribute(), 8)} == {201}
        coming = [asyncio.create_task(go_on()) for _ in range(CONTRIBUTORS)]
        try:
            first = await at_once(range(keys), ask, ANALYSTS)
        finally:
            for task in coming:
                task.cancel()
        for task in coming:
            with suppress(asyncio.CancelledError):
                await task
        assert {reply.status for reply in await at_once(range(LATER), lambda _: contribute(), 8)} == {201}
        second = await at_once(range(keys), lambda number: ask(number), ANALYSTS)
    statuses = {reply.status for reply in first}
    assert statuses == {200, 201}, statuses
    changed = [number for number in range(keys) if first[number] != second[number]]
    assert changed == []
    assert await findings(service) == []
