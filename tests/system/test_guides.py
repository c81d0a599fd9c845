"""The README and the guides that it links to, literally: in its order and shuffled, on one service."""

import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import LiveServer
from tests.support.databases import scratch_directory
from tests.support.live import ROOT

pytestmark = pytest.mark.system

ELSEWHERE = {
    "docs/how-to/backend.md": "tests/store/test_backend_guide.py",
    "docs/how-to/install.md": "a script of its own",
}
"""Guides that another test runs."""

STARTS = re.compile(r"^(make (setup|serve)|\.venv/bin/dither serve)", re.MULTILINE)
"""Blocks that start the service, which the test does."""

ADDRESS = "http://127.0.0.1:8000"


FIRST = ("README.md", "docs/first-hour.md", "docs/tutorial.md")
"""What is read first, which every run of the tests goes through; the slow ones go through the rest, too."""


def guides() -> list[str]:
    """README, then what it links to of the tutorials and how-tos, in the order of the links."""
    links = re.findall(
        r"\]\((docs/(?:first-hour|tutorial|how-to/[a-z-]+)\.md)\)", (ROOT / "README.md").read_text()
    )
    return ["README.md", *dict.fromkeys(link for link in links if link not in ELSEWHERE)]


def script(guide: str) -> str:
    """The commands of a guide, one after the other, those in Python in a Python of their own."""
    return "\n".join(_commands((ROOT / guide).read_text(), shell_only=guide == "docs/tutorial.md"))


def _commands(page: str, *, shell_only: bool) -> Iterator[str]:
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        if language == "sh" and not STARTS.search(block):
            yield block
        elif language == "python" and not shell_only:
            yield f"python - <<'END OF PYTHON'\n{block}END OF PYTHON\n"


def test_every_guide_is_run_here_or_elsewhere() -> None:
    here = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "how-to").glob("*.md")}
    assert here <= {*guides(), *ELSEWHERE}
    assert {"docs/tutorial.md", "docs/first-hour.md"} < set(guides())


@pytest.mark.parametrize(
    "order", ["first", *(pytest.param(order, marks=pytest.mark.slow) for order in ("as linked", "shuffled"))]
)
def test_the_guides_run_one_after_the_other_and_leave_nothing(live_server: LiveServer, order: str) -> None:
    chosen = guides()
    if order == "first":
        chosen = [guide for guide in chosen if guide in FIRST]
    if order == "shuffled":
        random.Random(11).shuffle(chosen)
        assert chosen != guides()
    with scratch_directory() as directory:
        for name in (".venv", "docs"):
            (directory / name).symlink_to(ROOT / name)
        service = live_server(embedded=True, data_dir=directory / ".dither")
        before = _state(ROOT)
        for guide in chosen:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script(guide).replace(ADDRESS, service.base_url)],
                cwd=directory,
                env=_environment(directory) | {"DITHER_URL": service.base_url},
                capture_output=True,
                text=True,
                timeout=300,
            )
            assert done.returncode == 0, f"{guide}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
            if guide == "docs/first-hour.md":
                _check_first_hour(done.stdout, done.stderr)
        assert {path.name for path in directory.iterdir()} == {".venv", "docs", ".dither", "home"}
        assert _state(ROOT) == before
        assert service.terminate() == 0


def _check_first_hour(output: str, errors: str) -> None:
    assert "400 created, 0 unchanged, 1 refused" in output
    assert "outside the study's range, 0 to 12" in " ".join(output.split())
    assert "1 created, 400 unchanged, 0 refused" in output
    assert "already_contributed another contribution of this subject is live" in output
    assert output.count("exit status 1") == 4
    assert "must be one of auto, " in errors
    assert "nothing answers at http://127.0.0.1:9;" in errors


def _environment(directory: Path) -> dict[str, str]:
    """No variable of ours, and a home of its own: nothing may hide in the user's."""
    (directory / "home").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    return kept | {"HOME": str(directory / "home"), "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}


def _state(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "status", "--porcelain", "--ignored", "--", "docs", "README.md"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
