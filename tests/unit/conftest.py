"""Simulations are read at one level."""

from tests.support.one_level import one_level

__all__ = ["one_level"]
