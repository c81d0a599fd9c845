"""What the demo asks, and how it shows the answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import httpx
from dither import Client, Newcomers, PlannedEstimator, Release
from rich.table import Table

from app.cli.common import CommandFailed, console, new_table, show
from dither_research.demo.filling import by_device
from dither_research.demo.survey import Survey

MAX_RELEASES = 25
"""Releases after which an answer that is not refused would be a fault."""

SHARPENED = 6
"""Tenths of each epsilon that the sharpened answer uses in the end."""

SHARPENED_QUESTION: Mapping[str, Any] = {"estimator": "adpm", "tilt": 0}
"""No tilt: what the women of the demo offer was drawn, and has nothing to do with what they answer."""


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


def show_sharpening(analyst: Client, contributor: httpx.Client, study: Survey) -> None:
    """Ask for more and more of each epsilon: the answer sharpens, and each step costs the difference."""
    slug, subject = study.slug, study.records[0].subject
    before = _spent(contributor, subject)
    afresh = Decimal()
    console.print(f'POST /v1/studies/{slug}/releases {{"estimator": "adpm", "tilt": 0, "share": .1 to .6}}:')
    table = _steps_table()
    for tenths in range(1, SHARPENED + 1):
        share = Decimal(tenths) / 10
        planned = analyst.plan(slug, share=share, **SHARPENED_QUESTION).estimators[0]
        afresh += _fresh(analyst, slug, share).epsilon_max or 0
        release = analyst.release(slug, share=share, **SHARPENED_QUESTION)
        _hold(planned, release)
        table.add_row(*_step(release))
    if analyst.release(slug, share=share, **SHARPENED_QUESTION).id != release.id:
        raise CommandFailed("a share that all have given was answered anew")
    console.print(table, soft_wrap=False)
    tenth = _fresh(analyst, slug, Decimal("0.1"))
    console.print(
        f"{subject} has spent epsilon {show(_spent(contributor, subject) - before)} on all of them; the last "
        "share again is the same answer, for nothing. Noise of its own for each of these answers would have "
        f"charged a woman up to {show(afresh)}. {SHARPENED} such answers at a tenth each would have charged "
        f"up to {show(SHARPENED * (tenth.epsilon_max or 0))}, and none of them would know more than "
        f"± {tenth.half_width:.3f}.\n"
    )


def show_newcomers(
    analyst: Client, contributor: httpx.Client, device: Client, study: Survey, late: Survey
) -> None:
    """Let more people come, and renew the answer at the share that it has: they pay, the others do not."""
    slug, subject = study.slug, study.records[0].subject
    by_device(device, late)
    before = _spent(contributor, subject)
    plan = analyst.plan(slug, **SHARPENED_QUESTION)
    truth = replace(study, records=study.records + late.records).true_mean
    console.print(
        f"{len(late.records):,} more women answer, {late.tags['central']:,} of them centrally; the true mean "
        f"is {truth:.3f} now. GET /v1/studies/{slug}/plan says: {plan}."
    )
    if plan.newcomers is None or plan.share_before is None:
        raise CommandFailed(f"no newcomers are in the plan: {plan}")
    release = analyst.release(slug, share=plan.share_before, **SHARPENED_QUESTION)
    _hold(plan.newcomers, release)
    if _spent(contributor, subject) != before:
        raise CommandFailed(f"{subject} paid for those who came later")
    table = _steps_table()
    table.add_row(*_step(release))
    console.print(table, soft_wrap=False)
    fresh = _fresh(analyst, slug, Decimal("0.4"))
    console.print(
        f"The {plan.newcomers.people:,} new women paid for themselves, and {subject} paid nothing. Noise of "
        f"its own would have charged each woman again: at share 0.4, all that some of them have left, up to "
        f"{show(fresh.epsilon_max)} for ± {fresh.half_width:.3f}.\n"
    )


def _fresh(analyst: Client, slug: str, share: Decimal) -> PlannedEstimator:
    """What an answer with noise of its own would cost."""
    return analyst.plan(slug, share=share, fresh=True, **SHARPENED_QUESTION).estimators[0]


def _steps_table() -> Table:
    return _table(
        right=("share\nin all", "noisy\nanswer", "95 %\ninterval", "charge of\nthis step", "in all")
    )


def _hold(planned: PlannedEstimator | Newcomers, release: Release) -> None:
    """Hold a release to the plan that was made for it.

    Raises:
        CommandFailed: it charges something else, or has another interval.
    """
    half = _half(release)
    near = planned.half_width is not None and abs(half - planned.half_width) < 1e-6 * half
    if planned.epsilon_max != release.epsilon_max or not near:
        raise CommandFailed(f"the plan was {planned}, the release is {release}")


def _half(release: Release) -> float:
    return 0 if release.interval is None else (release.interval.upper - release.interval.lower) / 2


def _step(release: Release) -> tuple[str, ...]:
    return (
        f"{release.share:g}",
        f"{release.estimate:.3f}",
        f"± {_half(release):.3f}",
        show(release.epsilon_max),
        show(release.epsilon_max_total),
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
    worse = question | {"estimator": "uniform", "allow_worse": True}
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
