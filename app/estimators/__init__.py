"""Estimators: pure functions of what may be known, no I/O, no clock, no entropy, no raw data."""
