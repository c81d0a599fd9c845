"""The demo's last chapter: all devices take part in a session, and no value leaves a device."""

import time
from collections.abc import Mapping
from statistics import median_low
from typing import Any

from dither import Client
from rich.table import Table

from app.cli.common import CommandFailed, console, new_table, show
from dither_research.demo.service import Service
from dither_research.demo.survey import Survey
from dither_research.simulate import processes
from dither_research.simulate.display import Display
from dither_research.simulate.fleet import Orders, Tally
from dither_research.simulate.people import Days, Device

EPSILON = 2
"""What taking part costs; it fits into every person's lifetime budget beside the other studies."""

CONNECTIONS = 64
PATIENCE_SECONDS = 60.0

EXPECTED_SHARE = 0.95
"""Of the devices; the last ones to answer in a round may find it closed."""


def show_session(service: Service, admin: Client, token: str, study: Survey) -> None:
    """Look for the median of a study with every person's device.

    Args:
        service: Where it runs.
        admin: With an admin's token.
        token: Of the devices.
        study: Whose women take part.

    Raises:
        CommandFailed: the session does not come to its end.
    """
    people = len(study.records)
    session = admin.create_session(
        study.slug,
        protocol="quantile",
        quantile=0.5,
        epsilon=EPSILON,
        participants=int(people * EXPECTED_SHARE),
    )
    console.print(
        f"{study.title} Is your value at most this threshold? {people:,} devices are asked, each in one of "
        f"{session.rounds} rounds, and flip a coin of epsilon {EPSILON} before they answer."
    )
    started = time.time()
    tally = _send(service, token, session.id, study, started)
    found = admin.session(session.id)
    if found.interval is None:
        raise CommandFailed(f"the session is still in round {found.round}")
    document: Mapping[str, Any] = found.raw
    error = document["error"]
    console.print(_path(document))
    truth = median_low(float(str(record.value)) for record in study.records)
    console.print(
        f"{tally.accepted:,} answers in {time.time() - started:.1f} s. The median: "
        f"[bold]{show(found.estimate)}[/]. It lies between {show(found.interval.lower)} and "
        f"{show(found.interval.upper)}, but for a chance of {error['failure_probability']:.0%}; in the file "
        f"it is {show(truth)}. No person answered twice or gave more than epsilon "
        f"{show(found.epsilon_total)}."
    )


def _send(service: Service, token: str, session: str, study: Survey, started: float) -> Tally:
    devices = tuple(
        Device(subject=record.subject, value=str(record.value), phase=0.0) for record in study.records
    )
    orders = Orders(
        url=service.base_url,
        token=token,
        directory=service.devices,
        study=study.slug,
        session=session,
        epsilon=None,
        devices=devices,
        days=Days(share=1.0),
        started=started,
        connections=CONNECTIONS,
        patience=PATIENCE_SECONDS,
    )
    with Display(len(devices), wanted=True) as display:
        return processes.run(orders, 1, display.update)


def _path(session: Mapping[str, Any]) -> Table:
    """What was asked, and what came of it."""
    table = new_table()
    for heading in ("round", "at most?", "answers", "estimated\nshare of yes", "the median\nis there"):
        table.add_column(heading, justify="right")
    for step in session["path"]:
        table.add_row(
            str(step["round"]),
            f"{step['threshold']:.3f}",
            f"{step['answers']:,}",
            "-" if step["fraction"] is None else f"{step['fraction']:.1%}",
            show(step["believed"]) if step["decided"] else "open",
        )
    return table
