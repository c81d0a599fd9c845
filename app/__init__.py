"""Dither: private statistics over people who each choose their own epsilon."""
