"""The import contracts hold, each of them fails when it is broken, and no room escapes them."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

with (ROOT / "pyproject.toml").open("rb") as file:
    PYPROJECT: dict[str, Any] = tomllib.load(file)

CONTRACTS = {contract["id"]: contract for contract in PYPROJECT["tool"]["importlinter"]["contracts"]}

BREACHES = {
    "rooms": ("app/core/epsilon.py", "import app.accounting.costs"),
    "use-cases": ("app/services/statistics/gain.py", "import app.services.shapes.counts"),
    "web": ("app/web/rate.py", "import app.api.access"),
    "formats": ("app/formats/compression.py", "import app.services.paging"),
    "postgres": ("app/postgres/programs.py", "import app.store.database"),
    "maths": ("app/accounting/costs.py", "import pydantic"),
    "store": ("app/store/tokens.py", "import app.mechanisms.draw"),
    "sql": ("app/web/state.py", "import sqlalchemy"),
    "services": ("app/services/paging.py", "import fastapi"),
    "routers": ("app/web/metrics.py", "import app.store.database"),
    "sdk": ("client/dither/_wire.py", "import numpy"),
    "device": ("client/dither/device/exact.py", "import dither._ledger"),
    "server-without-sdk": ("app/services/subjects.py", "import dither"),
    "commands": ("app/cli/studies.py", "import httpx"),
    "entropy": ("app/services/admin/budgets.py", "import secrets"),
    "solver": ("app/estimators/linear.py", "import clarabel"),
    "research": ("app/main.py", "import dither_research"),
    "settings": ("app/services/admin/tokens.py", "import app.settings"),
}
"""For each contract, a line that breaks it."""

RUFF = (sys.executable, "-m", "ruff", "check", "--select", "TID251", "--output-format", "json")

LISTED = {
    "maths": {"core", "accounting", "mechanisms", "estimators", "sessions"},
    "routers": {"api", "dashboard", "web"},
}
"""Rooms that a contract names one by one."""


def lint(directory: Path) -> tuple[int, str]:
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(directory), str(directory / "client")])},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_contracts_hold():
    status, output = lint(ROOT)
    assert status == 0, output


def test_each_contract_fails_when_it_is_broken(tmp_path):
    assert set(BREACHES) == set(CONTRACTS)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for part in ("app", "client/dither"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path, line in BREACHES.values():
        with (tmp_path / path).open("a") as module:
            module.write(f"\n{line}\n")
    status, output = lint(tmp_path)
    assert status == 1
    for contract, (path, line) in BREACHES.items():
        name = CONTRACTS[contract]["name"]
        assert f"{name} BROKEN" in output
        # The section of the contract, up to the next heading, names the breach.
        section = output.split(f"\n{name}\n---", 1)[1].split("\n---", 1)[0]
        importer = path.removeprefix("client/").removesuffix(".py").replace("/", ".")
        assert f"{importer} -> {line.removeprefix('import ')}" in section


def test_no_room_escapes_the_contracts_that_name_rooms():
    for contract, rooms in LISTED.items():
        present = {f"app.{room}" for room in rooms if (ROOT / "app" / room / "__init__.py").exists()}
        assert set(CONTRACTS[contract]["source_modules"]) == present


@pytest.mark.parametrize(
    ("line", "refused_in", "allowed_in"),
    [
        ("import random", "app/services/x.py", "research/dither_research/seeded.py"),
        ("import numpy.random", "app/estimators/x.py", "research/dither_research/seeded.py"),
        ("from numpy import random", "app/accounting/x.py", "tests/unit/x.py"),
        ("import secrets", "app/store/x.py", "app/services/admin/tokens.py"),
        ("from os import urandom", "app/cli/x.py", "app/mechanisms/x.py"),
        ("import clarabel", "app/estimators/x.py", "app/estimators/solver.py"),
    ],
)
def test_the_linter_knows_where_entropy_and_solvers_belong(line, refused_in, allowed_in):
    for path, refused in ((refused_in, True), (allowed_in, False)):
        done = subprocess.run(
            [*RUFF, "--stdin-filename", path, "-"],
            cwd=ROOT,
            input=line + "\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert bool(json.loads(done.stdout)) == refused, path
