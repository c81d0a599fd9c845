"""`dither serve`: first start, stop, crashes, sharing, and databases of others."""

import os
import signal
import socket
import stat
import time

import psutil
import pytest

from app.postgres.embedded import EmbeddedPostgres
from benchmarks.services import free_port
from tests.support.databases import execute, run_apart, scratch_directory
from tests.system.load import make_study

pytestmark = pytest.mark.system


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def studies_status(service, index: int = 0) -> int:
    with service.client(index=index) as client:
        return client.get("/v1/studies").status_code


def test_the_first_start_makes_everything_and_sigterm_stops_everything(live_server):
    service = live_server(embedded=True)
    for name in ("admin.token", "subject.key"):
        assert stat.S_IMODE((service.data_directory / name).stat().st_mode) == 0o600
    assert studies_status(service) == 200
    token, key = service.admin_token, (service.data_directory / "subject.key").read_text()
    assert token not in service.output()
    assert key.strip() not in service.output()

    postmaster = EmbeddedPostgres(service.data_directory).postmaster_pid
    assert postmaster is not None
    assert service.terminate() == 0
    assert gone(postmaster)

    service.start()
    assert (service.admin_token, (service.data_directory / "subject.key").read_text()) == (token, key)
    assert studies_status(service) == 200


def test_a_killed_database_comes_back_under_the_running_service(live_server):
    service = live_server(embedded=True, workers=2)
    assert studies_status(service) == 200
    # Several times, at once when it is back: it also dies while others still wait for it to start.
    for _ in range(4):
        postmaster = EmbeddedPostgres(service.data_directory).postmaster_pid
        assert postmaster is not None
        os.kill(postmaster, signal.SIGKILL)

        def answers(killed: int = postmaster) -> bool:
            status = studies_status(service)
            assert status in (200, 503)
            return status == 200 and EmbeddedPostgres(service.data_directory).postmaster_pid not in (
                None,
                killed,
            )

        wait_until(answers)


def test_workers_end_when_their_supervisor_is_killed(live_server):
    service = live_server(workers=2)
    supervisor = psutil.Process(service.pids[0])
    workers = supervisor.children(recursive=True)
    assert len(workers) >= 2
    supervisor.kill()
    wait_until(lambda: all(gone(worker.pid) for worker in workers))
    service.kill()
    service.start()
    assert studies_status(service) == 200


def test_two_services_on_one_directory_share_it_until_the_last_one_stops(live_server):
    service = live_server(embedded=True, processes=2)
    assert studies_status(service, 0) == studies_status(service, 1) == 200
    assert service.terminate(0) == 0
    assert studies_status(service, 1) == 200
    assert service.terminate(1) == 0
    assert EmbeddedPostgres(service.data_directory).postmaster_pid is None


def test_a_killed_service_leaves_a_database_that_the_next_start_uses(live_server):
    service = live_server(embedded=True)
    postmaster = EmbeddedPostgres(service.data_directory).postmaster_pid
    service.kill()
    service.start()
    assert EmbeddedPostgres(service.data_directory).postmaster_pid == postmaster
    assert studies_status(service) == 200


def test_a_database_of_ones_own_is_never_migrated_unasked(dither, empty_database_url):
    with scratch_directory() as directory:
        arguments = ("--data-dir", str(directory))
        refused = dither("serve", *arguments, "--port", "1", DITHER_DATABASE_URL=empty_database_url)
        assert refused.status == 1
        assert "run `dither migrate`" in refused.errors
        assert not (directory / "admin.token").exists()

        for expected in ("was made, at revision", "nothing to do"):
            done = dither("migrate", DITHER_DATABASE_URL=empty_database_url)
            assert (done.status, done.errors) == (0, "")
            assert expected in done.output
        assert not (directory / "postgres").exists()


def test_settings_that_name_what_is_not_installed_are_refused_before_a_worker_starts(dither):
    with scratch_directory() as directory:
        arguments = ("serve", "--data-dir", str(directory), "--workers", "2")
        refused = dither(*arguments, DITHER_ESTIMATORS="oracle")
        assert (refused.status, refused.output) == (2, "")
        assert "DITHER_ESTIMATORS: no installed distribution" in refused.errors
        assert not list(directory.iterdir())


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_lose_commits_is_refused(dither, setting):
    with scratch_directory() as directory:
        with EmbeddedPostgres(directory):
            pass
        with (directory / "postgres" / "postgresql.conf").open("a") as configuration:
            configuration.write(f"{setting} = off\n")
        refused = dither("serve", "--data-dir", str(directory), "--port", "1")
        assert refused.status == 1
        assert f"{setting} = off" in refused.errors
        assert "Traceback" not in refused.errors


def test_another_services_schema_is_refused(dither, empty_database_url):
    assert dither("migrate", DITHER_DATABASE_URL=empty_database_url).status == 0
    run_apart(execute(empty_database_url, "UPDATE alembic_version SET version_num = '9999'"))
    with scratch_directory() as directory:
        for command in (("serve", "--port", "1"), ("audit",), ("migrate",)):
            refused = dither(*command, "--data-dir", str(directory), DITHER_DATABASE_URL=empty_database_url)
            assert refused.status == 1
            assert "9999, which this version of the service does not know" in refused.errors


def test_of_two_databases_the_one_with_an_address_is_meant_and_named(dither, database_url):
    with scratch_directory() as directory:
        (directory / "postgres").mkdir()
        audited = dither("audit", "--data-dir", str(directory), DITHER_DATABASE_URL=database_url)
    assert audited.status == 0
    assert "Using the database of DITHER_DATABASE_URL" in audited.errors


def test_an_audit_of_nothing_makes_nothing(dither):
    with scratch_directory() as directory:
        for command in (("audit",), ("token", "recover")):
            refused = dither(*command, "--data-dir", str(directory))
            assert refused.status == 1
            assert "there is no database" in refused.errors
        assert not list(directory.iterdir())


def test_a_lost_admin_token_can_be_replaced_by_whoever_has_the_database(dither, live_server):
    service = live_server()
    made = dither("token", "recover", DITHER_DATABASE_URL=service.database_url)
    assert made.status == 0, made.errors
    with service.client(made.output.strip()) as client:
        assert client.get("/v1/admin/tokens").status_code == 200


@pytest.mark.parametrize(
    ("arguments", "variables", "named"),
    [
        (("serve",), {}, "--data-dir"),
        (("migrate",), {}, "--data-dir"),
        (("serve", "--port", "0"), {}, "--port"),
        (("nonsense",), {}, "nonsense"),
        (("migrate",), {"DITHER_DATABASE_URL": "mysql://secret@host/x"}, "DITHER_DATABASE_URL"),
        (("serve", "--data-dir", "/x"), {"DITHER_SUBJECT_KEY": "secret"}, "DITHER_SUBJECT_KEY"),
        (("serve", "--data-dir", "/x"), {"DITHER_LIFETIME_EPSILN": "1"}, "DITHER_LIFETIME_EPSILON"),
    ],
)
def test_what_cannot_be_meant_exits_with_2_and_names_it(dither, arguments, variables, named):
    done = dither(*arguments, **variables)
    assert done.status == 2
    assert named in done.errors
    assert "secret" not in done.errors
    assert "Traceback" not in done.errors


def test_the_subject_key_is_changed_while_the_service_rests(live_server, dither, tmp_path):
    service = live_server(embedded=True)
    make_study(service, "age")
    people = [f"p{number}" for number in range(20)]
    with service.client(service.create_token("contribute")) as client:
        for name in people:
            document = {"subject": name, "value": 5, "epsilon": 1, "trust": "central"}
            assert client.post("/v1/studies/age/contributions", json=document).status_code == 201
    ids, key = tmp_path / "ids", tmp_path / "new.key"
    ids.write_text("\n".join(people), encoding="utf-8-sig")  # as spreadsheets write it
    command = ("subject", "rekey", str(ids), "--new-key", str(key), "--data-dir", str(service.data_directory))
    assert "running" in dither(*command).errors
    service.stop()
    before = (service.data_directory / "subject.key").read_text()
    present = dither(*command[:4], str(service.data_directory / "subject.key"), *command[5:])
    assert present.status == 2
    assert "--new-key names the key in use" in present.errors
    done = dither(*command)
    assert (done.status, done.output) == (0, "20 people are known under the new key.\n"), done.errors
    assert (service.data_directory / "subject.key").read_text() == key.read_text() != before
    assert "already" in dither(*command).output
    service.start()
    with service.client() as admin:
        assert admin.get("/v1/subjects/p3/budget").json()["epsilon"]["reserved"] == 1
    assert dither("audit", "--data-dir", str(service.data_directory)).status == 0


def test_a_port_that_is_taken_is_one_line_before_anything_is_made(dither):
    with scratch_directory() as directory, socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = dither("serve", "--data-dir", str(directory / "data"), "--port", str(port))
        assert done.status == 1
        assert done.errors.strip() == (
            f"error: cannot listen on 127.0.0.1, port {port}: another program listens there; "
            "choose another with --host and --port"
        )
        assert not (directory / "data").exists()


def test_another_subject_key_is_one_line_and_nothing_is_made(dither, live_server):
    service = live_server(embedded=True)
    output = service.output()
    assert f"Dashboard: {service.base_url}/dashboard, log in with the token in" in output
    assert service.terminate() == 0
    key = service.data_directory / "subject.key"
    kept = key.read_text()
    serve = ("serve", "--data-dir", str(service.data_directory), "--port", str(free_port()))
    other = dither(*serve, DITHER_SUBJECT_KEY="ab" * 32)
    key.unlink()
    missing = dither(*serve)
    for done in (other, missing):
        assert done.status == 1
        assert "error: this database was filled under another subject key" in done.errors
        assert "Traceback" not in done.errors
    assert not key.exists(), "no key is made for a database that has one"
    key.write_text(kept)
    key.chmod(0o600)
    service.start()
    assert studies_status(service) == 200
