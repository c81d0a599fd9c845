"""Installations of released versions, restored and upgraded: all is found, and nothing is paid again."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.postgres.embedded import EmbeddedPostgres
from tests.api.service import SUBJECT_KEY, Service, open_service
from tests.support.databases import Server, crash, scratch_directory
from tests.support.debian_postgres import debian_binaries
from tests.support.live import ROOT
from tests.upgrades.former import HERE, each_version, versions

pytestmark = pytest.mark.system

READ_OFF = ("difference",)
"""Statistics that are worked out of an answer when they are read: theirs is the same answer."""

STEPS: tuple[tuple[str, dict[str, Any], float, bool], ...] = (
    ("numbers", {}, 0.25, False),
    ("numbers", {"by": "region"}, 0.06, False),
    ("numbers", {"statistic": "histogram", "bins": 4}, 0.06, True),
    ("untilted", {}, 0.5, False),
    ("tiers", {}, 0.2, False),
    ("gaussian", {}, 0.25, False),
    ("poll", {"statistic": "shares"}, 0.2, True),
    ("household", {"measure": "income"}, 0.2, False),
    ("places", {}, 0.2, True),
)
"""Questions that sharpen: study, question, the share that they have used, and whether all pay all of it."""

MORE = 0.02
OFFER = 0.5
"""What `p0` offers to every study."""


def restored(version: str, url: str) -> None:
    """Restore a backup with the script of the guide, which migrates and audits, too."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "DITHER_DATABASE_URL": url}
    done = subprocess.run(
        [ROOT / "deploy" / "restore.sh", HERE / version / "backup.dump"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the ledger is clean" in done.stdout


@pytest.fixture(params=["newest", "oldest"])
def url(request: pytest.FixtureRequest, postgres_server: Server) -> Iterator[str]:
    """A database without a schema, on the newest and on the oldest PostgreSQL that there is."""
    if request.param == "newest":
        with postgres_server.empty_database() as url:
            yield url
        return
    with scratch_directory() as directory:
        directory.chmod(0o711)  # Before version 16 its user has to come by.
        with EmbeddedPostgres(directory, debian_binaries()) as older:
            yield older.url
            crash(older)


@pytest.mark.parametrize("version", each_version())
async def test_a_former_installation_is_upgraded_and_goes_on(version: str, url: str) -> None:
    kept = json.loads((HERE / version / "installation.json").read_text())
    assert kept["subject_key"] == SUBJECT_KEY
    restored(version, url)
    async with open_service(url, **kept["settings"]) as service:
        service.tokens |= kept["tokens"]
        await assert_same_answers(service, kept)
        await assert_same_statements(service, kept)
        for slug, question, share, whole in STEPS:
            await assert_charges_the_difference(service, slug, question, share, whole=whole)
        await assert_goes_on(service)


async def assert_same_answers(service: Service, kept: dict[str, Any]) -> None:
    """All that was answered is answered byte by byte, for nothing."""
    for answer in kept["answers"]:
        options = {name: answer[name] for name in ("params", "json", "headers") if name in answer}
        response = await service.call(answer["method"], answer["path"], "analyse", **options)
        assert response.is_success, f"{answer['path']} {options}: {response.text}"
        if answer["path"].endswith(READ_OFF):
            assert response.json()["id"] == json.loads(answer["body"])["id"]
        else:
            assert response.text == answer["body"], f"{answer['path']} {options}"
    rows = await service.rows()
    # Tables that are younger than the installation are empty.
    former = dict.fromkeys(rows, 0) | kept["rows"]
    assert {**rows, "token": 0} == {**former, "token": 0}, "nothing was made, nobody was charged"


async def assert_same_statements(service: Service, kept: dict[str, Any]) -> None:
    """Everything that a statement said is said."""
    for person, before in kept["statements"].items():
        now = (await service.call("GET", f"/v1/subjects/{person}/budget", "admin")).json()
        assert missing(before, now) == [], person


def missing(before: Any, now: Any, place: str = "") -> list[str]:
    """Where a document does not say what a former one did; it may say more."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            found
            for name, value in before.items()
            for found in missing(value, now.get(name), f"{place}.{name}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            found
            for number, pair in enumerate(zip(before, now, strict=True))
            for found in missing(*pair, f"{place}[{number}]")
        ]
    return [] if before == now else [f"{place}: {before} became {now}"]


async def assert_charges_the_difference(
    service: Service, slug: str, question: dict[str, Any], share: float, *, whole: bool
) -> None:
    """A larger share goes on from the former one, and each person pays no more than what lies between."""
    before = await spent(service, slug)
    document = {"statistic": "mean", **question, "share": round(share + MORE, 6)}
    response = await service.call("POST", f"/v1/studies/{slug}/releases", "analyse", json=document)
    assert response.status_code == 201, f"{slug} {question}: {response.text}"
    made = response.json()
    assert (made["share"], made["share_before"]) == (document["share"], share), f"{slug} {question}"
    charged = await spent(service, slug) - before
    most = await offered(service, slug) * MORE
    assert 0 < charged <= most + 1e-9, f"{slug} {question}: {charged} of {most}"
    if whole:
        assert charged == pytest.approx(most, abs=1e-9), f"{slug} {question}"


async def line(service: Service, slug: str) -> dict[str, Any]:
    """What the statement of `p0` says of a study."""
    statement = (await service.call("GET", "/v1/subjects/p0/budget", "admin")).json()
    (found,) = (line for line in statement["studies"] if line["study"] == slug)
    return dict(found)


async def spent(service: Service, slug: str) -> float:
    found = await line(service, slug)
    return float(found["spent"] if found["mu2"] is None else found["mu2_spent"])


async def offered(service: Service, slug: str) -> float:
    found = await line(service, slug)
    return float(found["epsilon"] if found["mu2"] is None else found["mu2"])


async def assert_goes_on(service: Service) -> None:
    """People come and leave, and the whole ledger is clean."""
    for slug in ("untilted", "secret"):
        path = f"/v1/studies/{slug}/contributions"
        person = {"subject": "later", "value": 7, "epsilon": 1, "trust": "central"}
        labelled = {**person, "attributes": {"region": "south"}}
        assert (await service.call("POST", path, "contribute", json=labelled)).status_code == 201
        assert (await service.call("DELETE", f"{path}/p4", "contribute")).status_code == 204
    audit = await service.api.services.ledger.audit()
    assert audit.findings == []


def test_every_released_version_has_its_installation_and_its_sources() -> None:
    assert "0.9.0" in versions()
    assert all((HERE / version / "sources.tar.xz").exists() for version in versions())


def test_what_a_document_does_not_say_any_more_is_found() -> None:
    before = {"a": 1, "b": [{"c": 2}]}
    assert missing(before, {**before, "more": 3}) == []
    assert missing(before, {"b": [{"c": 3}]}) == [".a: 1 became None", ".b[0].c: 2 became 3"]
