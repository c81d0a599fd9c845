"""Commands of an admin over HTTP: questions that are asked every day, week or month."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer
from dither import Client, Schedule

from app.cli.ask import OPTIONS, asks
from app.cli.common import MOMENT, moment, notes, print_details, print_table
from app.cli.http import StudyName, number
from app.cli.service_commands import asks_service
from app.core.schedule import Every

schedules = typer.Typer(no_args_is_help=True, help="Have questions asked every day, week or month.")

ScheduleId = Annotated[str, typer.Argument(metavar="ID", help="Of a schedule, from `dither schedule list`.")]


def _times(one: Schedule) -> dict[str, Any]:
    return {
        "id": one.id,
        "every": one.every,
        "question": _question(one),
        "asks": "newcomers only" if one.newcomers else f"{one.share} each time, until {one.until}",
        "quota": one.quota,
        "answered": one.answered,
        "next": moment(one.due_at) or "ended",
        "last": one.refusal or one.release,
    }


def _question(one: Schedule) -> str:
    """What is asked, and with which parameters."""
    parameters = dict(one.question)
    statistic = str(parameters.pop("statistic", "mean"))
    return ", ".join([statistic, *(f"{name}={value}" for name, value in parameters.items())])


def _show_one(one: Schedule) -> None:
    print_details(_times(one))


def _show_all(found: Sequence[Schedule]) -> None:
    names = ("id", "every", "question", "asks", "quota", "answered")
    columns = {name: name for name in names} | {"next": "next (UTC)", "last": "last answer"}
    print_table([_times(one) for one in found], columns)


@schedules.command("create")
@asks([name for name in OPTIONS if name != "until"])
@asks_service(_show_one)
def create_schedule(
    client: Client,
    study: StudyName,
    question: dict[str, Any],
    every: Annotated[Every, typer.Option(help="How often; missed times are not made up for.")],
    quota: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="The most that its answers may take of any person's epsilon, together."
        ),
    ],
    newcomers: Annotated[
        bool, typer.Option("--newcomers", help="Ask those alone who came since the last time.")
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE", help="Or ask for the share again each time, until this has been taken in all."
        ),
    ] = None,
    starts_at: Annotated[
        datetime | None,
        typer.Option(help="The first time, UTC; now if not given.", **MOMENT),
    ] = None,
) -> Schedule:
    """Have a question asked by itself, within a quota of its own. A refused one charges no one."""
    return client.create_schedule(
        study,
        question,
        every=every.value,
        quota=number(quota, "--quota"),
        newcomers=newcomers,
        until=None if until is None else number(until, "--until"),
        starts_at=starts_at,
    )


@schedules.command("list")
@asks_service(_show_all)
def list_schedules(client: Client, study: StudyName) -> list[Schedule]:
    """List the schedules of a study: when each is asked next, and what came of its last time."""
    return list(client.schedules(study))


@schedules.command("delete")
@asks_service()
def delete_schedule(client: Client, study: StudyName, schedule_id: ScheduleId) -> None:
    """Ask no more by a schedule. Its answers stay."""
    client.delete_schedule(study, schedule_id)
    notes.print(f"Schedule {schedule_id} is deleted.", markup=False)
