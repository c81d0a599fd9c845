"""The promises hold in the model, and each planted fault breaks one: what the simulator finds, and how fast.

`DITHER_TEST_TRACES_SEED` makes other choices where promises must hold. One seed is one run, on every machine.
"""

import os
import re

import pytest

from tests.model.quint import MODEL, needs_quint, simulate

SEED = int(os.environ.get("DITHER_TEST_TRACES_SEED", "1"))

FAULTS = tuple(
    re.findall(r'"(\w+)"', re.findall(r"val FAULTS = Set\((.*?)\)", MODEL.read_text(), re.DOTALL)[0])
)

PROMISES = tuple(
    re.findall(r"\w+", re.findall(r"val promises = and \{(.*?)\}", MODEL.read_text(), re.DOTALL)[0])
)

WITHIN = 600
"""Traces of `STEPS` steps from seed 1, with one of the faults each, within which every fault is found."""

STEPS = 24


def found(fault: str) -> str:
    return f'found("{fault}")'


def test_there_are_faults_and_promises():
    assert len(FAULTS) == 16
    assert len(PROMISES) == 10


@pytest.mark.long
def test_the_promises_hold_and_what_they_are_about_happens(capsys: pytest.CaptureFixture[str]) -> None:
    """A promise about what never happens is none: steps, leavers, retries and deaths are counted."""
    needs_quint()
    happens = {
        "an answer is sharpened": 'state.chains.get("one").parts.foldl(0, (n, part) => n + part.share) > 4',
        "a sum is closed": 'state.chains.get("one").parts.select(part => part.closed).length() > 0',
        "a key is used again": 'last.said == "again"',
        "a process dies after a commit": 'last.op == "publish" and last.done and not(last.heard)',
        "a draft is overtaken": 'last.op == "publish" and last.said == "budget_exhausted"',
        "a study is archived": "state.archived.size() > 0",
    }
    samples = 60
    run = simulate(
        samples=samples, steps=STEPS, seed=SEED, invariant="promises", witnesses=list(happens.values())
    )
    assert run.holds, run.output
    missing = [name for name, witness in happens.items() if not run.witnessed[witness]]
    assert not missing, run.output
    with capsys.disabled():
        print(f"\n{samples} traces of {STEPS} steps, {samples * (STEPS + 1)} states: every promise holds")


@pytest.mark.long
def test_every_planted_fault_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    needs_quint()
    run = simulate(
        samples=WITHIN, steps=STEPS, seed=1, init="initWithFault", witnesses=[found(one) for one in FAULTS]
    )
    counts = {fault: run.witnessed[found(fault)] for fault in FAULTS}
    assert all(counts.values()), run.output
    with capsys.disabled():
        print(f"\n{WITHIN} traces, each with one of {len(FAULTS)} faults, are found out: {counts}")


@pytest.mark.slow
def test_the_promises_hold_in_many_traces(capsys: pytest.CaptureFixture[str]) -> None:
    needs_quint()
    samples, steps = 20_000, 40
    run = simulate(samples=samples, steps=steps, seed=SEED, invariant="promises")
    assert run.holds, run.output
    with capsys.disabled():
        print(f"\n{samples} traces of {steps} steps, {samples * (steps + 1)} states: every promise holds")
