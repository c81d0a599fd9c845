# Made by client/unasync.py from dither/_async/__init__.py. Do not edit.
"""The methods of `Client`."""
