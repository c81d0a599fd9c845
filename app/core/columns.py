"""Records by columns: what is done for each of many records is done for a field of all of them at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import compress
from operator import itemgetter
from typing import Any, Generic, Self, TypeVar, overload

Record = TypeVar("Record")


def _picked(column: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    # What picks several at once gives no sequence of one.
    return itemgetter(*places)(column) if len(places) > 1 else [column[place] for place in places]


class Columns(Sequence[Record], Generic[Record]):
    """Records of one dataclass. They are made when one of them is asked for, and then kept.

    A subclass names the dataclass as `kind`.
    """

    kind: type[Any]

    __slots__ = ("_columns", "_records", "_size")

    def __init__(self, columns: Mapping[str, Sequence[Any]], size: int) -> None:
        """Columns by the names of the fields, all of one size; fields with defaults may be left out."""
        self._columns = dict(columns)
        self._size = size
        self._records: Sequence[Record] | None = None

    @classmethod
    def of(cls, records: Sequence[Record]) -> Self:
        """The same records; themselves where they have columns already."""
        if isinstance(records, cls):
            return records
        found = cls({}, len(records))
        found._records = records
        return found

    @classmethod
    def of_rows(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Self:
        """Records whose fields of these names come in rows."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return cls(dict(zip(names, columns, strict=True)), len(rows))

    def column(self, name: str) -> Sequence[Any]:
        """One field of every record. Not to be changed."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = self._filled(name)
        return found

    def _filled(self, name: str) -> Sequence[Any]:
        """A field without a column: its default, for which no record need be made, or what records say."""
        if self._records is None and name in self.kind.__dataclass_fields__:
            default = self.kind.__dataclass_fields__[name].default
            if default is not MISSING:
                return (default,) * self._size
        return [getattr(record, name) for record in self._made()]

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Some fields of every record."""
        return zip(*map(self.column, names), strict=True)

    def some(self, places: Sequence[int]) -> Self:
        """Some of the records, in this order."""
        if self._records is not None:
            return type(self).of([self[place] for place in places])
        columns = {name: _picked(column, places) for name, column in self._columns.items()}
        return type(self)(columns, len(places))

    def where(self, flags: Sequence[object]) -> Self:
        """The records whose flag is true, which keep the fields that have columns."""
        columns = {name: list(compress(column, flags)) for name, column in self._columns.items()}
        return type(self)(columns, sum(map(bool, flags)))

    @classmethod
    def together(cls, parts: Sequence[Sequence[Record]], names: Sequence[str]) -> Self:
        """The records of several, in the order of the first of these fields, which are all that they keep."""
        every = [cls.of(part) for part in parts]
        columns = {name: [value for part in every for value in part.column(name)] for name in names}
        places = columns[names[0]]
        order = sorted(range(len(places)), key=places.__getitem__)
        return cls(columns, len(places)).some(order)

    def _made(self) -> Sequence[Record]:
        if self._records is None:
            names = [field.name for field in fields(self.kind) if field.name in self._columns]
            rows = zip(*(self._columns[name] for name in names), strict=True)
            self._records = [self.kind(**dict(zip(names, row, strict=True))) for row in rows]
        return self._records

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Record: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Record]: ...

    def __getitem__(self, place: int | slice) -> Record | Sequence[Record]:
        return self._made()[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._made())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            one == another for one, another in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]
