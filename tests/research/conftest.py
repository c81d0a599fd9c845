"""The research distribution, as it is installed."""

from importlib.metadata import entry_points

import pytest

from tests.support.commands import dither
from tests.support.one_level import one_level

__all__ = ["dither", "one_level"]

if not any(found.name == "demo" for found in entry_points(group="dither.commands")):
    raise pytest.UsageError("dither-research is missing or old: pip install --no-deps -e ./research")
