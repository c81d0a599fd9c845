"""The embedded PostgreSQL server: find, initialise, start, stop."""
