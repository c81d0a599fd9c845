"""The research distribution, as it is installed."""

from importlib.metadata import entry_points

import pytest

from tests.support.commands import dither

__all__ = ["dither"]

if not any(found.name == "reproduce" for found in entry_points(group="dither.commands")):
    raise pytest.UsageError(
        "dither-research is missing: `make setup`, or pip install --no-deps -e ./research"
    )
