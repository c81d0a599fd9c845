"""Commands of an admin over HTTP: sessions and their rounds."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

import typer
from dither import Session

from app.cli.common import AsJson, console, moment, print_json, print_table, show
from app.cli.http import DEFAULT_URL, Token, Url, integer, number, service
from app.cli.options import fields_of
from app.web.documents.session_in import SessionIn

sessions = typer.Typer(no_args_is_help=True, help="Start sessions, follow their rounds, end them.")

SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, from `dither session list`.")
]


@sessions.command("create")
@fields_of(SessionIn, spelled={"clusters", "centres", "answers_per_round"})
def create_session(
    fields: Mapping[str, Any],
    *,
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Slug of the study.")],
    centre: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POINT",
            help="For kmeans, for each cluster: a public point to start from, such as '20;80'.",
        ),
    ] = None,
    answers_per_round: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="Number of answers that closes a round; none: no such limit."),
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Start a session; its first round is open at once."""
    with service(url, token) as client:
        made = client.create_session(
            study,
            **fields,
            answers_per_round=_answers(answers_per_round),
            centres=[_coordinates(point) for point in centre] if centre else None,
        )
    _show(made, as_json)


@sessions.command("list")
def list_sessions(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Slug of the study.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List a study's sessions, the newest first."""
    with service(url, token) as client:
        found = list(client.sessions(study))
    if as_json:
        print_json([session.raw for session in found])
        return
    rows = [{**session.raw, "round": _round(session)} for session in found]
    columns = {"id": "id", "protocol": "protocol", "state": "state", "round": "round"}
    print_table(rows, columns | {"estimate": "estimate"})


@sessions.command("show")
def show_session(
    session: SessionId, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Show a session, its closed rounds, and its estimate once it has finished."""
    with service(url, token) as client:
        found = client.session(session)
    _show(found, as_json)


@sessions.command("close-round")
def close_round(
    session: SessionId,
    round_number: Annotated[int, typer.Option("--round", help="Which one.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Close a round with the answers it has; one that was closed before stays as it is."""
    with service(url, token) as client:
        found = client.close_round(session, round_number)
    _show(found, as_json)


@sessions.command("finish")
def finish_session(
    session: SessionId, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """End a session now, with what there is."""
    with service(url, token) as client:
        found = client.finish_session(session)
    _show(found, as_json)


def _show(session: Session, as_json: bool) -> None:
    if as_json:
        print_json(session.raw)
        return
    document: Mapping[str, Any] = session.raw
    manner = (session.protocol, session.mode, session.threshold)
    price = f"{show(session.epsilon_per_answer)} of {show(session.epsilon_total)}"
    rows = [
        {"name": "session", "value": session.id},
        {"name": "study", "value": session.study},
        {"name": "protocol", "value": ", ".join(part for part in manner if part)},
        {"name": "state", "value": session.state},
        {"name": "round", "value": _round(session)},
        {"name": "answers so far", "value": document["answers"]},
        {"name": "answers that close it", "value": session.answers_per_round},
        {"name": "epsilon", "value": price},
        {"name": "deadline (UTC)", "value": moment(session.deadline)},
    ]
    rows += [
        {"name": f"centre {place}", "value": _point(centre)}
        for place, centre in enumerate(session.centres or ())
    ]
    if session.interval is not None:
        interval, error = session.interval, document["error"]
        quantile = session.protocol == "quantile"
        rows += [
            {"name": "estimate", "value": session.estimate},
            {
                "name": "interval",
                "value": f"{show(interval.lower)} to {show(interval.upper)}",
            },
            {
                "name": "its rank is off by at most" if quantile else "people it may miss",
                "value": f"{error['missed_fraction']:.2%}",
            },
            {"name": "wrong with probability", "value": f"{error['failure_probability']:.2%} at most"},
        ]
    print_table(rows, {"name": "", "value": ""})
    if session.path and session.centres:
        steps = [
            {**step, "centres": " ".join(map(_point, step["centres"])), "central": _rounded(step["central"])}
            for step in document["path"]
        ]
        columns = {"round": "round", "answers": "answers", "central": "central, noisy", "centres": "centres"}
        print_table(steps, columns)
    elif session.path:
        columns = {"round": "round", "lower": "lower", "upper": "upper", "threshold": "asked"}
        print_table(
            document["path"],
            columns | {"answers": "answers", "fraction": "true yes", "believed": "believed"},
        )
    else:
        console.print("No round is closed yet.")


def _answers(text: str | None) -> int | Literal["any"] | None:
    """Answers that close a round; "none" of them do where only time closes it."""
    if text == "none":
        return "any"
    return None if text is None else integer(text, "--answers-per-round")


def _coordinates(point: str) -> list[Decimal]:
    return [number(part.strip(), "--centre") for part in point.split(";")]


def _round(session: Session) -> str:
    """The open round; once there is none, how many were closed."""
    return f"{len(session.path) if session.round is None else session.round} of {session.rounds}"


def _point(centre: Iterable[Any]) -> str:
    return ";".join(f"{float(coordinate):.6g}" for coordinate in centre)


def _rounded(count: Any) -> str:
    return "-" if count is None else f"{float(count):.0f}"
