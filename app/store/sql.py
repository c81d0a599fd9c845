"""Statements: SQL with parameters `:name`, compiled once, and the records that it writes and reads.

The driver runs them, since SQLAlchemy takes longer over a statement than PostgreSQL does.
"""

import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from types import UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

import asyncpg
from sqlalchemy import Dialect, text
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncConnection

from app.core.attributes import Attributes
from app.core.measures import Measures
from app.core.reporting_range import ReportingRange
from app.core.texts import Texts

Row = TypeVar("Row")

DIALECT: Dialect = dialect()  # type: ignore[no-untyped-call]

Connection = AsyncConnection
"""What a transaction's body works on; services hand it to the store and do nothing else with it."""


def driver(connection: Connection) -> asyncpg.Connection:
    """The driver's own connection, in the same transaction."""
    assert connection.sync_connection is not None
    return connection.sync_connection.connection.driver_connection


class Sql(Generic[Row]):
    """A statement whose rows stay as they are, for the store alone; `Sql.of` makes the others.

    >>> Sql("SELECT 1 WHERE :name = ANY(:names)").text
    'SELECT 1 WHERE $1 = ANY($2)'
    """

    def __init__(
        self: "Sql[Any]", statement: str, read: Callable[[asyncpg.Record], Any] | None = None
    ) -> None:
        compiled = text(statement).compile(dialect=DIALECT)
        self.text = compiled.string
        """With parameters as the driver takes them: $1, $2, ..."""
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())
        self._read = read

    @staticmethod
    def of(kind: type[Row]) -> "Callable[[str], Sql[Row]]":
        """Makes statements whose rows become this type.

        A dataclass has each field from the column of its name, and a field that is a dataclass from the
        columns of that; any other type is the one value of its row.
        """
        return partial(Sql, read=_reader(kind))

    async def all(self, connection: Connection, /, *records: object, **given: object) -> list[Row]:
        """Every row; parameters that are not given are those of the records, by their names."""
        return self._rows(await driver(connection).fetch(self.text, *self.arguments(given, *records)))

    async def fetch(self, session: asyncpg.Connection, given: Mapping[str, object]) -> list[Row]:
        """Every row, over a connection of the driver."""
        return self._rows(await session.fetch(self.text, *self.arguments(given)))

    async def one(self, connection: Connection, /, *records: object, **given: object) -> Row:
        """The only row; it is an error if there is none, or another one."""
        (row,) = await self.all(connection, *records, **given)
        return row

    async def maybe(self, connection: Connection, /, *records: object, **given: object) -> Row | None:
        """The only row, or None where there is none."""
        rows = await self.all(connection, *records, **given)
        if not rows:
            return None
        (row,) = rows
        return row

    async def run(self, connection: Connection, /, *records: object, **given: object) -> None:
        """Run it for what it does."""
        await driver(connection).execute(self.text, *self.arguments(given, *records))

    async def parts(self, connection: Connection, size: int, /, **given: object) -> AsyncIterator[list[Row]]:
        """Every row, some at a time; the transaction must stay open."""
        cursor = await driver(connection).cursor(self.text, *self.arguments(given))
        while rows := await cursor.fetch(size):
            yield self._rows(rows)

    def arguments(self, given: Mapping[str, object], *records: object) -> list[object]:
        """The values of the parameters $1, $2, ...: as given, or of the first record that has one."""
        values = dict(given)
        for record in records:
            own = [name for name in self._names if name not in values and hasattr(record, name)]
            values |= {name: getattr(record, name) for name in own}
        if len(values) != len(self._names):
            raise TypeError(f"parameters {sorted(self._names)} are needed, not {sorted(values)}")
        return [_written(values[name]) for name in self._names]

    def _rows(self, rows: list[Any]) -> list[Row]:
        return rows if self._read is None else [self._read(row) for row in rows]


_TAKEN = frozenset((bool, bytes, datetime, float, int, list, str, tuple, type(None), UUID))
"""Types that the driver takes as they are."""


def _written(value: object) -> object:
    """A value as the driver takes it."""
    if type(value) in _TAKEN:
        return value
    match value:
        case Enum():
            return value.value
        case frozenset():
            # Names of one enumeration: their values compare.
            return sorted(map(_written, value))  # type: ignore[type-var]
        case Attributes() | Measures():
            return value.texts
        case Decimal():
            return str(value)
    return value


def _reader(kind: type[Any]) -> Callable[[asyncpg.Record], Any]:
    if dataclasses.is_dataclass(kind):
        _, build = _builder(kind)
        return lambda row: build(dict(row.items()))
    convert = _conversion(kind)
    return lambda row: row[0] if convert is None or row[0] is None else convert(row[0])


def _builder(kind: type[Any]) -> tuple[list[str], Callable[[dict[str, Any]], Any]]:
    """The columns of a dataclass, and what makes it of them."""
    columns: list[str] = []
    conversions: list[tuple[str, Callable[[Any], Any]]] = []
    parts: list[tuple[str, list[str], Callable[[dict[str, Any]], Any]]] = []
    for name, hint in get_type_hints(kind).items():
        plain = _without_none(hint)
        if isinstance(plain, type) and dataclasses.is_dataclass(plain):
            inner, build = _builder(plain)
            columns += inner
            parts.append((name, inner, build))
            continue
        columns.append(name)
        if convert := _conversion(plain):
            conversions.append((name, convert))

    def built(values: dict[str, Any]) -> Any:
        for name, convert in conversions:
            if values[name] is not None:
                values[name] = convert(values[name])
        for name, inner, build in parts:
            own = {column: values.pop(column) for column in inner}
            values[name] = build(own) if any(value is not None for value in own.values()) else None
        return kind(**values)

    return columns, built


def _conversion(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of the driver one of this type; None where it is one."""
    origin = get_origin(kind)
    if origin in (tuple, frozenset):
        each = _conversion(get_args(kind)[0])
        return origin if each is None else lambda values: origin(map(each, values))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    return kind if kind in (Attributes, Measures, ReportingRange, Texts, Decimal, float) else None


def _without_none(hint: Any) -> Any:
    if not isinstance(hint, UnionType):
        return hint
    (kind,) = (one for one in get_args(hint) if one is not type(None))
    return kind
