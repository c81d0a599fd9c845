"""Where links of the service lead: never where a client's Host header says."""

import pytest

from app.store.sql import Sql
from tests.api.service import Service, assert_problem, open_service

PATH = "/v1/subjects/alice/links"
PUBLIC = "https://dither.example.org"
OTHERS = ("evil.example", "evil.example:8000", "test.evil.example", "127.0.0.1.evil.example")
MALFORMED = (
    "",
    "[",
    "test:x",
    "test:99999999",
    "localhost@evil.example",
    "evil.example/localhost",
    "a b",
    "[::1]x",
)


COUNT = Sql.of(int)("SELECT count(*) FROM link")


async def links(service: Service) -> int:
    """How many there are."""
    return await service.api.services.database.run_tx("test.links", COUNT.one)


@pytest.mark.parametrize("host", [*OTHERS, *MALFORMED])
async def test_a_link_does_not_follow_the_host_header(service: Service, host: str) -> None:
    before = await links(service)
    refused = await service.call("POST", PATH, "contribute", headers={"Host": host})
    problem = assert_problem(refused, "invalid_request", 422, "Host")
    assert "DITHER_PUBLIC_URL" in problem["errors"][0]["reason"]
    assert await links(service) == before, "no secret is made"


@pytest.mark.parametrize("host", ["test", "localhost:8000", "127.0.0.1:9000", "[::1]:8000"])
async def test_a_link_follows_names_of_the_machine_and_the_address_that_was_reached(
    service: Service, host: str
) -> None:
    made = await service.call("POST", PATH, "contribute", headers={"Host": host})
    assert made.status_code == 201, made.text
    assert made.json()["url"].startswith(f"http://{host}/dashboard/person/open/")


@pytest.mark.parametrize("host", ["test", *OTHERS])
async def test_with_a_public_address_every_link_begins_with_it(database_url: str, host: str) -> None:
    async with open_service(database_url, public_url=PUBLIC) as service:
        made = await service.call("POST", PATH, "contribute", headers={"Host": host})
        assert made.json()["url"].startswith(f"{PUBLIC}/dashboard/person/open/")
