"""A batch over HTTP, beside a bare binary COPY of the same rows into the same indexed table."""

import asyncio
import http.client
import random
import time
from collections.abc import Sequence
from itertools import islice

import asyncpg

from benchmarks.report import Ratio
from benchmarks.services import Installation, installation
from benchmarks.studies import definition, people

RECORDS = 200_000
QUICK_RECORDS = 10_000
GOAL = 0.25
COLUMNS = (
    "study_id",
    "subject_id",
    "epsilon",
    "carried",
    "value",
    "trust",
    "epoch",
)
MAKE_TABLE = """
    CREATE TABLE bare (LIKE contribution INCLUDING ALL);
    ALTER TABLE bare ADD FOREIGN KEY (subject_id) REFERENCES subject (id)
"""
READ_ROWS = "SELECT * FROM contribution WHERE study_id = $1"


def run(*, quick: bool) -> list[Ratio]:
    """One study a round and form; the rows that the batch stored are then copied."""
    rounds, records = (1, QUICK_RECORDS) if quick else (3, RECORDS)
    rates: dict[str, tuple[list[float], list[float]]] = {"csv": ([], []), "ndjson": ([], [])}
    with installation() as here:
        asyncio.run(_execute(here.url, MAKE_TABLE))
        with here.serve(workers=2) as port:
            for number in range(rounds):
                for form, (subject, baseline) in rates.items():
                    study = here.create_study(definition(f"{form}-{number}"))
                    body = document(form, f"{form}-{number}", records)
                    subject.append(records / send(port, here, f"{form}-{number}", form, body))
                    baseline.append(records / asyncio.run(copy(here.url, study)))
    return [
        Ratio(
            section="batch",
            name=f"records of a {form} batch",
            unit="1/s",
            subject=subject,
            baseline=baseline,
            goal=GOAL,
            note=f"batch: {records:,} new people in one request; baseline: binary COPY of the same rows into "
            "a table with the same indexes and foreign key, their subjects stored already",
        )
        for form, (subject, baseline) in rates.items()
    ]


def document(form: str, prefix: str, records: int) -> bytes:
    """A batch of new people."""
    rows = islice(people(prefix), records)
    if form == "csv":
        lines = [f"{subject},{value},{epsilon},central" for subject, value, epsilon in rows]
        return "\n".join(["subject,value,epsilon,trust", *lines]).encode()
    return "\n".join(
        f'{{"subject":"{subject}","value":{value},"epsilon":{epsilon},"trust":"central"}}'
        for subject, value, epsilon in rows
    ).encode()


def send(port: int, here: Installation, study: str, form: str, body: bytes) -> float:
    """Seconds until the last byte of the answer."""
    types = {"csv": "text/csv", "ndjson": "application/x-ndjson"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"Authorization": f"Bearer {here.contribute}", "Content-Type": types[form]}
    started = time.perf_counter()
    connection.request("POST", f"/v1/studies/{study}/contributions/batch", body, headers)
    response = connection.getresponse()
    answer = response.read()
    took = time.perf_counter() - started
    connection.close()
    if response.status != 200 or not answer.endswith(b'"unchanged":0,"refused":0}'):
        raise RuntimeError(f"the batch was answered {response.status}: {answer[-200:]!r}")
    return took


async def copy(url: str, study: int) -> float:
    """Seconds of a committed COPY, in the order in which people happen to come."""
    connection = await asyncpg.connect(url)
    try:
        rows: Sequence[asyncpg.Record] = await connection.fetch(READ_ROWS, study)
        records = [tuple(row[column] for column in COLUMNS) for row in rows]
        random.Random(study).shuffle(records)
        await connection.execute("TRUNCATE bare")
        started = time.perf_counter()
        await connection.copy_records_to_table("bare", records=records, columns=COLUMNS)
        return time.perf_counter() - started
    finally:
        await connection.close()


async def _execute(url: str, statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()
