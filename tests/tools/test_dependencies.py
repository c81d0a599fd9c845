"""`make audit-dependencies`: what pip-audit says, and what is said where it cannot say anything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live import ROOT

SOUND = {"name": "numpy", "version": "2.0", "vulns": []}
KNOWN = {"name": "jinja2", "version": "3.1", "vulns": [{"id": "CVE-1", "fix_versions": ["3.2"]}]}
SKIPPED = {"name": "rich", "skip_reason": "not found"}


def audit(folder: Path, printed: str) -> subprocess.CompletedProcess[str]:
    """With a pip-audit that prints this."""
    stand_in = folder / "pip-audit"
    stand_in.write_text(f"#!{sys.executable}\nprint({printed!r})\n")
    stand_in.chmod(0o755)
    command = [sys.executable, "-m", "tools.dependencies", str(stand_in), "requirements.lock"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def report(*dependencies: object) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


def test_a_known_vulnerability_is_named(tmp_path: Path) -> None:
    done = audit(tmp_path, report(SOUND, KNOWN))
    assert done.returncode == 1
    assert done.stderr == "requirements.lock: jinja2 3.1: CVE-1, mended in ['3.2']\n"


def test_a_sound_lock_is_sound(tmp_path: Path) -> None:
    assert audit(tmp_path, report(SOUND)).returncode == 0


@pytest.mark.parametrize("printed", ["", report(), report(SOUND, SKIPPED)])
def test_no_answer_is_no_approval(tmp_path: Path, printed: str) -> None:
    done = audit(tmp_path, printed)
    assert done.returncode == 2
    assert "the database of vulnerabilities cannot be reached" in done.stderr
    assert "no known vulnerability" not in done.stdout


def test_a_missing_pip_audit_is_no_approval(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.dependencies", str(tmp_path / "none"), "requirements.lock"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install pip-audit" in done.stderr
