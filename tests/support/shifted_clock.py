"""`python -m tests.support.shifted_clock`: the command `dither` with a clock that a test sets.

The file of its port in the directory `CLOCK_OFFSETS` holds the seconds that are added to the time; without it
there are none.
"""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.cli import main
from app.core.clock import SystemClock

OFFSETS = "CLOCK_OFFSETS"


def _now(self: SystemClock) -> datetime:
    try:
        seconds = float((Path(os.environ[OFFSETS]) / sys.argv[sys.argv.index("--port") + 1]).read_text())
    except (FileNotFoundError, ValueError):
        seconds = 0.0
    return datetime.now(UTC) + timedelta(seconds=seconds)


if __name__ == "__main__":
    SystemClock.now = _now  # type: ignore[method-assign]  # that is what this program is for
    main()
