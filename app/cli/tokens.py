"""Commands of an admin: bearer tokens, over HTTP; and a way back in, straight in the database."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import typer
from dither import Client, ProblemError

from app.cli.common import (
    AsJson,
    DataDir,
    load_settings,
    moment,
    notes,
    open_database,
    print_json,
    print_table,
    usage_error,
)
from app.cli.http import DEFAULT_URL, Token, Url, number, service
from app.core.principal import Role

tokens = typer.Typer(no_args_is_help=True, help="Create, list, limit, rotate and revoke bearer tokens.")

TokenId = Annotated[str, typer.Argument(metavar="ID", help="Id of the token, from `dither token list`.")]


@tokens.command("create")
def create_token(
    name: Annotated[str, typer.Argument(help="What to call it, for people.")],
    role: Annotated[Role, typer.Option(help="What it may do.")],
    study: Annotated[
        list[str] | None, typer.Option("--study", help="Limit it to this study; may be repeated.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="Limit it to this person; role contribute only.")
    ] = None,
    expires_at: Annotated[
        datetime | None,
        typer.Option(help="From then on it is refused; UTC.", formats=["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it: TOKEN=$(dither token create app --role analyse).

    It is shown this once; the service keeps a hash of it.
    """
    with service(url, token) as client:
        made = client.create_token(
            name,
            role=role.value,
            studies=study or None,
            subject=subject,
            expires_at=None if expires_at is None else expires_at.replace(tzinfo=UTC),
        )
        missing = [slug for slug in study or () if not _is_there(client, slug)]
    for slug in missing:
        notes.print(f"There is no study {slug} yet.", markup=False)
    if as_json:
        print_json(made.raw)
        return
    notes.print(f"Token {made.id} of role {role.value}; it is shown this once:", markup=False)
    typer.echo(made.token)


def _is_there(client: Client, study: str) -> bool:
    """Whether there is a study; where the service does not say, it may be there."""
    try:
        client.study(study)
    except ProblemError as error:
        return error.status != 404
    return True


@tokens.command("list")
def list_tokens(url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False) -> None:
    """List all tokens, without their secrets."""
    with service(url, token) as client:
        found = list(client.tokens())
    if as_json:
        print_json([item.raw for item in found])
        return
    rows = [
        {
            **one.raw,
            "expires": "revoked" if one.revoked_at else moment(one.expires_at),
            "studies": "all" if one.studies is None else one.studies,
        }
        for one in found
    ]
    columns = {"id": "id", "name": "name", "role": "role", "studies": "studies"}
    print_table(rows, columns | {"expires": "expires (UTC)", "last_used_on": "last used"})


@tokens.command("revoke")
def revoke_token(
    token_id: TokenId,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Refuse a token from now on, at every process of the service."""
    with service(url, token) as client:
        client.revoke_token(token_id)
    notes.print(f"Token {token_id} is revoked.", markup=False)


@tokens.command("limit")
def limit_token(
    token_id: TokenId,
    share: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="The most that it may take of any person's epsilon in a study."),
    ] = None,
    period: Annotated[
        int | None, typer.Option(metavar="SECONDS", min=1, help="Length of the period.")
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift the quota instead.")] = False,
    url: Url = DEFAULT_URL,
    token: Token = None,
) -> None:
    """Limit what an analyst's token may use of each study: --share 0.2 --period 86400.

    It is refused with 429 beyond that, whatever people's own budgets would still allow.
    """
    given = share is not None and period is not None
    if given == lift or (lift and (share is not None or period is not None)):
        raise usage_error("give --share and --period, or --lift")
    with service(url, token) as client:
        if share is None or period is None:
            client.lift_quota(token_id)
        else:
            client.set_quota(token_id, share=number(share, "--share"), period_seconds=period)
    notes.print(f"Token {token_id} has {'no' if lift else 'a'} quota.", markup=False)


@tokens.command("usage")
def show_usage(
    token_id: TokenId, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Show what a token used of each study, in its quota's period or, without a quota, ever."""
    with service(url, token) as client:
        found = list(client.token_usage(token_id))
    if as_json:
        print_json([item.raw for item in found])
        return
    print_table(
        [item.raw for item in found], {"study": "study", "releases": "releases", "used": "share used"}
    )


@tokens.command("rotate")
def rotate_token(
    token_id: TokenId,
    grace: Annotated[
        int, typer.Option(metavar="SECONDS", min=0, help="How long the old secret stays valid.")
    ] = 0,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Give a token another secret and print it. Its id, limits and quota stay."""
    with service(url, token) as client:
        made = client.rotate_token(token_id, grace_seconds=grace)
    if as_json:
        print_json(made.raw)
        return
    notes.print(f"New secret of token {token_id}; it is shown this once:", markup=False)
    typer.echo(made.token)


@tokens.command()
def recover(
    data_dir: DataDir = None,
    name: Annotated[str, typer.Option(help="What to call it.")] = "recovered",
) -> None:
    """Make a new admin token straight in the database, and print it.

    For an operator who has the database but lost every admin token. It shows in the audit trail.
    """
    settings = load_settings(data_dir)
    with open_database(settings) as (url, _):
        typer.echo(asyncio.run(_make_token(url, name)))


async def _make_token(url: str, name: str) -> str:
    from app.core.clock import SystemClock  # with the store, longer to load than most commands run
    from app.services.admin.tokens import Tokens
    from app.store.database import Database
    from app.store.migrate import require_head

    await require_head(url)
    async with Database.open(url, pool_size=1) as database:
        _, secret = await Tokens(database, SystemClock()).create(
            name=name, role=Role.ADMIN, actor="command line"
        )
        return secret
