"""Dither: private statistics over people who each choose their own epsilon."""

import os

# Before NumPy is loaded. Sums over the groups of a study are so short that threads of BLAS wait for each
# other many times as long as they work, and a service has a process for each core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
