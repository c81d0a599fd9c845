"""Former versions, as they were: their installations and their sources."""

import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tools.release import our_version

HERE = Path(__file__).parent


def versions() -> list[str]:
    """Those that there are."""
    return sorted(folder.parent.name for folder in HERE.glob("*/installation.json"))


def each_version() -> list[Any]:
    """Those that there are, for tests: this version is compared with itself by the slow ones."""
    ours = our_version()
    return [pytest.param(one, marks=pytest.mark.slow) if one == ours else one for one in versions()]


def former_sources(version: str, place: Path) -> Path:
    """The service, its migrations and the SDK of a version, unpacked."""
    with tarfile.open(HERE / version / "sources.tar.xz") as archive:
        archive.extractall(place, filter="data")
    return place


def former_environment(*places: Path) -> dict[str, str]:
    """Variables of a process in which modules of these places hide those of the work tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONSAFEPATH": "1"}
