"""Rows as callers have them: files, data frames, dictionaries, tuples, numpy's numbers."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas
import pyarrow
import pytest
from dither import InvalidRequest, Record, RecordFile

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


def refusals(rows: list[Any]) -> list[str]:
    return [str(row) for row in rows if isinstance(row, InvalidRequest)]


def test_a_comma_that_may_mean_two_things_is_refused_until_it_is_said_which() -> None:
    content = "subject;value\na;1,234\nb;12,5\nc;0,125\n"
    assert [
        "comma before decimals, or one between thousands" in text for text in refusals(read(content))
    ] == [True]
    assert [row.value for row in read(content, decimals=",")] == ["1.234", "12.5", "0.125"]
    assert [row.value for row in read(content, decimals=".")] == ["1,234", "12,5", "0,125"], "no number, then"
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
    reason = "has 2 cells, and the header line has 3"
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
