"""How a file of contributions would be read, and all that would be refused of it."""

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import inf, isfinite
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dither import DeviceRefusal, InvalidRequest, Record, RecordFile, Study, check_records
from dither.device.texts import spelled

Row = Record | InvalidRequest

SHOWN_FAULTS = 100
"""Rows that are shown of those that would be refused."""

TRIED_COLUMNS = 10
"""Columns that are tried as that of the value, where none is called so."""

_MISSING = frozenset(
    ("", "-", "--", "ka", "keineangabe", "na", "n/a", "#n/a", "#nv", "nan", "null", "none", "missing", "nd")
)
"""What people write for what is missing, without points, spaces and case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """How a file would be read, and what would be refused of it.

    Attributes:
        file: The file by the proposed reading.
        options: The proposed reading: arguments of `RecordFile`.
        ranges: By column of numbers: the least and the largest of the file.
        faulty: How many rows would be refused.
        faults: All that is wrong with each of the first of them; 1 is the first row below the header.
    """

    file: RecordFile
    options: Mapping[str, Any]
    ranges: Mapping[str, tuple[float, float]]
    faulty: int
    faults: Mapping[int, tuple[DeviceRefusal, ...]]

    def right(
        self, study: Study, *, epsilon: str | None, trust: Literal["central", "local", "public"] | None
    ) -> Iterator[tuple[int, Record]]:
        """The rows that would not be refused, with their numbers."""
        for number, row, refusal in _rows(self.file, study, epsilon, trust):
            if refusal is None and isinstance(row, Record):
                yield number, row


def check_file(
    source: str | BinaryIO,
    study: Study,
    *,
    epsilon: str | None,
    trust: Literal["central", "local", "public"] | None,
    options: Mapping[str, Any],
    each: Callable[[], None] = lambda: None,
) -> FileCheck:
    """Read a file as it would be sent, and again with what that proposes, until it proposes nothing else.

    Where no column is called `subject`, it proposes the first one that is no field; where none is called
    `value`, the one with which the fewest rows would be refused.

    Args:
        source: A path, or a file that is read to its end.
        study: As the service describes it.
        epsilon, trust: For rows that give none.
        options: Arguments of `RecordFile`; what they say is not proposed otherwise.
        each: Called before each row.

    Raises:
        InvalidRequest: the file cannot be read at all.
        OSError: from the operating system.
    """
    content: bytes | None = None
    if not isinstance(source, str):
        content = source.read()
    elif not os.path.isfile(source):
        content = Path(source).read_bytes()  # a pipe can be read once only

    def check(options: Mapping[str, Any]) -> tuple[FileCheck, list[Mapping[str, Any]]]:
        whole = source if content is None else io.BytesIO(content)
        return _check(RecordFile(whole, **options), study, options, epsilon, trust, each)

    return _proposed(check, study, options)


def _proposed(
    check: Callable[[Mapping[str, Any]], tuple[FileCheck, list[Mapping[str, Any]]]],
    study: Study,
    options: Mapping[str, Any],
) -> FileCheck:
    """What a file is by the reading that proposes nothing else."""
    while True:
        found = None
        try:
            found, remedies = check(options)
        except InvalidRequest as refusal:
            role, columns = _unnamed(refusal.remedy.get("columns", ()), study, options)
            if role == "value":
                tried = [_proposed(check, study, {**options, role: name}) for name in columns]
                return min(tried, key=lambda one: one.faulty)
            remedies = [{role: columns[0]} if role else refusal.remedy]
            if not role and not _new(remedies, options):
                raise
        new = _new(remedies, options)
        if found is not None and not new:
            return found
        options = {**options, **new}


def _unnamed(columns: Sequence[str], study: Study, options: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    """Which column of subject and value was not named, and those that it may be: no field has them."""
    own = {name.casefold() for name in columns}
    used = {"subject", "epsilon", "trust", options["subject"], *study.attributes, *study.measures}
    free = [name for name in columns if name.casefold() not in {one.casefold() for one in used}]
    for role in ("subject",) if study.measures else ("subject", "value"):
        if free and options[role] == role and role not in own:
            return role, free[:TRIED_COLUMNS]
    return "", ()


def reading_of(check: FileCheck, study: Study) -> Iterator[tuple[str, str]]:
    """The proposed reading, for people: what it is of, and what it says."""
    options, file = check.options, check.file
    if file.separator is not None:
        yield "encoding", str(file.encoding)
        yield "separator", {"\t": "tab"}.get(file.separator, file.separator)
    elif options["sheet"]:
        yield "sheet", options["sheet"]
    yield "decimal mark", options["decimals"] or "as each number shows"
    yield "columns", ", ".join(file.columns)
    yield "person", options["subject"]
    if not study.measures:
        yield "value", options["value"]
    yield "left out", ", ".join(options["ignore"]) or "none"
    yield "counts as missing", ", ".join(("empty cells", *options["missing"]))
    yield "labels", "in any case" if options["ignore_case"] else "as the study writes them"
    for name, (least, largest) in check.ranges.items():
        of = study.measures.get(name, study)
        yield name, f"{least:.12g} to {largest:.12g}; the study takes {of.lower:f} to {of.upper:f}"
    yield "rows", f"{len(file):,}"


def _check(
    file: RecordFile,
    study: Study,
    options: Mapping[str, Any],
    epsilon: str | None,
    trust: Literal["central", "local", "public"] | None,
    each: Callable[[], None],
) -> tuple[FileCheck, list[Mapping[str, Any]]]:
    """What would become of each row, and what else to read the file with."""
    ranges: dict[str, tuple[float, float]] = {}
    faults: dict[int, tuple[DeviceRefusal, ...]] = {}
    remedies: list[Mapping[str, Any]] = []
    faulty = 0
    for number, row, refusal in _rows(file, study, epsilon, trust):
        each()
        record: Record | None = row.record if isinstance(row, InvalidRequest) else row
        for name, value in _numbers(record, study):
            least, largest = ranges.get(name, (inf, -inf))
            ranges[name] = min(least, value), max(largest, value)
        if refusal is None:
            continue
        found = (refusal, *refusal.also)
        faulty += 1
        if len(faults) < SHOWN_FAULTS:
            faults[number] = found
        for fault in found:
            remedy = {} if record is None else _remedy(fault.field, record, study)
            if remedy and remedy not in remedies:
                remedies.append(remedy)
    if options["decimals"] is None and (mark := file.decimals) is not None:
        remedies.append({"decimals": mark})
    check = FileCheck(file=file, options=options, ranges=ranges, faulty=faulty, faults=faults)
    return check, remedies


def _rows(
    file: RecordFile,
    study: Study,
    epsilon: str | None,
    trust: Literal["central", "local", "public"] | None,
) -> Iterator[tuple[int, Row, DeviceRefusal | None]]:
    """Number of each row, what it says, and why it would be refused; 1 is the first below the header."""
    known: dict[str, tuple[int, object]] = {}
    for number, (row, refusal) in enumerate(
        check_records(study, file, epsilon=epsilon, trust=trust), start=1
    ):
        if refusal is None and isinstance(row, Record):
            meant = _meant(row, epsilon, trust)
            first, same = known.setdefault(str(row.subject), (number, meant))
            if same != meant:
                refusal = InvalidRequest("subject", f"has another contribution in row {first}")
        yield number, row, refusal


def _new(remedies: Iterable[Mapping[str, Any]], options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that remedies add to those that there are."""
    found: dict[str, Any] = {}
    for name, value in (item for remedy in remedies for item in remedy.items()):
        if name not in options:
            continue
        given = found.get(name, options[name])
        if isinstance(value, tuple):
            added = tuple(one for one in value if one not in given)
            if added:
                found[name] = (*given, *added)
        elif not given or given == name:
            found[name] = value
    return found


def _remedy(field: str, record: Record, study: Study) -> Mapping[str, Any]:
    """How the file would be read where a refused cell is a label in another case, or a word for none."""
    kind, _, name = field.partition(".")
    value: Any = record.value
    labels: Mapping[str, Any] = record.attributes or {}
    cells: Mapping[str, tuple[object, Iterable[str]]] = {
        "value": (value, study.choices),
        "values": (
            value.get(name) if isinstance(value, Mapping) else None,
            study.measures[name].choices if name in study.measures else (),
        ),
        "attributes": (labels.get(name), study.attributes.get(name, ())),
        "epsilon": (record.epsilon, ()),
        "trust": (record.trust, ()),
    }
    cell, known = cells.get(kind, (None, ()))
    if not isinstance(cell, str):
        return {}
    if spelled(cell, known, ignore_case=True) is not None:
        return {"ignore_case": True}
    return {"missing": (cell,)} if re.sub(r"[\s.]", "", cell).casefold() in _MISSING else {}


def _values(record: Record) -> Mapping[str, Any]:
    value: Any = record.value
    return value if isinstance(value, Mapping) else {"value": value}


def _numbers(record: Record | None, study: Study) -> Iterator[tuple[str, float]]:
    """The numbers of a row, by column."""
    for name, cell in () if record is None else _values(record).items():
        if study.measures.get(name, study).choices:
            continue
        for one in cell if isinstance(cell, list) else [cell]:
            number = _plain(one)
            if isinstance(number, Decimal) and isfinite(number):
                yield name, float(number)


def _meant(record: Record, epsilon: str | None, trust: str | None) -> object:
    """What a row says, however its numbers are written."""
    values = {name: _plain(cell) for name, cell in _values(record).items()}
    return values, _plain(record.epsilon or epsilon), record.trust or trust, record.attributes


def _plain(cell: object) -> object:
    try:
        return Decimal(str(cell))
    except InvalidOperation:
        return cell
