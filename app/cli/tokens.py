"""Commands of an admin: bearer tokens, over HTTP; and a way back in, straight in the database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer
from dither import Client, NewToken, ProblemError, Quota, Token, TokenUsage

from app.cli.common import (
    MOMENT,
    DataDir,
    in_database,
    load_settings,
    moment,
    notes,
    print_table,
    usage_error,
)
from app.cli.http import number
from app.cli.service_commands import asks_service
from app.core.principal import Role
from app.core.quota import FOR_EVER

tokens = typer.Typer(no_args_is_help=True, help="Create, list, limit, rotate and revoke bearer tokens.")

TokenId = Annotated[str, typer.Argument(metavar="ID", help="Id of the token, from `dither token list`.")]


def _show_new(made: NewToken) -> None:
    of = f"roles {', '.join(made.roles)}" if len(made.roles) > 1 else f"role {made.role}"
    notes.print(f"Token {made.id} of {of}; it is shown this once:", markup=False)
    typer.echo(made.token)


def _show_rotated(made: NewToken) -> None:
    notes.print(f"New secret of token {made.id}; it is shown this once:", markup=False)
    typer.echo(made.token)


def _show_tokens(found: Sequence[Token]) -> None:
    rows = [
        {
            **one.raw,
            "expires": "revoked" if one.revoked_at else moment(one.expires_at),
            "studies": "all" if one.studies is None else one.studies,
            "quota": None if one.quota is None else _quota(one.quota),
        }
        for one in found
    ]
    columns = {"id": "id", "name": "name", "roles": "roles", "studies": "studies", "quota": "quota"}
    print_table(rows, columns | {"expires": "expires (UTC)", "last_used_on": "last used"})


def _quota(quota: Quota) -> str:
    """The share of each study, and how long it counts."""
    within = "all time" if quota.period_seconds == FOR_EVER else f"{quota.period_seconds:,} s"
    return f"{quota.share:f} in {within}"


def _show_usage(found: Sequence[TokenUsage]) -> None:
    columns = {"study": "study", "releases": "releases", "used": "share used"}
    print_table([item.raw for item in found], columns)


@tokens.command("create")
@asks_service(_show_new)
def create_token(
    client: Client,
    name: Annotated[str, typer.Argument(help="What to call it, for people.")],
    role: Annotated[
        list[Role], typer.Option(help="What it may do; may be repeated: all that one of them may.")
    ],
    study: Annotated[
        list[str] | None, typer.Option("--study", help="Limit it to this study; may be repeated.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option(help="Limit it to this person; role contribute alone.")
    ] = None,
    expires_at: Annotated[
        datetime | None,
        typer.Option(help="From then on it is refused; UTC.", **MOMENT),
    ] = None,
) -> NewToken:
    """Make a token and print it: TOKEN=$(dither token create app --role analyse).

    It is shown this once; the service keeps a hash of it.
    """
    made = client.create_token(
        name,
        role=role[0].value if len(role) == 1 else None,
        roles=[one.value for one in role] if len(role) > 1 else None,
        studies=study or None,
        subject=subject,
        expires_at=expires_at,
    )
    for slug in study or ():
        if not _is_there(client, slug):
            notes.print(f"There is no study {slug} yet.", markup=False)
    return made


def _is_there(client: Client, study: str) -> bool:
    """Whether there is a study; where the service does not say, it may be there."""
    try:
        client.study(study)
    except ProblemError as error:
        return error.status != 404
    return True


@tokens.command("list")
@asks_service(_show_tokens)
def list_tokens(client: Client) -> list[Token]:
    """List all tokens, without their secrets."""
    return list(client.tokens())


@tokens.command("revoke")
@asks_service()
def revoke_token(client: Client, token_id: TokenId) -> None:
    """Refuse a token from now on, at every process of the service."""
    client.revoke_token(token_id)
    notes.print(f"Token {token_id} is revoked.", markup=False)


@tokens.command("limit")
@asks_service()
def limit_token(
    client: Client,
    token_id: TokenId,
    share: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="The most that it may take of any person's epsilon in a study."),
    ] = None,
    period: Annotated[
        int | None, typer.Option(metavar="SECONDS", min=1, help="Length of the period.")
    ] = None,
    lift: Annotated[bool, typer.Option("--lift", help="Lift the quota instead.")] = False,
) -> None:
    """Limit what an analyst's token may use of each study: --share 0.2 --period 86400.

    It is refused with 429 beyond that, whatever people's own budgets would still allow.
    """
    given = share is not None and period is not None
    if given == lift or (lift and (share is not None or period is not None)):
        raise usage_error("give --share and --period, or --lift")
    if share is None or period is None:
        client.lift_quota(token_id)
    else:
        client.set_quota(token_id, share=number(share, "--share"), period_seconds=period)
    notes.print(f"Token {token_id} has {'no' if lift else 'a'} quota.", markup=False)


@tokens.command("usage")
@asks_service(_show_usage)
def show_usage(client: Client, token_id: TokenId) -> list[TokenUsage]:
    """Show what a token used of each study, in its quota's period or, without a quota, ever."""
    return list(client.token_usage(token_id))


@tokens.command("rotate")
@asks_service(_show_rotated)
def rotate_token(
    client: Client,
    token_id: TokenId,
    grace: Annotated[
        int, typer.Option(metavar="SECONDS", min=0, help="How long the old secret stays valid.")
    ] = 0,
) -> NewToken:
    """Give a token another secret and print it. Its id, limits and quota stay."""
    return client.rotate_token(token_id, grace_seconds=grace)


@tokens.command()
def recover(
    data_dir: DataDir = None,
    name: Annotated[str, typer.Option(help="What to call it.")] = "recovered",
) -> None:
    """Make a new admin token straight in the database, and print it.

    For an operator who has the database but lost every admin token. It shows in the audit trail.
    """
    if not name.strip():
        raise usage_error("--name must not be empty")
    from app.core.clock import SystemClock  # with the store, longer to load than most commands run
    from app.services.admin.tokens import Tokens

    _, secret = in_database(
        load_settings(data_dir),
        lambda database: Tokens(database, SystemClock()).create(
            name=name, roles={Role.ADMIN}, actor="command line"
        ),
    )
    typer.echo(secret)
