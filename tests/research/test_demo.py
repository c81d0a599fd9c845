"""The demo, as somebody who has just cloned the repository sees it."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from app.cli.common import CommandFailed
from benchmarks.services import free_port
from dither_research.demo.service import running_service
from dither_research.demo.survey import surveys
from tests.support.databases import scratch_directory
from tests.support.live import ROOT

ALLOWED_SECONDS = 90


class Demo:
    """`dither demo` in a process of its own, its output read line by line."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        # Another installation's settings, and a proxy, must not matter.
        environment = os.environ | {
            "DITHER_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing",
            "DITHER_LIFETIME_EPSILON": "0.001",
            "HTTP_PROXY": "http://127.0.0.1:1",
            "COLUMNS": "80",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "demo", "--data-dir", str(directory), *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        while text not in self.output:
            line = self.process.stdout.readline()
            assert line, f"the demo ended early:\n{self.output}"
            self.output += line

    def end(self) -> int:
        """Read the rest and return the exit status."""
        self.output += self.process.communicate(timeout=120)[0]
        return self.process.returncode


@contextmanager
def demo(directory: Path, *arguments: str) -> Iterator[Demo]:
    running = Demo(directory, *arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.terminate()
            running.end()


def users_of(directory: Path) -> list[str]:
    """Command lines of processes that work in a directory: the service names it, PostgreSQL sits in it."""
    found = []
    for process in psutil.process_iter():
        try:
            command, place = " ".join(process.cmdline()), process.cwd()
        except psutil.Error:
            continue
        if str(directory) in command or Path(place).is_relative_to(directory):
            found.append(command)
    return found


@pytest.fixture
def directory() -> Iterator[Path]:
    with scratch_directory() as scratch:
        yield scratch.resolve() / "demo"


@pytest.mark.system
def test_the_demo_tells_its_story_leaves_a_service_and_stops_everything_when_interrupted(directory: Path):
    port = free_port()
    started = time.monotonic()
    with demo(directory, "--port", str(port)) as running:
        running.read_until("curl")
        assert time.monotonic() - started < ALLOWED_SECONDS
        story = running.output

        assert "\N{HORIZONTAL ELLIPSIS}" not in story, "a heading or a cell was cut off"
        used = re.findall(r"^(adpm|uniform|kvh|transformed|hourglass)\b", story, re.MULTILINE)
        assert used[:-1] == ["adpm", "uniform", "kvh"]
        # Of as many people both are predicted to err the same, to four digits.
        assert used[-1] in ("transformed", "hourglass")
        for mean in ("9.009", "29.074", "0.322"):
            assert f" {mean} " in story
        assert "the true mean is 29.083 now" in " ".join(story.split())
        assert "both times, the same" in story
        # Six steps, then one for those who came later; the demo holds each of them to its plan.
        steps = re.findall(r"^\s+0\.(\d)\s+([\d.]+)\s+± ([\d.]+)\s+([\d.]+)\s+([\d.]+)$", story, re.MULTILINE)
        assert [step[0] for step in steps] == [*"123456", "6"]
        halves, charges, totals = ([float(step[place]) for step in steps] for place in (2, 3, 4))
        assert halves[:6] == sorted(halves[:6], reverse=True)
        assert totals[5] == pytest.approx(sum(charges[:6]), abs=1e-9)
        said = " ".join(story.split())
        assert "newcomers only: ± " in said
        assert "new women paid for themselves, and woman-0001 paid nothing" in said
        assert "Noise of its own for each of these answers would have charged" in said
        assert story.index("409 no_gain: A new answer would be no gain") < story.index('"allow_worse": true}')
        assert "spent nothing on that refusal" in " ".join(story.split())
        assert "409 budget_exhausted: The privacy budget is exhausted: no person" in story
        assert f"http://127.0.0.1:{port}" in story
        # The interval holds but for a chance of 5 %, and at this size is never far from the file's median.
        median = re.search(
            r"The median:\s+([\d.]+)\.\s+It\s+lies\s+between\s+([\d.]+)\s+and\s+([\d.]+),.*in\s+the\s+file"
            r"\s+it\s+is\s+([\d.]+)\.\s",
            story,
            re.DOTALL,
        )
        assert median is not None
        estimate, lower, upper, truth = map(float, median.groups())
        assert lower <= estimate <= upper
        assert truth == 6
        assert 0 <= lower < 13
        assert 2.5 < upper < 23
        assert "No person answered twice" in " ".join(story.split())

        # Every household's own town, the median, and the range that was found.
        assert (
            len(re.findall(r"^mean, (?:smallest|small|middle|large|largest) towns", story, re.MULTILINE)) == 5
        )
        for thousands in ("643", "866", "731"):
            assert f" {thousands} " in story[story.index("Spanish households") :]
        assert "The range that was found is" in said

        # The printed curl line, word for word, gives the answer of the table.
        _, _, header, url = shlex.split(story.splitlines()[-1])
        name, value = header.split(": ")
        answer = httpx.get(url, headers={name: value}, trust_env=False)
        assert answer.status_code == 200
        assert f" {answer.json()['estimate']:.3f} " in story
        assert answer.json()["new_contributions"] is False

        with demo(directory, "--no-wait") as second:
            assert second.end() == 1
            assert "another demo is running" in second.output

        running.process.send_signal(signal.SIGINT)
        assert running.end() == 0
    assert users_of(directory) == []


@pytest.mark.system
@pytest.mark.slow
def test_a_demo_runs_again_where_an_earlier_one_was_killed(directory: Path):
    with ExitStack() as stack:
        killed = stack.enter_context(demo(directory))
        killed.read_until("People contribute")
        killed.process.kill()
        killed.end()
        assert any("postgres" in command for command in users_of(directory))

        again = stack.enter_context(demo(directory))
        again.read_until("Asking again costs nothing")
        again.process.send_signal(signal.SIGINT)
        assert again.end() == 0, again.output
    assert users_of(directory) == []


def test_a_directory_with_anything_else_in_it_is_left_alone(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CommandFailed, match="something else"), running_service(tmp_path, None):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_port_that_is_taken_is_refused_by_name(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        with pytest.raises(CommandFailed, match=f"port {port} is taken"), running_service(tmp_path, port):
            pass


def test_everybody_in_the_file_takes_part_with_many_epsilons_and_every_trust_tag():
    studies = surveys()
    assert [len(study.records) for study in studies] == [6366, 6366, 6366]
    assert [study.true_mean for study in studies] == pytest.approx([9.00943, 29.08286, 0.322495], abs=1e-5)
    assert {tag for study in studies for tag in study.tags} == {"central", "local", "public"}
    for study in studies:
        offers = {record.epsilon for record in study.records if record.epsilon is not None}
        assert len(offers) > 50
        low, high = map(float, study.epsilon)
        assert all(low <= float(str(offer)) <= high for offer in offers)
    assert surveys() == studies
    early, late = studies[1].with_newcomers()
    assert {*early.records} | {*late.records} == {*studies[1].records}
    assert (len(early.records), len(late.records)) == (5730, 636)


def test_what_people_offer_does_not_depend_on_what_they_answer():
    for study in surveys():
        pairs = [
            (float(str(record.value)), float(str(record.epsilon)))
            for record in study.records
            if record.epsilon is not None
        ]
        n = len(pairs)
        mean_value = sum(value for value, _ in pairs) / n
        mean_offer = sum(offer for _, offer in pairs) / n
        covariance = sum((value - mean_value) * (offer - mean_offer) for value, offer in pairs) / n
        spread = (
            sum((value - mean_value) ** 2 for value, _ in pairs)
            / n
            * sum((offer - mean_offer) ** 2 for _, offer in pairs)
            / n
        ) ** 0.5
        # The draws are fixed, so this is a fact about them: 4 / sqrt(6366) = 0.05.
        assert abs(covariance / spread) < 0.05
