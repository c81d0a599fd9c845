"""What every answer that can be made says: one with noise of its own, where it says nothing else."""

from typing import ClassVar


class AnyMade:
    """An answer that is planned; nothing of it is drawn yet."""

    __slots__ = ()

    by_steps: ClassVar[bool] = False
    """Whether it sharpens the answers of its question that came before it."""

    @property
    def draws(self) -> bool:
        """Whether there is noise to draw: else the step before it says as much."""
        return True

    @property
    def had_by_all(self) -> int:
        """What all who are charged had given the question before [ppm]."""
        return 0
