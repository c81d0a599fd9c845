"""`dither simulate`: a crowd of devices, each running the SDK, against a service that runs."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from dither import Client, Session, Study

from app.cli.common import AsJson, print_json, usage_error
from app.cli.http import DEFAULT_URL, Token, Url, needed, optional
from dither_research.simulate import processes as crowd
from dither_research.simulate.display import Display, show_summary, summary
from dither_research.simulate.fleet import Orders
from dither_research.simulate.people import Days, generate_values, make_devices, read_values

simulators = typer.Typer(no_args_is_help=True, help="Simulate people's devices against a service that runs.")


@simulators.callback()
def _group() -> None:
    """Simulate people's devices against a service that runs."""


@simulators.command("devices")
def devices(
    study: Annotated[str, typer.Option(metavar="STUDY", help="Slug of the study.")],
    session: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Take part in this session; otherwise contribute local reports."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Devices. [default: one for each value, or 1000]")
    ] = None,
    online_share: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Share of the devices online at a time; they come and go."),
    ] = 1.0,
    values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="One value a line: a number, a choice, or several with ; between. [default: uniform]",
        ),
    ] = None,
    seed: Annotated[
        str, typer.Option(help="Of the values and of who is online when. Never of what protects people.")
    ] = "1",
    epsilon: Annotated[
        str | None,
        typer.Option(
            metavar="EPSILON",
            help="Of each contribution [default: the study's largest]; with --session a device's own limit.",
        ),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, max=64, help="Spread the devices over processes.")] = 1,
    connections: Annotated[int, typer.Option(min=1, help="Connections of each process.")] = 64,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Where the devices remember what they gave away, to come back another time. "
            "[default: a temporary one]",
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="What the names of the devices' owners begin with.")
    ] = "device-",
    patience: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="Give up after this time without a success, or without an answer to the open round; where "
            "rounds close by the clock, that time is added.",
        ),
    ] = 60.0,
    url: Url = DEFAULT_URL,
    token: Token = None,
    as_json: AsJson = False,
) -> None:
    """Let a crowd of devices take part in a session, or contribute to a study.

    Every device runs the SDK with a ledger: it randomizes its own answers, remembers them, and sends them
    again when it comes back from being offline. Exit status 1 if any of them refused or was refused, or if
    it gives up, for example because too few devices take part to fill a round.
    """
    bearer = needed(token)
    limit = optional(epsilon, "--epsilon")
    with _place(directory) as place:
        with Client(url, bearer) as client:
            found = client.study(study)
            about = None if session is None else client.session(session)
        _check(found, about)
        own = (
            read_values(values, found) if values is not None else generate_values(found, count or 1000, seed)
        )
        people = make_devices(own, count or len(own), prefix=prefix, seed=seed, attributes=found.attributes)
        started = time.time()
        orders = Orders(
            url=url,
            token=bearer,
            directory=place,
            study=study,
            session=session,
            epsilon=limit if limit is not None or session is not None else found.epsilon.max,
            devices=tuple(people),
            days=Days(share=online_share),
            started=started,
            connections=connections,
            patience=patience,
        )
        with Display(len(people), wanted=not as_json) as display:
            tally = crowd.run(orders, processes, display.update)
        seconds = time.time() - started
        if session is not None:
            with Client(url, bearer) as client:
                about = client.session(session)
    document = summary(
        tally,
        devices=len(people),
        seconds=seconds,
        session=about,
        values=[device.value for device in people],
    )
    if as_json:
        print_json({"study": study, **document})
    else:
        show_summary(document)
    if tally.refused:
        raise typer.Exit(1)


def _check(study: Study, session: Session | None) -> None:
    if session is None and "local" not in study.trust:
        raise usage_error(f"--study: {study.slug} takes no local reports, which is what devices contribute")
    if session is not None and session.study != study.slug:
        raise usage_error(f"--session: it is one of study {session.study}, not of {study.slug}")


@contextmanager
def _place(directory: Path | None) -> Iterator[Path]:
    """Where the devices keep their ledger."""
    if directory is not None:
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="dither-devices-") as made:
        yield Path(made)
