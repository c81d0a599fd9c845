"""What the services tell about their work: sizes and durations, never values, ids or names."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

Step = Literal["seal", "fold", "plan", "draw", "publish", "audit"]
"""What the services spend their time on, of one request or command."""


class Observer(Protocol):
    """Who keeps count."""

    def committed(self, contributions: int) -> None:
        """A transaction committed this many single-request contributions."""

    def step(self, name: Step) -> AbstractContextManager[object]:
        """While a step is done."""

    def released(self, seconds: float) -> None:
        """A release was made, from the question to the commit."""


class NullObserver:
    """Keeps no count."""

    def committed(self, contributions: int) -> None:
        """Nothing."""

    def step(self, name: Step) -> AbstractContextManager[object]:
        """Nothing."""
        return nullcontext()

    def released(self, seconds: float) -> None:
        """Nothing."""
