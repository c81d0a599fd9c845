"""Answers about the shape of the values, and of several numbers: their plans, draws and steps."""
