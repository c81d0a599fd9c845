"""`dither contribute` with files as people have them, against the real service."""

import json

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
