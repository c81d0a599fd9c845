"""What looking at the largest admissible answer costs: its page, its document, and a list of such answers."""

import asyncio
import http.client
import threading
import time
from pathlib import Path

from app.dashboard.requests import LOGIN_COOKIE
from benchmarks.dashboard import log_in
from benchmarks.releases import fill
from benchmarks.report import Ratio
from benchmarks.services import Caller, installation
from benchmarks.studies import definition

STUDY, LABELS, BINS, PEOPLE, EPSILONS = "large", 100, 100, 20_000, 6
MOST_SECONDS, MOST_MB = 0.2, 200.0
ANSWERS = 4


class Pings:
    """Asks for a sign of life again and again; how long the event loop did not give one is its hold."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ping, daemon=True)
        self.longest = 0.0

    def __enter__(self) -> "Pings":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ping(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while not self._ended.is_set():
            started = time.perf_counter()
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            self.longest = max(self.longest, time.perf_counter() - started)
            time.sleep(0.002)
        connection.close()


def run(*, quick: bool) -> list[Ratio]:
    """Make the largest histogram by labels a few times, and look at it on a service that is just started."""
    rounds, answers = (1, 1) if quick else (5, ANSWERS)
    with installation() as here:
        study = here.create_study(definition(STUDY, labels=LABELS))
        asyncio.run(fill(here.url, {study: PEOPLE}, EPSILONS, labels=LABELS))
        cookie = {"Cookie": f"{LOGIN_COOKIE}={here.use(log_in)}"}
        bearer = {"Authorization": f"Bearer {here.analyse}"}
        with here.serve(workers=1) as port, Caller(port) as caller:
            for number in range(answers):
                question = {"statistic": "histogram", "bins": str(BINS), "by": "group"}
                asked = {**question, "share": (number + 1) / answers}
                release = caller.call("POST", f"/v1/studies/{STUDY}/releases", here.analyse, asked)["id"]
        looks = {
            "the page": (f"/dashboard/releases/{release}", cookie),
            "the page of its study": (f"/dashboard/studies/{STUDY}", cookie),
            "the document": (f"/v1/releases/{release}", bearer),
            "the list": (f"/v1/studies/{STUDY}/releases?limit=200", bearer),
        }
        found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in looks}
        for _ in range(rounds):
            for name, (path, headers) in looks.items():
                with here.serve_command() as server:
                    _look(server.port, "/dashboard/studies", cookie)
                    status = Path(f"/proc/{server.pid}/status")
                    before = _peak_mb(status)
                    with Pings(server.port) as pings:
                        _look(server.port, path, headers)
                    found[name][0].append(pings.longest)
                    found[name][1].append(_peak_mb(status) - before)
    return [
        Ratio(
            section="largest",
            name=f"{name}: {what}",
            unit=unit,
            subject=seen,
            baseline=[most] * len(seen),
            goal=1.0,
            better="lower",
            note=f"{LABELS} labels of {BINS} bins, the largest answer there can be, against what it may cost",
        )
        for name, (seconds, megabytes) in found.items()
        for what, unit, seen, most in (
            ("event loop held", "s", seconds, MOST_SECONDS),
            ("more memory", "MB", megabytes, MOST_MB),
        )
    ]


def _look(port: int, path: str, headers: dict[str, str]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    while response.read(1 << 20):
        pass
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"{path} was answered {response.status}")


def _peak_mb(status: Path) -> float:
    """The largest resident size that the process ever had."""
    return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
