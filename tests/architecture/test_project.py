"""The shape of the project: sizes, locks, settings and commands."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from app.settings import COMMAND_VARIABLES, Settings

ROOT = Path(__file__).parents[2]
MOST_LINES = 600
"""A module is cut by concept; with its proofs it may have this many lines."""
LOCKS = ("requirements.lock", "requirements-dev.lock")
OTHER_LOCKS = ("requirements-release.lock", "requirements-generators.lock", "requirements-peers.lock")
"""Of environments of their own."""


def modules() -> list[Path]:
    places = [
        ("app", "*.py"),
        ("client/dither", "*.py"),
        ("research/dither_research", "*.py"),
        ("client/js/src", "*.ts"),
        ("client/js/page", "*.ts"),
        ("client/js/example", "*.js"),
    ]
    return [path for part, name in places for path in sorted((ROOT / part).rglob(name))]


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {
        normalized(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]) for requirement in requirements
    }


def locked(lock: str) -> set[str]:
    lines = (ROOT / lock).read_text().splitlines()
    return {normalized(line.split("==")[0]) for line in lines if re.match(r"[a-z0-9]", line)}


def test_no_module_is_longer_than_the_limit():
    long = {str(path.relative_to(ROOT)): count for path in modules() if (count := lines(path)) > MOST_LINES}
    assert not long


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_nothing_is_left_for_later():
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    assert not [str(path) for path in modules() if unfinished.search(path.read_text())]


@pytest.mark.parametrize("lock", [*LOCKS, *OTHER_LOCKS])
def test_a_lock_names_no_index_host_and_no_path_and_checks_every_file(lock):
    text = (ROOT / lock).read_text()
    assert not re.search(r"https?:|file:|index-url|find-links|@ |/(opt|home|root|tmp|work)/", text)
    packages = re.findall(
        r"^[a-z0-9][^\n]*==[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}[ \\]*\n)+)", text, re.MULTILINE
    )
    assert len(packages) == len(re.findall(r"^[a-z0-9].*==", text, re.MULTILINE))
    assert len(packages) > (50 if lock in LOCKS else 5)


@pytest.mark.parametrize("place", ["client/js", "tests/model"])
def test_a_lock_of_npm_names_no_registry_and_checks_every_file(place):
    packages = json.loads((ROOT / place / "package-lock.json").read_text())["packages"]
    packages.pop("")
    assert packages
    for package in packages.values():
        assert "resolved" not in package
        assert package["integrity"].startswith("sha512-")


def test_the_locks_hold_every_declared_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sdk = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]
    research = tomllib.loads((ROOT / "research" / "pyproject.toml").read_text())["project"]
    assert f"dither=={sdk['version']}" in project["dependencies"]
    assert project["version"] == sdk["version"]
    needed = (names(project["dependencies"]) - {"dither"}) | names(sdk["dependencies"])
    production = names(project["optional-dependencies"]["embedded"])
    assert needed | production <= locked("requirements.lock")
    assert "matplotlib" not in locked("requirements.lock")
    extras = names([item for extra in project["optional-dependencies"].values() for item in extra])
    extras |= names([*research["dependencies"], *research["optional-dependencies"]["demo"]]) - {
        "dither-server"
    }
    extras |= names([item for extra in sdk["optional-dependencies"].values() for item in extra])
    assert needed | extras <= locked("requirements-dev.lock")
    assert "matplotlib" not in locked("requirements.lock"), "a production image needs no research"
    assert "dither" not in locked("requirements.lock"), "the SDK is ours, not the index's"


def test_every_setting_is_described_and_none_shows_a_secret():
    for name, description in Settings.variables().items():
        assert description.endswith("."), name
    secret = "postgresql://user:hunter2@host/name"
    settings = Settings.model_validate({"database_url": secret, "subject_key": "ab" * 32})
    assert "hunter2" not in repr(settings)
    assert "abab" not in repr(settings)


def test_the_containers_use_no_setting_that_does_not_exist():
    known = {
        *Settings.variables(),
        *COMMAND_VARIABLES,
        "DITHER_TEST_ENTROPY",
        "DITHER_TEST_BROWSER",
        "DITHER_TEST_POSTGRES",
        "DITHER_TEST_R",
    }
    for file in ("docker-compose.yml", "Dockerfile", ".env.example", "Makefile"):
        assert set(re.findall(r"DITHER_[A-Z_]+", (ROOT / file).read_text())) <= known, file


def test_every_make_target_says_what_it_does():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    described = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert described == set(phony.group(1).split())
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("tool", ["BROWSER", "POSTGRES"])
def test_ci_skips_no_test_for_want_of_a_tool(tool):
    assert f"export DITHER_TEST_{tool}=required\n" in (ROOT / ".ci" / "run").read_text()
