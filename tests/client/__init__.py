"""Tests of the SDK `dither`."""
