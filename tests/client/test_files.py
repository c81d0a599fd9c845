"""Rows as callers have them: files, data frames, dictionaries, tuples, numpy's numbers."""

import gzip
import io
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas
import pyarrow
import pytest
from dither import InvalidRequest, Record, RecordFile, check_records
from dither._rows import Named

from tests.client.service import FakeService
from tests.client.test_batches import lines
from tests.support.real_files import FILES, PEOPLE


def sent(service: FakeService) -> list[tuple[str, float, float]]:
    return [
        (row["subject"], float(row["value"]), float(row["epsilon"]))
        for batch in lines(service)
        for row in batch
    ]


@pytest.mark.parametrize("name", FILES)
def test_a_file_as_people_have_it_is_read_or_refused_with_row_column_and_remedy(
    client: Any, service: FakeService, tmp_path: Path, name: str
) -> None:
    make, refusal = FILES[name]
    path = tmp_path / name
    path.write_bytes(make())
    if refusal:
        with pytest.raises(InvalidRequest) as raised:
            RecordFile(path)
        assert all(part in str(raised.value) for part in refusal), str(raised.value)
        return
    file = RecordFile(path)
    assert len(file) == len(PEOPLE)
    client.contribute_many("commute", file, trust="central")
    assert sent(service) == [(subject, value, float(epsilon)) for subject, value, epsilon in PEOPLE]


ROWS = [("ada", 34, 0.5, "central"), (7, 51, None, None)]
NAMES = ["subject", "value", "epsilon", "trust"]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [dict(zip(NAMES, row, strict=True)) for row in ROWS],
        [{"Subject": "ada", "value": 34, "epsilon": 0.5}, (7, 51)],
        pandas.DataFrame(ROWS, columns=NAMES),
        pandas.DataFrame([("ada", 34, 0.5), ("7", 51, np.nan)], columns=NAMES[:3]).convert_dtypes(),
        pyarrow.table({"subject": ["ada", "7"], "value": [34, 51], "epsilon": [0.5, None]}),
        [Record("ada", np.float32(34), np.float64(0.5)), Record(np.int64(7), np.int16(51))],  # type: ignore[arg-type]
    ],
    ids=["tuples", "dicts", "mixed", "pandas", "pandas-na", "arrow", "numpy"],
)
def test_rows_as_callers_have_them(client: Any, service: FakeService, rows: Any) -> None:
    assert client.contribute_many("commute", rows, epsilon=1, trust="central").created == 2
    assert sent(service) == [("ada", 34, 0.5), ("7", 51, 1)]


def test_a_number_of_numpy_is_what_it_is_written_as(client: Any, service: FakeService) -> None:
    client.contribute(
        "commute", subject="ada", value=np.float32(0.1), epsilon=np.float32(0.3), trust="central"
    )
    [body] = service.sent("POST")
    assert (str(body["value"]), str(body["epsilon"])) == ("0.1", "0.3")
    with pytest.raises(InvalidRequest, match="value"):
        client.contribute("commute", subject="bob", value=np.bool_(True), epsilon=1, trust="central")


def test_a_whole_number_is_the_subject_of_its_digits(client: Any, service: FakeService) -> None:
    client.contribute("commute", subject=7, value=1, epsilon=1, trust="central")
    assert (
        client.contribute("commute", subject="7", value=1, epsilon=1, trust="central").status == "unchanged"
    )
    assert [entry.subject for entry in client.ledger("7").entries] == ["7"]
    assert client.budget(7).subject == "7"
    client.withdraw("commute", subject=7)
    for subject in (7.0, True, None):
        with pytest.raises(InvalidRequest, match="subject"):
            client.contribute("commute", subject=subject, value=1, epsilon=1, trust="central")


@pytest.mark.parametrize("rows", [["ada"], [5], [("ada",)], [("a", 1, 1, "central", 5)], [{"name": "ada"}]])
def test_rows_that_are_none_are_refused(client: Any, rows: Any) -> None:
    with pytest.raises(InvalidRequest, match="row 1 "):
        client.contribute_many("commute", rows, epsilon=1, trust="central")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("people.csv", "give RecordFile"),
        (Path("people.csv"), "give RecordFile"),
        (None, "not one NoneType"),
        (Record("ada", 5), "not one Record"),
        ({"subject": "ada", "value": 5}, "not one dict"),
    ],
)
def test_what_is_no_list_of_rows_is_refused(client: Any, service: FakeService, rows: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=f"^records .*{said}"):
        client.contribute_many("commute", rows, epsilon=1, trust="central")
    assert sent(service) == []


def read(content: str | bytes, **options: Any) -> list[Any]:
    return [*RecordFile(io.BytesIO(content.encode() if isinstance(content, str) else content), **options)]


def ids(rows: Iterable[Any]) -> list[str]:
    return [row.subject for row in rows]


def refusals(rows: list[Any]) -> list[str]:
    return [str(row) for row in rows if isinstance(row, InvalidRequest)]


def test_a_comma_that_may_mean_two_things_is_refused_until_it_is_said_which() -> None:
    content = "subject;value\na;1,234\nb;12,5\nc;0,125\n"
    assert [
        "comma before decimals, or one between thousands" in text for text in refusals(read(content))
    ] == [True]
    assert [row.value for row in read(content, decimals=",")] == ["1.234", "12.5", "0.125"]
    [number, *others] = read(content, decimals=".")
    assert number.value == "1234"
    assert ["has a comma where" in text for text in refusals(others)] == [True, True]
    assert "follow a comma" in refusals(read("subject;value\na;1.5\n", decimals=","))[0]


def test_a_decimal_comma_that_splits_a_cell_is_not_cut_off() -> None:
    [text] = refusals(read("subject,value\nada,12,5\n"))
    assert "in quotes" in text
    assert [row.value for row in read('subject,value\nada,"12,5"\n')] == ["12.5"]


def test_an_empty_cell_is_refused_by_its_row(client: Any, service: FakeService) -> None:
    load = client.contribute_many(
        "commute",
        RecordFile(io.BytesIO(b"subject,value\nada,34\n\nbob,\n ,5\n")),
        epsilon=1,
        trust="central",
    )
    assert [(row, bad.errors[0].field, bad.errors[0].reason) for row, bad in load.refusals] == [
        (2, "value", "is missing"),
        (3, "subject", "is missing"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "subject,value\nada,34\nzoë,1\n".encode("latin-1"),
            "is not UTF-8 in line 3; save it as CSV in UTF-8",
        ),
        ('subject,"value\nada,34\n', "row 0 (line 1), column of the header"),
        ('subject,value\nada,"3"4"\n', "row 1 (line 2), column value"),
        ('subject,value\nada,"' + "x" * 200_000, "row 1 (line 2), column value"),
        ("subject,value,Value\nada,1,2\n", "two columns value; the columns are: subject, value, Value"),
        (b"\xd0\xcf\x11\xe0 old", "save it as .xlsx"),
        (b"PK\3\4 no archive", "looks like an Excel file"),
        (b'{"subject": "ada", "value": 1}\n', "holds JSON; save it as CSV"),
        (b'\xef\xbb\xbf\n [{"subject": "ada", "value": 1}]', "holds JSON; save it as CSV"),
        (b"PAR1 no table", "looks like a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_what_to_do(content: str | bytes, said: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read(content)
    assert said in str(raised.value)


def test_a_damaged_file_is_called_by_its_ending(tmp_path: Path) -> None:
    for name in ("people.xlsx", "people.PARQUET"):
        (tmp_path / name).write_bytes(b"\x8a\x9b damaged")
        with pytest.raises(InvalidRequest, match=rf"ends in \{Path(name).suffix} and is no such file"):
            RecordFile(tmp_path / name)


def test_what_reads_a_file_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (("openpyxl", "people.xlsx"), ("pyarrow", "people.parquet")):
        content = FILES[name][0]()
        with monkeypatch.context() as without:
            without.setitem(__import__("sys").modules, module, None)
            with pytest.raises(InvalidRequest, match="pip install 'dither"):
                read(content)


def test_columns_by_other_names_vectors_and_more_columns_than_are_looked_for() -> None:
    content = "when\tWho\tWhere\nnow\tada\t1,5;2\n"
    with pytest.raises(InvalidRequest, match="the file has columns that are no field: when"):
        read(content, subject="who", value="WHERE")
    [record] = read(content, subject="who", value="WHERE", ignore=["When"])
    assert record == Record("ada", ["1.5", "2"])
    frame = pandas.DataFrame({"subject": ["a"], "value": [np.array([1, 2])]})
    from dither._rows import read_rows

    assert [*read_rows(frame)] == [Record("a", [1, 2])]


MISSPELT: dict[str, Any] = {"subject": "bob", "value": 5, "epsilom": "0.1", "trusts": "local"}


@pytest.mark.parametrize(
    "rows",
    [
        RecordFile(io.BytesIO(b"subject,value,epsilom,trusts\nbob,5,0.1,local\n")),
        [MISSPELT],
        pandas.DataFrame([MISSPELT]),
        pyarrow.table({name: [cell] for name, cell in MISSPELT.items()}),
    ],
    ids=["file", "dicts", "pandas", "arrow"],
)
def test_a_column_that_is_no_field_is_refused_unless_it_is_ignored_by_name(
    client: Any, service: FakeService, rows: Any
) -> None:
    with pytest.raises(InvalidRequest, match="has columns that are no field: epsilom, trusts;") as refused:
        client.contribute_many("commute", rows, epsilon=1, trust="central")
    assert "the fields are: subject, value, epsilon, trust;" in str(refused.value)
    assert "ignore= (--ignore-columns)" in str(refused.value)
    with pytest.raises(InvalidRequest, match="no field: trusts;"):
        client.contribute_many("commute", rows, epsilon=1, trust="central", ignore=["Epsilom"])
    with pytest.raises(InvalidRequest, match="ignore names value, which is a field"):
        client.contribute_many("commute", rows, ignore=["value", "epsilom", "trusts"])
    assert sent(service) == []
    with pytest.raises(InvalidRequest, match="no field: epsilom;"):
        client.contribute_many("commute", rows, epsilon=1, trust="central", ignore="trusts")
    ignore = ["Epsilom", " trusts"]
    assert client.contribute_many("commute", rows, epsilon=1, trust="central", ignore=ignore).created == 1
    assert sent(service) == [("bob", 5, 1)]


def test_columns_without_a_name_and_columns_that_are_there_twice_are_refused(client: Any) -> None:
    for content, said in (
        (b"subject,value,\nbob,5,1\n", "no field: (empty);"),
        (b"subject,region,value,Region\nbob,north,5,south\n", "no field: region, Region;"),
        (b"subject,value,report\nbob,5,1\n", "no field: report;"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            client.contribute_many("commute", RecordFile(io.BytesIO(content)), epsilon=1, trust="central")
        assert said in str(refused.value)


def test_a_row_that_ends_early_is_refused_and_not_completed_by_defaults(
    client: Any, service: FakeService
) -> None:
    file = RecordFile(io.BytesIO(b"subject,value,epsilon\nada,34,0.5\nbob,10\n,,\n,\ncyd,10,\n"))
    load = client.contribute_many("commute", file, epsilon=1, trust="central")
    [(row, refusal)] = load.refusals
    reason = "must have as many cells as the header line: 3, not 2"
    assert (row, refusal.errors[0].field, refusal.errors[0].reason) == (2, "row", reason)
    assert sent(service) == [("ada", 34, 0.5), ("cyd", 10, 1)]


def test_a_row_of_excel_that_ends_early_has_empty_cells(client: Any, service: FakeService) -> None:
    book = openpyxl.Workbook()
    for cells in (("subject", "value", "epsilon", None), ("ada", 34), ("bob", 10, 0.5, " ")):
        book.worksheets[0].append(cells)
    content = io.BytesIO()
    book.save(content)
    client.contribute_many("commute", RecordFile(io.BytesIO(content.getvalue())), epsilon=1, trust="central")
    assert sent(service) == [("ada", 34, 1), ("bob", 10, 0.5)]


def test_utf_16_is_recognized_without_its_mark() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        [record] = read("subject;value\nzoë;1\n".encode(encoding))
        assert record.subject == "zoë"


A_THOUSANDTH = "may have a point before decimals, or one between thousands: say which, with decimals"


@pytest.mark.parametrize(
    ("content", "options", "found"),
    [
        ("subject;value\na;12,5\nb;1.234\n", {}, ["12.5", None]),
        ("subject;value\nb;1.234\na;12,5\n", {"decimals": ","}, ["1234", "12.5"]),
        ("subject;value\na;1.234\n", {}, [None]),
        ("subject\tvalue\na\t1.234\n", {}, [None]),
        ("subject;value\na;1.234\n", {"decimals": "."}, ["1.234"]),
        ("subject;value\na;1.234\nb;12.75\n", {}, ["1.234", "12.75"]),
        ("subject;value;epsilon\na;1.234;0.5\n", {}, ["1.234"]),
        ("subject,value\na,1.234\nb,22.345\n", {}, ["1.234", "22.345"]),
        ('subject,value\na,1.234\nb,"2,5"\n', {}, [None, "2.5"]),
        ('subject,value\na,"1,234"\nb,"1,234,567.5"\n', {"decimals": "."}, ["1234", "1234567.5"]),
        ("subject;value\na;1.234,56\nb;1.234.567\nc;1.000.000,5\n", {}, ["1234.56", "1234567", "1000000.5"]),
        ("subject;value\na;1.234,56\nb;-1.234\nc;5\n", {"decimals": ","}, ["1234.56", "-1234", "5"]),
        ("subject;value\na;0.234\nb;1234.567\nc;1e3\n", {}, ["0.234", "1234.567", "1e3"]),
        ("subject;value\na;.5\nb;+5\nc;5.\nd;,5\n", {}, [".5", "+5", "5.", ".5"]),
        ("subject;value\na;1.23.456\nb;1,2,3\nc;1..5\n", {}, ["1.23.456", "1,2,3", "1..5"]),
        ("subject;value\na;01.234\nb;1.234e2\n", {}, ["01.234", "1.234e2"]),
    ],
)
def test_a_point_that_may_stand_between_thousands_is_never_taken_for_decimals(
    content: str, options: dict[str, Any], found: list[str | None]
) -> None:
    rows = read(content, **options)
    assert [None if isinstance(row, InvalidRequest) else row.value for row in rows] == found
    assert all(A_THOUSANDTH in text for text in refusals(rows))


def workbook(*sheets: list[tuple[Any, ...]]) -> io.BytesIO:
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.worksheets[0].title = "Sheet 1"
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"Sheet {number + 1}") if number else book.worksheets[0]
        for row in rows:
            sheet.append(row)
    book.save(content)
    return io.BytesIO(content.getvalue())


TEXT = [("a", "12,5"), ("b", "1.234")]


@pytest.mark.parametrize(
    "rows",
    [
        RecordFile(workbook([("subject", "value"), *TEXT])),
        pandas.DataFrame(TEXT, columns=["subject", "value"]),
        pyarrow.table({"subject": ["a", "b"], "value": ["12,5", "1.234"]}),
        [dict(zip(("subject", "value"), row, strict=True)) for row in TEXT],
        TEXT,
    ],
    ids=["excel", "pandas", "arrow", "dicts", "tuples"],
)
def test_text_of_any_table_says_what_stands_before_its_decimals(
    client: Any, service: FakeService, rows: Any
) -> None:
    service.studies["commute"]["upper"] = 5000
    load = client.contribute_many("commute", rows, epsilon=1, trust="central")
    [(row, refusal)] = load.refusals
    assert (row, refusal.errors[0].field) == (2, "value")
    assert A_THOUSANDTH in refusal.errors[0].reason
    load = client.contribute_many("commute", rows, epsilon=1, trust="central", decimals=",")
    assert [result.status for result in load.results] == ["unchanged", "created"]
    assert sent(service)[-1] == ("b", 1234, 1)
    with pytest.raises(InvalidRequest, match=r"^decimals must be"):
        client.contribute_many("commute", rows, epsilon=1, trust="central", decimals=";")


def test_rows_that_can_be_read_once_only_are_not_guessed(client: Any, service: FakeService) -> None:
    rows = [{"subject": "a", "value": "1.234"}, {"subject": "b", "value": "12.5"}]
    load = client.contribute_many("commute", iter(rows), epsilon=1, trust="central")
    assert [row for row, _ in load.refusals] == [1]
    assert client.contribute_many("commute", rows, epsilon=1, trust="central").refused == 0
    assert sent(service)[1] == ("a", 1.234, 1)


def test_a_workbook_with_several_sheets_is_read_once_its_sheet_is_named() -> None:
    people, others = [("subject", "value"), ("ada", 34)], [("subject", "value"), ("bob", 51)]
    with pytest.raises(InvalidRequest, match=r"has several sheets: Sheet 1, Sheet 2; say which with sheet="):
        RecordFile(workbook(people, others))
    assert ids(RecordFile(workbook(people, others), sheet="Sheet 2")) == ["bob"]
    assert ids(RecordFile(workbook(people, []))) == ["ada"]
    assert ids(RecordFile(workbook([], [(), (" ",)], others))) == ["bob"]
    with pytest.raises(InvalidRequest, match="has no sheet x; its sheets are: Sheet 1, Sheet 2"):
        RecordFile(workbook(people, others), sheet="x")
    with pytest.raises(InvalidRequest, match="has no sheet x: it is no Excel file"):
        read("subject,value\n", sheet="x")


@pytest.mark.parametrize("subject", ["7.0", "1.23E+11", "1e+11", "1,5E+12", "zoe\u0308"])
def test_ids_that_a_table_has_rewritten_are_refused(client: Any, service: FakeService, subject: str) -> None:
    rows = [*read(f"subject;value\n{subject};5\n"), {"subject": subject, "value": 5}, ("ada", 5)]
    load = client.contribute_many("commute", rows, epsilon=1, trust="central")
    assert [(row, bad.errors[0].field) for row, bad in load.refusals] == [(1, "subject"), (2, "subject")]
    assert sent(service) == [("ada", 5, 1)]


def test_ids_that_a_frame_keeps_as_floats_are_their_digits(client: Any, service: FakeService) -> None:
    frame = pandas.DataFrame({"subject": [7, None, 2.0, 1e15], "value": [1, 2, 3, 4]})
    load = client.contribute_many("commute", frame, epsilon=1, trust="central")
    assert [(row, bad.errors[0].reason[:20]) for row, bad in load.refusals] == [
        (2, "is missing"),
        (4, "has more digits than"),
    ]
    assert sent(service) == [("7", 1, 1), ("2", 3, 1)]
    [row] = RecordFile(workbook([("subject", "value"), (1234567890123456, 5)]))
    assert "keep ids as text" in str(row)


def test_a_file_in_gzip_is_read_and_another_compression_is_named() -> None:
    assert [row.subject for row in read(gzip.compress(b"subject,value\nada,5\n"))] == ["ada"]
    with pytest.raises(InvalidRequest, match="damaged, or breaks off"):
        read(gzip.compress(b"subject,value\nada,5\n")[:-9])
    for start in (b"BZh9", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"):
        with pytest.raises(InvalidRequest, match="is compressed; unpack it"):
            read(start + b"rest")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_mark_of_the_byte_order_is_no_part_of_a_file(encoding: str) -> None:
    [record] = read("subject;value\nzoë;1\n".encode(encoding))
    assert record.subject == "zoë"


def test_a_pipe_is_read_to_its_end_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(pipe.write_text, "subject,value\nada,5\nbob,6\n")
        file = RecordFile(pipe)
        assert written.result() > 0
    assert ids(file) == ids(file) == ["ada", "bob"]


def test_columns_of_measures_are_read_as_those_of_a_value() -> None:
    named = Named(measures=("pay", "party"), labels={"party": ()})
    content = "subject;pay;party\na;12,5;1.234\nb;1.234;2,5\n"
    file = RecordFile(io.BytesIO(content.encode()))
    [first, second] = file.rows_with(named)
    assert first == Record("a", {"pay": "12.5", "party": "1.234"})
    assert str(second).startswith(f"values.pay {A_THOUSANDTH}")
    [first, second] = file.rows_with(replace(named, decimals=","))
    assert second == Record("b", {"pay": "1234", "party": "2,5"})


def of_choices(**options: Any) -> RecordFile:
    content = "subject;value;epsilon\nna;Süß;NA\nk. A.;k. A.;k. a.\nbob;NA;1\n"
    return RecordFile(io.BytesIO(content.encode("cp1252")), encoding="cp1252", **options)


def test_words_for_what_is_missing_are_no_labels_and_no_ids() -> None:
    named = Named(labels={"value": ("süß", "NA")})
    known = list(of_choices(missing=["NA", "K. A."]).rows_with(named))
    assert known[0] == Record("na", "Süß")
    assert str(known[1]) == "value is missing"
    assert known[2] == Record("bob", "NA", "1")
    [first, *_] = of_choices().rows_with(named)
    assert isinstance(first, Record)
    assert first.epsilon == "NA"


def test_labels_are_in_any_case_where_that_is_said() -> None:
    for labels, read_as in (("süß", "NA"), "süß"), (("süß", "SÜß", "NA"), "Süß"):
        [first, *_] = of_choices(ignore_case=True).rows_with(Named(labels={"value": labels}))
        assert isinstance(first, Record)
        assert first.value == read_as


def test_an_encoding_is_one_that_is_known() -> None:
    for name in ("klingon", "rot13"):
        with pytest.raises(InvalidRequest, match="encoding is none that Python knows"):
            read("subject,value\nada,5\n", encoding=name)
    with pytest.raises(InvalidRequest, match="missing must be a text"):
        read("subject,value\nada,5\n", missing=[None])


def test_a_row_says_all_of_its_faults(client: Any, service: FakeService) -> None:
    rows = "subject;value;epsilon\n7.0;1,234;x\nada;gone;99\n;;\nbob;12,5;1\n"
    file = RecordFile(io.BytesIO(rows.encode()), decimals=None)
    wanted = [["subject", "value", "epsilon"], ["epsilon", "value"], ["subject", "value"]]
    checked = [*check_records(client.study("commute"), file, epsilon=1, trust="central")]
    said = [refusal for _, refusal in checked[:2] if refusal is not None]
    assert [[one.field for one in (first, *first.also)] for first in said] == wanted[:2]
    assert checked[-1][1] is None
    assert service.sent("POST") == []
    done = client.contribute_many("commute", file, epsilon=1, trust="central")
    assert [[error.field for error in one.errors] for _, one in done.refusals] == wanted[:2]


def test_a_refusal_proposes_how_a_file_may_be_read() -> None:
    book = openpyxl.Workbook()
    for sheet in (book.worksheets[0], book.create_sheet("Daten")):
        sheet.append(["subject", "value"])
    content = io.BytesIO()
    book.save(content)
    for source, options in (
        (content.getvalue(), {"sheet": "Sheet"}),
        ("subject,value\nzoë,1\n".encode("cp1252"), {"encoding": "cp1252"}),
    ):
        with pytest.raises(InvalidRequest) as raised:
            RecordFile(io.BytesIO(source))
        assert raised.value.remedy == options
        assert len(RecordFile(io.BytesIO(source), **raised.value.remedy)) < 2
