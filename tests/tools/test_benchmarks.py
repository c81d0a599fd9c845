"""The benchmarks run: too short to judge by, but each of them to its end."""

import pytest

from benchmarks.__main__ import SECTIONS, main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("section", [name for name in SECTIONS if name != "scale"])
def test_a_section_runs_to_its_end(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`scale` keeps points in a file; `tests/tools/test_cost_model.py` has it."""
    assert main([section, "--quick"]) == 0
    assert "ratio" in capsys.readouterr().out
