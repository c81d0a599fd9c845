"""Databases on a Citus cluster: a coordinator and two workers, each with a socket of its own."""

import os
import shutil
import tarfile
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

from app.postgres.cluster import PORT, Cluster
from app.postgres.service_user import postgres_binaries
from app.store import migrate
from tests.support.databases import Server, crash, execute, run_apart
from tests.support.gates import Gate
from tests.support.live import ROOT

ARCHIVE = ROOT.parent / "shared" / "citus" / "citus-14.0.1-pg18-linux-x86_64.tar.xz"
"""Citus for the PostgreSQL of the wheel; no part of the project."""

DISTRIBUTE = ROOT / "deploy" / "citus" / "distribute.sql"

NODES = 3

SETTINGS = {
    "shared_preload_libraries": "citus",
    "citus.override_table_visibility": "off",
    "max_prepared_transactions": "200",
    "shared_buffers": "64MB",
}


def require_citus() -> None:
    """Skip a test where there is no Citus, unless it has to be there."""
    if not ARCHIVE.exists() and os.environ.get("DITHER_TEST_CITUS") != "required":
        pytest.skip(f"there is no {ARCHIVE.name} beside the checkout")


def lay_over(directory: Path) -> Path:
    """Make a copy of the wheel's PostgreSQL with Citus in it, for every user; returns its programs."""
    root = postgres_binaries(None).parent
    libraries = root.parent.with_suffix(".libs")
    copy = directory / root.parent.name / root.name
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    shutil.copytree(libraries, directory / libraries.name, symlinks=True)
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory / "citus", filter="data")
    (extension,) = (directory / "citus").iterdir()
    shutil.copytree(extension, copy, dirs_exist_ok=True)
    for path in [directory, *directory.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return copy / "bin"


class CitusServer(Server):
    """A coordinator, whose databases these are, and its workers.

    Args:
        directory: For its programs and its data; with a short path.
        gated: Whether the workers are reached through `gates`.
        recovery: How often what was prepared by a transaction that is over is committed or rolled back.
    """

    def __init__(self, directory: Path, *, gated: bool = False, recovery: str = "1s") -> None:
        directory.chmod(0o711)
        binaries = lay_over(directory / "programs")
        self.nodes = [Cluster(directory / f"node-{number}", binaries) for number in range(NODES)]
        for node in self.nodes:
            node.prepare()
            with (node.data / "postgresql.conf").open("a") as file:
                settings = {**SETTINGS, "citus.recover_2pc_interval": recovery}
                file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
            node.launch()
            node.create_database()
        self.gates = [Gate(node, directory / f"gate-{node.data.name}") for node in self.nodes[1:] if gated]
        super().__init__(self.nodes[0].url)

    def close(self) -> None:
        """End every node."""
        super().close()
        for gate in self.gates:
            gate.close()
        for node in self.nodes:
            crash(node)
            node.halt()

    def administer(self, name: str, *statements: str) -> None:
        """Run statements on the coordinator as its superuser, in the database of this name."""
        run_apart(execute(_of(make_url(self.url).set(username="postgres"), name), *statements))

    def _make_template(self) -> None:
        """There is none: the nodes of a database do not come along with a copy of it."""

    def _create(self, template: str) -> str:
        name = self._next_name()
        if template != self.TEMPLATE:
            run_apart(execute(self.url, f"CREATE DATABASE {name} TEMPLATE {template}"))
            return name
        for node in self.nodes:
            owner = make_url(node.url).set(username="postgres")
            run_apart(execute(_of(owner, "postgres"), f"CREATE DATABASE {name} OWNER dither"))
            run_apart(execute(_of(owner, name), "CREATE EXTENSION citus"))
        places = [gate.directory for gate in self.gates] or [node.data for node in self.nodes[1:]]
        self.administer(
            name,
            f"SELECT citus_set_coordinator_host('{self.nodes[0].data}', {PORT})",
            *(f"SELECT citus_add_node('{place}', {PORT})" for place in places),
        )
        run_apart(migrate.upgrade(self.url_of(name)))
        run_apart(execute(self.url_of(name), *_statements(DISTRIBUTE.read_text())))
        return name


def _of(url: URL, database: str) -> str:
    return url.set(database=database).render_as_string(hide_password=False)


def _statements(script: str) -> list[str]:
    """The statements of a script of psql, without its own commands."""
    lines = [line for line in script.splitlines() if not line.startswith(("\\", "--"))]
    return [one.strip() for one in "\n".join(lines).split(";") if one.strip()]
