"""`dither compare`: the table an analyst looks at before anything is collected."""

import csv
import json

import pytest


@pytest.mark.long
def test_a_built_in_profile_is_compared(dither, tmp_path):
    done = dither(
        *("compare", "--profile", "mixed", "--n", "400", "--runs", "5", "--data", "beta:2,3"),
        *("--out", str(tmp_path / "new")),
    )
    assert done.status == 0, done.errors
    assert "mixed: 400 people" in done.errors
    assert done.output.startswith("estimator\t"), "tabs where a program reads"
    for name in ("optimal", "adpm", "kvh", "lm_only"):
        assert name in done.output
    with (tmp_path / "new" / "compare-mixed.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    predicted = [float(row["predicted"]) for row in rows]
    assert predicted == sorted(predicted)
    assert set(rows[0]) == {"estimator", "predicted", "simulated", "se", "coverage", "most_charged"}
    assert (tmp_path / "new" / "compare-mixed.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_is_compared_and_printed_as_json(dither, tmp_path):
    path = tmp_path / "members.csv"
    path.write_text("trust,epsilon,count\ncentral,0.5,40\npublic,,3\n")
    done = dither("compare", "--profile", str(path), "--runs", "3", "--data", "bernoulli:0.2", "--json")
    assert done.status == 0, done.errors
    document = json.loads(done.output)
    assert document["profile"] == "members"
    assert document["people"] == 43
    assert "lm_only" in document["not_applicable"]
    assert all(row["most_charged"] <= 0.5 for row in document["estimators"])


def test_the_other_relation_has_other_estimators(dither):
    done = dither(
        *("compare", "--profile", "two-groups", "--runs", "3", "--relation", "add_remove_one", "--json")
    )
    names = {row["estimator"] for row in json.loads(done.output)["estimators"]}
    assert names == {"transformed", "hourglass", "shifted", "independent"}


@pytest.mark.parametrize("mechanism", ["laplace", "duchi", "piecewise", "hybrid", "optimal"])
def test_devices_may_randomize_by_any_mechanism(dither, mechanism):
    done = dither(
        *("compare", "--profile", "hybrid-1-percent", "--runs", "3", "--local-mechanism", mechanism, "--json")
    )
    assert done.status == 0, done.errors


def test_gaussian_reports_come_with_a_delta(dither):
    asked = ("compare", "--profile", "hybrid-1-percent", "--runs", "3", "--local-mechanism", "gaussian")
    assert dither(*asked).status == 2
    assert dither(*asked, "--delta", "1e-6").status == 0


@pytest.mark.parametrize(
    "wrong",
    [
        ["--profile", "nothing-like-it"],
        ["--profile", "mixed", "--data", "normal"],
        ["--profile", "mixed", "--data", "beta:1"],
        ["--profile", "mixed", "--data", "bernoulli:2"],
        ["--profile", "mixed", "--data", "beta:x,y"],
        ["--profile", "mixed", "--delta", "1"],
        ["--profile", "mixed", "--delta", "x"],
        ["--profile", "mixed", "--n", "0"],
        [],
    ],
)
def test_what_cannot_be_meant_exits_2(dither, wrong):
    assert dither("compare", *wrong).status == 2
