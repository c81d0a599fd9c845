"""The model in `ledger.qnt`, run by Quint's simulator: it downloads nothing, and one seed is one run."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

HERE = Path(__file__).parent
MODEL = HERE / "ledger.qnt"
COMMAND = HERE / "node_modules" / ".bin" / "quint"

WITNESSED = re.compile(r"^(.+) was witnessed in (\d+) trace\(s\) out of (\d+) explored", re.MULTILINE)


def needs_quint() -> None:
    """Skip the test where there is no Node.js or no Quint, unless it is required."""
    if shutil.which("node") is None or not COMMAND.exists():
        reason = "needs Node.js and Quint: run `make setup-model`"
        assert os.environ.get("DITHER_TEST_BROWSER") != "required", reason
        pytest.skip(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What a run of the simulator found.

    Attributes:
        holds: Whether the invariant held in every state.
        witnessed: In how many traces each witness was true.
        output: What it printed.
    """

    holds: bool
    witnessed: dict[str, int]
    output: str


def simulate(
    *,
    samples: int,
    steps: int,
    seed: int,
    init: str = "init",
    invariant: str = "true",
    witnesses: Sequence[str] = (),
    traces: Path | None = None,
) -> Simulation:
    """Run the model from `init` for some steps, many times.

    Args:
        samples: How many traces.
        steps: In each.
        seed: Of all choices.
        init: Where traces begin.
        invariant: What must hold in every state; the run ends where it does not.
        witnesses: What is counted.
        traces: A directory for all of them, one file of JSON each.
    """
    arguments = [
        *("--backend=typescript", "--verbosity=1", f"--init={init}", f"--invariant={invariant}"),
        *(f"--max-samples={samples}", f"--max-steps={steps}", f"--seed={seed:#x}"),
    ]
    if witnesses:
        arguments += ["--witnesses", *witnesses]
    if traces is not None:
        arguments += [f"--n-traces={samples}", f"--out-itf={traces}/{{seq}}.itf.json"]
    done = subprocess.run([COMMAND, "run", MODEL, *arguments], capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert "[ok]" in output or "[violation]" in output, output
    return Simulation(
        holds=done.returncode == 0 and "[ok]" in output,
        witnessed={name: int(count) for name, count, _ in WITNESSED.findall(output)},
        output=output,
    )


def made_traces(*, samples: int, steps: int, seed: int, init: str = "init") -> list[list[dict[str, Any]]]:
    """The states of each of some traces, with numbers, lists and dictionaries of Python."""
    with TemporaryDirectory() as directory:
        simulate(samples=samples, steps=steps, seed=seed, init=init, traces=Path(directory))
        files = [Path(directory) / f"{number}.itf.json" for number in range(samples)]
        return [[plain(state) for state in json.loads(file.read_text())["states"]] for file in files]


def plain(value: Any) -> Any:
    """A value of a trace; a map by two strings has keys of pairs."""
    match value:
        case {"#bigint": number}:
            return int(number)
        case {"#map": entries}:
            return {plain(key): plain(one) for key, one in entries}
        case {"#tup": items}:
            return tuple(plain(item) for item in items)
        case {"#set": items}:
            return [plain(item) for item in items]
        case dict():
            return {name: plain(one) for name, one in value.items() if name != "#meta"}
        case list():
            return [plain(item) for item in value]
    return value
