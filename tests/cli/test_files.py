"""`dither contribute` with files as people have them, against the real service."""

import json
import shlex

import pytest

from tests.support.live import LiveService
from tests.support.real_files import FILES, PEOPLE

pytestmark = pytest.mark.system


def test_files_as_people_have_them_are_loaded_or_refused(dither, live_server, tmp_path):
    service: LiveService = live_server()
    asked = {"DITHER_URL": service.base_url, "DITHER_TOKEN": service.admin_token}
    made = dither("study", "create", "commute", "--lower", "0", "--upper", "120", **asked)
    assert made.status == 0, made.errors
    token = dither("token", "create", "app", "--role", "contribute", **asked).output.strip()
    asked["DITHER_TOKEN"] = token
    load = ("--trust", "central", "--directory", str(tmp_path / "device"), "--json")
    loaded = False
    for name, (make, refusal) in FILES.items():
        path = tmp_path / name
        path.write_bytes(make())
        done = dither("contribute", "commute", str(path), *load, **asked)
        if refusal:
            assert (done.status, done.output) == (1, "")
            assert all(part in done.errors for part in refusal), done.errors
            assert len(done.errors.strip().splitlines()) == 1
            continue
        assert done.status == 0, (name, done.errors)
        counts = json.loads(done.output)
        # The same people with the same numbers in every file: the first one brings them, the others nothing.
        key = "unchanged" if loaded else "created"
        assert counts[key] == len(PEOPLE), (name, counts)
        loaded = True


def test_files_have_columns_of_labels(dither, live_server, tmp_path):
    service: LiveService = live_server()
    asked = {"DITHER_URL": service.base_url, "DITHER_TOKEN": service.admin_token}
    make = ("study", "create", "wages", "--lower", "0", "--upper", "120")
    odd = dither(*make, "--attributes", "region", **asked)
    assert odd.status == 2
    assert "NAME=A,B" in odd.errors
    made = dither(*make, "--attributes", "region=north, south", "--attributes", "age=-29,30-", **asked)
    assert made.status == 0, made.errors
    assert "attribute age" in made.output
    service_asked = dict(asked)
    token = dither("token", "create", "app", "--role", "contribute", **asked).output.strip()
    file = tmp_path / "people.csv"
    file.write_text("subject;value;AGE;region\nada;1,5;-29;north\nbob;2;30-;west\ncyd;3;30-;south\n")
    load = ("contribute", "wages", str(file), "--trust", "central", "--epsilon", "1", "--json")
    done = dither(*load, "--directory", str(tmp_path / "device"), **asked | {"DITHER_TOKEN": token})
    assert done.status == 1, done.errors
    counts = json.loads(done.output)
    assert (counts["created"], counts["refused"]) == (2, 1)
    [refusal] = counts["refusals"]
    assert (refusal["row"], refusal["errors"][0]["field"]) == (2, "attributes.region")
    file.write_text("subject,value,region,age,epsilom\ndan,5,north,30-,0.1\n")
    kept = ("--directory", str(tmp_path / "device"))
    done = dither(*load, *kept, **asked | {"DITHER_TOKEN": token})
    assert (done.status, done.output) == (1, "")
    assert "people.csv has columns that are no field: epsilom;" in done.errors
    done = dither(*load, *kept, "--ignore-columns", "epsilom", **asked | {"DITHER_TOKEN": token})
    assert json.loads(done.output)["created"] == 1, done.errors
    assert dither("withdraw", "wages", "dan", **asked | {"DITHER_TOKEN": token}).status == 0
    asked["DITHER_TOKEN"] = dither(
        "token", "create", "ana", "--role", "analyse", **service_asked
    ).output.strip()
    question = ("--by", "region", "--where", "age:-29", "--share", "1", "--allow-worse")
    answer = dither("release", "wages", *question, **asked)
    assert answer.status == 0, answer.errors
    rows = [line.split() for line in answer.output.splitlines()]
    found = [row[:2] for row in rows if row[:1] in (["north"], ["south"])]
    assert found == [["north", "1"], ["south", "0"]], answer.output


def asked_of(dither, live_server, *study: str) -> dict[str, str]:
    """How a contributor of a study of a service calls the command."""
    service: LiveService = live_server()
    asked = {"DITHER_URL": service.base_url, "DITHER_TOKEN": service.admin_token}
    made = dither("study", "create", "lunch", *study, **asked)
    assert made.status == 0, made.errors
    token = dither("token", "create", "app", "--role", "contribute", **asked).output.strip()
    return asked | {"DITHER_TOKEN": token}


GERMAN = """Name;Kosten;Kantine;epsilon;Ort;Eingang am
Jörg;1.234,56;JA;1;Süd;01.02.2026
Änne;1.500;nein;k. A.;nord;02.02.2026
Zoë;12,5;Nein;0,5;NORD;03.02.2026
Max;0,25;ja;2;süd;04.02.2026
"""


def test_a_german_file_of_excel_is_checked_once_and_imported_as_proposed(dither, live_server, tmp_path):
    measures = ("--measures", "kosten=0,5000", "--measures", "kantine=ja|nein")
    asked = asked_of(dither, live_server, *measures, "--attributes", "ort=nord,süd")
    file = tmp_path / "mittag.csv"
    file.write_bytes(GERMAN.replace("\n", "\r\n").encode("cp1252"))
    device = tmp_path / "device"
    given = ("lunch", str(file), "--trust", "central", "--epsilon", "1", "--directory", str(device))
    check = dither("contribute", *given, "--check", **asked)
    assert check.status == 0, (check.output, check.errors)
    *reading, counted, _, command = check.output.strip().splitlines()
    assert reading == [
        "encoding: cp1252",
        "separator: ;",
        "decimal mark: ,",
        "columns: Name, Kosten, Kantine, epsilon, Ort, Eingang am",
        "person: Name",
        "left out: Eingang am",
        "counts as missing: empty cells, k. A.",
        "labels: in any case",
        "kosten: 0.25 to 1500; the study takes 0 to 5000",
        "rows: 4",
    ]
    assert counted == "0 of 4 rows would be refused. Nothing was sent or stored."
    assert not device.exists()
    done = dither(*shlex.split(command)[1:], "--json", **asked)
    assert (done.status, json.loads(done.output)["created"]) == (0, 4), done.errors
    # The same people with the values that were meant, as plain UTF-8: nothing is new.
    plain = tmp_path / "plain.csv"
    plain.write_text(
        "subject,kosten,kantine,epsilon,ort\n"
        "Jörg,1234.56,ja,1,süd\nÄnne,1500,nein,1,nord\nZoë,12.5,nein,.5,nord\nMax,.25,ja,2,süd\n",
        encoding="utf-8",
    )
    again = dither("contribute", "lunch", str(plain), *given[2:], "--json", **asked)
    assert json.loads(again.output)["unchanged"] == 4, (again.output, again.errors)


def test_a_check_says_all_faults_of_all_rows_and_a_confirmation_imports_the_others(
    dither, live_server, tmp_path
):
    measures = ("--measures", "kosten=0,1000", "--measures", "kantine=ja|nein")
    asked = asked_of(dither, live_server, *measures, "--attributes", "ort=nord,süd")
    file = tmp_path / "mittag.csv"
    file.write_bytes(
        (GERMAN + "Eva;gestern;vielleicht;9999;West;\nMax;3;ja;2;süd;\nKim;k. A.;ja;1;süd;\n").encode(
            "cp1252"
        )
    )
    device = ("--directory", str(tmp_path / "device"))
    given = ("lunch", str(file), "--trust", "central", "--epsilon", "1", "--subject-column", "Name", *device)
    check = dither("contribute", *given, "--check", **asked)
    assert check.status == 1, check.errors
    lines = check.output.strip().splitlines()
    assert "kosten: 0.25 to 1500; the study takes 0 to 1000" in lines
    outside = "values.kosten lies outside the measure's range, 0 to 1000"
    assert [line for line in lines if line.startswith("row ")] == [
        f"row 1: {outside}",
        f"row 2: {outside}",
        "row 5: epsilon must lie in [0.001, 4]; values.kosten is not a finite decimal number; "
        "values.kantine must be one of the measure's choices: ja, nein; "
        "attributes.ort must be one of the study's labels: nord, süd",
        "row 6: subject has another contribution in row 4",
        "row 7: values.kosten is needed: every measure of the study once",
    ]
    assert "5 of 7 rows would be refused. Nothing was sent or stored." in lines
    as_json = json.loads(dither("contribute", *given, "--check", "--json", **asked).output)
    assert [fault["row"] for fault in as_json["faults"]] == [1, 2, 5, 6, 7]
    done = dither("contribute", *given, "--check", "--yes", "--json", **asked)
    assert done.status == 1
    result = json.loads(done.output)
    assert (result["created"], result["refused"]) == (2, 5), done.errors
    # A row that is sent says all of its faults, too.
    assert len(result["refusals"][2]["errors"]) == 4
    file.write_text("Name,Kosten,Kantine,Ort\n" + "".join(f"p{row},-1,ja,nord\n" for row in range(103)))
    many = dither("contribute", *given, "--check", **asked).output.splitlines()
    assert sum(line.startswith("row ") for line in many) == 100
    assert "and 3 rows more" in many
    assert "103 of 103 rows would be refused. Nothing was sent or stored." in many
    for rows, lines in (
        (101, ["and 1 row more"]),
        (1, ["1 of 1 row would be refused. Nothing was sent or stored."]),
    ):
        file.write_text("Name,Kosten,Kantine,Ort\n" + "".join(f"p{row},-1,ja,nord\n" for row in range(rows)))
        said = dither("contribute", *given, "--check", **asked).output.splitlines()
        assert [line for line in said if line in lines] == lines
    # With a header line alone there is nothing to import, and no command for it.
    file.write_text("Name,Kosten,Kantine,Ort\n")
    said = dither("contribute", *given, "--check", **asked).output.splitlines()
    assert said[-1] == "The file has no row below its header. Nothing was sent or stored."
    file.write_text("Kosten,Kantine\n1,ja\n")
    unreadable = dither("contribute", *given, "--check", **asked)
    assert (unreadable.status, unreadable.output) == (1, "")
    assert "mittag.csv has no column Name" in unreadable.errors
    alone = dither("contribute", *given, "--yes", **asked)
    assert alone.status == 2
    assert "--check" in alone.errors
