"""`dither reproduce`: every table and figure runs, and leaves a CSV and a PNG."""

import csv
import json

import pytest

from dither_research.catalogue import REPRODUCTIONS

pytestmark = pytest.mark.long

PNG = b"\x89PNG\r\n\x1a\n"

EXPECTED = {
    "adpm-table-2",
    "adpm-figure-1a",
    "adpm-figure-1b",
    "adpm-figure-3",
    "adpm-figure-4",
    "adpm-example-2",
    "adpm-remark-2",
    *(f"hybrid-figure-{number}" for number in range(1, 9)),
    "minimum-figure-1",
    "minimum-figure-2",
    "minimum-default",
    "quantile-default",
    "hybrid-kmeans",
    "add-remove-figure-2",
}


def test_every_table_and_figure_has_a_name():
    assert set(REPRODUCTIONS) == EXPECTED


@pytest.mark.parametrize("width", [60, 80, 200])
def test_without_a_name_they_are_listed(dither, width):
    done = dither("reproduce", width=width)
    assert done.status == 0
    for name in EXPECTED:
        assert name in done.output
    assert {row["name"] for row in json.loads(dither("reproduce", "--json").output)} == EXPECTED


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_each_one_writes_what_it_declares(dither, tmp_path, name):
    done = dither("reproduce", name, "--runs", "1", "--out", str(tmp_path / "new"))
    assert done.status == 0, done.errors
    assert REPRODUCTIONS[name].title.split()[0] in done.errors, "the table's title"
    with (tmp_path / "new" / f"{name}.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(REPRODUCTIONS[name].columns)
    assert len(rows) > 5
    assert all(len(row) == len(rows[0]) for row in rows)
    assert (tmp_path / "new" / f"{name}.png").read_bytes().startswith(PNG)


def test_the_papers_numbers_stand_beside_ours(dither, tmp_path):
    done = dither("reproduce", "adpm-figure-4", "--out", str(tmp_path))
    assert "17" in done.output
    assert "1.41421" in done.output
    (document,) = json.loads(dither("reproduce", "adpm-figure-4", "--out", str(tmp_path), "--json").output)
    assert document["checks"][1]["paper"] == pytest.approx(17)
    assert document["checks"][1]["deviation"] == pytest.approx(0, abs=1e-3)


def test_what_is_not_private_in_a_paper_is_marked(dither, tmp_path):
    done = dither("reproduce", "hybrid-figure-7", "--out", str(tmp_path))
    assert "Not private in the paper" in done.output


def test_the_same_runs_give_the_same_files(dither, tmp_path):
    for directory in ("first", "second"):
        assert (
            dither("reproduce", "adpm-example-2", "--runs", "50", "--out", str(tmp_path / directory)).status
            == 0
        )
    first, second = ((tmp_path / d / "adpm-example-2.csv").read_bytes() for d in ("first", "second"))
    assert first == second


@pytest.mark.parametrize("wrong", [["nothing-like-it"], ["adpm-table-2", "--all"], ["--runs", "0", "--all"]])
def test_what_cannot_be_meant_exits_2(dither, wrong):
    assert dither("reproduce", *wrong).status == 2
