"""Publications over HTTP: what everyone gets, who manages them, and what a file says of a secret study."""

import asyncio
import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest

from app.formats.publication import PublicKey, read_keys, verify
from app.services.admin import publications
from app.services.admin.ledger import Ledger
from app.services.admin.restoring import check, read_export
from tests.api.service import Service, assert_problem
from tests.support.databases import execute


async def answered(service: Service, study: str, **question: Any) -> str:
    """Make an answer; returns its id."""
    made = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"allow_worse": True, **question}
    )
    assert made.status_code in (200, 201), made.text
    return str(made.json()["id"])


async def publish(service: Service, study: str, *releases: str, **more: Any) -> httpx.Response:
    """Publish answers."""
    document = {"releases": list(releases), "title": "What came out", **more}
    return await service.call("POST", f"/v1/studies/{study}/publications", "analyse", json=document)


async def everyone(service: Service, path: str, **headers: str) -> httpx.Response:
    """Read as anyone: without a token."""
    return await service.client.get(path, headers=headers)


async def keys(service: Service) -> list[PublicKey]:
    """The service's public keys."""
    return read_keys((await everyone(service, "/.well-known/dither-keys.json")).content)


async def test_what_is_published_is_read_by_everyone_and_held_by_the_keys(service: Service):
    study = await service.study(title="Minutes?", attributes={"region": ["north", "south"]})
    for number in range(40):
        label = "north" if number % 2 else "south"
        await service.contribute(study, f"p{number}", number, attributes={"region": label})
    mean = await answered(service, study, by="region")
    histogram = await answered(service, study, statistic="histogram", bins=5)
    made = await publish(service, study, mean, histogram, slug="minutes")
    assert made.status_code == 201, made.text
    assert made.json()["url"] == "http://test/p/minutes"
    assert made.json()["state"] == "shown"
    page = await everyone(service, "/p/minutes")
    assert page.status_code == 200
    assert "set-cookie" not in page.headers
    assert "What came out" in page.text
    assert "<script" not in page.text
    file = await everyone(service, "/p/minutes.json")
    assert file.content == (await everyone(service, "/p/minutes", Accept="application/json")).content
    verdict = verify(file.content, await keys(service))
    assert (verdict.fault, verdict.answers) == (None, 2)
    document = file.json()
    for one, release in zip(document["answers"], (mean, histogram), strict=True):
        stored = await service.call("GET", f"/v1/releases/{release}", "analyse")
        assert one["answer"] == stored.json(), "every field that an analyst sees, and no other"
    assert document["label"] == {
        "unit": "person",
        "relation": "replace_one",
        "epsilon": {"spent": document["label"]["epsilon"]["spent"], "at_most": 10.0, "sessions": 0.0},
        "delta": 0.0,
        "trust": ["central"],
        "mechanisms": {"central": "discrete Laplace noise"},
        "public": ["how many people take part", "how many gave each region"],
        "people": 40,
    }
    charged = [one["answer"]["epsilon_max"] for one in document["answers"]]
    assert document["label"]["epsilon"]["spent"] == pytest.approx(sum(charged))
    rows = list(csv.DictReader(io.StringIO((await everyone(service, "/p/minutes.csv")).text)))
    assert rows == list(
        csv.DictReader(io.StringIO((await everyone(service, "/p/minutes", Accept="text/csv")).text))
    )
    whole = document["answers"][0]["answer"]
    assert float(rows[0]["estimate"]) == whole["estimate"]
    labels = [row for row in rows if row["of"].startswith("region=")]
    assert [float(row["upper"]) for row in labels if row["of"].count(";") == 0] == [
        group["interval"]["upper"] for group in whole["groups"]
    ]
    bins = [row for row in rows if row["statistic"] == "histogram"]
    assert len(bins) >= 5


async def test_everyone_reads_a_publication_at_the_levels_that_its_answers_are_kept_at(service: Service):
    study = await service.study(attributes={"region": ["north", "south"]})
    for number in range(40):
        label = "north" if number % 2 else "south"
        await service.contribute(study, f"p{number}", number, attributes={"region": label})
    mean = await answered(service, study, by="region")
    histogram = await answered(service, study, statistic="histogram", bins=5)
    await publish(service, study, mean, histogram, slug="levels", frames=["https://example.org"])
    signed = await everyone(service, "/p/levels.json")
    assert (await everyone(service, "/p/levels.json?level=0.95")).content == signed.content
    for level in (0.8, 0.9, 0.99):
        found = (await everyone(service, f"/p/levels.json?level={level}")).json()
        assert found["level"] == level
        for one, release in zip(found["answers"], (mean, histogram), strict=True):
            read = await service.call("GET", f"/v1/releases/{release}?level={level}", "analyse")
            assert one == {"number": one["number"], "answer": read.json()}
        assert found["label"] == signed.json()["label"]
        assert not {"format", "checkpoint", "signature"} & found.keys(), (
            "nothing is signed but what was published"
        )
        rows = list(
            csv.DictReader(io.StringIO((await everyone(service, f"/p/levels.csv?level={level}")).text))
        )
        assert {float(row["level"]) for row in rows} == {level}
        for path in ("/p/levels", "/p/levels/embed"):
            page = (await everyone(service, f"{path}?level={level}")).text
            assert f"the {round(100 * level)} % interval" in page
            assert "What was published, and is signed, are those at 95 %" in page
    assert (await everyone(service, "/p/levels.json")).content == signed.content
    assert verify(signed.content, await keys(service)).fault is None
    assert (await everyone(service, "/p/levels?level=0.5")).status_code == 422
    await execute(service.database_url, "ALTER TABLE release DISABLE TRIGGER USER")
    await execute(service.database_url, "UPDATE release SET kept_ends = NULL")
    assert (await everyone(service, "/p/levels.json?level=0.99")).status_code == 409
    assert (await everyone(service, "/p/levels.json")).content == signed.content


async def test_a_publication_is_changed_withdrawn_and_expires(service: Service):
    study = await service.study()
    await service.crowd(study, 30)
    release = await answered(service, study)
    await publish(service, study, release, slug="ours")
    path = f"/v1/studies/{study}/publications/ours"
    changed = await service.call(
        "PUT",
        path,
        "admin",
        json={"releases": [release], "title": "Better", "frames": ["https://example.org"]},
    )
    assert changed.json()["title"] == "Better"
    assert "Better" in (await everyone(service, "/p/ours")).text
    assert verify((await everyone(service, "/p/ours.json")).content, await keys(service)).fault is None
    framed = await everyone(service, "/p/ours/embed")
    assert "frame-ancestors https://example.org" in framed.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in (await everyone(service, "/p/ours")).headers["content-security-policy"]
    connection = await asyncpg.connect(service.database_url)
    try:
        await connection.execute("UPDATE publication SET expires_at = created_at")
        assert (await everyone(service, "/p/ours.json")).status_code == 410
        assert (await service.call("GET", path, "analyse")).json()["state"] == "expired"
        await connection.execute("UPDATE publication SET expires_at = NULL")
        for _ in range(2):
            assert (await service.call("DELETE", path, "analyse")).status_code == 204
        for ending in ("", ".json", ".csv", "/embed"):
            gone = await everyone(service, f"/p/ours{ending}")
            assert gone.status_code == 410
            assert "no longer published" in gone.text
        assert await connection.fetchval("SELECT file FROM publication") is None
        trail = await connection.fetch(
            "SELECT action FROM audit WHERE target = 'ours' ORDER BY id",
        )
    finally:
        await connection.close()
    assert [row["action"] for row in trail] == [
        "publication.create",
        "publication.change",
        "publication.withdraw",
    ]
    again = await service.call("PUT", path, "analyse", json={"releases": [release], "title": "x"})
    assert_problem(again, "conflict", 409)
    assert (await everyone(service, "/p/never")).status_code == 404


async def test_what_cannot_be_published_is_refused_by_its_field(service: Service):
    study, other = await service.study(), await service.study()
    for one in (study, other):
        await service.crowd(one, 30)
    release, foreign = await answered(service, study), await answered(service, other)
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for document, field in (
        ({"releases": []}, "releases"),
        ({"releases": [foreign]}, "releases"),
        ({"releases": [str(uuid4())]}, "releases"),
        ({"releases": [release, release]}, "releases"),
        ({"releases": ["x"]}, "releases.0"),
        ({"releases": [release] * 21}, "releases"),
        ({"expires_at": past}, "expires_at"),
        ({"frames": ["https://example.org/path"]}, "frames.0"),
        ({"frames": ["https://a.org; script-src *"]}, "frames.0"),
        ({"slug": "Upper"}, "slug"),
        ({"title": ""}, "title"),
    ):
        refused = await publish(service, study, release, **document)
        assert_problem(refused, "invalid_request", 422, field)
    assert (await service.rows())["publication"] == 0
    assert (await publish(service, study, release, slug="taken")).status_code == 201
    assert_problem(await publish(service, other, foreign, slug="taken"), "conflict", 409)


async def test_a_publication_is_never_managed_through_another_study(service: Service):
    study, other = await service.study(), await service.study()
    await service.crowd(study, 30)
    await publish(service, study, await answered(service, study), slug="ours")
    for method in ("GET", "DELETE"):
        refused = await service.call(method, f"/v1/studies/{other}/publications/ours", "admin")
        assert_problem(refused, "not_found", 404)


def settled(text: str) -> str:
    """A page or a file without what is random, and without when it was made."""
    text = re.sub(r'"(commitment|signature|checkpoint|published_at)": "[^"]*"', r'"\1"', text)
    text = re.sub(r'"proof": \[[^\]]*\]', '"proof"', text)
    return re.sub(r'datetime="[^"]*"|title="\d\d:\d\d:\d\d"', "when", text)


async def test_of_a_secret_study_nothing_depends_on_who_is_there(service: Service):
    """Two histories that differ in one person give equal bytes, whatever that person did."""
    study = await service.study(relation="add_remove_one")
    await service.crowd(study, 200)
    links = await service.call(
        "POST", f"/v1/studies/{study}/invitations", "admin", json={"kind": "single", "count": 2}
    )
    release = await answered(service, study)
    await publish(service, study, release, slug="hidden")

    async def seen() -> list[str]:
        change = {"releases": [release], "title": "What came out"}
        path = f"/v1/studies/{study}/publications/hidden"
        assert (await service.call("PUT", path, "analyse", json=change)).status_code == 200
        return [
            settled((await everyone(service, f"/p/hidden{ending}")).text)
            for ending in ("", ".json", ".csv", "/embed")
        ]

    before = await seen()
    await service.contribute(study, "one-more", 99)
    assert await seen() == before
    answer = {"value": "7", "epsilon": "1", "trust": "central", "key": "k" * 43}
    url = httpx.URL(links.json()["urls"][0])
    taken = await service.client.post(url.path, data=answer, headers={"Origin": "http://test"})
    assert taken.status_code == 200
    assert await seen() == before
    await service.call("DELETE", f"/v1/studies/{study}/contributions/one-more", "contribute")
    assert await seen() == before
    label = json.loads((await everyone(service, "/p/hidden.json")).text)["label"]
    assert (label["people"], label["public"], label["unit"]) == (None, [], "link")


async def test_the_label_says_for_whom_the_promise_is(service: Service):
    units = []
    for wish in (
        None,
        {"kind": "single", "subjects": ["a"]},
        {"kind": "single", "count": 1},
        {"kind": "open"},
    ):
        study = await service.study()
        await service.crowd(study, 30)
        if wish:
            await service.call("POST", f"/v1/studies/{study}/invitations", "admin", json=wish)
        made = await publish(service, study, await answered(service, study))
        file = await everyone(service, f"/p/{made.json()['slug']}.json")
        units.append(file.json()["label"]["unit"])
    assert units == ["person", "person", "link", "answer"]


async def test_an_archived_study_keeps_and_makes_publications(service: Service):
    study = await service.study()
    await service.crowd(study, 30)
    release = await answered(service, study)
    await publish(service, study, release, slug="before")
    await service.call("POST", f"/v1/studies/{study}/archive", "admin", json={"reason": "over"})
    assert (await everyone(service, "/p/before")).status_code == 200
    assert (await publish(service, study, release)).status_code == 201


async def test_the_tree_has_every_release_once_however_publications_race(service: Service):
    study = await service.study()
    await service.crowd(study, 30)
    releases = [await answered(service, study, share=share) for share in (0.1, 0.2, 0.3)]
    made = await asyncio.gather(*(publish(service, study, one) for one in releases * 2))
    assert [one.status_code for one in made] == [201] * 6
    held = await keys(service)
    for one in made:
        file = await everyone(service, f"/p/{one.json()['slug']}.json")
        verdict = verify(file.content, held)
        assert (verdict.fault, verdict.size) == (None, 3)
    assert (await Ledger(service.api.services.database).audit()).clean


async def test_after_a_restore_that_lost_releases_another_tree_is_signed(service: Service):
    study = await service.study()
    await service.crowd(study, 30)
    release = await answered(service, study)
    services = service.api.services

    async def log() -> str:
        made = await publish(service, study, release)
        file = await everyone(service, f"/p/{made.json()['slug']}.json")
        verdict = verify(file.content, await keys(service))
        assert verdict.fault is None
        return verdict.log

    first = await log()
    known = json.dumps({"release": release, "study": study})
    assert await check(services.database, services.clock, read_export(known)) == {}
    assert await log() == first, "nothing was lost"
    lost = json.dumps({"release": str(uuid4()), "study": study})
    assert list(await check(services.database, services.clock, read_export(lost))) == [study]
    assert await log() != first


async def test_large_answers_are_bounded_together_and_shown_in_part(
    service: Service, monkeypatch: pytest.MonkeyPatch
):
    labels = [f"l{number}" for number in range(400)]
    study = await service.study(attributes={"place": labels})
    for number in range(3):
        await service.contribute(study, f"p{number}", 10, attributes={"place": labels[number]})
    release = await answered(service, study, by="place")
    made = await publish(service, study, release, slug="wide")
    assert made.status_code == 201
    page = (await everyone(service, "/p/wide")).text
    assert page.count('<th scope="row">l') <= 100
    assert "the beginning, 50 lines at most" in page
    rows = (await everyone(service, "/p/wide.csv")).text
    assert "place=l0" in rows
    other = await answered(service, study)
    monkeypatch.setattr(publications, "MOST_BYTES", len(rows))
    assert (await publish(service, study, release)).status_code == 201, "one, however large it is"
    assert_problem(await publish(service, study, release, other), "invalid_request", 422, "releases")
