"""The scripts of the backup guide, on a running service: what they restore is there, and audits clean."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import make_url

from app.postgres.embedded import EmbeddedPostgres
from app.postgres.programs import libpq_environment
from tests.conftest import LiveServer
from tests.support.databases import Server, scratch_directory
from tests.support.debian_postgres import debian_binaries
from tests.support.live import ROOT, run_command
from tests.system.load import make_study

pytestmark = pytest.mark.system


def script(name: str, *arguments: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "deploy" / name, *arguments],
        env=_environment(variables),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def tool(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command `dither`."""
    return run_command(*arguments, environment=_environment(variables))


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": os.environ.get("HOME", "/"), **variables}


def test_a_running_service_is_backed_up_and_restored(
    live_server: LiveServer, postgres_server: Server
) -> None:
    service = live_server(embedded=True)
    make_study(service, "age")
    people = [{"subject": f"p{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(100)]
    with service.client(service.create_token("contribute")) as contributor:
        contributor.post("/v1/studies/age/contributions/batch", json=people)
    with service.client(service.create_token("analyse")) as analyst:
        released = analyst.post("/v1/studies/age/releases", json={"share": 0.1})
    with service.client(service.create_token("contribute")) as contributor:
        assert contributor.delete("/v1/studies/age/contributions/p7").status_code == 204
    with scratch_directory() as directory, postgres_server.empty_database() as url:
        data = {"DITHER_DATA_DIR": str(service.data_directory)}
        backup = script("backup.sh", directory / "backups", **data)
        assert backup.returncode == 0, backup.stderr
        dump = Path(backup.stdout.strip())
        assert dump.parent == directory / "backups"
        assert [file.name for file in dump.parent.iterdir()] == [dump.name]
        assert dump.stat().st_mode & 0o077 == 0
        refused = script("restore.sh", dump, **data)
        assert (refused.returncode, "not empty" in refused.stderr) == (1, True)

        restored = script("restore.sh", dump, DITHER_DATABASE_URL=url)
        assert restored.returncode == 0, restored.stderr
        assert "the ledger is clean" in restored.stdout
        assert "WARNING" not in restored.stderr
        directory.chmod(0o711)  # Before version 16 its user has to come by.
        with EmbeddedPostgres(directory / "older", debian_binaries()) as older:
            into_older = script("restore.sh", dump, DITHER_DATABASE_URL=older.url)
        assert into_older.returncode == 0, into_older.stderr
        assert "the ledger is clean" in into_older.stdout
        damaged = dump.with_suffix(".damaged")
        damaged.write_bytes(dump.read_bytes()[: dump.stat().st_size // 2])
        with postgres_server.empty_database() as other:
            assert script("restore.sh", damaged, DITHER_DATABASE_URL=other).returncode != 0

        key = (service.data_directory / "subject.key").read_text().strip()
        service.stop()
        service.database_url = url
        service.environment = {"DITHER_SUBJECT_KEY": key}
        service.start()
        with service.client() as admin:
            again = admin.get(f"/v1/releases/{released.json()['id']}").json()
            again.pop("charges")
            assert again == released.json()
            budget = admin.get("/v1/subjects/p7/budget").json()
        assert budget["studies"][0]["live"] is False
        assert budget["epsilon"]["reserved"] == 0.1
        service.stop()


def test_a_password_travels_by_the_environment() -> None:
    url = make_url("postgresql://u:p%40ss@db.example:5433/dither?sslmode=require").render_as_string(False)
    assert libpq_environment(url) == {
        "PGHOST": "db.example",
        "PGPORT": "5433",
        "PGUSER": "u",
        "PGPASSWORD": "p@ss",
        "PGDATABASE": "dither",
        "PGSSLMODE": "require",
    }
    with pytest.raises(ValueError, match="surprise"):
        libpq_environment("postgresql://db.example/dither?surprise=1")
