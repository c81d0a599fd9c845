"""Helpers of the tests. Production code cannot import from here."""
