"""Invitations over HTTP: links are made once, listed without their codes, and revoked."""

import csv
import io
from typing import Any

import pytest

from app.web.invitations import qr_code
from tests.api.service import Service, assert_problem


@pytest.fixture
async def path(service: Service) -> str:
    return f"/v1/studies/{await service.study()}/invitations"


async def test_links_are_in_the_response_that_makes_them_and_in_no_other(service: Service, path: str):
    made = await service.call("POST", path, "admin", json={"kind": "single", "count": 50, "name": "mail"})
    assert made.status_code == 201
    urls = made.json()["urls"]
    codes = {url.removeprefix("http://test/take/") for url in urls}
    assert len(codes) == 50
    assert {len(code) for code in codes} == {22}, "128 bits"
    for other in (path, f"{path}/{made.json()['id']}"):
        text = (await service.call("GET", other, "admin")).text
        assert not any(code in text for code in codes)
    shown = (await service.call("GET", f"{path}/{made.json()['id']}", "admin")).json()
    assert (shown["name"], shown["kind"], shown["limit"], shown["used"], shown["state"]) == (
        *("mail", "single", 50, 0, "valid"),
    )


async def test_links_come_as_a_table_beside_the_people_that_they_are_for(service: Service, path: str):
    wish = {"kind": "single", "subjects": ["ann", 'bob, "the" second']}
    made = await service.call("POST", path, "admin", json=wish, headers={"Accept": "text/csv"})
    assert made.headers["content-type"].startswith("text/csv")
    header, *rows = csv.reader(io.StringIO(made.text))
    assert header == ["subject", "url"]
    assert [row[0] for row in rows] == wish["subjects"]
    assert all(row[1].startswith("http://test/take/") for row in rows)
    plain = await service.call("POST", path, "admin", json={"kind": "open"}, headers={"Accept": "text/csv"})
    assert plain.text.splitlines()[0] == "url"


@pytest.mark.parametrize(
    ("wish", "fields"),
    [
        ({}, "kind"),
        ({"kind": "closed"}, "kind"),
        ({"kind": "open", "count": 3}, "count"),
        ({"kind": "open", "subjects": ["ann"]}, "subjects"),
        ({"kind": "open", "limit": 0}, "limit"),
        ({"kind": "single"}, "count"),
        ({"kind": "single", "count": 2, "limit": 3}, "limit"),
        ({"kind": "single", "count": 2, "subjects": ["ann", "bob"]}, "count"),
        ({"kind": "single", "count": 10_001}, "count"),
        ({"kind": "single", "subjects": []}, "subjects"),
        ({"kind": "single", "subjects": ["ann", "ann"]}, "subjects"),
        ({"kind": "single", "subjects": ["..", "a\0"]}, "subjects.0 subjects.1"),
        ({"kind": "single", "subjects": ["ann", "Zoe\u0308"]}, "subjects.1"),
        ({"kind": "open", "expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
        ({"kind": "open", "expires_at": "soon"}, "expires_at"),
        ({"kind": "open", "surprise": 1}, "surprise"),
    ],
)
async def test_what_an_invitation_cannot_be_is_refused(
    service: Service, path: str, wish: dict[str, Any], fields: str
):
    refused = await service.call("POST", path, "admin", json=wish)
    assert_problem(refused, "invalid_request", 422, *fields.split())
    assert (await service.rows())["invitation"] == 0


async def test_an_invitation_belongs_to_its_study_and_is_revoked_once(service: Service, path: str):
    made = (await service.call("POST", path, "admin", json={"kind": "open"})).json()
    other = f"/v1/studies/{await service.study()}/invitations"
    for method in ("GET", "DELETE"):
        foreign = await service.call(method, f"{other}/{made['id']}", "admin")
        assert_problem(foreign, "not_found", 404)
        assert_problem(await service.call(method, f"{path}/none", "admin"), "not_found", 404)
    for _ in range(2):
        assert (await service.call("DELETE", f"{path}/{made['id']}", "admin")).status_code == 204
    shown = (await service.call("GET", f"{path}/{made['id']}", "admin")).json()
    assert shown["state"] == "revoked"
    trail = (await service.call("GET", f"/v1/admin/audit?target={made['id']}", "admin")).json()["items"]
    assert [one["action"] for one in trail] == ["invitation.revoke"] * 2 + ["invitation.create"]
    assert made["urls"][0].rpartition("/")[2] not in str(trail)


async def test_invitations_are_listed_page_by_page(service: Service, path: str):
    ids = set()
    for _ in range(5):
        ids.add((await service.call("POST", path, "admin", json={"kind": "open"})).json()["id"])
    found, more = [], "?limit=2"
    while more:
        page = (await service.call("GET", f"{path}{more}", "admin")).json()
        found += [one["id"] for one in page["items"]]
        more = f"?limit=2&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert set(found) == ids
    assert len(found) == 5


async def test_an_open_link_has_a_qr_code_that_holds_its_address(service: Service, path: str):
    """Read back module by module, by drawing the same address."""
    made = (await service.call("POST", path, "admin", json={"kind": "open"})).json()
    drawn = await service.call("GET", f"{path}/{made['id']}/qr", "admin")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert drawn.text.startswith("<svg ")
    (url,) = made["urls"]
    assert drawn.text == qr_code(url)
    assert drawn.text != qr_code(f"{url}x")
    single = (await service.call("POST", path, "admin", json={"kind": "single", "count": 1})).json()
    assert_problem(await service.call("GET", f"{path}/{single['id']}/qr", "admin"), "not_found", 404)
