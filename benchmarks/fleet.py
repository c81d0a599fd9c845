"""Devices that run the whole SDK, beside single contributions that cost their sender nothing.

The devices share the machine with the service: they randomize, write every answer to their ledger, and
look at every response, where the baseline sends bytes that were made beforehand.
"""

import tempfile
import time
from decimal import Decimal
from pathlib import Path

from app.sessions.search import Mode
from benchmarks.answers import open_session
from benchmarks.load import rate
from benchmarks.report import Ratio
from benchmarks.services import Installation, installation
from benchmarks.studies import contribution_requests, definition
from dither_research.simulate import processes
from dither_research.simulate.fleet import Orders
from dither_research.simulate.people import Days, make_devices

STUDY = "commute"
WORKERS = 2
CONNECTIONS = 64
GOAL = 0.5


def run(*, quick: bool) -> list[Ratio]:
    """Rounds of contributions as bytes, of devices that answer, and of devices that contribute."""
    rounds, seconds, devices = (2, 1.0, 500) if quick else (5, 3.0, 5_000)
    baseline: list[float] = []
    answering: list[float] = []
    contributing: list[float] = []
    with installation() as here:
        here.create_study(definition(STUDY))
        with here.serve(workers=WORKERS) as port:
            for number in range(rounds + 1):
                requests = contribution_requests(STUDY, here.contribute, f"round{number}")
                baseline.append(rate(port, CONNECTIONS, requests, seconds))
                session = str(open_session(here, Mode.USER_SPLIT, 1))
                answering.append(_rate(here, port, devices, f"a{number}-", session))
                contributing.append(_rate(here, port, devices, f"c{number}-", None))
    # The first round warms up: imports, connections, prepared statements.
    note = f"fleet: {devices} devices with the SDK, a ledger each, in one process; baseline: contributions"
    return [
        Ratio(
            section="fleet",
            name=name,
            unit="1/s",
            subject=subject[1:],
            baseline=baseline[1:],
            goal=GOAL,
            note=note,
        )
        for name, subject in (
            ("answers of a fleet of devices", answering),
            ("local reports of a fleet of devices", contributing),
        )
    ]


def _rate(here: Installation, port: int, devices: int, prefix: str, session: str | None) -> float:
    with tempfile.TemporaryDirectory(prefix="dither-bench-devices-") as directory:
        orders = Orders(
            url=f"http://127.0.0.1:{port}",
            token=here.contribute,
            directory=Path(directory),
            study=STUDY,
            session=session,
            epsilon=None if session is not None else Decimal(1),
            devices=tuple(make_devices(["34", "51.5", "7"], devices, prefix=prefix, seed="1")),
            days=Days(share=1),
            started=time.time(),
            connections=CONNECTIONS,
            patience=60,
        )
        tally = processes.run(orders, 1, lambda tally, session: None)
    if tally.accepted != devices:
        raise RuntimeError(f"{tally.accepted} of {devices} devices succeeded: {dict(tally.refused)}")
    return devices / (tally.last - orders.started)
