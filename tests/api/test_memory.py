"""A batch of a million records is read and answered in bounded memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

RECORDS = 1_000_000

GROWTH_LIMIT_MB = 300

PIECE = 10_000
"""Records the client sends at once."""


def peak_mb(pid: int) -> float:
    """The largest resident size that the processes of a service ever had together."""
    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    python = [process for process in processes if process.name().startswith(("python", "dither", "uvicorn"))]
    kilobytes = 0
    for process in python:
        status = Path(f"/proc/{process.pid}/status").read_text()
        kilobytes += int(status.partition("VmHWM:")[2].split()[0])
    return kilobytes / 1024


def lines(prefix: str, records: int) -> Iterator[bytes]:
    for start in range(0, records, PIECE):
        yield "".join(
            f'{{"subject":"{prefix}-{number}","value":{number % 100},"epsilon":{1 + number % 50 / 10},'
            f'"trust":"central"}}\n'
            for number in range(start, min(start + PIECE, records))
        ).encode()


@pytest.mark.system
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
@pytest.mark.slow
def test_a_million_records_grow_the_service_by_less_than_the_limit(live_server: Any) -> None:
    service = live_server()
    token = service.create_token("contribute")
    with service.client() as admin:
        study = {"slug": "large", "lower": 0, "upper": 100, "epsilon": {"max": 6}}
        admin.post("/v1/studies", json=study).raise_for_status()
    with service.client(token, timeout=600) as client:

        def send(prefix: str, records: int) -> Any:
            return client.post(
                "/v1/studies/large/contributions/batch",
                content=lines(prefix, records),
                headers={"Content-Type": "application/x-ndjson"},
            )

        assert send("first", PIECE).json()["created"] == PIECE
        before = peak_mb(service.pids[0])
        response = send("then", RECORDS)
        growth = peak_mb(service.pids[0]) - before
    assert response.status_code == 200
    document = response.json()
    assert (document["created"], len(document["results"])) == (RECORDS, RECORDS)
    assert growth < GROWTH_LIMIT_MB, f"grew by {growth:.0f} MB"
