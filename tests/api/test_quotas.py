"""What one analyst's token may use of a study."""

import asyncio
from typing import Any

import asyncpg
import httpx
import pytest
from dither.device.gaussian import micro_mu2

from tests.api.service import Service, assert_problem

pytestmark = pytest.mark.usefixtures("free_attempts")


async def execute(service: Service, statement: str) -> None:
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


class Analyst:
    """A token with a quota."""

    def __init__(self, service: Service, document: dict[str, Any]) -> None:
        self.service = service
        self.id = document["id"]
        self.secret = document["token"]

    async def ask(
        self, study: str, share: float, *, key: str | None = None, **parameters: Any
    ) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.service.call(
            "POST",
            f"/v1/studies/{study}/releases",
            self.secret,
            json={"share": share, "fresh": True, **parameters},
            headers=headers,
        )

    async def limit(self, share: float, period_seconds: int = 3600) -> None:
        response = await self.service.call(
            "PUT",
            f"/v1/admin/tokens/{self.id}/quota",
            "admin",
            json={"share": share, "period_seconds": period_seconds},
        )
        assert response.json() == {"share": share, "period_seconds": period_seconds}

    async def usage(self) -> list[dict[str, Any]]:
        path = f"/v1/admin/tokens/{self.id}/usage"
        items: list[dict[str, Any]] = (await self.service.call("GET", path, "admin")).json()["items"]
        return items


@pytest.fixture
async def analyst(service: Service) -> Analyst:
    made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "a", "role": "analyse"})
    return Analyst(service, made.json())


async def test_a_quota_bounds_what_a_token_takes_of_each_study(service: Service, analyst: Analyst) -> None:
    studies = [await service.study(), await service.study()]
    for study in studies:
        await service.crowd(study)
    await analyst.limit(0.3)
    for study in studies:
        for _ in range(3):
            assert (await analyst.ask(study, 0.1)).status_code == 201
        response = await analyst.ask(study, 0.000001)
        assert_problem(response, "quota_exhausted", 429)
        assert 3500 < int(response.headers["retry-after"]) <= 3600
    assert (await service.call("POST", f"/v1/studies/{studies[0]}/releases", "analyse")).status_code == 201
    used = await analyst.usage()
    assert used == [{"study": study, "releases": 3, "used": 0.3} for study in sorted(studies)]
    shown = (await service.call("GET", f"/v1/admin/tokens/{analyst.id}", "admin")).json()
    assert shown["quota"] == {"share": 0.3, "period_seconds": 3600}
    listed = (await service.call("GET", "/v1/admin/tokens?limit=200", "admin")).json()["items"]
    assert shown in listed


async def test_the_period_slides(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await service.crowd(study)
    await analyst.limit(0.3, 100)
    for age in (60, 30, 0):
        assert (await analyst.ask(study, 0.1)).status_code == 201
        await execute(
            service,
            f"UPDATE usage SET at = at - interval '{age} seconds' WHERE at > now() - interval '5 seconds'",
        )
    response = await analyst.ask(study, 0.2)
    assert_problem(response, "quota_exhausted", 429)
    assert 60 < int(response.headers["retry-after"]) <= 70
    assert 30 < int((await analyst.ask(study, 0.05)).headers["retry-after"]) <= 40
    await execute(service, "UPDATE usage SET at = at - interval '45 seconds'")
    assert (await analyst.ask(study, 0.1)).status_code == 201
    assert_problem(await analyst.ask(study, 0.05), "quota_exhausted", 429)
    assert [entry["used"] for entry in await analyst.usage()] == [0.3]


async def test_what_was_used_before_there_was_a_quota_counts(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await service.crowd(study)
    assert (await analyst.ask(study, 0.2)).status_code == 201
    await analyst.limit(0.25)
    assert_problem(await analyst.ask(study, 0.1), "quota_exhausted", 429)
    for _ in range(2):
        lifted = await service.call("DELETE", f"/v1/admin/tokens/{analyst.id}/quota", "admin")
        assert lifted.status_code == 204
    # With half of the share the answer would be worse than the one that stands.
    assert (await analyst.ask(study, 0.1, allow_worse=True)).status_code == 201
    shown = (await service.call("GET", f"/v1/admin/tokens/{analyst.id}", "admin")).json()
    assert shown["quota"] is None


async def test_a_stored_answer_is_free(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await service.crowd(study)
    await analyst.limit(0.2)
    question = f"/v1/studies/{study}/statistics/mean?estimator=uniform&share=0.1"
    first = await service.call("GET", question, analyst.secret)
    second = await analyst.ask(study, 0.1, key="again", estimator="adpm")
    assert (first.status_code, second.status_code) == (200, 201)
    for _ in range(3):
        assert (await service.call("GET", question, analyst.secret)).json()["id"] == first.json()["id"]
        again = await analyst.ask(study, 0.1, key="again", estimator="adpm")
        assert again.content == second.content
    other = question.replace("uniform", "threshold")
    response = await service.call("GET", other, analyst.secret)
    assert_problem(response, "quota_exhausted", 429)
    asked = await service.call("GET", other, "analyse")
    again = await service.call("GET", other, analyst.secret)
    assert again.json()["id"] == asked.json()["id"]


async def test_a_refused_question_uses_nothing(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await analyst.limit(0.5)
    before = await service.rows()
    response = await analyst.ask(study, 0.6)
    assert_problem(response, "quota_exhausted", 429)
    assert "retry-after" not in response.headers, "it fits at no time"
    assert_problem(await analyst.ask(study, 0.5, key="k"), "no_contributions", 409)
    assert await service.rows() == before
    assert await analyst.usage() == []
    await service.crowd(study)
    assert (await analyst.ask(study, 0.5)).status_code == 201


async def test_a_cap_counts_for_those_who_offer_least(service: Service, analyst: Analyst) -> None:
    """Of somebody with the smallest admissible epsilon, a cap of 0.01 takes a tenth."""
    study = await service.study(epsilon={"min": 0.1, "max": 2})
    await service.crowd(study)
    await analyst.limit(1)
    assert (await analyst.ask(study, 0.5, epsilon="0.01")).status_code == 201
    assert [entry["used"] for entry in await analyst.usage()] == [0.1]
    assert (await analyst.ask(study, 0.5, epsilon="0.06")).status_code == 201
    assert [entry["used"] for entry in await analyst.usage()] == [0.6]
    noisy = await service.study(noise="gaussian", delta=0.000001, epsilon={"min": 0.1, "max": 2})
    await service.crowd(noisy)
    assert (await analyst.ask(noisy, 0.5, epsilon="0.05")).status_code == 201
    used = {entry["study"]: entry["used"] for entry in await analyst.usage()}[noisy]
    # mu^2 of 0.05 over that of 0.1, in micros.
    assert used == pytest.approx(micro_mu2(50_000, 10**6) / micro_mu2(100_000, 10**6), abs=2e-6)
    assert used < 0.5


async def test_a_quota_tells_nothing_about_who_is_there(service: Service, analyst: Analyst) -> None:
    """In an add_remove_one study it depends on the questions only: the same with a crowd and with nobody."""
    empty, full = [await service.study(relation="add_remove_one") for _ in range(2)]
    await service.crowd(full)
    await analyst.limit(0.4)
    for study in (empty, full):
        statuses = [(await analyst.ask(study, share)).status_code for share in (0.2, 0.3, 0.1, 0.2, 0.1)]
        assert statuses == [201, 429, 201, 429, 201]
    assert {entry["used"] for entry in await analyst.usage()} == {0.4}


async def test_a_crowd_of_requests_never_exceeds_it(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await service.crowd(study)
    await analyst.limit(0.25)
    replies = await asyncio.gather(*(analyst.ask(study, 0.05) for _ in range(16)))
    assert sorted(reply.status_code for reply in replies) == [201] * 5 + [429] * 11
    assert [entry["used"] for entry in await analyst.usage()] == [0.25]


async def test_retries_of_a_last_release_that_fits_all_get_it(service: Service, analyst: Analyst) -> None:
    study = await service.study()
    await service.crowd(study)
    await analyst.limit(0.1)
    replies = await asyncio.gather(*(analyst.ask(study, 0.1, key="same") for _ in range(8)))
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.content for reply in replies}) == 1


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"share": 0.5}, ["period_seconds"]),
        ({"period_seconds": 60}, ["share"]),
        ({"share": 0, "period_seconds": 60}, ["share"]),
        ({"share": 1.1, "period_seconds": 60}, ["share"]),
        ({"share": "0.5", "period_seconds": 60}, ["share"]),
        ({"share": None, "period_seconds": 60}, ["share"]),
        ({"share": 0.5, "period_seconds": 0}, ["period_seconds"]),
        ({"share": 0.5, "period_seconds": 10**9}, ["period_seconds"]),
        ({"share": 0.5, "period_seconds": 1.5}, ["period_seconds"]),
        ({"share": 0.5, "period_seconds": 60, "study": "x"}, ["study"]),
    ],
)
async def test_a_bad_quota_is_refused(
    service: Service, analyst: Analyst, document: dict[str, Any], fields: list[str]
) -> None:
    response = await service.call("PUT", f"/v1/admin/tokens/{analyst.id}/quota", "admin", json=document)
    assert_problem(response, "invalid_request", 422, *fields)


async def test_only_analysts_and_known_tokens_have_a_quota(service: Service) -> None:
    document = {"share": 0.5, "period_seconds": 60}
    for role in ("contribute", "admin"):
        made = await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "x", "role": role})
        path = f"/v1/admin/tokens/{made.json()['id']}/quota"
        refused = await service.call("PUT", path, "admin", json=document)
        assert_problem(refused, "invalid_request", 422, "token")
    for token in ("00000000-0000-0000-0000-000000000001", "x"):
        for method, path in (("PUT", "/quota"), ("DELETE", "/quota"), ("GET", "/usage"), ("GET", "")):
            options = {"json": document} if method == "PUT" else {}
            response = await service.call(method, f"/v1/admin/tokens/{token}{path}", "admin", **options)
            assert_problem(response, "not_found", 404)
