"""Four processes, 64 clients, one budget: exactly what fits is spent."""

import pytest

from tests.conftest import LiveServer
from tests.support.live import LiveService
from tests.system.load import Crowd, Reply, at_once, audit, findings, make_study

pytestmark = pytest.mark.system

CLIENTS = 64
STUDIES = 40
FITTING_STUDIES = 10
"""The lifetime budget is 10, each contribution reserves 1."""

RELEASES = 64
FITTING_RELEASES = 8
SHARE = 0.125


ENVIRONMENT = {"DITHER_LIFETIME_EPSILON": "10", "DITHER_DATABASE_POOL_SIZE": "5"}


def grouped(replies: list[Reply], times: int) -> list[list[Reply]]:
    """The replies to each request that was sent several times, side by side."""
    return [replies[index :: len(replies) // times] for index in range(len(replies) // times)]


async def test_four_processes_spend_exactly_what_fits(live_server: LiveServer) -> None:
    service = live_server(processes=4, env=ENVIRONMENT)
    for number in range(STUDIES):
        make_study(service, f"study-{number}", epsilon={"min": 1, "max": 1})
    for times in (1, 3):
        await contributions_that_fit(service, times)
        await releases_that_fit(service, times)
    report = audit(service)
    assert report.returncode == 0, report.stdout


async def contributions_that_fit(service: LiveService, times: int) -> None:
    """A lifetime budget takes exactly the contributions that fit, also when each is sent several times."""
    subject = f"somebody-{times}"
    async with Crowd(service, service.create_token("contribute")) as crowd:
        document = {"subject": subject, "value": 50, "epsilon": 1, "trust": "central"}

        async def contribute(turn: int) -> Reply:
            return await crowd.post(
                f"/v1/studies/study-{turn % STUDIES}/contributions", document, turn=turn * 7 + turn // STUDIES
            )

        replies = await at_once(range(STUDIES * times), contribute, CLIENTS)

    accepted = 0
    for same in grouped(replies, times):
        statuses = sorted(reply.status for reply in same)
        if statuses[0] == 409:
            assert [(reply.status, reply.code) for reply in same] == [(409, "budget_exhausted")] * times
        else:
            assert statuses == [200] * (times - 1) + [201]
            accepted += 1
    assert accepted == FITTING_STUDIES
    with service.client() as admin:
        budget = admin.get(f"/v1/subjects/{subject}/budget").json()["epsilon"]
    assert (budget["reserved"], budget["remaining"]) == (10, 0)
    assert await findings(service) == []


async def releases_that_fit(service: LiveService, times: int) -> None:
    """An epsilon pays for exactly the releases that fit, also when each is asked for several times."""
    study = f"age-{times}"
    make_study(service, study, epsilon={"min": 1, "max": 1})
    people = [{"subject": f"p{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(100)]
    with service.client(service.create_token("contribute")) as contributor:
        batch = contributor.post(f"/v1/studies/{study}/contributions/batch", json=people)
    assert batch.json()["created"] == len(people)

    async with Crowd(service, service.create_token("analyse")) as crowd:

        async def release(turn: int) -> Reply:
            return await crowd.post(
                f"/v1/studies/{study}/releases",
                {"statistic": "mean", "estimator": "uniform", "share": SHARE, "fresh": True},
                turn=turn * 7 + turn // RELEASES,
                key=f"key-{turn % RELEASES}",
            )

        replies = await at_once(range(RELEASES * times), release, CLIENTS)

    answers = set()
    for same in grouped(replies, times):
        assert len({(reply.status, reply.body if reply.acknowledged else reply.code) for reply in same}) == 1
        if same[0].acknowledged:
            answers.add(same[0].body)
        else:
            assert (same[0].status, same[0].code) == (409, "budget_exhausted")
    assert len(answers) == FITTING_RELEASES
    with service.client() as admin:
        lines = admin.get("/v1/subjects/p0/budget").json()["studies"]
    assert [(line["epsilon"], line["spent"]) for line in lines if line["study"] == study] == [(1, 1)]
    assert await findings(service) == []
