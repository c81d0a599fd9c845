"""Measures: the numbers that a study asks each person for, each with a range of its own."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

MAX_MEASURES = 16
"""Numbers that a study may ask each person for."""

Range = tuple[Decimal, Decimal]


class Measures:
    """The declared measures of a study, in the order of its coordinates; false where there are none.

    Args:
        texts: Every measure as name:lower:upper, in their order.

    >>> measures = Measures(["income:0:9000", "age:18:99"])
    >>> measures.place("age"), measures.ranges["age"]
    (1, (Decimal('18'), Decimal('99')))
    """

    __slots__ = ("ranges", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self.ranges: dict[str, Range] = {}
        for text in self.texts:
            name, lower, upper = text.split(":")
            self.ranges[name] = Decimal(lower), Decimal(upper)

    @classmethod
    def of(cls, ranges: Mapping[str, Range]) -> "Measures":
        """From the range of each name."""
        return cls(f"{name}:{lower}:{upper}" for name, (lower, upper) in ranges.items())

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measures) and [*self.ranges.items()] == [*other.ranges.items()]

    def __hash__(self) -> int:
        return hash(tuple(self.ranges.items()))

    def __repr__(self) -> str:
        return f"Measures({list(self.texts)})"

    def place(self, name: str) -> int:
        """Which coordinate a measure is, from 0 on."""
        return list(self.ranges).index(name)


NO_MEASURES = Measures()
"""Those of a study that asks for one value."""
