"""What the pages of an admin cost against the number of people."""

import asyncio
import http.client
import time
from dataclasses import dataclass

from app.core.principal import Role
from app.dashboard.requests import LOGIN_COOKIE
from app.services import Services
from app.store.sql import Sql
from benchmarks.releases import EPSILONS, fill
from benchmarks.report import Ratio
from benchmarks.services import Installation, installation
from benchmarks.studies import definition

STUDIES = 200
PEOPLE = 1_000_000
GOAL_SECONDS = 0.3
"""The first byte of a page comes within this, however many people there are."""

PAGES = {
    "Overview": "/dashboard",
    "Budgets": "/dashboard/budgets",
    "Budgets of one study": "/dashboard/budgets?study=n-7",
    "Studies": "/dashboard/studies",
    "Study": "/dashboard/studies/n-7",
    "Ledger": "/dashboard/ledger/charges",
    "Tokens": "/dashboard/tokens",
}


@dataclass(frozen=True, kw_only=True)
class Reader:
    """An admin with a cookie."""

    port: int
    cookie: str

    def first_byte(self, path: str) -> tuple[int, float]:
        """Status of a page, and seconds until its first byte."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.connect()
        try:
            started = time.perf_counter()
            connection.request("GET", path, headers={"Cookie": f"{LOGIN_COOKIE}={self.cookie}"})
            response = connection.getresponse()
            took = time.perf_counter() - started
            response.read()
            return response.status, took
        finally:
            connection.close()


def run(*, quick: bool) -> list[Ratio]:
    """Fill many studies with many people, and look at every page."""
    studies, people, rounds = (20, 20_000, 3) if quick else (STUDIES, PEOPLE, 15)
    with installation() as here:
        _fill(here, studies, people)
        cookie = here.use(log_in)
        with here.serve(workers=1) as port:
            reader = Reader(port=port, cookie=cookie)
            status, cold = reader.first_byte("/dashboard/budgets")
            cold_note = f"before any figures: {status} after {cold:.3f} s"
            seconds = await_figures(here)
            return [
                Ratio(
                    section="dashboard",
                    name=f"{name}: first byte over {people:,} people, against {GOAL_SECONDS} s",
                    unit="s",
                    subject=[_seconds(reader, path) for _ in range(rounds)],
                    baseline=[GOAL_SECONDS] * rounds,
                    goal=1.0,
                    better="lower",
                    note=f"one pass over every person takes {seconds:.1f} s; {cold_note}"
                    if name == "Budgets"
                    else "",
                )
                for name, path in PAGES.items()
            ]


def _seconds(reader: Reader, path: str) -> float:
    status, took = reader.first_byte(path)
    assert status == 200, f"{path}: {status}"
    return took


def _fill(here: Installation, studies: int, people: int) -> None:
    made = [here.create_study(definition(f"n-{number}")) for number in range(studies)]
    asyncio.run(fill(here.url, dict.fromkeys(made, people // studies), EPSILONS))


async def log_in(services: Services) -> str:
    _, token = await services.tokens.create(name="reader", roles={Role.ADMIN}, actor="benchmark")
    secret, _ = await services.logins.log_in(await services.tokens.authenticate(token))
    return secret


def await_figures(here: Installation) -> float:
    """Wait for the first pass over all people, which a page has begun; how long it took [s].

    A page does not wait for it: it is drawn without figures.
    """
    while (seconds := here.use(_pass_seconds)) is None:
        time.sleep(0.2)
    return seconds


async def _pass_seconds(services: Services) -> float | None:
    rows = await services.database.fetch("figure", Sql("SELECT max(seconds) AS seconds FROM figure"))
    return rows[0]["seconds"]
