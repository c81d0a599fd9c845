"""Processor time of a single contribution, beside a former version that is served in the same run."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Load
from benchmarks.report import Ratio
from benchmarks.services import ROOT, Caller, Server, free_port, running
from benchmarks.stand_in import STUDY, TOKEN_VARIABLE
from benchmarks.studies import contribution_requests

FORMER = "2c5c56cc977268a883d552ed307a5c1422076e1d"
GOAL = 0.667
CONNECTIONS = 32
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A version under `dither serve`.

    Attributes:
        server: Its process.
        data: Its directory, with a PostgreSQL of its own.
        admin, analyse, contribute: Tokens of these roles.
    """

    server: Server
    data: Path
    admin: str
    analyse: str
    contribute: str


def run(*, quick: bool, commit: str | None = None) -> list[Ratio]:
    """Rounds of both versions, one after the other, each with a PostgreSQL of its own and without one."""
    rounds, seconds = (1, 1.0) if quick else (7, 2.0)
    found: dict[str, tuple[list[float], list[float]]] = {
        "with a database": ([], []),
        "without a database": ([], []),
    }
    with ExitStack() as stack:
        versions = []
        for tree in (ROOT, stack.enter_context(checked_out(commit or FORMER))):
            here = stack.enter_context(served(tree))
            with Caller(here.server.port) as caller:
                caller.call("POST", "/v1/studies", here.admin, {"slug": STUDY, "lower": 0, "upper": 120})
            whole = (here.server, here.contribute)
            versions.append((whole, stack.enter_context(_bare(tree, here.contribute))))
        for number in range(rounds + 1):
            for place, both in enumerate(versions):
                for times, (server, token) in zip(found.values(), both, strict=True):
                    took = _processor_time(server, token, f"round{number}", seconds)
                    # The first round warms up: imports, connections, prepared statements.
                    if number:
                        times[place].append(1e6 * took)
    return [
        Ratio(
            section="former",
            name=f"a contribution {name}",
            unit="µs",
            subject=subject,
            baseline=baseline,
            goal=GOAL,
            better="lower",
            note=f"processor time of the one process; baseline: commit {(commit or FORMER)[:8]}; "
            f"{CONNECTIONS} keep-alive connections, new subjects",
        )
        for name, (subject, baseline) in found.items()
    ]


def _processor_time(server: Server, token: str, prefix: str, seconds: float) -> float:
    """Of a contribution, in a process [s]."""
    with Load(server.port, CONNECTIONS) as load:
        before = _used(server.pid)
        outcome = load.saturate(contribution_requests(STUDY, token, prefix), seconds).expect("201")
        # Those that were under way at the end are answered, and not counted.
        return (_used(server.pid) - before) / (outcome.statuses.total() + CONNECTIONS)


def _used(pid: int) -> float:
    """Processor time of a process, of all its threads [s]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """The files of a commit."""
    with tempfile.TemporaryDirectory(prefix="dither-former-") as directory:
        tree = Path(directory) / "tree"
        git = ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


@contextmanager
def served(tree: Path) -> Iterator[Served]:
    """`dither serve` of a tree with a database of its own."""
    with tempfile.TemporaryDirectory(prefix="dither-former-") as directory:
        Path(directory).chmod(0o711)
        data, port = Path(directory) / "data", free_port()
        command = [
            *(sys.executable, "-m", "app.cli", "serve", "--port", str(port)),
            *("--data-dir", str(data)),
        ]
        with running(command, port, _environment(tree), tree) as process, Caller(port) as caller:
            admin = (data / "admin.token").read_text().strip()

            def token(role: str) -> str:
                asked = {"name": "benchmark", "role": role}
                secret: str = caller.call("POST", "/v1/admin/tokens", admin, asked)["token"]
                return secret

            analyse, contribute = token("analyse"), token("contribute")
            time.sleep(1)
            yield Served(
                server=Server(process.pid, port),
                data=data,
                admin=admin,
                analyse=analyse,
                contribute=contribute,
            )


@contextmanager
def _bare(tree: Path, token: str) -> Iterator[tuple[Server, str]]:
    """The same route of a tree without a database."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "--factory", "benchmarks.stand_in:create_app"),
        *("--host", "127.0.0.1", "--port", str(port)),
        *("--no-access-log", "--no-server-header", "--ws", "none", "--log-level", "warning"),
    ]
    with running(command, port, {**_environment(tree), TOKEN_VARIABLE: token}, tree) as process:
        yield Server(process.pid, port), token


def _environment(tree: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'client'}", "DITHER_LOG_LEVEL": "info"}
