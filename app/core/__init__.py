"""Value types that every room shares: no I/O, no framework, no entropy."""
