"""Statements and what their rows become."""

from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from app.core.study import Trust
from app.store.database import Connection, Database
from app.store.sql import Sql


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    trust: Trust | None
    tags: frozenset[Trust] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    number: int
    price: Decimal
    weights: tuple[float, ...]
    part: Part | None
    note: str = "none"


WHOLE = Sql.of(Whole)("""
    SELECT CAST(:number AS numeric) AS number, '1.50' AS price, CAST('[1, 2.5]' AS jsonb) AS weights,
           CAST(:trust AS text) AS trust, CAST(:tags AS text[]) AS tags
""")


async def test_a_row_becomes_its_dataclass_by_the_names_of_its_columns(database_url: str):
    async with Database.open(database_url) as database:
        (row,) = await database.fetch("test", WHOLE, number=10**30, trust="local", tags=["central", "local"])
        (bare,) = await database.fetch("test", WHOLE, number=-1, trust=None, tags=None)
    part = Part(trust=Trust.LOCAL, tags=frozenset({Trust.CENTRAL, Trust.LOCAL}))
    assert row == Whole(number=10**30, price=Decimal("1.50"), weights=(1.0, 2.5), part=part)
    assert type(row.number) is int
    assert all(type(weight) is float for weight in row.weights)
    assert bare.part is None


async def test_other_types_are_the_one_value_of_a_row(database_url: str):
    async with Database.open(database_url) as database:
        found = await database.fetch(
            "test", Sql.of(Trust)("SELECT unnest(CAST(:t AS text[]))"), t=["public", None]
        )
    assert found == [Trust.PUBLIC, None]


async def test_how_many_rows_there_may_be(database_url: str):
    numbers = Sql.of(int)("SELECT generate_series(1, :rows)")

    async def body(connection: Connection) -> None:
        assert await numbers.all(connection, rows=3) == [1, 2, 3]
        assert await numbers.one(connection, rows=1) == await numbers.maybe(connection, rows=1) == 1
        assert await numbers.maybe(connection, rows=0) is None
        assert [part async for part in numbers.parts(connection, 2, rows=3)] == [[1, 2], [3]]
        for method, rows in ((numbers.one, 0), (numbers.one, 2), (numbers.maybe, 2)):
            with pytest.raises(ValueError, match="unpack"):
                await method(connection, rows=rows)

    async with Database.open(database_url) as database:
        await database.run_tx("test", body)


async def test_a_record_is_written_as_it_is_read(database_url: str):
    part = Part(trust=Trust.LOCAL, tags=frozenset({Trust.CENTRAL, Trust.LOCAL}))
    whole = Whole(number=7, price=Decimal("1.50"), weights=(1.0, 2.5), part=part)
    written = Sql.of(Whole)("""
        SELECT CAST(:number AS numeric) AS number, CAST(:price AS text) AS price,
               CAST(:weights AS float8[]) AS weights, CAST(:trust AS text) AS trust,
               CAST(:tags AS text[]) AS tags, CAST(:note AS text) AS note
    """)

    async def body(connection: Connection) -> None:
        assert await written.one(connection, whole, part) == whole
        given = await written.maybe(connection, part, whole, note="given", trust=Trust.PUBLIC)
        assert given is not None
        assert given.note == "given"
        assert given.part == replace(part, trust=Trust.PUBLIC)
        with pytest.raises(TypeError, match="are needed"):
            await written.run(connection, whole)
        with pytest.raises(TypeError, match="are needed"):
            await written.run(connection, whole, part, other=1)

    async with Database.open(database_url) as database:
        await database.run_tx("test", body)


@pytest.mark.parametrize("given", [{}, {"other": 1}, {"rows": 1, "other": 1}])
async def test_parameters_are_exactly_those_of_the_statement(database_url: str, given: dict[str, object]):
    async with Database.open(database_url) as database:
        with pytest.raises((TypeError, KeyError)):
            await database.fetch("test", Sql("SELECT CAST(:rows AS int)"), **given)
