"""Studies of several measures on the command line, against a running service."""

import json
import shlex

import pytest

from tests.cli.test_commands import Asker, ask

__all__ = ["ask"]


def test_a_study_that_lists_its_epsilons_is_made_and_shown(ask: Asker):
    create = ("admin", "study", "create", "tiers", "--lower", "0", "--upper", "1", "--epsilons", "2")
    refused = ask(*create, "--epsilons", "0.1234")
    assert refused.status != 0
    assert "three significant digits" in refused.errors
    refused = ask(*create, "--epsilon-max", "3")
    assert refused.status != 0
    assert "epsilons" in refused.errors
    made = ask(*create, "--epsilons", "0.50")
    assert made.status == 0, made.errors
    assert "epsilon\t0.5, 2\n" in made.output


def test_a_list_without_entries_says_so_beside_its_header(ask: Asker):
    assert ask("admin", "study", "create", "bare", "--lower", "0", "--upper", "9").status == 0
    for words, column in (
        (("invite", "list"), "id"),
        (("schedule", "list"), "id"),
        (("releases",), "release"),
    ):
        listed = ask("admin", *words, "bare")
        assert (listed.status, listed.errors) == (0, "There are none.\n"), words
        assert [line.split("\t")[0] for line in listed.output.splitlines()] == [column]
        assert json.loads(ask("admin", *words, "bare", "--json").output) == []


def test_a_range_and_a_budget_are_shown_with_all_of_their_digits(ask: Asker):
    made = ask("admin", "study", "create", "turnover", "--lower", "-0.5", "--upper", "12345678901")
    assert made.status == 0, made.errors
    assert "range\t-0.5 to 12345678901; values are kept to" in made.output
    assert "-0.5 to 12345678901" in ask("admin", "study", "list").output
    reason = ("--reason", "all digits count")
    budget = ask("admin", "subject", "set-budget", "exact", "--epsilon", "1234.567891", *reason)
    assert "epsilon\t1234.567891\t0\t0\t1234.567891\n" in budget.output, budget.errors


def test_an_answer_that_is_refused_names_the_command_that_makes_it(ask: Asker, tmp_path):
    made = ask("admin", "study", "create", "few", "--lower", "0", "--upper", "9", "--attributes", "to=a b,c")
    assert made.status == 0, made.errors
    file = tmp_path / "people.csv"
    file.write_text("subject,value,to\nann,4,a b\nbob,5,c\n")
    loaded = ask(
        *("contribute", "contribute", "few", str(file), "--trust", "central", "--epsilon", "1"),
        *("--directory", str(tmp_path / "device")),
    )
    assert loaded.status == 0, loaded.errors
    question = ("--where", "to:a b", "--share", "0.2", "--estimator", "kvh", "--fresh")
    refused = ask("analyse", "release", "few", *question, "--parameter", "variance=worst_case")
    assert "the answer would say nothing" in refused.errors
    _, named = refused.errors.split("It is made all the same by: ")
    words = shlex.split(named)
    assert words[:3] == ["dither", "release", "few"]
    assert {"to:a b", "variance=worst_case", "--fresh", "--allow-worse"} <= set(words)
    answer = ask("analyse", *words[1:], "--json")
    assert json.loads(answer.output)["where"] == {"to": "a b"}
    # Someone came since: what is said is true of a study that has ended, too.
    file.write_text("subject,value,to\ncyd,4,c\n")
    mean = ("analyse", "mean", "few", "--estimator", "kvh")
    assert ask("analyse", "release", "few", "--estimator", "kvh", "--allow-worse").status == 0
    ask(
        *("contribute", "contribute", "few", str(file), "--trust", "central", "--epsilon", "1"),
        *("--directory", str(tmp_path / "device")),
    )
    assert ask("admin", "study", "archive", "few", "--reason", "it is over").status == 0
    assert "People have contributed since: `dither plan few` says" in ask(*mean).output
    assert "makes no new answers" in ask("analyse", "plan", "few").output


@pytest.mark.long
def test_a_study_of_one_measure_is_made_loaded_and_asked(ask: Asker, tmp_path):
    made = ask("admin", "study", "create", "pay", "--measures", "income=0,9000", "--trust", "central")
    assert made.status == 0, made.errors
    assert "range of income\t0 to 9000" in made.output.replace(",", "")
    file = tmp_path / "people.csv"
    file.write_text("subject,income\n" + "".join(f"p{one},{30 * one}\n" for one in range(200)))
    done = ask(
        *("contribute", "contribute", "pay", str(file), "--trust", "central", "--epsilon", "4"),
        *("--directory", str(tmp_path / "device")),
    )
    assert "200 created" in done.output, done.errors
    found = json.loads(ask("analyse", "mean", "pay", "--measure", "income", "--json").output)
    assert json.loads(ask("analyse", "mean", "pay", "--json").output) == found
    refused = ask("analyse", "mean", "pay", "--measure", "age")
    assert "must be income, or left out" in refused.errors


@pytest.mark.long
def test_a_study_of_measures_is_made_loaded_and_asked(ask: Asker, tmp_path):
    for wrong, reason in (
        (("--measures", "income=0,9000", "--measures", "value=0,1"), "measures.value"),
        (("--measures", "income=0", "--measures", "age=18,98"), "NAME=LOWER,UPPER"),
        (("--measures", "income=0,9000", "--measures", "age=18,98", "--lower", "0"), "lower"),
    ):
        refused = ask("admin", "study", "create", "household", *wrong)
        assert refused.status != 0
        assert reason in refused.errors
    made = ask(
        *("admin", "study", "create", "household", "--measures", "income=0,9000", "--measures", "age=18,98"),
        *("--measures", "party=red| green", "--default-share", "0.15", "--epsilon-max", "5"),
        *("--attributes", "town=here,there"),
        *("--trust", "central", "--trust", "local"),
    )
    assert made.status == 0, made.errors
    assert "range of income\t0 to 9,000" in made.output.replace("9000", "9,000")
    assert "choices of party\tred, green" in made.output
    file = tmp_path / "people.csv"
    rows = [
        f"p{number},{15 * number},{20 + number % 60},green,{('here', 'there')[number % 2]}\n"
        for number in range(400)
    ]
    refused_rows = "wrong,9001,20,blue,here\nshort,1,,red,here\n"
    file.write_text("subject,income,age,party,town\n" + "".join(rows) + refused_rows)
    done = ask(
        *("contribute", "contribute", "household", str(file), "--trust", "central", "--epsilon", "4"),
        *("--directory", str(tmp_path / "device")),
    )
    assert "400 created, 0 unchanged, 2 refused." in done.output
    assert "values.income" in done.output
    assert "values.age" in done.output
    plan = json.loads(ask("analyse", "plan", "household", "--measure", "age", "--json").output)
    found = json.loads(ask("analyse", "mean", "household", "--measure", "age", "--json").output)
    assert (found["measure"], found["epsilon_max"]) == ("age", plan["estimators"][0]["epsilon_max"])
    assert abs(found["estimate"] - 48.5) < 8, "its standard error is below 1"
    assert "measure\tage" in ask("analyse", "mean", "household", "--measure", "age").output
    assert found["id"] in ask("analyse", "sd", "household", "--measure", "age").output
    more = ("release", "household", "--measure", "age", "--share", "0.2", "--json")
    assert json.loads(ask("analyse", *more).output)["refines"] == found["id"]
    answered = ask("analyse", "histogram", "household", "--measure", "age", "--json")
    assert answered.status == 0, answered.errors
    ages = json.loads(answered.output)
    assert (ages["statistic"], ages["measure"], ages["bins"][0]["lower"]) == ("histogram", "age", 18)
    shares = json.loads(ask("analyse", "shares", "household", "--measure", "party", "--json").output)
    assert [one["choice"] for one in shares["choices"]] == ["red", "green"]
    assert shares["choices"][1]["share"] > 0.8
    together = ("covariance", "household", "income", "age", "--share", "0.08")
    done = ask("analyse", *together, "--json")
    assert done.status == 0, done.errors
    both = json.loads(done.output)
    assert (both["statistic"], both["measures"]) == ("covariance", ["income", "age"])
    shown = ask("analyse", *together).output
    assert both["id"] in shown
    assert "predicted error, in the product of both units" in shown
    of_town = ("household", "--share", "0.12", "--by", "town")
    line_of = ("analyse", "regression", *of_town, "--of", "income", "--on", "age")
    nothing = ask(*line_of).errors
    assert "the answer would say nothing" in nothing
    # The command that it names makes the answer as it stands.
    named = shlex.split(nothing.partition("It is made all the same by: dither ")[2])
    assert named[:2] == ["release", "household"]
    assert ask("analyse", *named).status == 0
    line = ask(*line_of, "--at", "40").output
    assert [row.split("\t")[:2] for row in line.splitlines()[1:13]] == [
        [label, name]
        for label in ("all", "here", "there")
        for name in ("slope", "intercept", "R squared", "income at age 40")
    ]
    closely = ask("analyse", "correlation", *of_town, "--measures", "income,age", "--json").output
    assert json.loads(closely)["id"] in line
    by_town = ask("analyse", *together, "--by", "town").output
    assert [line.split("\t")[:2] for line in by_town.splitlines()[1:3]] == [["here", "200"], ["there", "200"]]
    assert json.loads(ask("analyse", "count", "household", "--json").output)["estimate"] == 400
    assert "predicted error, people" in ask("analyse", "count", "household").output
    quarters = json.loads(ask("analyse", "describe", "household", "--measure", "age", "--json").output)
    assert (quarters["statistic"], quarters["measure"]) == ("describe", "age")
    file.write_text("subject,income,age,party,town\n" + "".join(rows[:60]).replace("p", "l"))
    done = ask(
        *("contribute", "contribute", "household", str(file), "--trust", "local", "--epsilon", "5"),
        *("--directory", str(tmp_path / "device")),
    )
    assert "60 created, 0 unchanged, 0 refused." in done.output
    answered = ask("analyse", "release", "household", "--measure", "income", "--share", "0.04", "--json")
    both = json.loads(answered.output)
    # Two of three measures each: fewer than 2 or more than 39 in 1.4e-7 of all runs.
    assert (both["people"], both["left_out_because"]) == (460, "measure_not_reported")
    assert 2 <= both["people_left_out"] <= 39
    for words, reason in (
        (("mean", "household"), "measure: is required in a study of several: income, age, party"),
        (("mean", "household", "--measure", "size"), "measure: must be one of the study's measures"),
        (("mean", "household", "--measure", "party"), "statistic: is for numbers, and this is a choice"),
        (("median", "household"), "measure: is required in a study of several: income, age, party"),
    ):
        refused = ask("analyse", *words)
        assert refused.status == 1
        assert reason in " ".join(refused.errors.split())


def test_a_measure_of_several_coordinates_is_made_loaded_and_asked(ask: Asker, tmp_path):
    made = ask(
        *("admin", "study", "create", "trips", "--measures", "place=0,100,2", "--measures", "age=18,98"),
        *("--default-share", "0.2", "--epsilon-max", "8", "--attributes", "size=small,large"),
    )
    assert made.status == 0, made.errors
    assert "range of place\t0 to 100; values are kept to 9.31e-08, 2 coordinates" in made.output
    file = tmp_path / "people.csv"
    rows = [f"p{number},{number % 50};70,{20 + number % 60},small\n" for number in range(200)]
    file.write_text("subject,place,age,size\n" + "".join(rows) + "flat,5,20,large\n")
    done = ask(
        *("contribute", "contribute", "trips", str(file), "--trust", "central", "--epsilon", "8"),
        *("--directory", str(tmp_path / "device"), "--json"),
    )
    loaded = json.loads(done.output)
    assert loaded["created"] == 200, done.errors
    assert loaded["refusals"][0]["errors"][0]["field"] == "values.place"
    mean = json.loads(ask("analyse", "mean", "trips", "--measure", "place", "--json").output)
    assert [one["estimate"] for one in mean["coordinates"]] == [
        pytest.approx(truth, abs=10 * one["standard_error"])
        for truth, one in zip((24.5, 70), mean["coordinates"], strict=True)
    ]
    assert "measure\tplace" in ask("analyse", "sd", "trips", "--measure", "place").output
    by_size = ask("analyse", "mean", "trips", "--measure", "place", "--by", "size", "--share", "0.3")
    assert by_size.status == 0, by_size.errors
    assert "small" in by_size.output
    refused = ask("analyse", "median", "trips", "--measure", "place")
    assert "2 coordinates" in refused.errors
    wrong = ask("admin", "study", "create", "odd", "--measures", "place=0,1,x", "--measures", "age=18,98")
    assert wrong.status != 0
