"""Tokens, budgets and the ledger, as an admin sees them."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from app.settings import Settings
from tests.api.service import VALUE, Service, assert_problem, open_service

JSON = {"Content-Type": "application/json"}


@pytest.mark.long
async def test_a_token_is_shown_once(service: Service) -> None:
    made = await service.call(
        "POST",
        "/v1/admin/tokens",
        "admin",
        json={
            "name": "app",
            "role": "contribute",
            "studies": ["a", "b"],
            "subject": "alice",
            "expires_at": "2100-01-01T00:00:00+02:00",
        },
    )
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    document = made.json()
    assert document["expires_at"] == "2099-12-31T22:00:00Z"
    assert document["studies"] == ["a", "b"]
    secret = document.pop("token")
    listed = await service.call("GET", "/v1/admin/tokens?limit=200", "admin")
    assert document in listed.json()["items"]
    assert secret not in listed.text
    assert "alice" not in listed.text


async def test_a_revoked_token_is_refused_at_once(service: Service) -> None:
    made = (
        await service.call("POST", "/v1/admin/tokens", "admin", json={"name": "x", "role": "analyse"})
    ).json()
    assert (await service.call("GET", "/v1/studies", made["token"])).status_code == 200
    for _ in range(2):
        response = await service.call("DELETE", f"/v1/admin/tokens/{made['id']}", "admin")
        assert response.status_code == 204
    assert_problem(await service.call("GET", "/v1/studies", made["token"]), "unauthenticated", 401)


@pytest.mark.parametrize("token", [str(UUID(int=7)), "x", "%00"])
async def test_an_unknown_token_cannot_be_revoked(service: Service, token: str) -> None:
    assert_problem(await service.call("DELETE", f"/v1/admin/tokens/{token}", "admin"), "not_found", 404)


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"role": "analyse"}, ["name"]),
        ({"name": "x"}, ["role"]),
        ({"name": "x", "role": "root"}, ["role"]),
        ({"name": "", "role": "analyse"}, ["name"]),
        ({"name": "x\x00", "role": "analyse"}, ["name"]),
        ({"name": 5, "role": "analyse"}, ["name"]),
        ({"name": "x", "role": "analyse", "studies": []}, ["studies"]),
        ({"name": "x", "role": "analyse", "studies": ["A"]}, ["studies.0"]),
        ({"name": "x", "role": "analyse", "studies": ["a", "a"]}, ["studies"]),
        ({"name": "x", "role": "analyse", "studies": "a"}, ["studies"]),
        ({"name": "x", "role": "analyse", "subject": "alice"}, ["subject"]),
        ({"name": "x", "role": "observe", "subject": "alice"}, ["subject"]),
        ({"name": "x", "role": "observe", "studies": ["a"]}, ["studies"]),
        ({"name": "x", "role": "contribute", "subject": ""}, ["subject"]),
        ({"name": "x", "role": "contribute", "subject": 5}, ["subject"]),
        ({"name": "x", "role": "analyse", "expires_at": "2001-01-01T00:00:00Z"}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "expires_at": "2100-01-01T00:00:00"}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "expires_at": "tomorrow"}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "expires_at": 4102444800}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "expires_at": "9999-12-31T23:59:59-10:00"}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "expires_at": "99999-01-01T00:00:00Z"}, ["expires_at"]),
        ({"name": "x", "role": "analyse", "admin": True}, ["admin"]),
    ],
)
async def test_a_bad_token_is_refused(service: Service, document: dict[str, Any], fields: list[str]) -> None:
    before = await service.rows()
    response = await service.call("POST", "/v1/admin/tokens", "admin", json=document)
    assert_problem(response, "invalid_request", 422, *fields)
    assert await service.rows() == before


async def test_a_budget_tells_what_was_given_and_what_it_cost(service: Service) -> None:
    study = await service.study()
    await service.crowd(study)
    await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=VALUE)
    await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"estimator": "uniform"})
    budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
    assert date.fromisoformat(budget["studies"][0].pop("contributed_on")) <= datetime.now(UTC).date()
    assert budget == {
        "subject": "alice",
        "epsilon": {"total": 10, "reserved": 1.5, "spent": 0.1, "remaining": 8.5},
        "gaussian": {
            "mu2": {"total": 4.001782, "reserved": 0, "spent": 0, "remaining": 4.001782},
            "epsilon": {"total": 9.999999, "reserved": 0, "spent": 0, "remaining": 9.999999},
            "delta": 0.00001,
        },
        "in_all": {"epsilon": 19.999999, "delta": 0.00001},
        "studies": [
            {
                "study": study,
                "state": "open",
                "trust": "central",
                "live": True,
                "epsilon": 1.5,
                "spent": 0.1,
                "mu2": None,
                "mu2_spent": None,
                "attributes": {},
            }
        ],
        "sessions": [],
    }
    await service.call("DELETE", f"/v1/studies/{study}/contributions/alice", "contribute")
    budget = (await service.call("GET", "/v1/subjects/alice/budget", "admin")).json()
    assert budget["epsilon"] == {"total": 10, "reserved": 0.1, "spent": 0.1, "remaining": 9.9}
    assert budget["studies"][0]["live"] is False


async def test_somebody_never_seen_has_a_new_persons_budget(service: Service) -> None:
    budget = (await service.call("GET", "/v1/subjects/nobody/budget", "contribute")).json()
    assert budget["epsilon"] == {"total": 10, "reserved": 0, "spent": 0, "remaining": 10}
    assert budget["studies"] == []


async def test_a_token_of_one_study_sees_no_other_on_a_statement(service: Service) -> None:
    studies = [await service.study(), await service.study()]
    for study in studies:
        await service.contribute(study, "alice")
    token = await service.token("contribute", studies=frozenset(studies[:1]))
    budget = (await service.call("GET", "/v1/subjects/alice/budget", token)).json()
    assert [line["study"] for line in budget["studies"]] == studies[:1]


async def test_a_lifetime_budget_is_set_with_a_reason(service: Service, study: str) -> None:
    path = "/v1/admin/subjects/alice/budget"
    await service.contribute(study, "alice", epsilon=3)
    response = await service.call("PUT", path, "admin", json={"epsilon": "12.345678", "reason": "asked"})
    assert response.json()["epsilon"] == {
        "total": 12.345678,
        "reserved": 3,
        "spent": 0,
        "remaining": 9.345678,
    }
    both = {"epsilon": 3, "gaussian": {"epsilon": 1, "delta": 0.000001}, "reason": "asked"}
    response = await service.call("PUT", path, "admin", json=both)
    assert response.json()["gaussian"]["mu2"]["total"] == 0.056028
    response = await service.call("PUT", path, "admin", json={"epsilon": 2.999999, "reason": "asked"})
    assert_problem(response, "budget_below_reserved", 409)
    response = await service.call(
        "PUT", "/v1/admin/subjects/new/budget", "admin", json={"epsilon": 0, "reason": "opted out"}
    )
    assert response.json()["epsilon"]["total"] == 0


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ({"epsilon": 5}, ["reason"]),
        ({"reason": "x"}, ["epsilon"]),
        ({"epsilon": -1, "reason": "x"}, ["epsilon"]),
        ({"epsilon": True, "reason": "x"}, ["epsilon"]),
        ({"epsilon": 1e10, "reason": "x"}, ["epsilon"]),
        ({"epsilon": 1, "gaussian": {"epsilon": 1, "delta": 1}, "reason": "x"}, ["gaussian.delta"]),
        ({"epsilon": 1, "gaussian": {"epsilon": 1, "delta": 0}, "reason": "x"}, ["gaussian.delta"]),
        ({"epsilon": 1, "delta": 0.1, "reason": "x"}, ["delta"]),
        ({"epsilon": 1, "reason": ""}, ["reason"]),
        ({"epsilon": 1, "reason": "x", "note": 1}, ["note"]),
    ],
)
async def test_a_bad_lifetime_budget_is_refused(
    service: Service, document: dict[str, Any], fields: list[str]
) -> None:
    response = await service.call("PUT", "/v1/admin/subjects/alice/budget", "admin", json=document)
    assert_problem(response, "invalid_request", 422, *fields)


async def test_accounts_are_listed_by_digest(service: Service, study: str) -> None:
    await service.crowd(study, 5)
    listed: list[str] = []
    query: dict[str, str] = {"limit": "2"}
    while True:
        page = (await service.call("GET", "/v1/admin/budgets", "admin", params=query)).json()
        listed += [item["subject"] for item in page["items"]]
        assert all(item["epsilon"]["reserved"] == 1 for item in page["items"])
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    digest = service.api.services.subject_key.digest
    assert listed == sorted(digest(f"p{number}").hex() for number in range(5))


async def test_the_ledger_is_listed_page_by_page_and_by_study(service: Service) -> None:
    studies = [await service.study(), await service.study()]
    for study in studies:
        await service.crowd(study)
        await service.contribute(study, "bob", epsilon=2)
        await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json={"estimator": "adpm"})
    everything = (await service.call("GET", "/v1/admin/ledger", "admin")).json()["items"]
    assert [line["number"] for line in everything] == [2, 2, 1, 1]
    listed: list[dict[str, Any]] = []
    query: dict[str, str] = {"limit": "3"}
    while True:
        page = (await service.call("GET", "/v1/admin/ledger", "admin", params=query)).json()
        listed += page["items"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert listed == everything
    path = f"/v1/admin/ledger?study={studies[0]}"
    assert {line["study"] for line in (await service.call("GET", path, "admin")).json()["items"]} == {
        studies[0]
    }
    assert (await service.call("GET", "/v1/admin/ledger?study=unknown", "admin")).json()["items"] == []
    for name in ("%00", "UPPER", ""):
        response = await service.call("GET", f"/v1/admin/ledger?study={name}", "admin")
        assert_problem(response, "invalid_request", 422, "study")


@pytest.mark.parametrize("document", ["[]", "5", "null", '"x"', "[{}]"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/studies"), ("POST", "/v1/admin/tokens"), ("PUT", "/v1/admin/subjects/alice/budget")],
)
async def test_a_document_must_be_an_object(service: Service, method: str, path: str, document: str) -> None:
    response = await service.call(method, path, "admin", content=document, headers=JSON)
    assert_problem(response, "invalid_request", 422, "body")


async def test_without_a_grant_there_is_no_budget_for_gaussian_noise(database_url: str) -> None:
    async with open_service(database_url, lifetime_gaussian="0,0.00001") as service:
        assert Settings.model_fields["lifetime_gaussian"].default == "0,0.00001"
        document = {
            "slug": "g",
            "lower": 0,
            "upper": 1,
            "noise": "gaussian",
            "delta": 1e-6,
            "epsilon": {"max": 3},
        }
        made = await service.call("POST", "/v1/studies", "admin", json=document)
        [warning] = made.json()["warnings"]
        assert "DITHER_LIFETIME_GAUSSIAN" in warning
        assert "dither budget raise" in warning
        offer = {"subject": "alice", "value": 1, "epsilon": 1, "trust": "central"}
        path = "/v1/studies/g/contributions"
        refused = await service.call("POST", path, "contribute", json=offer)
        problem = assert_problem(refused, "budget_exhausted", 409, "epsilon")
        assert "no lifetime budget for Gaussian noise" in problem["errors"][0]["reason"]
        await service.contribute(await service.study(slug="plain"), "alice")
        budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
        assert budget["gaussian"] is None
        assert budget["in_all"] == {"epsilon": 10, "delta": 0}
        listed = (await service.call("GET", "/v1/admin/budgets", "admin")).json()["items"]
        assert [one["gaussian"] for one in listed] == [None]
        grant = {"epsilon": 10, "delta": 0.00001, "reason": "a study"}
        await service.call("POST", "/v1/admin/budgets/raise", "admin", json=grant)
        assert (await service.call("POST", path, "contribute", json=offer)).status_code == 201
        assert (await service.call("POST", "/v1/studies", "admin", json=document)).json().get(
            "warnings"
        ) is None
        budget = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
        assert budget["in_all"] == {"epsilon": 19.999999, "delta": 0.00001}


async def test_what_people_were_granted_stays_when_the_setting_goes(database_url: str) -> None:
    async with open_service(database_url, lifetime_gaussian="10,0.00001") as service:
        await service.contribute(await service.study(slug="plain"), "alice")
        before = (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json()
    async with open_service(database_url, lifetime_gaussian="0,0.00001") as service:
        assert (await service.call("GET", "/v1/subjects/alice/budget", "contribute")).json() == before
        new = (await service.call("GET", "/v1/subjects/bob/budget", "contribute")).json()
        assert (before["gaussian"] is None, new["gaussian"]) == (False, None)


@pytest.mark.parametrize(("most", "warned"), [(10, False), (10.000001, True), (1000, True)])
async def test_a_study_above_the_lifetime_budget_says_so(service: Service, most: float, warned: bool) -> None:
    document = {"slug": "wide", "lower": 0, "upper": 1, "epsilon": {"max": most}}
    made = (await service.call("POST", "/v1/studies", "admin", json=document)).json()
    assert ["lifetime budget of a new person, 10" in text for text in made.get("warnings", [])] == [
        True
    ] * warned
