"""Time is passed in, so that tests can set it."""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the service takes the time from."""

    def now(self) -> datetime:
        """The current time, timezone-aware."""


class SystemClock:
    """The operating system's clock, in UTC."""

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC)
