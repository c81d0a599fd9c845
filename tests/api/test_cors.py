"""Which pages of other origins a browser lets in."""

import pytest

from tests.api.service import VALUE, open_service

PAGE = "https://survey.example"
OTHER = "https://evil.example"


def preflight(
    origin: str, method: str = "POST", headers: str = "authorization,content-type"
) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }


def cors_headers(response):
    return {name: value for name, value in response.headers.items() if name.startswith("access-control")}


async def test_without_the_setting_there_is_no_header(service, study):
    path = f"/v1/studies/{study}/contributions"
    asked = await service.client.request("OPTIONS", path, headers=preflight(PAGE))
    stored = await service.call("POST", path, "contribute", json=VALUE, headers={"Origin": PAGE})
    assert (asked.status_code, stored.status_code) == (405, 201)
    for response in (asked, stored):
        assert cors_headers(response) == {}
        assert "vary" not in response.headers


async def test_a_listed_page_may_contribute_and_read_the_answer(database_url):
    async with open_service(database_url, cors_origins=f"{PAGE}, http://localhost:8080") as service:
        path = f"/v1/studies/{await service.study()}/contributions"
        for method in ("GET", "POST", "DELETE"):
            asked = await service.client.request("OPTIONS", path, headers=preflight(PAGE, method))
            assert asked.status_code == 200
            allowed = cors_headers(asked)
            assert allowed["access-control-allow-origin"] == PAGE
            assert set(allowed["access-control-allow-methods"].split(", ")) == {"GET", "POST", "DELETE"}
            assert "access-control-allow-credentials" not in allowed

        stored = await service.call("POST", path, "contribute", json=VALUE, headers={"Origin": PAGE})
        assert stored.status_code == 201
        assert cors_headers(stored) == {
            "access-control-allow-origin": PAGE,
            "access-control-expose-headers": "Retry-After, X-Request-Id",
        }
        assert stored.headers["vary"] == "Origin"


async def test_a_listed_page_can_read_a_refusal(database_url):
    async with open_service(database_url, cors_origins=PAGE) as service:
        refused = await service.client.get("/v1/studies", headers={"Origin": PAGE})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == PAGE


async def test_a_page_that_is_not_listed_may_not(database_url):
    async with open_service(database_url, cors_origins=PAGE) as service:
        path = f"/v1/studies/{await service.study()}/contributions"
        for origin in (OTHER, f"{PAGE}.evil.example", "null", f"{PAGE}:8443"):
            asked = await service.client.request("OPTIONS", path, headers=preflight(origin))
            assert asked.status_code == 400
            assert "access-control-allow-origin" not in asked.headers


@pytest.mark.parametrize(
    ("method", "headers"), [("PUT", "authorization"), ("POST", "authorization,idempotency-key")]
)
async def test_what_no_page_needs_is_not_allowed(database_url, method, headers):
    async with open_service(database_url, cors_origins=PAGE) as service:
        asked = await service.client.request(
            "OPTIONS", "/v1/studies", headers=preflight(PAGE, method, headers)
        )
        assert asked.status_code == 400
