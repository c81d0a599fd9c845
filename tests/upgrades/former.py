"""Former versions, as they were: their installations and their sources."""

import os
import tarfile
from pathlib import Path

HERE = Path(__file__).parent


def versions() -> list[str]:
    """Those that there are."""
    return sorted(folder.parent.name for folder in HERE.glob("*/installation.json"))


def former_sources(version: str, place: Path) -> Path:
    """The service, its migrations and the SDK of a version, unpacked."""
    with tarfile.open(HERE / version / "sources.tar.xz") as archive:
        archive.extractall(place, filter="data")
    return place


def former_environment(*places: Path) -> dict[str, str]:
    """Variables of a process in which modules of these places hide those of the work tree."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DITHER_")}
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, places)), "PYTHONSAFEPATH": "1"}
