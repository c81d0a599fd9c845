"""Collecting on the study's page: an open link with its QR code, single links as a file, revoking."""

import csv
import io
import re

import pytest

from tests.api.service import Service
from tests.dashboard.browser import Browser, text_of
from tests.dashboard.test_take import opened


async def test_an_open_link_is_made_shown_again_and_revoked(admin: Browser, service: Service):
    study = await service.study(title="How long?")
    page = f"/dashboard/studies/{study}"
    await admin.get(page)
    made = await admin.post(f"{page}/invitations", {"kind": "open", "name": "<i>poster", "limit": "20"})
    assert made.status_code == 303
    paths = []
    for _ in range(2):
        shown = await admin.get(made.headers["location"])
        assert shown.status_code == 200
        assert "<i>poster" not in admin.page
        assert "<svg " in admin.page
        assert "It takes 20 answers; 0 came." in text_of(admin.page)
        paths += re.findall(r'value="http://test(/take/[^"]+)"', admin.page)
    assert paths == [paths[0]] * 2
    assert (await opened(service, paths[0])).status_code == 200
    await admin.get(page)
    assert "0 of 20" in text_of(admin.page)
    await admin.get(made.headers["location"])
    await admin.post(f"{made.headers['location']}/revoke")
    await admin.get(page)
    assert "revoked" in text_of(admin.page)
    assert (await opened(service, paths[0])).status_code == 404


async def test_single_links_come_as_a_file(admin: Browser, service: Service):
    study = await service.study()
    page = f"/dashboard/studies/{study}"
    for fields, columns in (
        ({"count": "50"}, ["url"]),
        ({"subjects": "ann\r\n\r\nbob "}, ["subject", "url"]),
    ):
        await admin.get(page)
        made = await admin.post(f"{page}/invitations", {"kind": "single", "name": "mail", **fields})
        assert made.headers["content-type"].startswith("text/csv")
        assert "attachment" in made.headers["content-disposition"]
        header, *rows = csv.reader(io.StringIO(made.text))
        assert header == columns
        assert len(rows) == (50 if columns == ["url"] else 2)
        assert (await opened(service, rows[-1][-1].removeprefix("http://test"))).status_code == 200
    assert [row[0] for row in rows] == ["ann", "bob"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "open", "limit": "1"}, "It takes 1 answer; 0 came."),
        ({"kind": "single", "count": "1"}, "1 link, for one person, shown once when made"),
        ({"kind": "single", "count": "2"}, "2 links, each for one person, shown once when made"),
    ],
)
async def test_one_is_said_as_one(admin: Browser, service: Service, fields: dict[str, str], words: str):
    study = await service.study()
    page = f"/dashboard/studies/{study}"
    await admin.get(page)
    await admin.post(f"{page}/invitations", fields)
    await admin.get(page)
    [path] = set(re.findall(rf'href="({page}/invitations/[^"/]+)"', admin.page))
    await admin.get(path)
    assert words in text_of(admin.page)


async def test_what_cannot_be_made_is_explained_on_the_page(admin: Browser, service: Service):
    study = await service.study()
    page = f"/dashboard/studies/{study}"
    for fields, words in (
        ({"kind": "single"}, "need either a count or subjects"),
        ({"kind": "open", "limit": "1.000"}, "limit 1.000 may mean 1 or 1000: write it like that"),
        ({"kind": "single", "count": "1,000"}, "count 1,000 may mean 1 or 1000: write it like that"),
        ({"kind": "single", "count": "many"}, "must be an integer"),
        ({"kind": "open", "expires_at": "2020-01-01T00:00"}, "must be in the future"),
    ):
        await admin.get(page)
        refused = await admin.post(f"{page}/invitations", fields)
        assert refused.status_code == 422
        assert words in text_of(admin.page)
    assert (await service.rows())["invitation"] == 0


async def test_the_page_of_a_study_with_a_secret_size_does_not_say_what_was_used(
    admin: Browser, service: Service
):
    study = await service.study(relation="add_remove_one")
    page = f"/dashboard/studies/{study}"
    await admin.get(page)
    assert "Make one link for all" not in admin.page
    await admin.post(f"{page}/invitations", {"kind": "single", "count": "2"})
    await admin.get(page)
    collect = text_of(admin.page.partition('id="collect"')[2].partition("</section>")[0])
    assert "Answers" not in collect.replace("Answers that you have in a file", "")
