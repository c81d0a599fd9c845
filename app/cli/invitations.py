"""Commands of an admin over HTTP: links by which people answer a study."""

import csv
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from dither import Client, Invitation, NewInvitation

from app.cli.common import MOMENT, moment, notes, print_details, print_table, usage_error
from app.cli.http import StudyName
from app.cli.service_commands import asks_service
from app.core.numbers import counted

invitations = typer.Typer(no_args_is_help=True, help="Let people answer a study by a link, without an app.")

InvitationId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the links, from `dither invite list`.")
]

Name = Annotated[str | None, typer.Option(help="What to call it, for admins.")]

ExpiresAt = Annotated[
    datetime | None,
    typer.Option(help="From then on it takes no answer; UTC.", **MOMENT),
]


def _show_link(made: NewInvitation) -> None:
    notes.print(f"Invitation {made.id}: one link for all, who may each answer more than once.", markup=False)
    for url in made.urls:
        typer.echo(url)


def _show_one(one: Invitation) -> None:
    print_details(
        {
            "invitation": one.id,
            "study": one.study,
            "name": one.name,
            "kind": one.kind,
            "limit": one.limit,
            "answers": one.used,
            "state": one.state,
            "expires (UTC)": moment(one.expires_at),
        }
    )


def _show_all(found: Sequence[Invitation]) -> None:
    rows = [{**one.raw, "expires": moment(one.expires_at)} for one in found]
    columns = {"id": "id", "name": "name", "kind": "kind", "used": "answers", "limit": "limit"}
    print_table(rows, columns | {"expires": "expires (UTC)", "state": "state"})


@invitations.command("open")
@asks_service(_show_link)
def invite_all(
    client: Client,
    study: StudyName,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Answers that it takes; 1,000 if not given.")
    ] = None,
    name: Name = None,
    expires_at: ExpiresAt = None,
) -> NewInvitation:
    """Make one link for all and print it: for a poster or a mailing list.

    What is promised then holds for each answer: one who opens the link twice can answer twice. A study whose
    number of people is secret has no such link.
    """
    return client.invite(study, kind="open", limit=limit, name=name, expires_at=expires_at)


@invitations.command("single")
@asks_service()
def invite_each(
    client: Client,
    study: StudyName,
    count: Annotated[int | None, typer.Option(min=1, help="How many, each for a person of its own.")] = None,
    subjects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="External ids of the people, one a line, in place of --count.",
        ),
    ] = None,
    name: Name = None,
    expires_at: ExpiresAt = None,
) -> None:
    """Make a link for each person and print them as CSV, this once: the service keeps digests of them only.

    Each takes one answer. With --subjects each person has one lifetime budget over all studies.
    """
    if (count is None) == (subjects is None):
        raise usage_error("give --count or --subjects")
    ids = None if subjects is None else _ids(subjects)
    made = client.invite(study, kind="single", count=count, subjects=ids, name=name, expires_at=expires_at)
    columns = {"url": made.urls} if ids is None else {"subject": ids, "url": made.urls}
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(columns)
    table.writerows(zip(*columns.values(), strict=True))
    links = counted(len(made.urls), "link")
    notes.print(f"Invitation {made.id}: {links}, shown this once.", markup=False)


def _ids(path: Path) -> list[str]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise usage_error("--subjects: must be a file in UTF-8") from None
    return [line.strip() for line in lines if line.strip()]


@invitations.command("list")
@asks_service(_show_all)
def list_invitations(client: Client, study: StudyName) -> list[Invitation]:
    """List the links of a study, without their addresses."""
    return list(client.invitations(study))


@invitations.command("show")
@asks_service(_show_one)
def show_invitation(client: Client, study: StudyName, invitation_id: InvitationId) -> Invitation:
    """Show how many answers came by links; not where the number of people is secret."""
    return client.invitation(study, invitation_id)


@invitations.command("revoke")
@asks_service()
def revoke_invitation(client: Client, study: StudyName, invitation_id: InvitationId) -> None:
    """Take no more answers by links. What came by them stays, and so do receipts."""
    client.revoke_invitation(study, invitation_id)
    notes.print(f"Invitation {invitation_id} is revoked.", markup=False)
