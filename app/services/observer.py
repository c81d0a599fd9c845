"""What the services tell about their work: sizes and durations, never values, ids or names."""

from typing import Protocol


class Observer(Protocol):
    """Who keeps count."""

    def committed(self, contributions: int) -> None:
        """A transaction committed this many single-request contributions."""

    def folded(self, seconds: float) -> None:
        """A study's new contributions were folded into cohorts."""

    def released(self, seconds: float) -> None:
        """A release was made, from the question to the commit."""


class NullObserver:
    """Keeps no count."""

    def committed(self, contributions: int) -> None:
        """Nothing."""

    def folded(self, seconds: float) -> None:
        """Nothing."""

    def released(self, seconds: float) -> None:
        """Nothing."""
