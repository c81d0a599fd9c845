"""What the command writes to, and reads from: terminals and files that are not UTF-8, pipes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli.common import readable

SAYS = """
import sys
from app.cli import main
main(["--version"])
from app.cli.common import console, print_json, print_table
console.print("Zo\\u00eb \\u6570")
print_table([{"name": "Zo\\u00eb"}], {"name": "na\\u00efve"})
sys.stdout.flush()
print("---")
print_json({"name": "Zo\\u00eb \\U0001f600"})
"""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_that_is_not_utf_8_is_written_all_the_same(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", SAYS], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    text, _, document = done.stdout.decode(encoding).partition("---")
    assert "Zo" in text
    assert json.loads(document) == {"name": "Zo\u00eb \U0001f600"}


def test_a_pipe_is_not_opened_before_it_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Opening it would wait for a writer, and closing it would end one.
    assert readable(str(pipe)) == str(pipe)
