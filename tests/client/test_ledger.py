"""The device's ledger: on the disk before anything is sent, one for all processes, no value in it."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from dither import Client, LedgerError, Retry, _ledger
from dither._ledger import Ledger

from tests.client.service import FakeService

ADA: dict[str, Any] = {"subject": "ada", "value": "34.125", "epsilon": 1, "trust": "local"}

DEVICE = textwrap.dedent(
    """
    import json, os, signal, sys
    import httpx
    from dither import Client
    from tests.client.service import FakeService

    directory, mode = sys.argv[1:]
    service = FakeService()

    def handle(request):
        if request.method == "POST":
            print(json.loads(request.content)["report"], flush=True)
            if mode == "crash":
                os.kill(os.getpid(), signal.SIGKILL)
        return service(request)

    with Client("http://x", "t", directory=directory, transport=httpx.MockTransport(handle)) as client:
        if mode == "race":
            sys.stdin.readline()
        client.contribute("commute", subject="ada", value="34.125", epsilon=1, trust="local")
    """
)


def start_device(directory: Path, mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DEVICE, str(directory), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


@pytest.mark.long
def test_a_device_that_is_killed_while_sending_sends_the_same_report_afterwards(tmp_path: Path) -> None:
    reports = []
    for mode, status in (("crash", -signal.SIGKILL), ("crash", -signal.SIGKILL), ("send", 0)):
        device = start_device(tmp_path, mode)
        out, _ = device.communicate(timeout=30)
        assert device.returncode == status
        reports.append(out.strip())
    assert reports[0]
    assert len(set(reports)) == 1
    with Client("http://x", "t", directory=tmp_path) as client:
        assert [entry.state for entry in client.ledger().entries] == ["accepted"]


@pytest.mark.long
def test_two_processes_on_one_directory_draw_once(tmp_path: Path) -> None:
    devices = [start_device(tmp_path, "race") for _ in range(3)]
    reports = {device.communicate("go\n", timeout=30)[0].strip() for device in devices}
    assert [device.returncode for device in devices] == [0, 0, 0]
    assert len(reports) == 1


def test_many_threads_draw_once_and_open_the_ledger_together(tmp_path: Path) -> None:
    service = FakeService()
    faults: list[BaseException] = []

    def contribute() -> None:
        try:
            with Client("http://x", "t", directory=tmp_path, transport=service.transport) as client:
                client.contribute("commute", **ADA)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=contribute) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len({sent["report"] for sent in service.sent("POST")}) == 1


def test_a_device_waits_for_another_process_that_is_writing(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    release = threading.Timer(0.2, lambda: other.execute("COMMIT"))
    release.start()
    ledger = Ledger(tmp_path)
    assert ledger.read().entries == ()
    ledger.close()
    release.join()
    other.close()


def test_a_device_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ledger, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(LedgerError, match="locked"):
        Ledger(tmp_path).read()
    other.close()


def test_the_report_is_committed_and_synced_before_it_is_sent(tmp_path: Path) -> None:
    service = FakeService()
    seen: list[tuple[int, str]] = []

    def handle(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            with sqlite3.connect(tmp_path / "ledger.sqlite3") as other:
                seen.extend(other.execute("SELECT report, state FROM entry"))
            other.close()
        return service(request)

    with Client("http://x", "t", directory=tmp_path, transport=httpx.MockTransport(handle)) as client:
        client.contribute("commute", **ADA)
    assert seen == [(service.sent("POST")[0]["report"], "pending")]


def test_durable_transactions_are_synced(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    levels = []
    for durable in (True, False):
        with ledger.transaction(durable=durable) as transaction:
            levels.append(transaction._connection.execute("PRAGMA synchronous").fetchone()[0])
    ledger.close()
    assert levels == [2, 1]  # FULL: the commit waits for the disk; NORMAL: it survives a crash of the process


def test_nothing_is_sent_when_the_ledger_cannot_be_written(
    connect: Callable[..., Any], service: FakeService, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(LedgerError):
        connect(directory=tmp_path / "file").contribute("commute", **ADA)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "ledger.sqlite3").write_bytes(b"not a database" * 100)
    with pytest.raises(LedgerError):
        connect(directory=tmp_path / "damaged").contribute("commute", **ADA)
    assert service.sent("POST") == []


def test_the_value_is_nowhere_in_the_directory(client: Any, service: FakeService, tmp_path: Path) -> None:
    values = ["34.125", "77.0625"]
    client.contribute("commute", **ADA)
    client.contribute("commute", subject="bob", value=values[1], epsilon=1, trust="central")
    client.close()
    grid = [round(float(value) / 120 * 2**30) for value in values]
    for path in (tmp_path / "device").iterdir():
        content = path.read_bytes()
        for value, point in zip(values, grid, strict=True):
            assert value.encode() not in content
            assert str(point).encode() not in content
            assert point.to_bytes(4, "big") not in content


def test_equal_values_do_not_show(client: Any, tmp_path: Path) -> None:
    for study, subject in (("commute", "ada"), ("commute", "bob"), ("sleep", "ada")):
        client.contribute(study, subject=subject, value=0, epsilon=1, trust="central")
    client.close()
    database = sqlite3.connect(tmp_path / "device" / "ledger.sqlite3")
    digests = {row[0] for row in database.execute("SELECT digest FROM entry")}
    database.close()
    assert len(digests) == 3
    assert {len(digest) for digest in digests} == {32}


@pytest.mark.skipif(os.name != "posix", reason="modes are a POSIX idea")
def test_only_the_owner_may_read_the_directory(client: Any, tmp_path: Path) -> None:
    client.contribute("commute", **ADA)
    device = tmp_path / "device"
    assert stat.S_IMODE(device.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in device.iterdir()}
    assert modes.keys() >= {"device.key", "ledger.sqlite3"}
    assert set(modes.values()) == {0o600}


def test_a_lost_key_is_noticed_and_nothing_is_drawn_again(
    connect: Callable[..., Any], service: FakeService, tmp_path: Path
) -> None:
    first = connect()
    first.contribute("commute", **ADA)
    first.close()
    key = tmp_path / "device" / "device.key"
    for content in (None, b"another key"):
        key.unlink() if content is None else key.write_bytes(content)
        with pytest.raises(LedgerError, match=r"device\.key"):
            connect().contribute("commute", **ADA)
    assert len(service.sent("POST")) == 1


def test_a_ledger_of_another_version_is_refused(connect: Callable[..., Any], tmp_path: Path) -> None:
    first = connect()
    first.study("commute")
    first.close()
    database = sqlite3.connect(tmp_path / "device" / "ledger.sqlite3")
    database.execute("PRAGMA user_version = 999")
    database.close()
    with pytest.raises(LedgerError, match="version"):
        connect().ledger()


def test_the_ledger_shows_what_was_given_away(client: Any) -> None:
    client.contribute("commute", **ADA)
    client.contribute("sleep", subject="ada", value=7, epsilon="0.25", trust="central")
    client.contribute("commute", subject="bob", value=7, trust="public")
    ledger = client.ledger()
    assert [(e.study, e.subject, e.trust, e.epsilon, e.noise_epsilon) for e in ledger.entries] == [
        ("commute", "ada", "local", Decimal(1), Decimal(1)),
        ("sleep", "ada", "central", Decimal("0.25"), None),
        ("commute", "bob", "public", None, None),
    ]
    assert ledger.totals == {"ada": Decimal("1.25"), "bob": Decimal(0)}
    assert all(entry.made_at.tzinfo is not None for entry in ledger.entries)
    assert len(client.ledger("bob").entries) == 1
    assert client.ledger("nobody").entries == ()


def test_a_client_that_only_asks_makes_no_directory(tmp_path: Path) -> None:
    service = FakeService()
    directory = tmp_path / "device"
    with Client("http://x", "t", directory=directory, transport=service.transport) as client:
        client.mean("commute")
    assert not directory.exists()


def test_the_home_directory_may_be_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    service = FakeService()
    retry = Retry(attempts=1)
    with Client("http://x", "t", directory="~/device", transport=service.transport, retry=retry) as client:
        client.study("commute")
    assert (tmp_path / "device" / "ledger.sqlite3").exists()


def test_terms_of_a_study_are_kept_as_exact_text(client: Any, tmp_path: Path) -> None:
    client.study("commute")
    client.close()
    database = sqlite3.connect(tmp_path / "device" / "ledger.sqlite3")
    [(terms,)] = database.execute("SELECT terms FROM study").fetchall()
    database.close()
    assert json.loads(terms)["range"] == [[0, 1], [120, 1]]
