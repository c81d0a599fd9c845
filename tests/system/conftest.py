"""The command line, run in this process."""

from tests.support.commands import dither

__all__ = ["dither"]
