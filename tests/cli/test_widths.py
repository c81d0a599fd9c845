"""What people read at a terminal of 80 columns, and that every question is asked by one set of names."""

import json
import re

import pytest

from app.cli.common import console, notes
from tests.cli.test_commands import Asker, ask

__all__ = ["ask"]

pytestmark = pytest.mark.system

WIDTH = 80

STUDY = {
    "slug": "household-survey-of-this-year",
    "title": "How much do people of a household earn, and how long is their way to work in the morning?",
    "measures": {
        "income": {"lower": 0, "upper": 9000},
        "minutes": {"lower": 0, "upper": 120},
        "party": {"choices": ["red", "green"]},
        "pet": {"choices": ["cat", "dog", "none"]},
    },
    "attributes": {"region": ["north", "south"]},
    "epsilon": {"max": 10},
}

INCOME = ("--measure", "income", "--share", "0.2")


@pytest.fixture
def study(ask: Asker) -> str:
    with ask.service.client() as admin:
        assert admin.post("/v1/studies", json=STUDY).status_code == 201
    records = [
        {
            "subject": f"p{number}",
            "values": {
                "income": 1000 + 20 * number,
                "minutes": number % 100,
                "party": "red" if number % 3 else "green",
                "pet": ("cat", "dog", "none")[number % 3],
            },
            "attributes": {"region": "north" if number % 2 else "south"},
            "epsilon": 10,
            "trust": "central",
        }
        for number in range(300)
    ]
    with ask.service.client(ask.secret("contribute")) as app:
        sent = app.post(f"/v1/studies/{STUDY['slug']}/contributions/batch", json=records)
    assert sent.json()["created"] == 300, sent.text
    return str(STUDY["slug"])


def at_terminal(ask: Asker, monkeypatch: pytest.MonkeyPatch, role: str, *arguments: str) -> str:
    """What a command shows at a terminal of 80 columns."""
    with monkeypatch.context() as patch:
        for one in (console, notes):
            patch.setattr(one, "_force_terminal", True)
            patch.setattr(one, "_color_system", None)
            patch.setattr(one, "soft_wrap", False)
            patch.setattr(one, "width", WIDTH)
        done = ask(role, *arguments, width=WIDTH)
    assert done.status == 0, done.errors
    return done.output + done.errors


def numbers(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w.-])\d[\d,.]*\d(?![\w.-])", text))


@pytest.mark.long
def test_nothing_is_wider_than_a_terminal_and_no_number_is_broken(
    ask: Asker, study: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[tuple[str, ...]] = [
        ("analyse", "mean", study, *INCOME, "--by", "region", "--simultaneous"),
        ("analyse", "histogram", study, *INCOME, "--bins", "4", "--by", "region"),
        ("analyse", "describe", study, *INCOME),
        ("analyse", "table", study, "party", "pet", "--share", "0.2"),
        ("analyse", "plan", study, *INCOME, "--all"),
        ("analyse", "plan", study, *INCOME, "--also", "statistic=median&measure=minutes"),
        ("analyse", "releases", study),
        ("admin", "study", "list"),
        ("admin", "study", "show", study),
        ("admin", "token", "list"),
        ("admin", "budget", "show", "p1"),
    ]
    for role, *command in commands:
        piped = ask(role, *command)
        shown = at_terminal(ask, monkeypatch, role, *command)
        wide = [line for line in shown.splitlines() if len(line) > WIDTH]
        assert wide == [], command
        assert numbers(piped.output) <= numbers(shown), command


@pytest.mark.long
def test_every_question_is_asked_by_the_same_names_in_all_commands(ask: Asker, study: str) -> None:
    same = {
        "quantile": (("0.25",), ("--q", "0.25")),
        "difference": (("region:north,south",), ("--between", "region:north,south")),
        "correlation": (("income", "minutes"), ("--measures", "income,minutes")),
        "covariance": (("income", "minutes"), ("--measures", "income,minutes")),
        "regression": (("income", "minutes"), ("--of", "income", "--on", "minutes")),
        "table": (("party", "pet"), ("--measures", "party,pet")),
    }
    for statistic, (words, options) in same.items():
        about = () if statistic not in ("quantile", "difference") else ("--measure", "income")
        # With less of these people's epsilons noise hides how far numbers are spread.
        share = "0.5" if statistic in ("correlation", "regression") else "0.05"
        planned = ask("analyse", "plan", study, "--statistic", statistic, *options, *about, "--json")
        assert planned.status == 0, planned.errors
        if statistic == "correlation":
            # What is predicted of it hangs on how far noisy answers said that numbers are spread. A
            # regression is read off the same sums.
            about_all = (*options, "--share", share, "--allow-worse")
            released = ask("analyse", "release", study, "--statistic", statistic, *about_all)
            assert released.status == 0, released.errors
        both = [
            ask("analyse", statistic, study, *said, *about, "--share", share, "--json")
            for said in (words, options)
        ]
        assert [one.status for one in both] == [0, 0], both[0].errors + both[1].errors
        first, second = (json.loads(one.output) for one in both)
        assert first["id"] == second["id"], statistic
        for wrong in ((), (*words, *options), (*words, "more"), (*options, "-p", "=1")):
            assert ask("analyse", statistic, study, *wrong, *about).status == 2, (statistic, wrong)
