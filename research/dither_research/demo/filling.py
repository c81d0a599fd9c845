"""Filling the studies over HTTP, in every way there is: CSV, NDJSON, single requests and the SDK."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import httpx
from dither import Client, Contribution, Record
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.cli.common import CommandFailed, notes
from dither_research.demo.survey import Survey

CHUNK = 1_000
"""Records in one request."""

SINGLES = 100
"""People of the first study who send a request of their own."""

Advance = Callable[[int], object]


def fill(
    service: httpx.Client, device: Client, studies: tuple[Survey, Survey, Survey]
) -> tuple[Contribution, Record]:
    """Send every person's answers.

    Args:
        service: With a contribute token.
        device: The SDK, standing for every person's device; randomizes local answers before they are sent.
        studies: Filled in three ways: CSV and single requests, the SDK, NDJSON in gzip.

    Returns:
        The answer to the last person with a request of her own, and what she had sent.

    Raises:
        CommandFailed: the service refused something.
    """
    by_csv, by_sdk, by_ndjson = studies
    with _progress() as progress:
        tasks = [progress.add_task(study.slug, total=len(study.records)) for study in studies]

        def advance(task: int) -> Advance:
            return lambda records: progress.update(tasks[task], advance=records)

        told = _by_csv(service, device, by_csv, advance(0))
        by_device(device, by_sdk, advance(1))
        _by_ndjson(service, by_ndjson, advance(2))
    return told


def _progress() -> Progress:
    return Progress(
        TextColumn("  {task.description:<14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=notes,
        disable=not notes.is_terminal,
    )


def _by_csv(
    service: httpx.Client, device: Client, study: Survey, advance: Advance
) -> tuple[Contribution, Record]:
    singles = [record for record in study.records if record.trust == "central"][-SINGLES:]
    alone = {record.subject for record in singles}
    together = [record for record in study.records if record.subject not in alone]
    for chunk in _chunks(together):
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(["subject", "value", "epsilon", "trust"])
        writer.writerows([record.subject, record.value, record.epsilon, record.trust] for record in chunk)
        _send_batch(service, study, text.getvalue().encode(), "text/csv")
        advance(len(chunk))
    told = None
    for record in singles:
        told = device.contribute(
            study.slug,
            subject=record.subject,
            value=record.value,
            epsilon=record.epsilon,
            trust="central",
        )
        advance(1)
    if told is None:
        raise CommandFailed(f"no person contributes centrally to {study.slug}")
    return told, singles[-1]


def by_device(device: Client, study: Survey, advance: Advance = lambda _: None) -> None:
    """Send every person's answer with the SDK.

    Raises:
        CommandFailed: the service refused something.
    """
    # People here have no other device, so their spending need not be asked for before a report is drawn.
    for chunk in _chunks(study.records):
        result = device.contribute_many(study.slug, chunk, check_spent=False)
        _refuse_refusals(study, result.refused)
        advance(len(result.results))


def _by_ndjson(service: httpx.Client, study: Survey, advance: Advance) -> None:
    for chunk in _chunks(study.records):
        lines = (
            json.dumps(
                {
                    "subject": record.subject,
                    "value": float(str(record.value)),
                    "epsilon": record.epsilon,
                    "trust": record.trust,
                }
            )
            for record in chunk
        )
        body = gzip.compress("\n".join(lines).encode())
        _send_batch(service, study, body, "application/x-ndjson", {"Content-Encoding": "gzip"})
        advance(len(chunk))


def _send_batch(
    service: httpx.Client,
    study: Survey,
    body: bytes,
    content_type: str,
    headers: dict[str, str] | None = None,
) -> None:
    response = service.post(
        f"/v1/studies/{study.slug}/contributions/batch",
        content=body,
        headers={"Content-Type": content_type, **(headers or {})},
    )
    if response.status_code != 200:
        raise CommandFailed(f"a batch for {study.slug} was refused: {response.text}")
    _refuse_refusals(study, response.json()["refused"])


def _refuse_refusals(study: Survey, refused: int) -> None:
    if refused:
        raise CommandFailed(f"{refused} contributions to {study.slug} were refused")


def _chunks(records: Sequence[Record]) -> Iterator[list[Record]]:
    rest = iter(records)
    while chunk := list(islice(rest, CHUNK)):
        yield chunk
