"""Bulk contributions: a document of records, read in pieces as it arrives.

Nothing is stored before the whole document has proved well formed. Until then the admissible records
are held as packed numbers (about 100 bytes each), never as text, and external ids only as digests.
"""

import codecs
import csv
import io
import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, get_type_hints
from uuid import UUID

import numpy as np

from app.core.contribution import Offer, Outcome
from app.core.errors import FieldError, InvalidRequest, MalformedDocument, ServiceError
from app.core.numbers import JsonNumber
from app.core.study import StudyDefinition
from app.formats.strict_json import DuplicateKey, decode_element, decode_json
from app.services.intake import IMPOSSIBLE_REPORT, Intake
from app.services.subjects import SubjectKey

MAX_RECORD = 65_536
"""Characters of one record."""

CSV_FIELDS = frozenset({"subject", "value", "report", "epsilon", "trust"})
NUMBER_FIELDS = frozenset({"value", "report", "epsilon"})
DIGEST_BYTES = 32

_TYPES = get_type_hints(Offer)
_NUMBERS = tuple(name for name, kind in _TYPES.items() if kind is int)
_TAGS = tuple(name for name, kind in _TYPES.items() if kind is not int and name not in ("subject", "vector"))
"""Fields of an offer with few values, each of which is kept once. Every field is packed by its type."""

MAX_KINDS = 1_000
"""Different refusals of one batch that name their fields; further ones have their code only."""

_WHITE_SPACE = re.compile(r"[ \t\r\n]*")


class Format(StrEnum):
    """How a batch is written down."""

    JSON = "json"
    """One array of objects."""

    NDJSON = "ndjson"
    """One object a line."""

    CSV = "csv"
    """A header line, then one record a line; an empty cell is a missing field."""


class Batch:
    """The records of one document, in order: packed offers and refusals.

    Args:
        sender: The token that sent it.
        dimension: Coordinates of a value.
    """

    def __init__(self, sender: UUID, dimension: int = 1) -> None:
        self.sender = sender
        self._dimension = dimension
        self.kinds: list[Mapping[str, object]] = [{"status": "created"}, {"status": "unchanged"}]
        self._kind_of: dict[object, int] = {}
        self._subjects = bytearray()
        self._vectors = array("q")
        self._numbers = {name: array("q") for name in _NUMBERS}
        self._tags = {name: array("I") for name in _TAGS}
        self._tables: dict[str, dict[object, int]] = {name: {} for name in _TAGS}
        self._ordinals = array("q")
        self.codes = array("I")

    def __len__(self) -> int:
        return len(self.codes)

    def admit(self, offer: Offer) -> None:
        """Append an admissible record."""
        self._ordinals.append(len(self.codes))
        self.codes.append(0)
        self._subjects += offer.subject
        for name, numbers in self._numbers.items():
            numbers.append(getattr(offer, name))
        for name, tags in self._tags.items():
            table = self._tables[name]
            tags.append(table.setdefault(getattr(offer, name), len(table)))
        if offer.vector is not None:
            self._vectors.extend(offer.vector)

    def refuse(self, code: str, fields: Sequence[FieldError] = ()) -> None:
        """Append a refused record."""
        self.codes.append(self.kind(code, fields))

    def kind(self, code: str, fields: Sequence[FieldError] = ()) -> int:
        """The number of a refusal among `kinds`; equal refusals share one."""
        key = (code, tuple(fields))
        if key not in self._kind_of and fields and len(self.kinds) >= MAX_KINDS:
            return self.kind(code)
        if key not in self._kind_of:
            refusal: dict[str, object] = {"status": "refused", "code": code}
            if fields:
                refusal["errors"] = [{"field": error.field, "reason": error.reason} for error in fields]
            self._kind_of[key] = len(self.kinds)
            self.kinds.append(refusal)
        return self._kind_of[key]

    def chunks(self, size: int) -> Iterator[tuple[Sequence[int], Sequence[Offer]]]:
        """The admissible records in the order of their subjects: (places in the document, offers).

        That order keeps index pages hot and lets batches that share people pass each other. No subject
        is in two chunks, so chunks may be stored in any order.
        """
        if not self._ordinals:
            return
        prefixes = np.frombuffer(self._subjects, dtype=">u8").reshape(-1, DIGEST_BYTES // 8)[:, 0]
        order = np.argsort(prefixes, kind="stable")
        ordered = prefixes[order]
        tables = {name: list(table) for name, table in self._tables.items()}
        start = 0
        while start < len(order):
            last = ordered[min(start + size, len(order)) - 1]
            end = int(np.searchsorted(ordered, last, side="right"))
            places = order[start:end].tolist()
            start = end
            yield (
                [self._ordinals[place] for place in places],
                [self._offer(place, tables) for place in places],
            )

    def _offer(self, place: int, tables: Mapping[str, Sequence[object]]) -> Offer:
        start, first = place * DIGEST_BYTES, place * self._dimension
        fields: dict[str, Any] = {name: numbers[place] for name, numbers in self._numbers.items()}
        fields |= {name: tables[name][tags[place]] for name, tags in self._tags.items()}
        if self._dimension > 1:
            fields["vector"] = tuple(self._vectors[first : first + self._dimension])
        return Offer(subject=bytes(self._subjects[start : start + DIGEST_BYTES]), **fields)


class BatchResult:
    """What became of each record of a batch.

    Attributes:
        kinds: The distinct results, JSON-able.
        codes: For each record of the document the number of its kind.
        created, unchanged, refused: How many.
        closed: Whether any was refused because the study is closed.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.created = 0
        self.unchanged = 0
        self.closed = False

    @property
    def kinds(self) -> Sequence[Mapping[str, object]]:
        """The distinct results."""
        return self._batch.kinds

    @property
    def codes(self) -> Sequence[int]:
        """For each record the number of its kind."""
        return self._batch.codes

    @property
    def refused(self) -> int:
        """Records that were refused."""
        return len(self._batch) - self.created - self.unchanged

    def record(self, ordinals: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        """Note the outcomes of the records at these places."""
        codes = self._batch.codes
        for ordinal, outcome in zip(ordinals, outcomes, strict=True):
            if outcome is Outcome.CREATED:
                self.created += 1
            elif outcome is Outcome.UNCHANGED:
                self.unchanged += 1
                codes[ordinal] = 1
            else:
                self.closed = self.closed or outcome is Outcome.STUDY_CLOSED
                fields = [IMPOSSIBLE_REPORT] if outcome is Outcome.IMPOSSIBLE_REPORT else []
                codes[ordinal] = self._batch.kind(outcome.value, fields)


class BatchReader:
    """Reads one document, pushed in pieces of any size.

    Args:
        study: The study it is for.
        subject_key: For the subjects' digests.
        sender: The token that sent it.
        form: How it is written down.
    """

    def __init__(self, study: StudyDefinition, subject_key: SubjectKey, sender: UUID, form: Format) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        batch = Batch(sender, study.dimension)
        intake = Intake(study, subject_key)
        self._batch = batch
        self._parser: _Parser
        match form:
            case Format.JSON:
                self._parser = _JsonArray(batch, intake)
            case Format.NDJSON:
                self._parser = _Lines(batch, intake)
            case Format.CSV:
                self._parser = _Csv(batch, intake, vectors=study.dimension > 1)

    def feed(self, piece: bytes) -> None:
        """Read the next piece.

        Raises:
            MalformedDocument: it is not UTF-8, or not a document of this form.
        """
        try:
            text = self._decoder.decode(piece)
        except UnicodeDecodeError:
            raise MalformedDocument("the document is not UTF-8") from None
        self._parser.feed(text)

    def finish(self) -> Batch:
        """The whole batch.

        Raises:
            MalformedDocument: the document breaks off.
        """
        try:
            self._decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            raise MalformedDocument("the document is not UTF-8") from None
        self._parser.finish()
        return self._batch


class _Parser(Protocol):
    def feed(self, text: str) -> None: ...

    def finish(self) -> None: ...


def _add(batch: Batch, intake: Intake, record: object) -> None:
    if not isinstance(record, dict):
        batch.refuse("invalid_request")
        return
    try:
        batch.admit(intake.offer(record, batch.sender))
    except InvalidRequest as refusal:
        batch.refuse(refusal.code, refusal.fields)


class _Lines:
    """NDJSON. A line that is not JSON is one refused record, since the others stand on their own."""

    def __init__(self, batch: Batch, intake: Intake) -> None:
        self._batch = batch
        self._intake = intake
        self._rest = ""

    def feed(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        _check_lengths(*lines, self._rest)
        for line in lines:
            self._line(line)

    def finish(self) -> None:
        self._line(self._rest)

    def _line(self, line: str) -> None:
        if not line or line.isspace():
            return
        try:
            record = decode_json(line)
        except MalformedDocument:
            self._batch.refuse("malformed_json")
        except ServiceError as refusal:
            self._batch.refuse(refusal.code, refusal.fields)
        else:
            _add(self._batch, self._intake, record)


class _Csv:
    """CSV (RFC 4180) with a header. The coordinates of a vector share a cell: 1.5;-2;0.25."""

    def __init__(self, batch: Batch, intake: Intake, *, vectors: bool) -> None:
        self._vectors = vectors
        self._batch = batch
        self._intake = intake
        self._rest = ""
        self._header: list[str] | None = None

    def feed(self, text: str) -> None:
        text = self._rest + text
        end = text.rfind("\n") + 1
        quotes = text.count('"', 0, end)
        # A line end within quotes ends no record. Every quote is counted once forwards and once back.
        while quotes % 2:
            # All line ends behind the last quote are within quotes: go on before it, whatever their number.
            start = text.rfind("\n", 0, text.rfind('"', 0, end)) + 1
            quotes -= text.count('"', start, end)
            end = start
        self._rest = text[end:]
        _check_lengths(self._rest)
        self._rows(text[:end])

    def finish(self) -> None:
        if self._rest.count('"') % 2:
            raise MalformedDocument("the document breaks off within quotes")
        self._rows(self._rest)
        if self._header is None:
            raise MalformedDocument("the document has no header line")

    def _rows(self, text: str) -> None:
        try:
            for row in csv.reader(io.StringIO(text, newline=""), strict=True):
                if self._header is None:
                    self._header = _csv_header(row)
                elif row:
                    _check_lengths(*row)
                    self._row(row)
        except csv.Error:
            raise MalformedDocument("the document is not CSV") from None

    def _row(self, row: Sequence[str]) -> None:
        header = self._header
        if header is None or len(row) != len(header):
            self._batch.refuse("malformed_row")
            return
        record: dict[str, object] = {
            name: JsonNumber(cell) if name in NUMBER_FIELDS else cell
            for name, cell in zip(header, row, strict=True)
            if cell
        }
        if self._vectors and "value" in record:
            record["value"] = [JsonNumber(number.strip()) for number in str(record["value"]).split(";")]
        _add(self._batch, self._intake, record)


def _csv_header(row: Sequence[str]) -> list[str]:
    header = [name.strip().lstrip("\ufeff") for name in row]
    if len(set(header)) != len(header) or not set(header) <= CSV_FIELDS or "subject" not in header:
        names = ",".join(sorted(CSV_FIELDS))
        raise MalformedDocument(f"the header line must name fields out of {names}, each once")
    return header


class _JsonArray:
    """One JSON array. It is malformed as a whole or not at all."""

    def __init__(self, batch: Batch, intake: Intake) -> None:
        self._batch = batch
        self._intake = intake
        self._rest = ""
        self._expect = "["

    def feed(self, text: str) -> None:
        text = self._rest + text
        place = self._read(text)
        self._rest = text[place:]
        _check_lengths(self._rest)

    def finish(self) -> None:
        if self._expect or self._rest.strip():
            raise MalformedDocument("the document breaks off, or something follows the array")

    def _read(self, text: str) -> int:
        """Read as many elements as are complete; returns the place of the first one that is not."""
        place = _skip(text, 0)
        while place < len(text):
            mark = text[place]
            if not self._expect:
                raise MalformedDocument("something follows the array")
            if mark == "]" and self._expect in ("first", ","):
                self._expect = ""
                place = _skip(text, place + 1)
            elif mark == self._expect:
                self._expect = "first" if mark == "[" else "next"
                place = _skip(text, place + 1)
            elif self._expect in ("first", "next"):
                end = self._element(text, place)
                if end == place:
                    return place
                place = end
            else:
                raise MalformedDocument("the document is not a JSON array of objects")
        return place

    def _element(self, text: str, place: int) -> int:
        try:
            record, end = decode_element(text, place)
        except json.JSONDecodeError:
            return place
        _check_lengths(text[place:end])
        end = _skip(text, end)
        if end == len(text):
            return place
        self._expect = ","
        if isinstance(record, DuplicateKey):
            self._batch.refuse(record.code, record.fields)
        else:
            _add(self._batch, self._intake, record)
        return end


def _skip(text: str, place: int) -> int:
    """The next place that is no white space."""
    match = _WHITE_SPACE.match(text, place)
    return place if match is None else match.end()


def _check_lengths(*records: str) -> None:
    if any(len(record) > MAX_RECORD for record in records):
        raise MalformedDocument(f"a record is malformed, or longer than {MAX_RECORD} characters")
