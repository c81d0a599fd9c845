"""What a study costs that goes on for years: releases and plans over many epochs, beside one epoch."""

import asyncio
import http.client
import time
from collections.abc import Callable, Mapping

import asyncpg

from app.core.study import Trust
from benchmarks.releases import release
from benchmarks.report import Ratio
from benchmarks.services import Installation, installation
from benchmarks.studies import definition

EPOCHS = 1_000
QUICK_EPOCHS = 40
EPSILONS = 300
CHARGED = 30
"""Epochs that end with an answer each: a fresh one charges all people, a step those who came since."""
QUICK_CHARGED = 5
STEPS, QUICK_STEPS = 200, 5
"""Days of a study that is asked every day at one share."""
GOAL = 3.0

# A person for each epoch and epsilon, as if the epochs had been sealed one after the other.
FILL = """
    WITH people AS MATERIALIZED (
        SELECT sha256(convert_to('{study}-' || number, 'UTF8')) AS id, number / {epsilons} AS epoch,
               (100 + number % {epsilons}) * 10000 AS epsilon, (number * 7919) % 1000000000 AS value
        FROM generate_series(CAST({first} * {epsilons} AS bigint), {last} * {epsilons} + {epsilons} - 1)
             AS number ORDER BY id
    ), subjects AS (
        INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
        SELECT id, 10000000, epsilon, 0, 0 FROM people
    ), counted AS (
        INSERT INTO tally (study_id, epoch, writer, count)
        SELECT {study}, epoch, 0, count(*) FROM people GROUP BY epoch
    ), moved AS (
        UPDATE study SET epoch = {last} WHERE id = {study}
    )
    INSERT INTO contribution (study_id, subject_id, epsilon, carried, value, trust, epoch)
    SELECT {study}, id, epsilon, 0, value, '{trust}', epoch FROM people
"""


def run(*, quick: bool) -> list[Ratio]:
    """Fill a study of one epoch and studies of many, measure all of them, and audit the ledger."""
    epochs, charged, rounds = (QUICK_EPOCHS, QUICK_CHARGED, 3) if quick else (EPOCHS, CHARGED, 15)
    days = QUICK_STEPS if quick else STEPS
    slugs = ("one", "central", "local", "daily", "old", "young")
    with installation() as here:
        studies = {slug: here.create_study(definition(slug)) for slug in slugs}
        asyncio.run(fill(here.url, studies["one"], 1, 1, Trust.CENTRAL))
        asyncio.run(fill(here.url, studies["central"], 1, epochs, Trust.CENTRAL))
        asyncio.run(fill(here.url, studies["local"], 1, epochs, Trust.LOCAL))
        with here.serve(workers=1) as port:
            for epoch in range(1, charged + 1):
                asyncio.run(fill(here.url, studies["daily"], epoch, epoch, Trust.CENTRAL))
                release(port, here, "daily", "optimal")
            results = [compare_steps(port, here, studies, days, rounds)]
            for slug, name, goal in (
                ("central", f"{epochs:,} epochs of {EPSILONS} epsilons", GOAL),
                ("local", f"{epochs:,} epochs of {EPSILONS} epsilons of reports", GOAL),
                ("daily", f"{charged} epochs of {EPSILONS} epsilons, charged one by one", None),
            ):
                for what, ask in (("release", _release), ("plan", _plan))[: 2 if goal else 1]:
                    results.append(compare(port, here, slug, f"{what} over {name}", ask, rounds, goal))
        if findings := here.use(lambda services: services.ledger.audit()).findings:
            raise RuntimeError(f"the audit found {findings}")
    return results


async def fill(url: str, study: int, first: int, last: int, trust: Trust) -> None:
    """Store the people of some epochs, a person for each epsilon and epoch."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(
            FILL.format(study=study, first=first, last=last, trust=trust.value, epsilons=EPSILONS)
        )
        await connection.execute("VACUUM (ANALYZE) contribution, subject")
    finally:
        await connection.close()


def compare(
    port: int,
    here: Installation,
    slug: str,
    name: str,
    ask: Callable[[int, Installation, str], float],
    rounds: int,
    goal: float | None,
) -> Ratio:
    """One study beside the one with a single epoch."""
    took: dict[str, list[float]] = {slug: [], "one": []}
    for _ in range(rounds + 1):
        for study, seconds in took.items():
            seconds.append(ask(port, here, study))
    return Ratio(
        section="epochs",
        name=name,
        unit="s",
        subject=took[slug][1:],
        baseline=took["one"][1:],
        goal=goal,
        better="lower",
        note=f"epochs: beside the same over one epoch of {EPSILONS} epsilons, a person each",
    )


def compare_steps(port: int, here: Installation, studies: Mapping[str, int], days: int, rounds: int) -> Ratio:
    """A study that is asked every day at one share, after many days and after few."""

    def day(slug: str, epoch: int) -> float:
        asyncio.run(fill(here.url, studies[slug], epoch, epoch, Trust.CENTRAL))
        return release(port, here, slug, "optimal", share=0.1, fresh=False)

    for epoch in range(1, days + 1):
        day("old", epoch)
    day("young", 1)
    took = [(day("old", days + number), day("young", 1 + number)) for number in range(1, rounds + 1)]
    return Ratio(
        section="epochs",
        name=f"step after {days} days of {EPSILONS} epsilons",
        unit="s",
        subject=[old for old, _ in took],
        baseline=[young for _, young in took],
        goal=GOAL,
        better="lower",
        note="epochs: a day's people are folded, charged, and join an answer that is asked for every day, "
        f"beside the same after 1 to {rounds} days",
    )


def _release(port: int, here: Installation, study: str) -> float:
    return release(port, here, study, "optimal")


def _plan(port: int, here: Installation, study: str) -> float:
    """Seconds of one plan with every estimator."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    started = time.perf_counter()
    connection.request(
        "GET", f"/v1/studies/{study}/plan?share=0.001", headers={"Authorization": f"Bearer {here.analyse}"}
    )
    response = connection.getresponse()
    answer = response.read()
    took = time.perf_counter() - started
    connection.close()
    if response.status != 200:
        raise RuntimeError(f"the plan was answered {response.status}: {answer!r}")
    return took
