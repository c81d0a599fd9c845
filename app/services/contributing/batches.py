"""Bulk contributions: a document of records, read in pieces as it arrives.

Nothing is stored before the whole document has proved well formed. Until then the admissible records
are held as packed numbers (about 100 bytes each), never as text, and external ids only as digests.
"""

import codecs
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, get_type_hints
from uuid import UUID

import numpy as np
from dither.device.table import Decimals, encoding_of

from app.core.contribution import Offer, Outcome
from app.core.errors import FieldError, InvalidRequest, MalformedDocument
from app.core.numbers import JsonNumber
from app.core.reporting_range import FIELD
from app.core.study import StudyDefinition, Trust
from app.formats.csv import Columns, Csv
from app.formats.json_array import JsonArray
from app.formats.ndjson import Lines
from app.formats.records import Record, Records, Unreadable
from app.services.contributing.intake import Intake
from app.services.contributing.refusals import REFUSALS
from app.services.subjects import SubjectKey
from app.services.work import checkpoint

FIELDS = frozenset({"subject", "value", "report", "epsilon", "trust"})
NUMBERS = frozenset({"value", "report", "epsilon"})
WORDS = frozenset({"trust"})
DIGEST_BYTES = 32
_NOT_REPORTED = -(1 << 63)
"""What stands for a measure that a device did not report: no report lies there."""

START = 4
"""Bytes that tell the encoding of a CSV."""

_TYPES = get_type_hints(Offer)
_NUMBERS = tuple(name for name, kind in _TYPES.items() if kind is int)
_TAGS = tuple(name for name, kind in _TYPES.items() if kind is not int and name not in ("subject", "vector"))
"""Fields of an offer with few values, each of which is kept once. Every field is packed by its type."""

MAX_KINDS = 1_000
"""Different refusals of one batch that name their fields: a client may send any number of names."""

MORE_KINDS = FieldError(
    "record", f"is refused, like {MAX_KINDS:,} others for other reasons; send it again for its fields"
)


class Format(StrEnum):
    """How a batch is written down."""

    JSON = "json"
    """One array of objects."""

    NDJSON = "ndjson"
    """One object a line."""

    CSV = "csv"
    """A header line, then one record a line; an empty cell is a missing field. Text as people have it:
    commas, semicolons or tabs, also in UTF-16."""


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
            self._vectors.extend(_NOT_REPORTED if one is None else one for one in offer.vector)

    def refuse(self, code: str, fields: Sequence[FieldError]) -> None:
        """Append a refused record."""
        self.codes.append(self.kind(code, fields))

    def kind(self, code: str, fields: Sequence[FieldError]) -> int:
        """The number of a refusal among `kinds`; equal refusals share one."""
        key = (code, tuple(fields))
        if key not in self._kind_of and len(self.kinds) >= MAX_KINDS:
            fields = [MORE_KINDS]
            key = (code, tuple(fields))
        if key not in self._kind_of:
            errors = [{"field": error.field, "reason": error.reason} for error in fields]
            self._kind_of[key] = len(self.kinds)
            self.kinds.append({"status": "refused", "code": code, "errors": errors})
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
            fields["vector"] = tuple(
                None if one == _NOT_REPORTED else one
                for one in self._vectors[first : first + self._dimension]
            )
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
                error, field = REFUSALS[outcome]
                codes[ordinal] = self._batch.kind(error.code, [field])


class BatchReader:
    """Reads one document, pushed in pieces of any size.

    Args:
        study: The study it is for.
        subject_key: For the subjects' digests.
        sender: The token that sent it.
        form: How it is written down.
        epsilon, trust: Of records that give none; a public one needs no epsilon.
        decimals: What a CSV has before decimals; None: its numbers tell.
        missing: What a CSV has in cells that are missing.
    """

    def __init__(
        self,
        study: StudyDefinition,
        subject_key: SubjectKey,
        sender: UUID,
        form: Format,
        *,
        epsilon: str | None = None,
        trust: Trust | None = None,
        decimals: Decimals | None = None,
        missing: Iterable[str] = (),
    ) -> None:
        self._trust = {} if trust is None else {"trust": trust.value}
        self._epsilon = {} if epsilon is None else {"epsilon": JsonNumber(epsilon)}
        # A mark at the start is no part of any document.
        self._encoding = "" if form is Format.CSV else "utf-8-sig"
        self._decoder: codecs.IncrementalDecoder | None = None
        self._start = b""
        self._line = 1
        self._batch = Batch(sender, study.dimension)
        self._intake = Intake(study, subject_key)
        self._records: Records
        match form:
            case Format.JSON:
                self._records = JsonArray()
            case Format.NDJSON:
                self._records = Lines()
            case Format.CSV:
                measures = frozenset(study.measures.named)
                chosen = {name for name, one in study.measures.named.items() if one.choices}
                lists = {"value"} if study.dimension > 1 else set[str]()
                lists |= {name for name, one in study.measures.named.items() if one.dimension > 1}
                labels = frozenset(study.attributes.labels)
                fields = FIELDS - {"value"} if study.measures.several else FIELDS
                columns = Columns(
                    names=fields | ({FIELD} if study.reporting_range else set[str]()) | labels | measures,
                    subject="subject",
                    numbers=(NUMBERS - {"value"} if study.choices else NUMBERS) | (measures - chosen),
                    lists=lists,
                    words=WORDS,
                    within=dict.fromkeys(labels, "attributes") | dict.fromkeys(measures, "values"),
                    measures=measures,
                    labels={
                        **study.attributes.labels,
                        **{name: one.choices for name, one in study.measures.named.items()},
                        "value": study.choices,
                    },
                )
                self._records = Csv(columns, decimals, missing)

    def feed(self, piece: bytes) -> None:
        """Read the next piece.

        Raises:
            MalformedDocument: it is not UTF-8, or not a document of this form.
        """
        self.add(self._records.feed(self._decoded(piece)))

    def finish(self) -> Batch:
        """The whole batch.

        Raises:
            MalformedDocument: the document breaks off.
        """
        self.add(self._records.feed(self._decoded(b"", final=True)))
        self.add(self._records.finish())
        return self._batch

    def _decoded(self, piece: bytes, *, final: bool = False) -> str:
        if self._decoder is None:
            piece, self._start = self._start + piece, b""
            if len(piece) < START and not final:
                self._start = piece
                return ""
            self._encoding = self._encoding or encoding_of(piece)
            self._decoder = codecs.getincrementaldecoder(self._encoding)()
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(error.encoding, errors="ignore")
            line, name = self._line + before.count("\n"), error.encoding.upper()
            raise MalformedDocument(f"the document is not {name} in line {line}; send UTF-8") from None
        self._line += text.count("\n")
        return text

    def add(self, records: Iterable[Record | Unreadable]) -> None:
        """Take records that were read."""
        for record in records:
            checkpoint()
            if isinstance(record, Unreadable):
                self._batch.refuse(record.code, record.fields)
                continue
            if self._trust:
                record = {**self._trust, **record}
            if self._epsilon and record.get("trust") != Trust.PUBLIC:
                record = {**self._epsilon, **record}
            try:
                self._batch.admit(self._intake.offer(record, self._batch.sender))
            except InvalidRequest as refusal:
                self._batch.refuse(refusal.code, refusal.fields)
