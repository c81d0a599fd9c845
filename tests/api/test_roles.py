"""Tokens with several roles over HTTP; `test_permissions` asks every route what they may."""

import asyncpg
import pytest

from app.core.principal import Role
from tests.api.service import VALUE, Service, assert_problem

TOKENS = "/v1/admin/tokens"


async def test_a_token_with_several_roles_does_what_each_may_and_keeps_a_quota(service: Service) -> None:
    study = await service.study()
    wish = {"name": "desk", "roles": ["admin", "contribute", "analyse"]}
    made = await service.call("POST", TOKENS, "admin", json=wish)
    assert made.status_code == 201, made.text
    token = made.json()
    # Programs that know of one role read the first.
    assert (token["role"], token["roles"]) == ("contribute", ["contribute", "analyse", "admin"])
    secret = token["token"]
    sent = await service.call("POST", f"/v1/studies/{study}/contributions", secret, json=VALUE)
    assert sent.status_code == 201
    await service.crowd(study, 60)
    path = f"{TOKENS}/{token['id']}"
    quota = {"share": 0.1, "period_seconds": 3600}
    assert (await service.call("PUT", f"{path}/quota", secret, json=quota)).status_code == 200
    asked = await service.call("POST", f"/v1/studies/{study}/releases", secret, json={"share": 0.1})
    assert asked.status_code == 201
    more = await service.call("POST", f"/v1/studies/{study}/releases", secret, json={"share": 0.5})
    assert_problem(more, "quota_exhausted", 429)
    shown = (await service.call("GET", f"/v1/releases/{asked.json()['id']}", secret)).json()
    assert shown["charges"], "as admins see it"
    trail = (await service.call("GET", "/v1/admin/audit?action=token.create", "admin")).json()["items"]
    assert trail[0]["detail"]["roles"] == ["contribute", "analyse", "admin"]
    found = (await service.call("GET", path, "admin")).json()
    assert found["roles"] == token["roles"]


async def test_a_token_with_one_role_is_made_either_way(service: Service) -> None:
    for wish in ({"role": "analyse"}, {"roles": ["analyse"]}):
        made = await service.call("POST", TOKENS, "admin", json={"name": "x", **wish})
        assert (made.json()["role"], made.json()["roles"]) == ("analyse", ["analyse"])


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({}, "role"),
        ({"role": "analyse", "roles": ["admin"]}, "role"),
        ({"role": None, "roles": None}, "role"),
        ({"roles": []}, "roles"),
        ({"roles": "analyse"}, "roles"),
        ({"roles": ["analyse", "analyse"]}, "roles"),
        ({"roles": ["analyse", "root"]}, "roles.1"),
        ({"roles": ["contribute", "analyse"], "subject": "ada"}, "subject"),
        ({"roles": ["analyse", "observe"], "studies": ["a"]}, "studies"),
    ],
)
async def test_other_tokens_are_refused(service: Service, wish: dict[str, object], field: str) -> None:
    before = await service.rows()
    refused = await service.call("POST", TOKENS, "admin", json={"name": "x", **wish})
    problem = assert_problem(refused, "invalid_request", 422)
    assert [one["field"] for one in problem["errors"]] == [field]
    assert await service.rows() == before


async def test_the_database_keeps_no_token_without_a_role(service: Service) -> None:
    connection = await asyncpg.connect(service.database_url)
    try:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("UPDATE token SET roles = '{}'")
        kept = await connection.fetch("SELECT DISTINCT CAST(roles AS text[]) AS roles FROM token")
    finally:
        await connection.close()
    assert {role for row in kept for role in row["roles"]} == set(Role)
