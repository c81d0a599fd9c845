"""Reading a batch: pieces of any size, bounded work and bounded memory, whatever is sent."""

import gzip
import io
import json
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from dither.device.table import CsvReader

from app.core.contribution import Offer
from app.core.errors import DocumentTooLarge, MalformedDocument
from app.core.study import Currency, Trust
from app.formats.compression import FREE_EXPANSION, MAX_EXPANSION, Gzip
from app.formats.records import MAX_RECORD
from app.services.contributing.batches import Batch, BatchReader, Format
from app.services.subjects import SubjectKey
from tests.store.workbench import TOKEN, definition

MEBIBYTE = 1 << 20

ROWS = [{"subject": f"s{number}", "value": number, "epsilon": 1, "trust": "central"} for number in range(50)]
FORMS = {
    Format.JSON: json.dumps(ROWS),
    Format.NDJSON: "\n".join(map(json.dumps, ROWS)),
    Format.CSV: "subject,value,epsilon,trust\n" + "".join(f'"s\n""{n}",{n},1,central\r\n' for n in range(50)),
}


def reader(form: Format) -> BatchReader:
    study = definition(slug="study", lower=Decimal(0), upper=Decimal(100), trust=frozenset(Trust))
    return BatchReader(study, SubjectKey(b"k" * 32), TOKEN, form)


def feed(reading: BatchReader, content: bytes, size: int) -> None:
    for start in range(0, len(content), size):
        reading.feed(content[start : start + size])


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("size", [1, 2, 7, 60, 10_000])
def test_a_document_may_be_cut_anywhere(form: Format, size: int) -> None:
    reading = reader(form)
    feed(reading, FORMS[form].encode(), size)
    batch = reading.finish()
    assert list(batch.codes) == [0] * len(ROWS)
    assert len({offer.subject for _, offers in batch.chunks(10) for offer in offers}) == len(ROWS)


@pytest.mark.parametrize("dimension", [1, 2])
def test_a_batch_forgets_nothing_of_an_offer(dimension: int) -> None:
    one: dict[str, Any] = {
        "subject": b"s" * 32,
        "sender": uuid4(),
        "trust": Trust.LOCAL,
        "asked": 2,
        "epsilon": 1,
        "value": -3,
        "vector": None if dimension == 1 else (4, 5),
        "bounded": True,
        "drawn_at_most": 6,
        "currency": Currency.GAUSSIAN,
        "segment": 7,
    }
    other = {"subject": b"t" * 32, "sender": uuid4(), "trust": Trust.PUBLIC, "bounded": False}
    assert one.keys() == {field.name for field in fields(Offer)}, "this test has no value for a new field"
    offers = [Offer(**one), Offer(**one | other), Offer(**one)]
    batch = Batch(TOKEN, dimension)
    for offer in offers:
        batch.admit(offer)
    [(places, packed)] = batch.chunks(10)
    assert [packed[places.index(place)] for place in range(3)] == offers


LONG = "x" * (MAX_RECORD + 1)


@pytest.mark.parametrize("size", [1_000, 1 << 20])
@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Format.JSON, f'[{{"subject":"{LONG}"}}]'),
        (Format.NDJSON, f'{{"subject":"{LONG}"}}\n'),
        (Format.CSV, f"subject,value\n{LONG},1\n"),
    ],
)
def test_a_record_that_is_too_long_is_refused_however_it_arrives(form: Format, text: str, size: int) -> None:
    with pytest.raises(MalformedDocument, match="longer than"):
        feed(reader(form), text.encode(), size)


@pytest.mark.parametrize("size", [1, 100, 10_000])
@pytest.mark.parametrize("text", ['"' + "\n" * 20_000, '"s\n\n",1\n' * 2_000, "s,1\n" * 5_000])
def test_the_characters_of_a_csv_are_read_a_few_times_at_most(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int
) -> None:
    """However small its pieces are, and however many line ends stand within quotes."""
    characters = 0

    class Counted(io.StringIO):
        def __init__(self, text: str, newline: str) -> None:
            nonlocal characters
            characters += len(text)
            super().__init__(text, newline)

    monkeypatch.setattr("dither.device.table.io.StringIO", Counted)
    rows = CsvReader({"subject", "value"}, MAX_RECORD)
    text = "subject,value\n" + text
    for start in range(0, len(text), size):
        list(rows.feed(text[start : start + size]))
    assert len(text) / 2 < characters <= 3 * len(text)


# ------------------------------------------------------------------------------------ memory


def unknown_fields() -> Iterator[str]:
    for record in range(30):
        yield json.dumps({f"{'n' * 20}{record}-{number}": 1 for number in range(1_000)})


def long_epsilons() -> Iterator[str]:
    for record in range(40):
        yield json.dumps(
            {"subject": "s", "value": 1, "epsilon": f"{record}{'9' * 60_000}", "trust": "central"}
        )


def long_names() -> Iterator[str]:
    for record in range(40):
        yield json.dumps({f"{record}{'n' * 60_000}": 1})


def empty_records() -> Iterator[str]:
    yield from ["{}"] * 20_000


@pytest.mark.long
@pytest.mark.parametrize("records", [unknown_fields, long_epsilons, long_names, empty_records])
@pytest.mark.parametrize("form", [Format.JSON, Format.NDJSON])
def test_a_hostile_batch_takes_little_memory(records, form: Format) -> None:
    texts = list(records())
    content = "\n".join(texts).encode() if form is Format.NDJSON else f"[{','.join(texts)}]".encode()
    reading = reader(form)
    tracemalloc.start()
    try:
        feed(reading, content, MEBIBYTE // 4)
        batch = reading.finish()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(batch) == len(texts)
    assert held < MEBIBYTE // 5  # ten bytes of an empty record
    assert peak < 2 * MEBIBYTE


def test_a_refusal_names_ten_fields_and_cuts_their_names() -> None:
    reading = reader(Format.NDJSON)
    reading.feed(json.dumps({f"{'n' * 100}{number}": 1 for number in range(500)}).encode())
    [_, _, refusal] = reading.finish().kinds
    errors = refusal["errors"]
    assert isinstance(errors, list)
    assert len(errors) == 10
    assert {len(error["field"]) for error in errors} <= {*range(65)}


# -------------------------------------------------------------------------------- compression


def passed_on(document: bytes, limit: int = 1 << 30) -> list[int]:
    pieces: list[int] = []
    content = Gzip(lambda piece: pieces.append(len(piece)), limit)
    content.feed(document)
    content.finish()
    return pieces


def test_what_many_small_members_hold_is_passed_on_in_large_pieces() -> None:
    assert passed_on(gzip.compress(b"x") * 10_000) == [10_000]


def test_a_document_that_decompresses_to_a_hundred_times_its_length_is_refused() -> None:
    assert sum(passed_on(gzip.compress(b"\n" * FREE_EXPANSION))) == FREE_EXPANSION
    bomb = gzip.compress(b"\n" * 10 * FREE_EXPANSION)
    assert len(bomb) * MAX_EXPANSION < 9 * FREE_EXPANSION
    with pytest.raises(DocumentTooLarge, match="times its length"):
        passed_on(bomb)


def test_line_ends_within_quotes_cost_one_step_together() -> None:
    """A quarter of a million of them fit into a few hundred bytes of gzip."""
    steps = 0

    def count(_frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += event == "c_call" and getattr(argument, "__name__", "") == "rfind"

    parser = reader(Format.CSV)
    sys.setprofile(count)
    try:
        parser.feed(b'subject,value,epsilon,trust\na,1,1,central\n"' + b"\n" * 10_000)
    finally:
        sys.setprofile(None)
    assert 0 < steps < 10
