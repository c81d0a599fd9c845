"""Published data sets, read from the packages that ship them; none of their code is imported."""

import csv
import io
import tarfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from app.cli.common import CommandFailed
from app.cli.extensions import RESEARCH


def statsmodels_rows(name: str) -> Sequence[dict[str, str]]:
    """The rows of a data set of `statsmodels`, by column.

    Args:
        name: Of its folder and its file, for example "fair".

    Raises:
        CommandFailed: the package is not installed.
    """
    path = _file("statsmodels", f"datasets/{name}/{name}.csv")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def pydataset_rows(name: str) -> Sequence[dict[str, str]]:
    """The rows of a data set of `pydataset`, which has those of R's packages, by column.

    Args:
        name: R's package and the data set in it, for example "Ecdat/BudgetFood".

    Raises:
        CommandFailed: the package is not installed.
    """
    # One archive holds all of them. The package itself would unpack it into the home directory.
    with tarfile.open(_file("pydataset", "resources.tar.gz")) as archive:
        member = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        assert member is not None, f"{name} is no file in the archive"
        return list(csv.DictReader(io.TextIOWrapper(member, newline="")))


def _file(package: str, name: str) -> Path:
    """A file in a package's folder."""
    spec = find_spec(package)
    path = Path(spec.origin).parent / name if spec is not None and spec.origin is not None else None
    if path is None or not path.exists():
        raise CommandFailed(f"this reads a data set that {package} ships: pip install '{RESEARCH}[demo]'")
    return path
