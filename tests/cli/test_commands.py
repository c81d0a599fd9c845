"""The commands that talk HTTP, against the real service."""

import csv
import json
import re
import shlex
import sqlite3
from typing import Any

import httpx
import pytest
import typer.main
from dither import FieldProblem, NoGain, ProblemError, SaysNothing
from dither._parse import problem
from pyarrow import parquet

from app.cli.examples import EXAMPLES
from app.cli.http import explain, service
from app.cli.tree import build
from app.core.numbers import why_no_number
from tests.support.commands import Done
from tests.support.databases import scratch_directory
from tests.support.live import LiveService

pytestmark = pytest.mark.system


class Asker:
    """Runs a command as the bearer of a role's token."""

    def __init__(self, dither, service: LiveService) -> None:
        self._dither = dither
        self.service = service
        self._tokens = {"admin": service.admin_token}

    def __call__(self, role: str, *arguments: str, width: int = 200) -> Done:
        own = {"DITHER_URL": self.service.base_url, "DITHER_TOKEN": self.secret(role)}
        return self._dither(*arguments, width=width, **own)

    def secret(self, role: str) -> str:
        """The token of a role, made where there is none."""
        if role not in self._tokens:
            made = self("admin", "token", "create", f"a {role}", "--role", role)
            assert made.status == 0, made.errors
            self._tokens[role] = made.output.strip()
        return self._tokens[role]


@pytest.fixture
def ask(dither, live_server) -> Asker:
    return Asker(dither, live_server())


def test_a_study_from_its_making_to_its_answer(ask, tmp_path):
    made = ask(
        *("admin", "study", "create", "commute", "--lower", "0", "--upper", "120.5", "--title", "How long?"),
        *("--trust", "central", "--trust", "local", "--epsilon-max", "5", "--default-share", "0.5", "--json"),
        *("--local-mechanism", "hybrid", "--tilt", "0.2"),
    )
    assert made.status == 0, made.errors
    study = json.loads(made.output)
    assert (study["lower"], study["upper"], study["trust"]) == (0, 120.5, ["central", "local"])
    assert (study["local_mechanism"], study["tilt"]) == ("hybrid", 0.2)
    [line] = [one for one in ask("admin", "study", "list").output.splitlines() if "commute" in one]
    assert "0 to 120.5" in line
    assert "0 to 120.5" in ask("analyse", "study", "show", "commute").output

    early = ask("analyse", "plan", "commute")
    assert (early.output, early.errors) == ("No person who is asked has a contribution now.\n", "")

    people = tmp_path / "people.csv"
    rows = [f"p{number},{number % 100},{(number % 3) + 1}" for number in range(300)]
    people.write_text("subject,value,epsilon\n" + "\n".join([*rows, "far,5000,1"]) + "\n")
    load = (
        "contribute",
        "commute",
        str(people),
        "--trust",
        "central",
        "--directory",
        str(tmp_path / "device"),
    )
    first = ask("contribute", *load)
    assert first.status == 1, "a row was refused"
    assert "300 created, 0 unchanged, 1 refused" in first.output
    again = json.loads(ask("contribute", *load, "--json").output)
    assert (again["created"], again["unchanged"], again["refused"]) == (0, 300, 1)
    [refusal] = again["refusals"]
    assert (refusal["row"], refusal["code"]) == (301, "invalid_request")
    assert refusal["errors"] == [{"field": "value", "reason": "lies outside the study's range, 0 to 120.5"}]
    shown = ask("contribute", *load).output
    assert "301" in shown
    assert "0 to 120.5" in " ".join(shown.split())

    local = tmp_path / "local.csv"
    local.write_text("who,minutes\n" + "".join(f"l{number},{number}\n" for number in range(20)))
    done = ask(
        *("contribute", "contribute", "commute", str(local), "--trust", "local", "--epsilon", "1"),
        *("--subject-column", "who", "--value-column", "minutes", "--directory", str(tmp_path / "device")),
    )
    assert done.status == 0, done.errors
    assert "20 created" in done.output

    planned = json.loads(ask("analyse", "plan", "commute", "--share", "1", "--json").output)
    assert {row["estimator"] for row in planned["estimators"]} >= {"uniform", "adpm"}
    moves = {row["estimator"]: row["one_report_moves"] for row in planned["estimators"]}
    assert moves["uniform"] is None
    assert 0 < moves["optimal"] < 120.5
    shown = " ".join(ask("analyse", "plan", "commute").output.split())
    for heading in ("predicted error", "at tilt 0", "one report moves it by at most"):
        assert heading in shown
    assert "differs from the others' by at most 20 % of the range" in shown
    wary = json.loads(ask("analyse", "plan", "commute", "--tilt", "1", "--json").output)
    assert (wary["tilt"], wary["assumption"]) == (1, "holds however privacy and values go together")
    assert "predicted error" in ask("analyse", "plan", "commute").output
    assert "uniform" not in ask("analyse", "plan", "commute").output
    assert "uniform" in ask("analyse", "plan", "commute", "--all").output
    assert ask("analyse", "plan", "commute").output.startswith("For 0.5 of each epsilon ± ")

    answer = json.loads(ask("analyse", "mean", "commute", "--estimator", "adpm", "--json").output)
    assert answer["interval"]["lower"] <= answer["estimate"] <= answer["interval"]["upper"]
    assert json.loads(ask("analyse", "mean", "commute", "--estimator", "adpm", "--json").output) == answer

    keyed = [
        json.loads(ask("analyse", "release", "commute", "--share", "0.1", "--key", "k1", "--json").output)
        for _ in range(2)
    ]
    assert keyed[0] == keyed[1]
    assert keyed[0]["id"] != answer["id"]
    shown = ask("analyse", "mean", "commute", "--estimator", "adpm").output
    assert "95% interval" in shown
    assert "differs from the others'" in " ".join(shown.split())
    assert answer["id"] in shown

    for name in ("releases.csv", "releases.parquet"):
        saved = ask("analyse", "releases", "commute", "--output", str(tmp_path / name))
        assert saved.status == 0, saved.errors
        assert name in saved.errors
    with (tmp_path / "releases.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "releases.parquet").to_pylist()
    published = json.loads(ask("analyse", "releases", "commute", "--json").output)
    for kept in (lines, table):
        assert [(row["id"], float(row["estimate"])) for row in kept] == [
            (one["id"], one["estimate"]) for one in published
        ]
    refused = ask("analyse", "releases", "commute", "--output", str(tmp_path / "releases.txt"))
    assert (refused.status, ".csv or .parquet" in refused.errors) == (2, True)
    refused = ask("analyse", "releases", "commute", "--output", str(tmp_path / "none" / "releases.csv"))
    assert (refused.status, "No such directory" in refused.errors) == (2, True)

    # Statistics of the same question are read off the same release.
    for statistic in ("sum", "variance", "sd"):
        read = json.loads(ask("analyse", statistic, "commute", "--estimator", "adpm", "--json").output)
        assert (read["id"], read["statistic"]) == (answer["id"], statistic)
    assert "sd of these people" in ask("analyse", "sd", "commute", "--estimator", "adpm").output
    assert "mean, sum, variance, sd" in ask("analyse", "plan", "commute", "--statistic", "sd").output
    refused = ask("analyse", "release", "commute", "--statistic", "mode")
    assert refused.status == 1
    assert "must be one of mean, sum, variance, sd" in refused.errors

    listed = ask("analyse", "releases", "commute").output.splitlines()
    assert listed[0].split("\t") == [
        *("release", "made", "statistic", "about", "estimator", "estimate", "interval", "largest charge")
    ]
    assert {line.split("\t")[0] for line in listed[1:]} == {answer["id"], keyed[0]["id"]}

    free = ask("analyse", "count", "commute").output
    assert re.search(r"^largest charge\s+0$", free, re.MULTILINE)
    assert "of each epsilon" not in free
    when = ("--share", "0.2", "--every", "week", "--newcomers", "--quota", "1", "--starts-at", "2100-01-04")
    assert ask("admin", "schedule", "create", "commute", *when).status == 0
    assert "\tmean, share=0.2\t" in ask("admin", "schedule", "list", "commute").output

    gone = ask("contribute", "withdraw", "commute", "p2", "--directory", str(tmp_path / "device"))
    assert gone.output == "Withdrawn. What was spent stays spent: dither budget p2\n", gone.errors
    left = json.loads(ask("contribute", "budget", "p2", "--json").output)["studies"]
    assert [line["live"] for line in left] == [False]

    budget = json.loads(ask("admin", "subject", "budget", "p1", "--json").output)
    assert budget["epsilon"]["reserved"] == 2
    assert budget["epsilon"]["spent"] > 0
    assert "commute" in ask("admin", "subject", "budget", "p1").output
    raised = ask("admin", "subject", "set-budget", "p1", "--epsilon", "20", "--reason", "asked for it")
    assert raised.status == 0, raised.errors

    assert "closed" in ask("admin", "study", "close", "commute").output


def test_a_session_from_its_start_to_its_estimate(ask):
    made = ask("admin", "study", "create", "age", "--lower", "0", "--upper", "100")
    assert made.status == 0, made.errors
    started = ask(
        *("admin", "session", "create", "age", "--protocol", "minimum", "--epsilon", "8", "--json"),
        *("--participants", "20", "--mode", "budget_split", "--rounds", "2", "--answers-per-round", "none"),
        *("--round-seconds", "600", "--deadline-seconds", "3600"),
    )
    assert started.status == 0, started.errors
    session = json.loads(started.output)
    assert (session["rounds"], session["answers_per_round"], session["round_seconds"]) == (2, None, 600)
    assert session["id"] in ask("analyse", "session", "list", "age").output
    assert "No round is closed yet" in ask("analyse", "session", "show", session["id"]).output
    closed = json.loads(
        ask("admin", "session", "close-round", session["id"], "--round", "1", "--json").output
    )
    assert (closed["round"], len(closed["path"])) == (2, 1)
    finished = ask("admin", "session", "finish", session["id"])
    assert finished.status == 0, finished.errors
    assert "people it may miss" in finished.output
    assert re.search(r"^estimate\s+50 \(0 to 100\)$", finished.output, re.MULTILINE)
    assert "estimated yes" in finished.output
    listed = json.loads(ask("analyse", "session", "list", "age", "--json").output)
    assert [item["state"] for item in listed] == ["finished"]
    assert "1 of 2 closed" in ask("analyse", "session", "list", "age").output
    assert re.search(r"^round\s+1 of 2 closed$", finished.output, re.MULTILINE)
    assert "answers so far" not in finished.output, "no round is open"
    derived = ask(
        *("admin", "session", "create", "age", "--protocol", "quantile", "--epsilon", "2", "--json"),
        *("--participants", "1000", "--quantile", "0.5", "--rounds", "unknown_alpha"),
    )
    assert json.loads(derived.output)["rounds"] == 5


def test_a_single_field_is_said_once():
    share, epsilon = FieldProblem("share", "must be above 0"), FieldProblem("epsilon", "is no number")
    refusal: dict[str, Any] = {"status": 422, "code": "invalid_request"}
    one = ProblemError(**refusal, detail="share: must be above 0", errors=[share])
    assert explain(one) == "share: must be above 0 (invalid_request)"
    two = ProblemError(**refusal, detail="not admissible: share, epsilon", errors=[share, epsilon])
    assert explain(two).splitlines()[1:] == ["  share: must be above 0", "  epsilon: is no number"]


def test_an_answer_that_is_no_gain_names_what_makes_it_all_the_same():
    refusal = NoGain(status=409, code="no_gain", detail="allow_worse makes this one too")
    assert "release(..., allow_worse=True)" in str(refusal)


def test_an_answer_that_says_nothing_names_what_would_do_and_what_makes_it_all_the_same():
    body = b'{"code": "says_nothing", "detail": "nothing", "share": 0.41, "people": 53, "errors": []}'
    refusal = problem(409, body, request="POST /", certain=True)
    assert isinstance(refusal, SaysNothing)
    assert (refusal.share, refusal.people) == (0.41, 53)
    assert "release(..., allow_worse=True)" in str(refusal)
    none = problem(409, body.replace(b"0.41", b"null").replace(b"53", b"null"), request="", certain=True)
    assert isinstance(none, SaysNothing)
    assert none.share is none.people is None


def test_a_token_for_a_study_that_is_not_there_says_so(ask):
    ask("admin", "study", "create", "age", "--lower", "0", "--upper", "100")
    made = ask("admin", "token", "create", "app", "--role", "analyse", "--study", "age", "--study", "nope")
    assert made.status == 0
    assert made.output.startswith("dither_")
    assert [line for line in made.errors.splitlines() if "no study" in line] == [
        "There is no study nope yet."
    ]


def test_help_and_refusals_name_options_in_their_own_form(dither):
    made = dither("study", "create", "--help").output
    assert "default: ()" not in made
    assert "{" not in made
    assert "--by:" not in dither("difference", "--help").output
    odd = dither("study", "create", "x", "--measures", "age", "--token", "t")
    assert (odd.status, "--measures takes NAME=LOWER,UPPER" in odd.errors) == (2, True)
    empty = dither("size", "--range", "120", "0", "--error", "1", "--people", "100", "--epsilon", "1")
    assert (empty.status, "--range: must be above" in empty.errors) == (2, True), empty.errors
    assert "--upper" not in empty.errors


def test_a_command_that_waits_says_so(capfd):
    with service("http://127.0.0.1:9", "token") as client:
        on_wait = client._operations.retry.on_wait
    assert on_wait is not None
    on_wait(11.2)
    assert capfd.readouterr().err == "The service asks to come back later: waiting 12 s.\n"


def test_a_token_is_limited_and_rotated(ask, dither):
    old = ask("admin", "token", "create", "app", "--role", "analyse").output.strip()
    mine = next(
        one for one in json.loads(ask("admin", "token", "list", "--json").output) if one["name"] == "app"
    )
    limited = ask("admin", "token", "limit", mine["id"], "--share", "0.2", "--period", "86400")
    assert limited.status == 0, limited.errors
    ask("admin", "study", "create", "age", "--lower", "0", "--upper", "100", "--relation", "add_remove_one")
    with ask.service.client(old) as analyst:
        statuses = [
            analyst.post("/v1/studies/age/releases", json={"share": share}).status_code
            for share in (0.2, 0.01)
        ]
    assert statuses == [201, 429]
    for share, said in (
        ("0.01", "used its quota of this study (quota_exhausted); it may be asked again in 86,"),
        ("0.3", "ask with a smaller share (quota_exhausted)\n"),
    ):
        refused = dither(
            "release", "age", "--share", share, DITHER_URL=ask.service.base_url, DITHER_TOKEN=old
        )
        assert refused.status == 1
        assert said in refused.errors
    usage = json.loads(ask("admin", "token", "usage", mine["id"], "--json").output)
    assert usage == [{"study": "age", "releases": 1, "used": 0.2}]
    assert ask("admin", "token", "limit", mine["id"], "--lift").status == 0
    new = ask("admin", "token", "rotate", mine["id"]).output.strip()
    assert re.fullmatch(r"dither_\S{40,}", new)
    for secret, status in ((old, 401), (new, 200)):
        with ask.service.client(secret) as client:
            assert client.get("/v1/studies").status_code == status


def test_answers_of_secret_people_are_combined_and_say_of_whom_they_are(ask):
    # Of one level: answers about those who offered at least another one are about other people.
    ends = ("--lower", "0", "--upper", "100", "--epsilons", "1")
    ask("admin", "study", "create", "age", *ends, "--relation", "add_remove_one")
    made = [
        json.loads(ask("analyse", "release", "age", "--share", share, "--allow-worse", "--json").output)["id"]
        for share in ("0.1", "0.3")
    ]
    found = json.loads(ask("analyse", "mean", "age", "--json").output)
    assert found["combines"] == made
    assert [round(weight, 3) for weight in found["weights"]] == [0.1, 0.9]
    shown = ask("analyse", "mean", "age").output
    assert "2 answers" in shown
    assert "the people of all these answers" in shown


def test_tokens_are_made_listed_and_revoked(ask):
    token = ask("admin", "token", "create", "app", "--role", "analyse").output.strip()
    assert re.fullmatch(r"dither_\S{40,}", token)
    listed = json.loads(ask("admin", "token", "list", "--json").output)
    mine = next(item for item in listed if item["name"] == "app")
    assert token not in json.dumps(listed)
    assert "0.2 in 86,400 s" not in ask("admin", "token", "list").output
    limited = ask("admin", "token", "limit", mine["id"], "--share", "0.2", "--period", "86400")
    assert limited.status == 0, limited.errors
    assert "0.2 in 86,400 s" in ask("admin", "token", "list").output
    assert ask("admin", "token", "revoke", mine["id"]).status == 0
    with ask.service.client(token) as client:
        assert client.get("/v1/studies").status_code == 401


def test_a_sizing_needs_no_service(dither):
    wanted = ("size", "--error", "1", "--range", "0", "120")
    asked = json.loads(dither(*wanted, "--epsilon", ".5", "--json").output)
    assert asked["asked"] == "people"
    assert [row["chosen"] for row in asked["estimators"]][:2] == [True, False]
    shown = dither(*wanted, "--epsilon", ".5").output
    assert str(asked["estimators"][0]["people"]) in shown
    assert "uniform" not in shown
    assert "uniform" in dither(*wanted, "--epsilon", ".5", "--all").output
    assert "share" in dither(*wanted, "--people", "100", "--epsilon", "1").output
    for wrong, named in (
        (("--people", "0"), "--people"),
        ((), "--people"),
        (("--epsilon", "x"), "--epsilon"),
    ):
        refused = dither(*wanted, *wrong)
        assert refused.status == 2
        assert named in refused.errors


REFUSALS = [
    ("analyse", ("study", "show", "nowhere"), "(not_found)"),
    ("analyse", ("plan", "nowhere"), "(not_found)"),
    ("analyse", ("token", "list"), "(forbidden)"),
    ("admin", ("study", "create", "UPPER", "--lower", "0", "--upper", "1"), "slug"),
    ("admin", ("study", "create", "x", "--lower", "2", "--upper", "1"), "upper"),
    ("admin", ("study", "create", "x"), "lower: is required, unless there are choices"),
    ("admin", ("session", "show", "nothing"), "not_found"),
]


def test_a_refusal_exits_with_1_and_says_why(ask):
    for role, arguments, said in REFUSALS:
        refused = ask(role, *arguments)
        assert refused.status == 1, arguments
        assert said in refused.errors
        assert "Traceback" not in refused.errors


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("plan", "x"), "--token"),
        (("plan", "x", "--token", "t", "--share", "much"), "--share"),
        (("plan", "x", "--token", "t", "--share", "0,5"), f"--share: '0,5' {why_no_number('0,5')}"),
        (("mean", "x", "--token", "t", "--share", ""), "--share: '' must be a finite decimal number"),
        (("plan", "x", "--token", "t", "--tilt", "some"), "--tilt"),
        (("mean", "x", "--token", "t", "-p", "variance"), "NAME=VALUE"),
        (("plan", "x", "--token", "t", "--statistic", "sum", "-p", "statistic=mean"), "NAME=VALUE"),
        (("difference", "x", "town:a,b", "--token", "t", "-p", "between=town:c,d"), "NAME=VALUE"),
        (("table", "x", "party", "--token", "t"), "give the names of two measures, as NAME NAME or"),
        (("study", "create", "x", "--token", "t", "--lower", "zero", "--upper", "1"), "--lower"),
        (("session", "create", "x", "--token", "t"), "--protocol"),
        (("session", "create", "x", "--token", "t", "--protocol", "mode", "--epsilon", "1"), "--protocol"),
        (
            (
                "session",
                "create",
                "x",
                "--token",
                "t",
                "--protocol",
                "minimum",
                "--epsilon",
                "1",
                "--rounds",
                "x",
            ),
            "--rounds: 'x' must be a whole number, or lower_alpha or unknown_alpha",
        ),
        (("token", "create", "x", "--token", "t", "--role", "king"), "--role"),
        (("token", "recover", "--name", " ", "--data-dir", "d"), "--name must not be empty"),
        (("token", "limit", "x", "--token", "t", "--share", "0.1"), "--period"),
        (("token", "limit", "x", "--token", "t", "--share", "0.1", "--period", "9", "--lift"), "--lift"),
        (("contribute", "x", "-", "--token", "t", "--epsilon", "nan"), "--epsilon"),
        (("contribute", "x", "nowhere.csv", "--token", "t"), "nowhere.csv: No such file or directory"),
        (("contribute", "x", "/", "--token", "t"), "'FILE': /: Is a directory"),
        (
            ("subject", "rekey", "nowhere.txt", "--new-key", "k", "--data-dir", "d"),
            "nowhere.txt: No such file",
        ),
        (("simulate", "devices", "--study", "x", "--values", "nowhere", "--token", "t"), "'nowhere'"),
        (("restore-check", "nowhere.jsonl", "--data-dir", "d"), "'nowhere.jsonl'"),
        (("compare", "--profile", "nowhere.csv"), "'nowhere.csv'"),
        (("serve", "--port", "x"), "'--port': must be a valid integer"),
        (("study", "create", "x", "--token", "t", "--trust", "all"), "'--trust': 'all' is not one of"),
    ],
)
def test_what_cannot_be_meant_exits_with_2_and_names_it(dither, arguments, named):
    done = dither(*arguments)
    assert done.status == 2
    assert named in done.errors
    assert "Value error" not in done.errors
    assert "unable to parse" not in done.errors


def test_bytes_that_are_no_text_are_a_usage_error(dither):
    """As of a terminal that is not UTF-8: Python hands such a byte on as half of a surrogate pair."""
    done = dither("mean", "x", "--where=region:s\udcfcd", "--url", "http://127.0.0.1:9", "--token", "t")
    assert done.status == 2
    assert (
        done.errors == "error: an argument is not text in UTF-8, as this terminal or script should send it\n"
    )


HTTP_COMMANDS = (
    ("plan", "x"),
    ("mean", "x"),
    ("release", "x"),
    ("contribute", "x", "-"),
    ("study", "list"),
    ("session", "list", "x"),
    ("subject", "budget", "x"),
    ("token", "list"),
    ("simulate", "devices", "--study", "x"),
)


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "127.0.0.1:8000", "ftp://host", "http://", "http:///v1", "http://h:0", "http://h:99999"],
)
def test_an_address_that_is_none_is_a_usage_error(dither, url):
    for command in HTTP_COMMANDS:
        done = dither(*command, "--url", url, "--token", "t")
        assert done.status == 2, command
        assert "--url" in done.errors
        assert "must be an address" in done.errors
    if url:
        done = dither("study", "list", DITHER_URL=url, DITHER_TOKEN="t")
        assert (done.status, "DITHER_URL" in done.errors) == (2, True)


@pytest.mark.parametrize("token", ["a hidden", "hidden\n", "hiddén", "hidden\x7f"])
def test_a_token_that_fits_no_header_is_a_usage_error_that_does_not_show_it(dither, token):
    for command in HTTP_COMMANDS:
        for given, variables in (((), {"DITHER_TOKEN": token}), (("--token", token), {})):
            done = dither(*command, *given, **variables)
            assert done.status == 2, command
            assert "must be printable ASCII" in done.errors
            assert "hidd" not in done.errors


def test_a_service_that_is_not_there_is_a_failure_in_one_line_that_names_it(dither):
    for command in (("study", "list"), ("plan", "x")):
        done = dither(*command, "--url", "http://127.0.0.1:9", "--token", "t")
        assert done.status == 1
        assert len(done.errors.strip().splitlines()) == 1
        assert "no answer from http://127.0.0.1:9" in done.errors
        assert "is it running (dither serve)?" in done.errors


def test_a_file_without_the_columns_is_refused_before_anything_is_sent(dither):
    with scratch_directory() as directory:
        file = directory / "people.csv"
        file.write_text("name,age\nada,36\n")
        done = dither(
            "contribute", "x", str(file), "--trust", "central", "--url", "http://127.0.0.1:9", "--token", "t"
        )
        assert done.status == 1
        assert "people.csv has no column subject; the columns are: name, age" in done.errors
        assert "--subject-column" in done.errors
        assert "subject=" not in done.errors, "an argument of the SDK"


def test_a_study_of_another_service_is_refused_with_where_the_device_saw_it(ask: Asker, tmp_path):
    assert ask("admin", "study", "create", "walk", "--lower", "0", "--upper", "9").status == 0
    file, device = tmp_path / "people.csv", tmp_path / "device"
    file.write_text("subject,value\nada,3\n")
    given = ("contribute", "contribute", "walk", str(file), "--trust", "central", "--epsilon", "1")
    assert ask(*given, "--directory", str(device)).status == 0
    with sqlite3.connect(device / "ledger.sqlite3") as ledger:
        ledger.execute("UPDATE study SET terms = replace(terms, '[9, 1]', '[8, 1]')")
    refused = ask(*given, "--directory", str(device), width=1000)
    assert refused.status == 1
    assert f"range differ; what it saw is in {device}; another service takes a --directory" in refused.errors


def commands(group, path=()):
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands") and command.commands:
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_and_every_option_has_help():
    found = list(commands(typer.main.get_command(build())))
    assert len(found) >= 15
    for path, command in found:
        assert command.help, path
        for parameter in command.params:
            if parameter.name != "help":
                assert getattr(parameter, "help", None), f"{' '.join(path)}: {parameter.name}"


def test_vectors_from_a_file_to_their_centres(ask, tmp_path):
    of = ("--lower", "0", "--upper", "100", "--dimension", "2", "--epsilon-max", "9")
    made = ask("admin", "study", "create", "places", *of)
    assert made.status == 0, made.errors
    people = tmp_path / "people.csv"
    rows = [f"p{number},{30 + number % 5}; {70 - number % 7}.5" for number in range(200)]
    people.write_text("subject,value\n" + "\n".join(rows) + "\nflat,5\n")
    load = ("--trust", "central", "--epsilon", "9", "--directory", str(tmp_path / "device"), "--json")
    done = ask("contribute", "contribute", "places", str(people), *load)
    assert json.loads(done.output)["created"] == 200, done.errors
    errors = [{"field": "value", "reason": "must be 2 numbers, in a table with semicolons between them"}]
    assert json.loads(done.output)["refusals"] == [{"row": 201, "code": "invalid_request", "errors": errors}]
    mean = json.loads(ask("analyse", "mean", "places", "--share", "0.1", "--json").output)
    assert [one["estimate"] for one in mean["coordinates"]] == pytest.approx([32, 67.5], abs=15)
    shown = ask("analyse", "mean", "places").output
    assert "all coordinates together" in shown
    assert mean["id"] in shown
    assert ask("analyse", "plan", "places").status == 0
    started = ask(
        *("admin", "session", "create", "places", "--protocol", "kmeans", "--epsilon", "8", "--rounds", "1"),
        *("--centre", "25;75", "--centre", "75; 25", "--json"),
    )
    assert started.status == 0, started.errors
    session = json.loads(started.output)["id"]
    shown = ask("admin", "session", "close-round", session, "--round", "1")
    assert shown.status == 0, shown.errors
    assert "centre 1" in shown.output
    again = json.loads(ask("analyse", "session", "show", session, "--json").output)
    assert again["centres"][0] == pytest.approx([32, 67.5], abs=5)
    assert "kmeans" in ask("analyse", "session", "list", "places").output
    refused = ask("admin", "session", "create", "places", "--protocol", "kmeans", "--epsilon", "8")
    assert refused.status == 1
    assert "rounds" in refused.errors


def test_people_are_invited_by_links(ask: Asker, tmp_path):
    made = ask("admin", "study", "create", "lunch", "--lower", "0", "--upper", "50")
    assert made.status == 0, made.errors
    opened = ask("admin", "invite", "open", "lunch", "--limit", "20", "--name", "poster")
    assert opened.status == 0, opened.errors
    assert opened.output.startswith(f"{ask.service.base_url}/take/")
    (tmp_path / "ids.txt").write_text("ann\n\nbob\n")
    for wish, header in (
        (("--count", "2"), "url"),
        (("--subjects", str(tmp_path / "ids.txt")), "subject,url"),
    ):
        single = ask("admin", "invite", "single", "lunch", *wish)
        assert single.status == 0, single.errors
        lines = single.output.splitlines()
        assert (lines[0], len(lines)) == (header, 3)
        assert "/take/" in lines[2]
        assert "2 links, shown this once." in single.errors
    assert lines[1].startswith("ann,")
    one = ask("admin", "invite", "single", "lunch", "--count", "1")
    assert "1 link, shown this once." in one.errors
    assert ask("admin", "invite", "single", "lunch").status == 2
    listed = json.loads(ask("admin", "invite", "list", "lunch", "--json").output)
    [poster] = [one for one in listed if one["kind"] == "open"]
    assert (poster["limit"], poster["used"], len(listed)) == (20, 0, 4)
    assert "poster" in ask("admin", "invite", "list", "lunch").output
    assert ask("admin", "invite", "revoke", "lunch", poster["id"]).status == 0
    assert "revoked" in ask("admin", "invite", "show", "lunch", poster["id"]).output
    refused = ask("admin", "invite", "open", "lunch", "--limit", "200000")
    assert refused.status == 1
    assert "limit" in refused.errors


def test_an_answer_is_published_and_its_file_is_verified(ask: Asker, tmp_path):
    assert ask("admin", "study", "create", "lunch", "--lower", "0", "--upper", "50").status == 0
    (tmp_path / "people.csv").write_text("subject,value\n" + "".join(f"p{n},{n % 50}\n" for n in range(60)))
    given = ("--trust", "central", "--epsilon", "1", "--directory", str(tmp_path / "device"))
    assert ask("contribute", "contribute", "lunch", str(tmp_path / "people.csv"), *given).status == 0
    release = json.loads(ask("analyse", "release", "lunch", "--allow-worse", "--json").output)["id"]
    wish = ("--release", release, "--title", "Our lunch")
    made = ask("analyse", "publish", "create", "lunch", *wish, "--slug", "our-lunch")
    assert made.status == 0, made.errors
    assert f"{ask.service.base_url}/p/our-lunch" in made.output
    file, keys = tmp_path / "our-lunch.json", tmp_path / "keys.json"
    file.write_bytes(httpx.get(f"{ask.service.base_url}/p/our-lunch.json").content)
    keys.write_bytes(httpx.get(f"{ask.service.base_url}/.well-known/dither-keys.json").content)
    holds = ask("analyse", "verify", str(file), "--keys", str(keys))
    assert (holds.status, "holds" in holds.output) == (0, True)
    assert "witness" in holds.output
    document = json.loads(file.read_text())
    document["answers"][0]["answer"]["estimate"] += 1
    file.write_text(json.dumps(document))
    changed = ask("analyse", "verify", str(file), "--keys", str(keys), "--json")
    assert (changed.status, json.loads(changed.output)["fault"]) == (1, "changed")
    sheet = tmp_path / "people.csv"
    for given, other, at_fault in ((keys, keys, keys), (file, sheet, sheet), (sheet, keys, sheet)):
        refused = ask("analyse", "verify", str(given), "--keys", str(other))
        assert (refused.status, refused.errors.startswith(f"{at_fault}: ")) == (2, True)
    again = ask(
        "analyse", "publish", "change", "lunch", "our-lunch", "--release", release, "--title", "Lunch"
    )
    assert again.status == 0, again.errors
    assert "Lunch" in ask("analyse", "publish", "list", "lunch").output
    assert ask("analyse", "publish", "withdraw", "lunch", "our-lunch").status == 0
    assert httpx.get(f"{ask.service.base_url}/p/our-lunch").status_code == 410
    refused = ask("analyse", "publish", "create", "lunch", *wish, "--slug", "our-lunch")
    assert (refused.status, "address is taken" in refused.errors) == (1, True)


RANGE = {"lower": 0, "upper": 120}
REGIONS = {"attributes": {"region": ["north", "south"]}}
OF_EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "commute": ({**RANGE, **REGIONS}, {"value": 40}),
    "income": ({**RANGE, **REGIONS}, {"value": 40}),
    "party": ({"choices": ["red", "green"]}, {"value": "red"}),
    **{f"mood-{week}": ({**RANGE, "series": "mood"}, {"value": 40}) for week in (1, 2)},
    "household": (
        {
            "measures": {
                "income": RANGE,
                "age": RANGE,
                "party": {"choices": ["red", "green"]},
                "sex": {"choices": ["f", "m"]},
            },
            "default_share": 0.3,
        },
        # With less of their epsilons noise would hide how far numbers are spread.
        {"epsilon": 4, "values": {"income": 40, "age": 30, "party": "red", "sex": "f"}},
    ),
}
"""Studies that examples ask, and what each person says there."""

NOT_OF_THIS_SERVICE = ("--data-dir", "6f1c2a8e", "people.xlsx", "study create", "study archive", "--keys")
"""In examples that need a database, a token, a session or a file of their own, or another study."""


ROLES = {
    "admin": ("study", "session", "token", "subject", "invite", "webhook", "schedule", "budget raise"),
    "contribute": ("budget show", "withdraw"),
}
"""Who types commands that begin so; analysts type the others."""


def test_the_examples_of_the_help_are_answered(ask: Asker) -> None:
    for slug, (definition, said) in OF_EXAMPLES.items():
        with ask.service.client(ask.service.admin_token) as admin:
            made = admin.post("/v1/studies", json={"slug": slug, "trust": ["central", "local"], **definition})
        assert made.status_code == 201, made.text
        # Nobody can offer as much to all of them.
        prefix, first = (slug, 1) if "series" in definition else ("p", 0)
        people = [
            {"subject": f"{prefix}{place}" if place else "ada", "epsilon": 2, "trust": "central", **said}
            for place in range(first, 1000)
        ]
        for place, person in enumerate(people):
            if "attributes" in definition:
                person["attributes"] = {"region": ("north", "south")[place % 2]}
        with ask.service.client(ask.secret("contribute")) as app:
            sent = app.post(f"/v1/studies/{slug}/contributions/batch", json=people)
        assert {one["status"] for one in sent.json()["results"]} == {"created"}
    lines = [line for line in EXAMPLES.values() if not any(word in line for word in NOT_OF_THIS_SERVICE)]
    assert len(lines) > 25
    for slug in ("mood-1", "mood-2"):
        assert ask("analyse", "mean", slug).status == 0
    for statistic in ("change", "trend"):
        assert "(80% interval)" in ask("analyse", statistic, "mood-2", "--level", "0.8").output
    # A study takes and says nothing more behind these.
    ends = ("study close", "study retire")
    for line in sorted(lines, key=lambda line: line.startswith(ends)):
        role = next((role for role, starts in ROLES.items() if line.startswith(starts)), "analyse")
        answered = ask(role, *shlex.split(line))
        assert answered.status == 0, (line, answered.errors)
