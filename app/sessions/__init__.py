"""Interactive local protocols as pure state machines: no I/O, no clock, no entropy, no raw data."""
