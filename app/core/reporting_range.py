"""The reporting range of a study: the part of its range in which devices of local people report.

It is one `zoom`-th of the study's range, so that a point in it is a point of a whole grid by an exact
multiplication: a device moves its value into the range, reports `zoom` times its distance from the start with
the study's randomizer, unchanged, and a report R says start + R / zoom. So the report is as private as every
other one, unbiased for the value in the range, and its variance is that of others over zoom squared.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from uuid import UUID

from app.core.grid import GRID_SIZE, Grid

FIELD = "reporting_range"
"""What a contribution calls it."""

INSIDE = 1 << 10
"""What is added to the segment of a report that was made inside the range; all segments are below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Where reports say what they say: start + R / zoom [grid steps]."""

    start: int = 0
    zoom: int = 1

    def to_raw(self, point: int) -> int:
        """What a report would have to be to say this grid point, which may lie outside."""
        return self.zoom * (point - self.start)


WHOLE = Reported()
"""Of reports over the study's range."""

MAX_ZOOM = 1 << 20
"""What is narrower than that is hardly a range."""


class ReportingRange:
    """A reporting range, as it is stored.

    Args:
        text: JSON.

    Attributes:
        where: Its start and zoom.
        outside: Of the people who answered the searches that found it at most this part has values outside,
            in 95 of 100 cases.
        searches: Ids of the searches: for its lower end, and for its upper end.

    >>> found = ReportingRange.of(Reported(start=0, zoom=10), outside=0.1, searches=("a", "b"))
    >>> found.text, found == ReportingRange(found.stored)
    ('0/10', True)
    """

    __slots__ = ("outside", "searches", "stored", "where")

    def __init__(self, text: str) -> None:
        said = json.loads(text)
        self.where = Reported(start=said["start"], zoom=said["zoom"])
        self.outside: float = said["outside"]
        self.searches: tuple[str, ...] = tuple(said["searches"])
        self.stored = json.dumps(said, sort_keys=True)

    @classmethod
    def of(cls, where: Reported, *, outside: float, searches: Sequence[UUID | str]) -> "ReportingRange":
        """From what it is made of."""
        ids = [str(one) for one in searches]
        return cls(
            json.dumps({"start": where.start, "zoom": where.zoom, "outside": outside, "searches": ids})
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReportingRange) and self.stored == other.stored

    def __hash__(self) -> int:
        return hash(self.stored)

    def __repr__(self) -> str:
        return f"ReportingRange({self.stored!r})"

    @property
    def text(self) -> str:
        """What a report says that was made inside it."""
        return f"{self.where.start}/{self.where.zoom}"

    def ends(self, grid: Grid) -> tuple[float, float]:
        """Its ends, on the grid of the study [data's unit]."""
        start = Fraction(self.where.start, GRID_SIZE)
        return grid.to_unit(start), grid.to_unit(start + Fraction(1, self.where.zoom))
