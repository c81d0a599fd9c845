"""The arithmetic of a device: numbers, exact random decisions, randomizers. It needs nothing but Python.

The service does the same arithmetic, with this code: what a device may send, and how noisy that is, stands
in one place.
"""
