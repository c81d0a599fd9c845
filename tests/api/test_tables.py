"""Answers as CSV, Parquet and Arrow, by what the client accepts."""

import csv
import io
from datetime import datetime
from typing import Any

import pyarrow
import pytest
from pyarrow import ipc, parquet

from app.web.tables import ARROW, CSV, PARQUET, SIX, rows_of
from tests.api.service import Service


def read(kind: str, content: bytes) -> list[dict[str, Any]]:
    """The rows of a table."""
    if kind == CSV:
        return list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    if kind == PARQUET:
        return list(parquet.read_table(io.BytesIO(content)).to_pylist())
    return list(ipc.open_stream(content).read_all().to_pylist())


@pytest.fixture
async def answered(service: Service) -> str:
    """A study with an answer of every form: of numbers, of bins, by label, of quartiles."""
    study = await service.study(trust=["central", "public"], attributes={"team": ["a", "b"]})
    people = [
        {
            "subject": f"p{number}",
            "value": number,
            "epsilon": 5,
            "trust": "central",
            "attributes": {"team": team},
        }
        for number, team in enumerate(["a", "b"] * 40)
    ]
    batch = f"/v1/studies/{study}/contributions/batch"
    assert (await service.call("POST", batch, "contribute", json=people)).json()["created"] == 80
    for question in (
        {"share": 0.1},
        {"share": 0.1, "by": "team"},
        {"statistic": "histogram", "bins": 4, "share": 0.1},
        {"statistic": "describe", "share": 0.1},
    ):
        made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
        assert made.status_code == 201, made.text
    return study


@pytest.mark.parametrize("kind", [CSV, PARQUET, ARROW])
async def test_a_table_says_what_the_document_says(service: Service, answered: str, kind: str) -> None:
    path = f"/v1/studies/{answered}/releases"
    documents = (await service.call("GET", path, "analyse")).json()["items"]
    told = await service.call("GET", path, "analyse", headers={"Accept": f"{kind};q=0.9, */*"})
    assert (told.headers["content-type"].partition(";")[0], told.headers["vary"]) == (kind, "Accept")
    expected = [row for document in documents for row in rows_of(document)]
    assert len(expected) > 20
    rows = read(kind, told.content)
    assert len(rows) == len(expected)
    for row, wanted in zip(rows, expected, strict=True):
        if kind == CSV:
            assert tuple(row) == SIX
            assert row["of"].lstrip("'") == wanted["of"]
        else:
            assert row["created_at"] == datetime.fromisoformat(wanted["created_at"])
            assert (row["of"], row["people"]) == (wanted["of"], wanted["people"])
        assert (row["release"], row["statistic"]) == (wanted["release"], wanted["statistic"])
        assert [float(row[name]) for name in SIX[3:]] == [wanted[name] for name in SIX[3:]]


async def test_a_number_of_a_document_is_a_row_once(service: Service, answered: str) -> None:
    documents = (await service.call("GET", f"/v1/studies/{answered}/releases", "analyse")).json()["items"]
    [whole] = [one for one in documents if "groups" in one]
    told = [(row["of"], row["estimate"]) for row in rows_of(whole) if row["of"] in ("", "team=b")]
    assert told == [("", whole["estimate"]), ("team=b", whole["groups"][1]["estimate"])]
    [bins] = [one for one in documents if one["statistic"] == "histogram"]
    shares = {row["of"]: row["estimate"] for row in rows_of(bins)}
    for one in bins["bins"]:
        assert shares[f"{one['lower']} to {one['upper']}"] == one["share"]


async def test_no_cell_is_a_formula(service: Service) -> None:
    study = await service.study(choices=["+1", "@home", "-"], lower=None, upper=None)
    for number, choice in enumerate(["+1", "@home", "-"] * 10):
        await service.contribute(study, f"p{number}", choice, epsilon=5)
    path = f"/v1/studies/{study}/releases"
    question = {"statistic": "shares", "share": 0.5}
    made = await service.call("POST", path, "analyse", json=question, headers={"Accept": CSV})
    assert made.status_code == 201, made.text
    assert [row["of"] for row in read(CSV, made.content)] == ["'+1", "'@home", "'-"]


@pytest.mark.parametrize("kind", [CSV, PARQUET, ARROW])
async def test_every_route_of_answers_gives_tables(service: Service, kind: str) -> None:
    study = await service.study()
    await service.crowd(study)
    headers = {"Accept": kind}
    made = await service.call(
        "POST", f"/v1/studies/{study}/releases", "analyse", json={"share": 0.5}, headers=headers
    )
    assert made.status_code == 201
    rows = read(kind, made.content)
    for path in (
        f"/v1/studies/{study}/statistics/mean",
        f"/v1/releases/{rows[0]['release']}",
        f"/v1/studies/{study}/releases",
    ):
        again = await service.call("GET", path, "analyse", headers=headers)
        assert (again.status_code, read(kind, again.content)) == (200, rows)
    mean = await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")
    assert mean.json()["estimate"] == float(rows[0]["estimate"])


async def test_pages_of_tables_lead_on(service: Service, answered: str) -> None:
    path, seen = f"/v1/studies/{answered}/releases", []
    link: str | None = "?limit=2"
    while link is not None:
        page = await service.call("GET", path + link, "analyse", headers={"Accept": CSV})
        assert page.status_code == 200, page.text
        seen += list(dict.fromkeys(row["release"] for row in read(CSV, page.content)))
        link = page.links["next"]["url"] if "next" in page.links else None
    documents = (await service.call("GET", path, "analyse")).json()["items"]
    assert seen == [one["id"] for one in documents]


async def test_an_empty_table_has_its_columns(service: Service) -> None:
    path = f"/v1/studies/{await service.study()}/releases"
    for kind in (PARQUET, ARROW):
        content = (await service.call("GET", path, "analyse", headers={"Accept": kind})).content
        source = io.BytesIO(content)
        table = parquet.read_table(source) if kind == PARQUET else ipc.open_stream(source).read_all()
        assert (table.num_rows, table.schema.field("estimate").type) == (0, pyarrow.float64())
        assert table.column_names[:3] == ["release", "created_at", "study"]


@pytest.mark.parametrize("accept", ["*/*", "application/json, text/csv", "text/html", ""])
async def test_whoever_asks_for_no_table_gets_json(service: Service, accept: str) -> None:
    path = f"/v1/studies/{await service.study()}/releases"
    told = await service.call("GET", path, "analyse", headers={"Accept": accept})
    assert told.headers["content-type"] == "application/json"
    assert (await service.call("GET", path + "x", "analyse", headers={"Accept": CSV})).status_code == 404
