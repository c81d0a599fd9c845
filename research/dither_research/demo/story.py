"""What the demo asks, and how it shows the answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from rich.table import Table

from app.cli.common import CommandFailed, console, new_table, show
from dither_research.demo.survey import Survey

MAX_RELEASES = 25
"""Releases after which an answer that is not refused would be a fault."""

SHARPENED = 6
"""Tenths of each epsilon that the sharpened answer uses in the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One row of the table.

    Attributes:
        study: What is asked about.
        parameters: The question's parameters.
    """

    study: Survey
    parameters: Mapping[str, str]

    @property
    def path(self) -> str:
        """Path and query of the question."""
        query = str(httpx.QueryParams(dict(self.parameters)))
        return f"/v1/studies/{self.study.slug}/statistics/mean" + (f"?{query}" if query else "")


def questions(studies: tuple[Survey, Survey, Survey]) -> list[Asked]:
    """The questions of the table."""
    married, age, affair = studies
    return [
        Asked(study=married, parameters={}),
        Asked(study=married, parameters={"estimator": "uniform"}),
        Asked(study=age, parameters={"estimator": "kvh"}),
        Asked(study=affair, parameters={"epsilon": "0.05"}),
    ]


def show_studies(studies: tuple[Survey, ...]) -> None:
    """Who is in which study, and what they offer."""
    table = _table("question", right=("range", "epsilons", "central", "local", "public"))
    for study in studies:
        table.add_row(
            f"{study.title}\n[dim]{study.slug}, {study.relation}[/]",
            f"{study.lower} to {study.upper}",
            f"{study.epsilon[0]} to {study.epsilon[1]}",
            *(f"{study.tags.get(tag, 0):,}" for tag in ("central", "local", "public")),
        )
    console.print(table, soft_wrap=False)


def show_answers(analyst: httpx.Client, asked: list[Asked]) -> None:
    """Ask every question for the first time, and print the answers beside the truth."""
    table = _table("question", right=("true\nmean", "noisy\nanswer", "95 % interval", "largest\ncharge"))
    for one in asked:
        release = _read(analyst.get(one.path))
        given = [f"{name} {value}" for name, value in one.parameters.items() if name != "estimator"]
        how = ", ".join([release["estimator"], *given])
        table.add_row(
            f"{one.study.title}\n[dim]{how}[/]",
            f"{one.study.true_mean:.3f}",
            f"{release['estimate']:.3f}",
            _interval(release),
            show(release["epsilon_max"]),
        )
    console.print(table, soft_wrap=False)
    console.print(
        "Each uses a tenth of what people offered, the studies' default. The true means are computed from "
        "the file; the service never says them. Of intervals like these one in twenty may miss."
    )


def show_replay(analyst: httpx.Client, contributor: httpx.Client, asked: Asked) -> None:
    """Ask the same again, and show that it is the same answer and costs nothing."""
    subject = next(record.subject for record in asked.study.records if record.trust == "central")
    before = _spent(contributor, subject)
    first, second = analyst.get(asked.path), analyst.get(asked.path)
    release = _read(second)
    if first.content != second.content or _spent(contributor, subject) != before:
        raise CommandFailed("asking again gave another answer, or cost something")
    console.print(
        f"GET {asked.path}, twice more: release {release['id']} both times, the same {len(second.content)} "
        f"bytes. {subject} had spent epsilon {show(before)} before, and has spent {show(before)} now."
    )


def show_sharpening(analyst: httpx.Client, contributor: httpx.Client, study: Survey) -> None:
    """Ask for more and more of each epsilon: the answer sharpens, and each step costs the difference."""
    path = f"/v1/studies/{study.slug}/releases"
    subject = study.records[0].subject
    console.print(f'POST {path} {{"estimator": "adpm", "share": .1 to .6}}:')
    table = _table(
        right=("share\nin all", "noisy\nanswer", "95 % interval", "charge of\nthis step", "in all")
    )
    before = _spent(contributor, subject)
    for tenths in range(1, SHARPENED + 1):
        question = {"statistic": "mean", "estimator": "adpm", "share": tenths / 10}
        release = _read(analyst.post(path, json=question))
        table.add_row(
            f"{release['share']:g}",
            f"{release['estimate']:.3f}",
            _interval(release),
            show(release["epsilon_max"]),
            show(release["epsilon_max_total"]),
        )
    again = analyst.post(path, json=question)
    if again.status_code != 200 or again.json()["id"] != release["id"]:
        raise CommandFailed(f"a share that all have given was answered anew: {again.text}")
    console.print(table, soft_wrap=False)
    console.print(
        f"{subject} has spent epsilon {show(_spent(contributor, subject) - before)} on all of them, as one "
        "answer at the last share would have cost; that share again is the same answer, for nothing.\n"
    )


def show_exhaustion(analyst: httpx.Client, contributor: httpx.Client, study: Survey) -> None:
    """Make answers with noise of their own until one would be no gain; then worse ones until none can pay."""
    question = {"statistic": "mean", "estimator": "adpm", "share": 0.25, "fresh": True}
    subject = study.records[0].subject
    made = _ask_until(analyst, contributor, study, question, refusal="no_gain")
    console.print(
        f"{subject} spent nothing on that refusal: no answer gets worse by accident. "
        "Who wants it worse has to say so.\n"
    )
    worse = question | {"allow_worse": True}
    _ask_until(analyst, contributor, study, worse, refusal="budget_exhausted", made=made)


def _ask_until(
    analyst: httpx.Client,
    contributor: httpx.Client,
    study: Survey,
    question: Mapping[str, object],
    *,
    refusal: str,
    made: int = 0,
) -> int:
    """Make and print releases until this refusal, which must cost nothing; returns how many there are."""
    path = f"/v1/studies/{study.slug}/releases"
    subject = study.records[0].subject
    console.print(f"POST {path} {json.dumps(question)}, again and again:")
    table = _table(
        right=("release", "noisy\nanswer", "95 % interval", "largest\ncharge", "cannot pay\nany more")
    )
    for number in range(made + 1, MAX_RELEASES + 1):
        before = _spent(contributor, subject)
        response = analyst.post(path, json=question)
        if response.status_code == 409:
            break
        release = _read(response)
        table.add_row(
            str(number),
            f"{release['estimate']:.3f}",
            _interval(release),
            show(release["epsilon_max"]),
            f"{release['people_left_out']:,} of {release['people']:,}",
        )
    else:
        raise CommandFailed(f"no answer about {study.slug} was refused")
    problem = response.json()
    if problem["code"] != refusal or _spent(contributor, subject) != before:
        raise CommandFailed(f"the refusal was another than {refusal}, or cost something: {response.text}")
    console.print(table, soft_wrap=False)
    console.print(
        f"Then: {problem['status']} [bold]{problem['code']}[/]: {problem['title']}: {problem['detail']}."
    )
    return number - 1


def show_statement(contributor: httpx.Client, subject: str) -> None:
    """One woman's account."""
    budget = _read(contributor.get(f"/v1/subjects/{subject}/budget"))
    total = budget["epsilon"]
    table = _table("study", "trust", right=("epsilon offered", "spent"))
    for line in budget["studies"]:
        table.add_row(line["study"], line["trust"], show(line["epsilon"]), show(line["spent"]))
    console.print(table, soft_wrap=False)
    console.print(
        f"Lifetime budget of {subject}: epsilon {show(total['total'])}, of which "
        f"{show(total['reserved'])} is reserved and {show(total['spent'])} spent; "
        f"{show(total['remaining'])} is free for other studies."
    )


def _table(*left: str, right: tuple[str, ...] = ()) -> Table:
    table = new_table()
    for heading in left:
        table.add_column(heading)
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def _interval(release: Mapping[str, Any]) -> str:
    interval = release["interval"]
    return f"{interval['lower']:.3f} to {interval['upper']:.3f}"


def _spent(contributor: httpx.Client, subject: str) -> float:
    return float(_read(contributor.get(f"/v1/subjects/{subject}/budget"))["epsilon"]["spent"])


def _read(response: httpx.Response) -> dict[str, Any]:
    """The document of an answer.

    Raises:
        CommandFailed: the service refused.
    """
    if response.is_error:
        raise CommandFailed(f"{response.request.url} answered {response.status_code}: {response.text}")
    document: dict[str, Any] = response.json()
    return document
