"""The README's example, run word for word against the real service."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live import ROOT

FENCE = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.system
@pytest.mark.skipif(shutil.which("curl") is None, reason="the example uses curl")
def test_the_example_in_the_readme_works(live_server, tmp_path: Path):
    service = live_server()
    section = (ROOT / "README.md").read_text().split("## In 30 seconds")[1].split("\n## ")[0]
    blocks = FENCE.findall(section)
    assert [language for language, _ in blocks] == ["sh", "sh", "python", "sh"]
    assert "serve --data-dir .dither" in blocks[0][1], "the first block is what live_server does"

    commands = tmp_path / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name, arguments in (("dither", "-m app.cli"), ("python", "")):
        command = commands / name
        command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} {arguments} "$@"\n')
        command.chmod(0o755)
    (tmp_path / ".dither").symlink_to(service.data_directory)

    parts = ["set -euo pipefail"]
    for language, code in blocks[1:]:
        parts.append(code if language == "sh" else f"python - <<'PYTHON'\n{code}PYTHON")
    script = "\n".join(parts).replace("http://127.0.0.1:8000", service.base_url)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DITHER_")}
    done = subprocess.run(
        ["bash"],
        input=script.replace("curl ", "curl --silent --fail "),
        cwd=tmp_path,
        # The commands of the README go to port 8000 by default; this service has another one.
        env=environment | {"DITHER_URL": service.base_url, "COLUMNS": "80"},
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "2,000 created, 0 unchanged, 0 refused" in done.stdout
    assert '"epsilon_max":0.1,' in done.stdout.splitlines()[-1]
    # 34 of one person and 39.5 of two thousand: the answer's own bound is a few minutes.
    found = re.search(r'"interval":\{"level":0.95,"lower":([\d.]+),"upper":([\d.]+)', done.stdout)
    assert found is not None
    assert float(found[1]) - 5 < 39.5 < float(found[2]) + 5
