"""`make check-migrations`: a migration of a tagged release is not edited."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live import ROOT

FIRST = "migrations/versions/0001_first.py"


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.migrations", str(root)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A checkout with one migration, which is released as v1, and another one that is not."""
    (tmp_path / "migrations" / "versions").mkdir(parents=True)
    git(tmp_path, "init", "-q")
    (tmp_path / FIRST).write_text("first = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "v1")
    (tmp_path / "migrations/versions/0002_second.py").write_text("second = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "second")
    return tmp_path


def test_what_is_not_released_may_be_edited(released: Path) -> None:
    (released / "migrations/versions/0002_second.py").write_text("second = 2\n")
    done = check(released)
    assert (done.returncode, done.stdout) == (0, "1 tagged releases, no migration of them edited\n")


@pytest.mark.parametrize("committed", [True, False])
def test_an_edit_of_a_released_migration_is_refused(released: Path, committed: bool) -> None:
    (released / FIRST).write_text("first = 2\n")
    if committed:
        git(released, "commit", "-qam", "an edit")
    done = check(released)
    assert (done.returncode, done.stderr) == (1, f"{FIRST} of v1 was edited\n")


def test_a_released_migration_that_is_gone_is_refused(released: Path) -> None:
    (released / FIRST).unlink()
    done = check(released)
    assert (done.returncode, done.stderr) == (1, f"{FIRST} of v1 is missing\n")


def test_without_a_history_nothing_is_said_to_hold(tmp_path: Path) -> None:
    assert check(tmp_path).returncode == 2


def test_a_clone_that_may_lack_tags_is_refused(
    released: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shallow = tmp_path_factory.mktemp("shallow") / "clone"
    git(released, "clone", "-q", "--depth", "1", f"file://{released}", str(shallow))
    done = check(shallow)
    assert done.returncode == 1
    assert "shallow" in done.stderr


def test_the_migrations_of_this_checkout_are_as_they_were_released() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    done = check(ROOT)
    assert done.returncode == 0 or "shallow" in done.stderr, done.stderr
