"""What a release costs against the number of people, and what it costs those who contribute meanwhile."""

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

import asyncpg

from app.store import cohorts
from app.store.database import Connection, Database
from benchmarks.load import Load, quantile
from benchmarks.report import Ratio
from benchmarks.services import Installation, installation
from benchmarks.studies import contribution_requests, definition

SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 10_000)
RELEASE_GOAL = 3.0
FOLD_GOAL = 1.5
LATENCY_GOAL = 3.0
AUTO_GOAL = 1.2
LABELS, LABELS_GOAL = 50, 2.0
EPSILONS = 90
COHORTS = 634
"""Of a small study in which hardly any two people chose the same epsilon."""
CONNECTIONS = 16
PACE = 150.0
"""Contributions a second: well below what the machine can do, so that latency is not queueing."""

# The foreign key is checked once at the end, and rows come in the order of their ids: much quicker.
FILL = """
    WITH people AS (
        SELECT sha256(convert_to('{prefix}' || number, 'UTF8')) AS id,
               (10 + number % {epsilons}) * 10000 AS epsilon, (number * 7919) % 1000000000 AS value,
               number / {epsilons} % {labels} AS segment
        FROM generate_series(1, CAST({people} AS bigint)) number ORDER BY id
    ), subjects AS (
        INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
        SELECT id, 10000000, epsilon, 0, 0 FROM people
    ), counted AS (
        INSERT INTO tally (study_id, epoch, writer, count)
        SELECT id, epoch, 0, {people} FROM study WHERE id = {study}
    )
    INSERT INTO contribution (study_id, subject_id, epsilon, carried, value, trust, epoch, segment)
    SELECT {study}, id, epsilon, 0, value, 'central', (SELECT epoch FROM study WHERE id = {study}), segment
    FROM people
"""
DROP_KEY = "ALTER TABLE contribution DROP CONSTRAINT fk_contribution_subject_id_subject"
ADD_KEY = """
    ALTER TABLE contribution ADD CONSTRAINT fk_contribution_subject_id_subject
        FOREIGN KEY (subject_id) REFERENCES subject (id)
"""
UNFOLD = """
    ALTER TABLE charge DISABLE TRIGGER append_only;
    DELETE FROM charge WHERE cohort_id IN (SELECT id FROM cohort WHERE study_id = {study});
    DELETE FROM lineage WHERE study_id = {study};
    DELETE FROM piece WHERE study_id = {study};
    DELETE FROM cohort WHERE study_id = {study};
    UPDATE study SET folded_epoch = 0 WHERE id = {study};
    DELETE FROM tally WHERE study_id = {study};
    INSERT INTO tally (study_id, epoch, writer, count)
        SELECT study_id, epoch, 0, count(*) FROM contribution
        WHERE study_id = {study} AND value IS NOT NULL GROUP BY study_id, epoch;
    ALTER TABLE charge ENABLE TRIGGER append_only;
"""
BARE = "SELECT epsilon, count(*), sum(value) FROM contribution WHERE study_id = $1 GROUP BY epsilon"


def run(*, quick: bool) -> list[Ratio]:
    """Fill studies of several sizes, then measure all three."""
    sizes = QUICK_SIZES if quick else SIZES
    with installation() as here:
        studies = {size: here.create_study(definition(f"n-{size}")) for size in sizes}
        asyncio.run(fill(here.url, {study: people for people, study in studies.items()}, EPSILONS))
        asyncio.run(fill(here.url, {here.create_study(definition("cohorts")): COHORTS}, COHORTS))
        folding = asyncio.run(measure_fold(here.url, studies[sizes[-1]], rounds=2 if quick else 7))
        labels = here.create_study(definition("labels", labels=LABELS))
        asyncio.run(fill(here.url, {labels: sizes[-1]}, EPSILONS, LABELS))
        with here.serve(workers=1) as port:
            results = [folding, *measure_releases(port, here, sizes, rounds=3 if quick else 15)]
            results.append(measure_choice(port, here, rounds=3 if quick else 31))
            results.append(measure_labels(port, here, sizes[-1], rounds=3 if quick else 15))
        with here.serve(workers=2) as port:
            results.append(
                measure_latency(port, here, sizes[-1], studies[sizes[-1]], rounds=1 if quick else 5)
            )
    return results


async def fill(url: str, studies: Mapping[int, int], epsilons: int, labels: int = 1) -> None:
    """Store as many people as each study, by its number, is to have, as a bulk load leaves the tables."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute(DROP_KEY)
            for study, people in studies.items():
                await connection.execute(
                    FILL.format(
                        prefix=f"{study}-", people=people, study=study, epsilons=epsilons, labels=labels
                    )
                )
            await connection.execute(ADD_KEY)
        await connection.execute("VACUUM (ANALYZE) contribution, subject")
    finally:
        await connection.close()


async def unfold(url: str, study: int) -> None:
    """Make a study look as if no release had ever been made, so that the next one folds it again."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(UNFOLD.format(study=study))
    finally:
        await connection.close()


class _Undo(Exception):
    """Rolls a measured fold back, so that it can be measured again."""


async def measure_fold(url: str, study: int, *, rounds: int) -> Ratio:
    """Folding a whole study, beside the bare aggregate."""
    database, connection = Database.open(url, pool_size=1), await asyncpg.connect(url)
    subject: list[float] = []
    baseline: list[float] = []
    try:
        await database.run_tx("seal", lambda c: cohorts.seal(c, study))

        async def timed(transaction: Connection) -> None:
            started = time.perf_counter()
            await cohorts.fold(transaction, study)
            subject.append(time.perf_counter() - started)
            raise _Undo

        for _ in range(rounds + 1):
            started = time.perf_counter()
            await connection.fetch(BARE, study)
            baseline.append(time.perf_counter() - started)
            with suppress(_Undo):
                await database.run_tx("fold", timed)
    finally:
        await connection.close()
        await database.close()
    return Ratio(
        section="release",
        name="folding",
        unit="s",
        subject=subject[1:],
        baseline=baseline[1:],
        goal=FOLD_GOAL,
        better="lower",
        note="release: folding beside SELECT epsilon, count(*), sum(value) ... GROUP BY epsilon",
    )


def measure_releases(port: int, here: Installation, sizes: Sequence[int], *, rounds: int) -> list[Ratio]:
    """Releases over folded studies, beside those over the smallest one."""
    took: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(rounds + 1):
        for size in sizes:
            took[size].append(release(port, here, f"n-{size}"))
    return [
        Ratio(
            section="release",
            name=f"release over {size:,} people",
            unit="s",
            subject=took[size][1:],
            baseline=took[sizes[0]][1:],
            goal=RELEASE_GOAL,
            better="lower",
            note=f"release: POST of a new release after folding, beside one over {sizes[0]:,} people",
        )
        for size in sizes[1:]
    ]


def measure_choice(port: int, here: Installation, *, rounds: int) -> Ratio:
    """Releases with `auto` over a cohort a person, beside those with the estimator that it takes there."""
    took: dict[str, list[float]] = {"auto": [], "optimal": []}
    for _ in range(rounds + 1):
        for estimator, seconds in took.items():
            seconds.append(release(port, here, "cohorts", estimator))
    return Ratio(
        section="release",
        name=f"release over {COHORTS} cohorts, auto",
        unit="s",
        subject=took["auto"][1:],
        baseline=took["optimal"][1:],
        goal=AUTO_GOAL,
        better="lower",
        note="release: POST of a new release with auto, which plans every estimator, beside one with optimal",
    )


def measure_labels(port: int, here: Installation, size: int, *, rounds: int) -> Ratio:
    """Steps of a question by label, beside those of one mean of the same people."""
    took: dict[str, list[float]] = {"group": [], "": []}
    for step in range(1, rounds + 2):
        for by, seconds in took.items():
            share = step / 1_000
            seconds.append(release(port, here, "labels", "auto", share=share, fresh=False, by=by))
    return Ratio(
        section="release",
        name=f"release by {LABELS} labels over {size:,} people",
        unit="s",
        subject=took["group"][1:],
        baseline=took[""][1:],
        goal=LABELS_GOAL,
        better="lower",
        note="release: POST of a step by label with auto, beside a step of one mean of the same study",
    )


def measure_latency(port: int, here: Installation, size: int, study: int, *, rounds: int) -> Ratio:
    """p99 of the single contributions that meet a release (seal, fold, answer), beside p99 without one."""
    subject: list[float] = []
    baseline: list[float] = []
    requests = contribution_requests(f"n-{size}", here.contribute, "latency")
    with Load(port, CONNECTIONS) as load:
        load.pace(requests, 1, PACE).expect("201")
        for _ in range(rounds):
            asyncio.run(unfold(here.url, study))
            quiet = load.pace(requests, 3, PACE).expect("201")
            span: list[float] = []
            busy = threading.Thread(target=_release_soon, args=(port, here, f"n-{size}", span))
            busy.start()
            during = load.pace(requests, 3, PACE).expect("201")
            busy.join()
            if len(span) != 2:
                raise RuntimeError("the release failed")
            baseline.append(quantile(quiet.latencies, 0.99))
            subject.append(quantile(during.within(*span), 0.99))
    return Ratio(
        section="release",
        name="p99 of contributions",
        unit="s",
        subject=subject,
        baseline=baseline,
        goal=LATENCY_GOAL,
        better="lower",
        note=f"release: p99 of those of {PACE:.0f} contributions a second that meet a release over {size:,} "
        "unfolded people of the same study, beside p99 without a release",
    )


def _release_soon(port: int, here: Installation, study: str, span: list[float]) -> None:
    """Make a release in a moment, and note when it began and ended."""
    time.sleep(0.5)
    span.append(time.perf_counter())
    release(port, here, study)
    span.append(time.perf_counter())


def release(
    port: int,
    here: Installation,
    study: str,
    estimator: str = "adpm",
    *,
    share: float = 0.001,
    fresh: bool = True,
    by: str = "",
) -> float:
    """Seconds of one new release, with noise of its own or as a step to a share."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"Authorization": f"Bearer {here.analyse}", "Content-Type": "application/json"}
    question: dict[str, object] = {
        "statistic": "mean",
        "estimator": estimator,
        "share": share,
        "fresh": fresh,
        # What is timed at a small share may say little.
        "allow_worse": True,
    }
    if by:
        question["by"] = by
    started = time.perf_counter()
    connection.request("POST", f"/v1/studies/{study}/releases", json.dumps(question), headers)
    response = connection.getresponse()
    answer = response.read()
    took = time.perf_counter() - started
    connection.close()
    if response.status != 201:
        raise RuntimeError(f"the release was answered {response.status}: {answer!r}")
    return took
