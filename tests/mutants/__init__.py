"""Mutants: small faults in the code, and the tests that must find each of them."""
