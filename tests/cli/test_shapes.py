"""Histograms, distributions and quantiles on the command line, against a running service."""

import csv
import json

import pytest

from app.core.numbers import headline
from tests.cli.test_commands import Asker, ask

__all__ = ["ask"]


@pytest.fixture
def study(ask: Asker, tmp_path) -> str:
    made = ask(
        *("admin", "study", "create", "shape", "--lower", "0", "--upper", "120", "--default-share", "0.25"),
        *("--trust", "central", "--trust", "local"),
    )
    assert made.status == 0, made.errors
    for trust, people in (("central", 200), ("local", 10)):
        file = tmp_path / f"{trust}.csv"
        file.write_text("subject,value\n" + "".join(f"{trust}{n},{n % 120}\n" for n in range(people)))
        done = ask(
            *("contribute", "contribute", "shape", str(file), "--trust", trust, "--epsilon", "2"),
            *("--directory", str(tmp_path / "device")),
        )
        assert done.status == 0, done.errors
    return "shape"


@pytest.mark.long
def test_a_poll_is_made_loaded_and_shown(ask: Asker, tmp_path):
    made = ask("admin", "study", "create", "party", *(f"--choices={one}" for one in ("red", "green", "2,5")))
    assert made.status != 0
    assert "choices" in made.errors
    made = ask("admin", "study", "create", "party", "--choices", "red", "--choices", "1,000", "--lower", "0")
    assert made.status != 0
    made = ask(
        "admin",
        "study",
        "create",
        "party",
        *(f"--choices={one}" for one in ("red", "green", "25")),
        *("--attributes", "region=north,south"),
    )
    assert made.status == 0, made.errors
    assert "red, green, 25" in made.output
    file = tmp_path / "poll.csv"
    votes = ["red"] * 120 + ["25"] * 60 + ["yellow"]
    lines_of = [f"p{n},{vote},{'north' if n % 2 else 'south'}\n" for n, vote in enumerate(votes)]
    file.write_text("subject,value,region\n" + "".join(lines_of))
    done = ask(
        *("contribute", "contribute", "party", str(file), "--trust", "central", "--epsilon", "2"),
        *("--directory", str(tmp_path / "device")),
    )
    assert "180 created, 0 unchanged, 1 refused." in done.output
    assert "one of the study's choices: red, green, 25" in done.output
    found = json.loads(ask("analyse", "shares", "party", "--json").output)
    assert [one["choice"] for one in found["choices"]] == ["red", "green", "25"]
    shown = ask("analyse", "shares", "party").output
    assert found["id"] in shown
    assert shown.splitlines()[0].split("\t")[:2] == ["choice", "share"]
    refused = ask("analyse", "mean", "party")
    assert "ask for its shares" in refused.errors
    lines = [
        line.split("\t") for line in ask("analyse", "shares", "party", "--by", "region").output.splitlines()
    ]
    assert [line[:2] for line in lines[:10]] == [
        ["label", "choice"],
        *([label, choice] for label in ("all", "north", "south") for choice in ("red", "green", "25")),
    ]
    kept = tmp_path / "shares.csv"
    assert ask("analyse", "shares", "party", "--output", str(kept)).status == 0
    with kept.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["choices.choice"] for row in rows] == ["red", "green", "25"]
    assert [float(row["choices.share"]) for row in rows] == [one["share"] for one in found["choices"]]


@pytest.mark.long
def test_labels_are_compared_and_kept_and_a_file_that_cannot_be_written_costs_nothing(ask: Asker, tmp_path):
    study = (
        "study",
        "create",
        "towns",
        "--lower",
        "0",
        "--upper",
        "100",
        "--epsilon-max",
        "5",
        "--attributes",
        "town=north,south",
    )
    assert ask("admin", *study).status == 0
    file = tmp_path / "towns.csv"
    towns = ("north", "south")
    file.write_text(
        "subject,value,town\n" + "".join(f"t{n},{20 + 60 * (n % 2)},{towns[n % 2]}\n" for n in range(80))
    )
    done = ask(
        *("contribute", "contribute", "towns", str(file), "--trust", "central", "--epsilon", "5"),
        *("--directory", str(tmp_path / "device")),
    )
    assert done.status == 0, done.errors
    difference = ("analyse", "difference", "towns", "town:south,north")
    for name, reason in (
        ("d.txt", "'--output': must end in .csv or .parquet"),
        ("none/d.csv", "No such directory"),
    ):
        refused = ask(*difference, "--output", str(tmp_path / name))
        assert (refused.status, reason in " ".join(refused.errors.split())) == (2, True), refused.errors
    for option in ("edges", "measure"):
        refused = ask("analyse", "histogram", "towns", f"--{option}", "")
        assert (refused.status, f"{option}: must not be empty" in refused.errors) == (1, True), refused.errors
    assert json.loads(ask("analyse", "releases", "towns", "--json").output) == []
    for name, words, statistics in (
        ("d.csv", difference, ["difference", "mean", "mean"]),
        ("s.csv", ("analyse", "mean", "towns", "--standardize", "town:north=.2,south=.8"), ["mean"] * 3),
        ("b.csv", ("analyse", "mean", "towns", "--by", "town", "--simultaneous"), ["mean"] * 3),
    ):
        found = json.loads(ask(*words, "--json").output)
        assert found["id"] in ask(*words).output
        assert ask(*words, "--output", str(tmp_path / name)).status == 0
        with (tmp_path / name).open(newline="") as lines:
            kept = list(csv.DictReader(lines))
        assert [row["statistic"] for row in kept] == statistics
        assert [row["where.town"] for row in kept] == ["", "north", "south"]
        assert float(kept[0]["estimate"]) == found["estimate"]
    assert float(kept[1]["simultaneous.lower"]) <= float(kept[1]["interval.lower"])
    assert len(json.loads(ask("analyse", "releases", "towns", "--json").output)) == 1
    found = ("towns", "-p", "range=found", "--share", "0.3")
    shown = ask("analyse", "mean", *found, "--by", "town").output
    assert shown.splitlines()[0].split("\t")[-1] == "outside at most"
    assert "counted as its nearer end" in " ".join(shown.split())
    less = json.loads(ask("analyse", "difference", found[0], "town:south,north", *found[1:], "--json").output)
    assert less["id"] in shown
    for asked in (("histogram", "--bins", "2"), ("median",)):
        south = json.loads(
            ask("analyse", asked[0], "towns", *asked[1:], "--where", "town:south", "--json").output
        )
        assert (south["where"], south["people"]) == ({"town": "south"}, 40)
    for command in (["median"], ["quantile", "0.9"]):
        done = ask("analyse", command[0], "towns", *command[1:], "--by", "town", "--share", "0.15")
        assert done.status == 0, done.errors
        lines = done.output.splitlines()
        assert [line.split("\t")[0] for line in lines[:3]] == ["label", "north", "south"]


@pytest.mark.long
def test_a_histogram_a_distribution_and_quantiles_are_asked_for_and_shown(ask: Asker, study: str):
    plan = json.loads(ask("analyse", "plan", study, "--statistic", "histogram", "--json").output)
    assert [(row["estimator"], row["answers_left"]) for row in plan["estimators"]] == [("histogram", 4)]
    shape = json.loads(ask("analyse", "histogram", study, "--edges", "10,30", "--json").output)
    assert [one["upper"] for one in shape["bins"]] == [10, 30, 120]
    shown = ask("analyse", "distribution", study, "--edges", "10,30").output
    assert shape["id"] in shown, "read off the histogram's release"
    assert shown.splitlines()[0].split("\t")[:3] == ["from", "to", "share"]
    assert "10 (local reports not used)" in shown
    assert "predicted error, part of all people" in shown
    middle = json.loads(ask("analyse", "median", study, "--json").output)
    again = ask("analyse", "quantile", study, "0.5")
    assert middle["id"] in again.output
    assert "95% interval" in again.output
    planned = ("analyse", "plan", study, "--statistic", "median", "--for")
    (nearer,) = json.loads(ask(*planned, "estimate", "--json").output)["estimators"]
    assert nearer["predicted_error"] < middle["predicted_error"]
    assert "for: must be interval or estimate" in ask(*planned, "both").errors
    assert "for: must be interval or estimate" in ask("analyse", "median", study, "--for", "both").errors
    question = ("release", study, "--statistic", "quantile", "-p", "q=0.9", "--key", "k")
    made = [json.loads(ask("analyse", *question, "--json").output) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0]["parameters"]["q"] == 0.9
    listed = ask("analyse", "releases", study).output.splitlines()
    assert {line.split("\t")[2] for line in listed[1:]} == {"histogram", "quantile"}
    described = ("release", study, "--statistic", "describe", "--share", "0.02", "--allow-worse")
    short = json.loads(ask("analyse", *described, "--json").output)
    shown = ask("analyse", "describe", study, "--share", "0.02").output
    assert short["id"] in shown
    assert "predicted error of the mean" in shown
    assert [line.split("\t")[0] for line in shown.splitlines()[1:7]] == [
        *("count", "mean", "standard deviation"),
        *(f"quantile {q}" for q in (0.25, 0.5, 0.75)),
    ]
    quartiles = [line.split("\t") for line in shown.splitlines()[4:7]]
    for row, one in zip(quartiles, short["quartiles"], strict=True):
        ends = [
            f"{one[of]['lower']:.6g} to {one[of]['upper']:.6g}" for of in ("interval", "population_interval")
        ]
        assert row[2:4] == ends
    found = ("mean", study, "-p", "range=found", "--share", "0.1")
    mean = json.loads(ask("analyse", *found, "--json").output)
    assert mean["range"]["upper"] <= 120
    shown = " ".join(ask("analyse", *found).output.split())
    assert "counted as its nearer end: at most" in shown
    assert "gain if the range is right" in ask("analyse", "plan", *found[1:]).output
    # As over HTTP and in the SDK, a refusal names field and reason, and nothing is spent.
    for words, reason in (
        (("quantile", study, "1.5"), "q: must be a number above 0 and below 1"),
        (("histogram", study, "--edges", "30,10"), "edges: must rise"),
        (("sum", study, "-p", "range=found"), "range: must be declared for a sum"),
        (("histogram", study, "--bins", "1"), "bins: must be a whole number from 2 to 100"),
    ):
        refused = ask("analyse", *words)
        assert refused.status == 1
        assert reason in " ".join(refused.errors.split())
    budget = json.loads(ask("contribute", "budget", "central7", "--json").output)
    assert [line["spent"] for line in budget["studies"]] == [1.74]


@pytest.mark.long
def test_a_spread_that_noise_hides_is_at_most_its_upper_end(ask: Asker, tmp_path):
    # An interval misses a deviation of 0 once in 20 at most, and there are two: that none of eight studies
    # has two that hold has a probability below 1e-7. Steps of one study would share their noise.
    for number in range(8):
        study = f"same{number}"
        made = ask("admin", "study", "create", study, "--lower", "0", "--upper", "120")
        assert made.status == 0, made.errors
        file = tmp_path / f"{study}.csv"
        file.write_text("subject,value\n" + "".join(f"{study}-{n},30\n" for n in range(600)))
        words = ("--trust", "central", "--epsilon", "2", "--directory", str(tmp_path / "device"))
        done = ask("contribute", "contribute", study, str(file), *words)
        assert done.status == 0, done.errors
        spreads = []
        for statistic in ("mean", "sd", "variance", "describe"):
            asked = (statistic, study, "--share", "0.2")
            shown = " ".join(ask("analyse", *asked).output.split())
            found = json.loads(ask("analyse", *asked, "--json").output)
            spreads.append((shown, found["sd"] if statistic in ("mean", "describe") else found))
        if all(spread["interval"]["lower"] == 0 for _, spread in spreads):
            break
    for shown, spread in spreads:
        assert spread["interval"]["lower"] == 0 < spread["estimate"]
        said = headline(*(spread["estimate"], 0.0, spread["interval"]["upper"]), "sd").in_words
        assert said.startswith("at most ")
        assert said in shown


@pytest.mark.long
def test_a_command_asks_until_an_interval_is_small_enough(ask: Asker, study: str) -> None:
    whole = ask("analyse", "plan", study, "--share", "1", "--json")
    best = json.loads(whole.output)["estimators"][0]["half_width"]
    made = ask("analyse", "release", study, "--until", f"{2 * best}", "--json")
    assert made.status == 0, made.errors
    found = json.loads(made.output)
    assert 0 < found["share"] < 1
    assert (found["interval"]["upper"] - found["interval"]["lower"]) / 2 <= 2 * best * (1 + 1e-9)
    read = ask("analyse", "mean", study, "--until", f"{2 * best}", "--json")
    assert json.loads(read.output)["id"] == found["id"]
    refused = ask("analyse", "release", study, "--until", f"{best / 2}")
    assert refused.status != 0
    assert "no share reaches this half-width: the best is predicted to be" in refused.errors
    for bad in (["--until", "0"], ["--until", "1", "--share", "0.1"]):
        named = ask("analyse", "release", study, *bad)
        assert named.status != 0
        assert "until" in named.errors


@pytest.mark.long
def test_a_mean_is_standardized_to_the_shares_of_two_attributes(ask: Asker, tmp_path):
    study = ("study", "create", "rooms", "--lower", "0", "--upper", "100", "--epsilon-max", "5")
    attributes = ("--attributes", "town=north,south", "--attributes", "age=young,old")
    assert ask("admin", *study, *attributes).status == 0
    cells = [("north", "young"), ("north", "old"), ("north", "old"), ("south", "young"), ("south", "old")]
    file = tmp_path / "rooms.csv"
    file.write_text(
        "subject,value,town,age\n"
        + "".join(f"r{n},{20 + 10 * (n % 5)},{','.join(cells[n % 5])}\n" for n in range(200))
    )
    sent = ("contribute", "contribute", "rooms", str(file), "--trust", "central", "--epsilon", "5")
    assert ask(*sent, "--directory", str(tmp_path / "device")).status == 0
    question = ("rooms", "--standardize", "town:north=.5,south=.5;age:young=.25,old=.75", "--share", ".5")
    found = json.loads(ask("analyse", "mean", *question, "--json").output)
    of_town = [one["weight"] for one in found["groups"] if one["where"]["town"] == "north"]
    assert sum(of_town) == pytest.approx(0.5)
    shown = ask("analyse", "mean", *question).output
    assert "weight" in shown.splitlines()[0].split("\t")
    assert "north 0.5, south 0.5; young 0.25, old 0.75" in " ".join(shown.split())
    refused = ask("analyse", "mean", "rooms", "--standardize", "town:north=.5,south=.5;age:young=.25,old=.8")
    assert "shares of age that sum to 1" in " ".join(refused.errors.split())
