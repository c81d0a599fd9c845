"""Commands of an admin over HTTP: sessions and their rounds."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

import typer
from dither import Client, Session

from app.cli.common import console, moment, print_details, print_table, show
from app.cli.http import StudyName, integer, number
from app.cli.options import fields_of
from app.cli.service_commands import asks_service
from app.core.numbers import headline
from app.web.documents.session_in import SessionIn

sessions = typer.Typer(no_args_is_help=True, help="Start sessions, follow their rounds, end them.")

SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, from `dither session list`.")
]


def _show(session: Session) -> None:
    document: Mapping[str, Any] = session.raw
    manner = (session.protocol, session.mode, session.threshold)
    price = f"{show(session.epsilon_per_answer)} of {show(session.epsilon_total)}"
    details: dict[str, object] = {
        "session": session.id,
        "study": session.study,
        "protocol": ", ".join(part for part in manner if part),
        "state": session.state,
        "round": _round(session),
    }
    if session.round is not None:
        details |= {
            "answers so far": document["answers"],
            "answers that close it": session.answers_per_round,
        }
    details |= {"epsilon": price, "deadline (UTC)": moment(session.deadline)}
    details |= {f"centre {place}": _point(centre) for place, centre in enumerate(session.centres or ())}
    if session.interval is not None and session.estimate is not None:
        interval, error = session.interval, document["error"]
        missed = "its rank is off by at most" if session.protocol == "quantile" else "people it may miss"
        details |= {
            "estimate": headline(session.estimate, interval.lower, interval.upper).in_words,
            "interval": f"{show(interval.lower)} to {show(interval.upper)}",
            missed: f"{error['missed_fraction']:.2%}",
            "wrong with probability": f"{error['failure_probability']:.2%} at most",
        }
    print_details(details)
    if session.path and session.centres:
        steps = [
            {**step, "centres": " ".join(map(_point, step["centres"])), "central": _rounded(step["central"])}
            for step in document["path"]
        ]
        columns = {"round": "round", "answers": "answers", "central": "central, noisy", "centres": "centres"}
        print_table(steps, columns)
    elif session.path:
        columns = {"round": "round", "lower": "lower", "upper": "upper", "threshold": "asked"}
        rounds = [
            {**step, "fraction": "-" if step["fraction"] is None else f"{step['fraction']:.1%}"}
            for step in document["path"]
        ]
        print_table(
            rounds, columns | {"answers": "answers", "fraction": "estimated yes", "believed": "believed"}
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
    if session.round is None:
        return f"{len(session.path)} of {session.rounds} closed"
    return f"{session.round} of {session.rounds}"


def _point(centre: Iterable[Any]) -> str:
    return ";".join(f"{float(coordinate):.6g}" for coordinate in centre)


def _rounded(count: Any) -> str:
    return "-" if count is None else f"{float(count):.0f}"


def _show_sessions(found: Sequence[Session]) -> None:
    rows = [{**session.raw, "round": _round(session)} for session in found]
    columns = {"id": "id", "protocol": "protocol", "state": "state", "round": "round"}
    print_table(rows, columns | {"estimate": "estimate"})


@sessions.command("create")
@fields_of(SessionIn, spelled={"clusters", "centres", "answers_per_round"})
@asks_service(_show)
def create_session(
    client: Client,
    fields: Mapping[str, Any],
    *,
    study: StudyName,
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
) -> Session:
    """Start a session; its first round is open at once."""
    return client.create_session(
        study,
        **fields,
        answers_per_round=_answers(answers_per_round),
        centres=[_coordinates(point) for point in centre] if centre else None,
    )


@sessions.command("list")
@asks_service(_show_sessions)
def list_sessions(client: Client, study: StudyName) -> list[Session]:
    """List a study's sessions, the newest first."""
    return list(client.sessions(study))


@sessions.command("show")
@asks_service(_show)
def show_session(client: Client, session: SessionId) -> Session:
    """Show a session, its closed rounds, and its estimate once it has finished."""
    return client.session(session)


@sessions.command("close-round")
@asks_service(_show)
def close_round(
    client: Client,
    session: SessionId,
    round_number: Annotated[int, typer.Option("--round", help="Which one.")],
) -> Session:
    """Close a round with the answers it has; one that was closed before stays as it is."""
    return client.close_round(session, round_number)


@sessions.command("finish")
@asks_service(_show)
def finish_session(client: Client, session: SessionId) -> Session:
    """End a session now, with what there is."""
    return client.finish_session(session)
