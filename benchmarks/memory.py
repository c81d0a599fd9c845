"""What a process of the service holds when it is idle, and after each of the heaviest requests."""

import asyncio
import time
from pathlib import Path

from benchmarks.batches import document, send
from benchmarks.largest import BINS, EPSILONS, LABELS, PEOPLE
from benchmarks.releases import fill
from benchmarks.report import Ratio
from benchmarks.services import Caller, Server, installation
from benchmarks.studies import definition

MOST_MB = 200.0
REST_SECONDS = 2.0
RECORDS, QUICK_RECORDS = 200_000, 10_000


def run(*, quick: bool) -> list[Ratio]:
    """One process a round, asked for one thing after the other."""
    rounds, records = (1, QUICK_RECORDS) if quick else (2, RECORDS)
    found: dict[str, list[float]] = {}
    with installation() as here:
        for number in range(rounds):
            study = here.create_study(definition(f"labels-{number}", labels=LABELS))
            asyncio.run(fill(here.url, {study: PEOPLE}, EPSILONS, labels=LABELS))
            here.create_study(definition(f"batch-{number}"))
            body = document("ndjson", f"batch-{number}", records)
            question = {"statistic": "histogram", "bins": str(BINS), "by": "group", "share": 1.0}
            with here.serve_command() as server, Caller(server.port) as caller:
                found.setdefault("idle", []).append(_settled_mb(server))
                send(server.port, here, f"batch-{number}", "ndjson", body)
                found.setdefault(f"a batch of {records:,}", []).append(_settled_mb(server))
                caller.call("POST", f"/v1/studies/labels-{number}/releases", here.analyse, question)
                found.setdefault(f"a histogram of {LABELS} labels", []).append(_settled_mb(server))
    return [
        Ratio(
            section="memory",
            name=f"{name}: resident memory",
            unit="MB",
            subject=seen,
            baseline=[MOST_MB] * len(seen),
            goal=1.0,
            better="lower",
            note=f"one process, {REST_SECONDS:.0f} s after each request, one after the other",
        )
        for name, seen in found.items()
    ]


def _settled_mb(server: Server) -> float:
    """What is resident of a process when it rests."""
    time.sleep(REST_SECONDS)
    status = Path(f"/proc/{server.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
