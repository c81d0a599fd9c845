"""Published answers by SQL: what an analyst reads over HTTP, under a role that sees nothing else."""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pandas
import psycopg
import pytest
from sqlalchemy import create_engine, make_url

from app.postgres.programs import libpq_environment
from app.postgres.service_user import postgres_binaries
from app.store import migrate, reader
from app.store.tables import metadata
from tests.api.service import Service
from tests.support.databases import execute

DRIVERS = Path("/etc/odbcinst.ini")
BY_ODBC = (
    shutil.which("isql") is not None
    and DRIVERS.exists()
    and "[PostgreSQL Unicode]" in DRIVERS.read_text(encoding="utf-8")
)

LABELS = {"attributes": {"region": ["north", "south"]}}

MEASURES = {
    "income": {"lower": 0, "upper": 100},
    "age": {"lower": 0, "upper": 10},
    "party": {"choices": ["red", "green"]},
    "sex": {"choices": ["f", "m"]},
}


def url_of_reader(url: str, user: str = reader.ROLE) -> str:
    return make_url(url).set(username=user).render_as_string(hide_password=False)


@pytest.fixture
async def readable(service: Service) -> Service:
    """A service whose readers may log in."""
    await execute(service.database_url, f"ALTER ROLE {reader.ROLE} LOGIN")
    return service


async def ask(service: Service, study: str, statistic: str, **parameters: Any) -> dict[str, Any]:
    path = f"/v1/studies/{study}/statistics/{statistic}"
    asked = await service.call("GET", path, "analyse", params={"share": 0.2, **parameters})
    assert asked.status_code == 200, asked.text
    return dict((await service.call("GET", f"/v1/releases/{asked.json()['id']}", "analyse")).json())


async def rows(service: Service, query: str, *arguments: object) -> list[dict[str, Any]]:
    connection = await asyncpg.connect(url_of_reader(service.database_url))
    try:
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        return [dict(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


async def labelled(service: Service, **definition: Any) -> str:
    study = await service.study(series="places", **LABELS, **definition)
    for number in range(40):
        region = ("north", "south")[number % 2]
        await service.contribute(study, f"p{number}", number, attributes={"region": region})
    return study


def leaves(document: dict[str, Any]) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """What a document says of each thing, as the view names it."""
    for place, answer in enumerate([document, *(document.get("groups") or [])]):
        if "estimate" in answer:
            yield place, "answer", answer
        for field, part in (("bins", "bin"), ("cumulative", "cumulative"), ("choices", "choice"),
                            ("coordinates", "coordinate"), ("quartiles", "quartile")):  # fmt: skip
            yield from ((place, part, item) for item in answer.get(field) or [])
        for field in ("count", "mean", "sd", "variance"):
            if isinstance(answer.get(field), dict):
                yield place, field, answer[field]
        yield from ((place, "cell", item) for item in answer.get("cells") or [])
        for part in ("slope", "intercept"):
            yield from ((place, part, line[part]) for line in answer.get("lines") or [])
        if answer.get("r_squared") is not None:
            item = {"estimate": answer["r_squared"], "interval": answer["r_squared_interval"]}
            yield place, "r_squared", item


def numbers(item: dict[str, Any], part: str) -> tuple[Any, ...]:
    interval, population = item.get("interval") or {}, item.get("population_interval") or {}
    ends = [one.get(end) for one in (interval, population) for end in ("lower", "upper")]
    bins = (item["lower"], item["upper"]) if part in ("bin", "cumulative") else (None, None)
    return (item.get("estimate", item.get("share")), *ends, *bins)


async def test_every_answer_is_a_row_and_every_group_bin_and_choice(readable: Service) -> None:
    study = await labelled(readable)
    poll = await readable.study(lower=None, upper=None, choices=["red", "green"])
    for number in range(20):
        await readable.contribute(poll, f"q{number}", ("red", "green")[number % 2])
    place = await readable.study(dimension=2)
    for number in range(20):
        await readable.contribute(place, f"r{number}", [number, 50])
    house = await readable.study(lower=None, upper=None, measures=MEASURES, **LABELS)
    for number in range(40):
        values = {"income": number, "age": number % 7, "party": "red", "sex": ("f", "m")[number % 2]}
        person = {"subject": f"h{number}", "values": values, "epsilon": 3, "trust": "central"}
        person["attributes"] = {"region": ("north", "south")[number % 2]}
        sent = await readable.call("POST", f"/v1/studies/{house}/contributions", "contribute", json=person)
        assert sent.status_code == 201, sent.text
    asked = [
        await ask(readable, house, "table", measures="party,sex", by="region"),
        await ask(readable, house, "correlation", measures="income,age", by="region"),
        await ask(readable, study, "mean", by="region"),
        await ask(readable, study, "histogram", by="region", edges="0,20,100"),
        await ask(readable, study, "quantile", q=0.9),
        await ask(readable, study, "describe"),
        await ask(readable, poll, "shares"),
        await ask(readable, place, "mean"),
    ]
    answers = await rows(readable, "SELECT * FROM published.answers ORDER BY created_at")
    assert [row["document"] for row in answers] == asked
    for row, document in zip(answers, asked, strict=True):
        interval = document.get("interval", {})
        assert str(row["release_id"]) == document["id"]
        assert row["created_at"] == datetime.fromisoformat(document["created_at"])
        for name in ("study", "statistic", "by", "share", "epsilon_max", "people", "relation", "estimator"):
            assert row[name] == document.get(name), name
        assert [row["estimate"], row["lower"], row["upper"]] == [
            document.get("estimate"), interval.get("lower"), interval.get("upper")]  # fmt: skip
    assert [row["q"] for row in answers] == [None] * 4 + [0.9] + [None] * 3
    assert {row["series"] for row in answers if row["study"] == study} == {"places"}
    for document in asked:
        told = await rows(
            readable,
            "SELECT * FROM published.answer_rows WHERE CAST(release_id AS text) = $1"
            " ORDER BY group_place, part, place",
            document["id"],
        )
        seen = [
            (row["group_place"], row["part"], (row["estimate"], row["lower"], row["upper"],
             row["population_lower"], row["population_upper"], row["bin_lower"], row["bin_upper"]))
            for row in told
        ]  # fmt: skip
        said = [(at, part, numbers(item, part)) for at, part, item in leaves(document)]
        assert seen == sorted(said, key=lambda one: one[:2])
        assert len(seen) > 0
        where = {row["group_place"]: row["where"] for row in told}
        for at, group in enumerate(document.get("groups") or [], start=1):
            assert where[at] == group["where"]
    names = await rows(
        readable,
        "SELECT part, name FROM published.answer_rows WHERE group_place = 0"
        " AND part IN ('choice', 'cell', 'slope') ORDER BY part, place",
    )
    assert [tuple(row.values()) for row in names] == [
        *(("cell", f"party={party}; sex={sex}") for party in ("red", "green") for sex in ("f", "m")),
        *(("choice", choice) for choice in ("red", "green")),
        *(("slope", measure) for measure in ("income", "age")),
    ]


async def test_a_secret_study_shows_what_analysts_see_and_no_number_of_people(readable: Service) -> None:
    study = await labelled(readable, relation="add_remove_one")
    document = await ask(readable, study, "mean", by="region", estimator="transformed")
    [row] = await rows(readable, "SELECT * FROM published.answers")
    assert row["document"] == document
    assert row["people"] is None
    assert row["noisy_count"] == document["noisy_count"]
    told = await rows(readable, "SELECT people FROM published.answer_rows")
    assert len(told) >= 3
    assert {one["people"] for one in told} == {None}


async def test_the_role_reads_and_writes_nothing_else(readable: Service) -> None:
    connection = await asyncpg.connect(url_of_reader(readable.database_url))
    try:
        for table in [*metadata.tables, "alembic_version"]:
            for statement in (f"SELECT FROM {table}", f"DELETE FROM {table}"):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute(statement)
        for view in ("answers", "answer_rows"):
            await connection.fetch(f"SELECT * FROM published.{view}")
            with pytest.raises(asyncpg.PostgresError):
                await connection.execute(f"DELETE FROM published.{view}")
        for made in ("TABLE published.mine ()", "TABLE public.mine ()", "SCHEMA mine", "ROLE mine"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"CREATE {made}")
    finally:
        await connection.close()


async def test_psql_and_pandas_read_the_same(readable: Service) -> None:
    study = await labelled(readable)
    document = await ask(readable, study, "mean", by="region")
    url = url_of_reader(readable.database_url)
    query = "SELECT estimate FROM published.answer_rows WHERE part = 'answer' ORDER BY group_place"
    said = [document["estimate"], *(group["estimate"] for group in document["groups"])]

    def read() -> tuple[list[float], list[float]]:
        engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
        frame = pandas.read_sql(query, engine)
        engine.dispose()
        psql = [str(postgres_binaries(None) / "psql"), "-XtAc", query]
        environment = {**os.environ, **libpq_environment(url)}
        done = subprocess.run(psql, env=environment, capture_output=True, check=True, text=True)
        return list(frame.estimate), [float(line) for line in done.stdout.split()]

    assert await asyncio.to_thread(read) == (said, said)


@pytest.mark.skipif(not BY_ODBC, reason="needs Debian's packages unixodbc and odbc-postgresql")
async def test_a_client_by_odbc_reads_the_same(readable: Service) -> None:
    study = await labelled(readable)
    document = await ask(readable, study, "mean", by="region")
    url = make_url(readable.database_url)
    server = libpq_environment(readable.database_url)
    parts = {
        "Driver": "PostgreSQL Unicode",
        "Servername": server["PGHOST"],
        "Port": server.get("PGPORT", "5432"),
        "Database": url.database,
        "Username": reader.ROLE,
    }
    connection = ";".join(f"{name}={value}" for name, value in parts.items())
    query = """
        SELECT "where", estimate, lower, upper FROM published.answer_rows
        WHERE part = 'answer' ORDER BY group_place
    """
    done = await asyncio.to_thread(
        subprocess.run,
        ["isql", "-b", "-d|", "-k", connection],
        input=" ".join(query.split()) + "\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [line.split("|")[-3:] for line in done.stdout.splitlines() if line.count("|") == 3]
    said = [
        [one["estimate"], one["interval"]["lower"], one["interval"]["upper"]]
        for one in (document, *document["groups"])
    ]
    assert [list(map(float, line)) for line in found] == [pytest.approx(one, rel=1e-9) for one in said]


async def test_where_no_role_can_be_made_migrating_says_so_and_goes_on(
    empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = make_url(empty_database_url).database
    owner = f"owner_of_{name}"
    await execute(
        empty_database_url,
        f"CREATE ROLE {owner} LOGIN",
        f"GRANT {owner} TO CURRENT_USER",
        f"ALTER DATABASE {name} OWNER TO {owner}",
    )
    monkeypatch.setattr(reader, "ROLE", f"reader_of_{name}")
    url = url_of_reader(empty_database_url, owner)
    done = await migrate.upgrade(url)
    assert done.after == migrate.head_revision()
    assert done.reader is not None
    assert f"CREATE ROLE {reader.ROLE} NOLOGIN" in done.reader
    await execute(empty_database_url, f"CREATE ROLE {reader.ROLE} NOLOGIN")
    assert (await migrate.upgrade(url)).reader is None
    await execute(url, f"GRANT SELECT ON study TO {reader.ROLE}")
    told = (await migrate.upgrade(url)).reader
    assert told is not None
    assert "more than published answers: study;" in told


async def test_migrating_again_keeps_the_role_as_it_is(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        query = (
            "SELECT CAST(xmin AS text), relacl FROM pg_class WHERE relname LIKE 'answer%' ORDER BY relname"
        )
        before = connection.execute(query).fetchall()
        connection.commit()
        assert (await migrate.upgrade(database_url)).reader is None
        assert connection.execute(query).fetchall() == before
