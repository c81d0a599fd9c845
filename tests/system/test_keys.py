"""Two processes, five contributors, five analysts whose every request has a key: no key is ever forgotten."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import pytest

from tests.conftest import LiveServer
from tests.system.load import Crowd, Reply, at_once, findings, make_study

pytestmark = pytest.mark.system

CONTRIBUTORS, ANALYSTS = 5, 5

KEYS = 100
"""Of each study."""

MOST_TRIES = 20

LATER = 100
"""People who come before the retries: answers for which they would be asked would be others."""


def question(number: int) -> dict[str, object]:
    """Means whose share rises, and histograms; most of them have been given that share by all."""
    share = min(0.45, 0.05 + number // 10 * 0.05)  # Of both together no one pays more than they offered.
    if number % 4 == 3:
        return {"statistic": "histogram", "bins": 4, "share": share, "allow_worse": True}
    return {"share": share, "allow_worse": True}


@pytest.mark.parametrize("studies", [1, pytest.param(20, marks=pytest.mark.slow)])
async def test_no_key_has_another_answer_later(live_server: LiveServer, studies: int) -> None:
    """Of 20 studies that is 2,000 keys. Each answer has a part for each time that people came, so a study of
    many more keys would only be slower."""
    service = live_server(processes=2)
    contributors = Crowd(service, service.create_token("contribute"))
    analysts = Crowd(service, service.create_token("analyse"))
    changed: list[tuple[str, int]] = []
    statuses: set[int] = set()
    async with contributors, analysts:
        for number in range(studies):
            slug = f"load-{number}"
            make_study(service, slug, epsilon={"min": 1, "max": 1})
            first, second = await load(contributors, analysts, slug)
            statuses |= {reply.status for reply in first}
            changed += [(slug, key) for key in range(KEYS) if first[key] != second[key]]
    assert statuses == {200, 201}, statuses
    assert changed == []
    assert await findings(service) == []


async def served(send: Callable[[], Awaitable[Reply]]) -> Reply:
    """The answer to a request that is sent again, with the same key, while the service is busy."""
    for _ in range(MOST_TRIES):
        if (reply := await send()).status not in (0, 503):
            break
        await asyncio.sleep(0.1)
    return reply


async def load(contributors: Crowd, analysts: Crowd, slug: str) -> tuple[list[Reply], list[Reply]]:
    """What each key is answered while people come, and once more after more have come."""
    path, names = f"/v1/studies/{slug}", count()

    async def contribute() -> Reply:
        number = next(names)
        record = {"subject": f"{slug}-{number}", "value": number % 100, "epsilon": 1, "trust": "central"}
        return await served(lambda: contributors.post(f"{path}/contributions", record, turn=number))

    async def ask(number: int) -> Reply:
        key = f"{slug}-{number}"
        return await served(lambda: analysts.post(f"{path}/releases", question(number), turn=number, key=key))

    async def go_on() -> None:
        while True:
            assert (await contribute()).acknowledged

    assert all(reply.acknowledged for reply in await at_once(range(50), lambda _: contribute(), 8))
    coming = [asyncio.create_task(go_on()) for _ in range(CONTRIBUTORS)]
    try:
        first = await at_once(range(KEYS), ask, ANALYSTS)
    finally:
        for task in coming:
            task.cancel()
    for task in coming:
        with suppress(asyncio.CancelledError):
            await task
    assert all(reply.acknowledged for reply in await at_once(range(LATER), lambda _: contribute(), 8))
    return first, await at_once(range(KEYS), ask, ANALYSTS)
