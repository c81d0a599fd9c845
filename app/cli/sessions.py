"""Commands of an admin over HTTP: sessions and their rounds."""

from typing import Annotated, Any

import typer

from app.cli.common import AsJson, console, moment, print_json, print_table
from app.cli.http import DEFAULT_URL, Token, Url, number, segment, service
from app.core.session import SessionProtocol
from app.sessions.search import DEFAULT_DEPTH, Depth, Mode, Threshold

sessions = typer.Typer(no_args_is_help=True, help="Start sessions, follow their rounds, end them.")

SessionId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the session, from `dither session list`.")
]


@sessions.command("create")
def create_session(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Slug of the study.")],
    protocol: Annotated[SessionProtocol, typer.Option(help="What to look for.")],
    epsilon: Annotated[
        str, typer.Option(metavar="EPSILON", help="What taking part costs a person in all, at most.")
    ],
    participants: Annotated[
        int | None, typer.Option(help="People who are expected to take part; for kmeans not required.")
    ] = None,
    quantile: Annotated[
        str | None, typer.Option(metavar="FRACTION", help="For protocol quantile: which one, in (0, 1).")
    ] = None,
    centre: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POINT",
            help="For kmeans, for each cluster: a public point to start from, such as '20;80'.",
        ),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="Ask each person once with all of epsilon, or in every round with a part.",
            show_default=Mode.USER_SPLIT.value,
        ),
    ] = None,
    threshold: Annotated[
        Threshold | None,
        typer.Option(
            help="From how many yes a round is believed.", show_default=Threshold.EXACT_BINOMIAL.value
        ),
    ] = None,
    rounds: Annotated[
        str,
        typer.Option(metavar="NUMBER", help="How many, or lower_alpha, or unknown_alpha; kmeans: a number."),
    ] = DEFAULT_DEPTH.value,
    alpha: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="For lower_alpha: lower bound on the fatness of the tail."),
    ] = None,
    answers_per_round: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="A round closes with so many answers; none: never by their number."
        ),
    ] = None,
    round_seconds: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="A round closes after so long.")
    ] = None,
    deadline_seconds: Annotated[
        str | None, typer.Option(metavar="SECONDS", help="The session ends after so long; a day by default.")
    ] = None,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Start a session; its first round is open at once."""
    document: dict[str, Any] = {
        "protocol": protocol.value,
        "epsilon": number(epsilon, "--epsilon"),
        "rounds": rounds if rounds in tuple(Depth) else number(rounds, "--rounds"),
    }
    if participants is not None:
        document["participants"] = participants
    if mode is not None:
        document["mode"] = mode.value
    if threshold is not None:
        document["threshold"] = threshold.value
    if centre:
        document["centres"] = [
            [number(coordinate.strip(), "--centre") for coordinate in point.split(";")] for point in centre
        ]
    if answers_per_round is not None:
        unlimited = answers_per_round == "none"
        document["answers_per_round"] = (
            None if unlimited else number(answers_per_round, "--answers-per-round")
        )
    for name, text in (
        ("quantile", quantile),
        ("alpha", alpha),
        ("round_seconds", round_seconds),
        ("deadline_seconds", deadline_seconds),
    ):
        if text is not None:
            document[name] = number(text, f"--{name.replace('_', '-')}")
    with service(url, token) as api:
        made = api.call("POST", f"studies/{segment(study)}/sessions", document=document)
    _show(made, as_json)


@sessions.command("list")
def list_sessions(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Slug of the study.")],
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """List a study's sessions, the newest first."""
    with service(url, token) as api:
        found = api.all(f"studies/{segment(study)}/sessions")
    if as_json:
        print_json(found)
        return
    rows = [{**session, "round": _round(session)} for session in found]
    columns = {"id": "id", "protocol": "protocol", "state": "state", "round": "round"}
    print_table(rows, columns | {"estimate": "estimate"})


@sessions.command("show")
def show_session(
    session: SessionId, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """Show a session, its closed rounds, and its estimate once it has finished."""
    with service(url, token) as api:
        found = api.call("GET", f"sessions/{segment(session)}")
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
    with service(url, token) as api:
        found = api.call("POST", f"sessions/{segment(session)}/close-round", document={"round": round_number})
    _show(found, as_json)


@sessions.command("finish")
def finish_session(
    session: SessionId, url: Url = DEFAULT_URL, token: Token = None, as_json: AsJson = False
) -> None:
    """End a session now, with what there is."""
    with service(url, token) as api:
        found = api.call("POST", f"sessions/{segment(session)}/finish")
    _show(found, as_json)


def _show(session: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(session)
        return
    rows = [
        {"name": "session", "value": session["id"]},
        {"name": "study", "value": session["study"]},
        {
            "name": "protocol",
            "value": ", ".join(
                str(session[name]) for name in ("protocol", "mode", "threshold") if session.get(name)
            ),
        },
        {"name": "state", "value": session["state"]},
        {"name": "round", "value": _round(session)},
        {"name": "answers so far", "value": session["answers"]},
        {"name": "answers that close it", "value": session["answers_per_round"]},
        {"name": "epsilon", "value": f"{session['epsilon_per_answer']:g} of {session['epsilon_total']:g}"},
        {"name": "deadline (UTC)", "value": moment(session["deadline"])},
    ]
    rows += [
        {"name": f"centre {place}", "value": _point(centre)}
        for place, centre in enumerate(session.get("centres") or ())
    ]
    if session.get("interval"):
        interval, error = session["interval"], session["error"]
        rows += [
            {"name": "estimate", "value": session["estimate"]},
            {"name": "interval", "value": f"{interval['lower']:g} to {interval['upper']:g}"},
            {"name": "people it may miss", "value": f"{error['missed_fraction']:.2%}"},
            {"name": "wrong with probability", "value": f"{error['failure_probability']:.2%} at most"},
        ]
    print_table(rows, {"name": "", "value": ""})
    if session["path"] and session.get("centres"):
        steps = [
            {**step, "centres": " ".join(map(_point, step["centres"])), "central": _rounded(step["central"])}
            for step in session["path"]
        ]
        columns = {"round": "round", "answers": "answers", "central": "central, noisy", "centres": "centres"}
        print_table(steps, columns)
    elif session["path"]:
        columns = {"round": "round", "lower": "lower", "upper": "upper", "threshold": "asked"}
        print_table(
            session["path"],
            columns | {"answers": "answers", "fraction": "true yes", "believed": "believed"},
        )
    else:
        console.print("No round is closed yet.")


def _round(session: dict[str, Any]) -> str:
    """The open round; once there is none, how many were closed."""
    open_round = session["round"]
    return f"{len(session['path']) if open_round is None else open_round} of {session['rounds']}"


def _point(centre: list[Any]) -> str:
    return ";".join(f"{float(coordinate):.6g}" for coordinate in centre)


def _rounded(count: Any) -> str:
    return "-" if count is None else f"{float(count):.0f}"
