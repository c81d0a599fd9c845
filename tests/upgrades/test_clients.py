"""Clients and services of different versions: each former one with this one, in both directions."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.services import free_port
from tests.conftest import LiveServer
from tests.support.databases import scratch_directory
from tests.support.live import ROOT, START_TIMEOUT_SECONDS, STOP_TIMEOUT_SECONDS, is_ready
from tests.upgrades import walk
from tests.upgrades.former import each_version, former_environment, former_sources

pytestmark = [pytest.mark.system, pytest.mark.long]

NOW = ROOT / "client"


@pytest.fixture(params=each_version())
def sources(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return former_sources(request.param, tmp_path)


@contextmanager
def former_service(sources: Path, data: Path) -> Iterator[str]:
    """The address of a running service of that version."""
    port = free_port()
    command = [sys.executable, "-m", "app.cli", "serve", "--data-dir", str(data), "--port", str(port)]
    log = sources / "log"
    environment = former_environment(sources, sources / "client")
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=sources, env=environment, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not is_ready(f"http://127.0.0.1:{port}"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_SECONDS)


def walked(client: Path, step: str, url: str, data: Path, device: Path, name: str) -> dict[str, Any]:
    """What the walk says with the SDK that lies in `client`."""
    device.mkdir(exist_ok=True)
    token = (data / "admin.token").read_text().strip()
    done = subprocess.run(
        [sys.executable, walk.__file__, step, url, token, device, name],
        env=former_environment(client),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


def test_clients_and_services_of_two_versions_work_together(sources: Path, live_server: LiveServer) -> None:
    former = sources / "client"
    with scratch_directory() as directory:
        data, theirs, ours = directory / "data", directory / "theirs", directory / "ours"
        with former_service(sources, data) as url:
            called = walked(former, "BEGIN", url, data, theirs, "theirs")
            assert called["methods"] == called["public"], "the walk calls all that there is"
            walked(NOW, "BEGIN", url, data, ours, "ours")
        service = live_server(embedded=True, data_dir=data)
        url = service.base_url
        # Who has upgraded one of both goes on with the same device, and gives away nothing anew.
        shutil.copytree(theirs, directory / "upgraded")
        for client, device, name in (
            (former, theirs, "theirs"),
            (NOW, directory / "upgraded", "theirs"),
            (NOW, ours, "ours"),
        ):
            again = walked(client, "AGAIN", url, data, device, name)
            assert again == {"status": "unchanged", "entries": ["1"], "total": "2"}, (client, name)
        walked(former, "BEGIN", url, data, directory / "other", "later")
