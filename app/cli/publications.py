"""Commands of an admin or an analyst over HTTP: let everyone read answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from dither import Client, Publication

from app.cli.common import MOMENT, moment, notes, print_details, print_table
from app.cli.http import StudyName
from app.cli.service_commands import asks_service

publications = typer.Typer(no_args_is_help=True, help="Let everyone read answers, in a file that is signed.")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="Of the publication, from `dither publish list`.")]

Releases = Annotated[
    list[str], typer.Option("--release", help="Id of an answer; again for more of them, in this order.")
]

Title = Annotated[str, typer.Option(help="What people read above the answers.")]

ExpiresAt = Annotated[
    datetime | None,
    typer.Option(help="From then on no one can read it; UTC.", **MOMENT),
]

Frames = Annotated[
    list[str] | None,
    typer.Option("--frame", help="Origin whose pages may show it, such as https://example.org."),
]


def _show_one(one: Publication) -> None:
    print_details(
        {
            "address": one.url or f"/p/{one.slug}",
            "title": one.title,
            "study": one.study,
            "answers": ", ".join(one.releases),
            "frames": ", ".join(one.frames) or None,
            "state": one.state,
            "changed (UTC)": moment(one.changed_at),
            "expires (UTC)": moment(one.expires_at),
        }
    )


def _show_all(found: Sequence[Publication]) -> None:
    rows = [{**one.raw, "expires": moment(one.expires_at)} for one in found]
    columns = {"slug": "slug", "title": "title", "expires": "expires (UTC)", "state": "state"}
    print_table(rows, columns)


@publications.command("create")
@asks_service(_show_one)
def publish(
    client: Client,
    study: StudyName,
    releases: Releases,
    title: Title,
    slug: Annotated[str | None, typer.Option(help="Its address, behind /p/; a new one if not given.")] = None,
    expires_at: ExpiresAt = None,
    frames: Frames = None,
) -> Publication:
    """Publish answers at an address that everyone can read. It charges no one.

    The page needs no login and no script, and has the same as CSV and as JSON, which `dither verify` checks.
    """
    return client.publish(study, releases, title=title, slug=slug, expires_at=expires_at, frames=frames)


@publications.command("list")
@asks_service(_show_all)
def list_publications(client: Client, study: StudyName) -> list[Publication]:
    """List what of a study was published, expired and withdrawn too."""
    return list(client.publications(study))


@publications.command("change")
@asks_service(_show_one)
def change_publication(
    client: Client,
    study: StudyName,
    slug: Slug,
    releases: Releases,
    title: Title,
    expires_at: ExpiresAt = None,
    frames: Frames = None,
) -> Publication:
    """Put something else at the address of a publication. What is not given is no more."""
    return client.publish(
        study, releases, title=title, slug=slug, replace=True, expires_at=expires_at, frames=frames
    )


@publications.command("withdraw")
@asks_service()
def withdraw_publication(client: Client, study: StudyName, slug: Slug) -> None:
    """Take a publication back, for good. Copies stay with those who made them."""
    client.withdraw_publication(study, slug)
    notes.print(f"Publication {slug} is withdrawn.", markup=False)
