"""Measures: what a study asks each person for, several things at once: numbers and choices."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from dither.device.numbers import GRID_SIZE

VALUE = "value"
"""What the one thing that a study asks for is called, unless the study has another name for it."""

MAX_MEASURES = 16
"""Things that a study may ask each person for."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One of the things that a study asks for.

    Attributes:
        lower, upper: Its range; of a choice the numbers of the first and the last one.
        choices: What people choose one of; empty for a number.
        dimension: Coordinates of a value, each in the range; 1 for a number.
    """

    lower: Decimal
    upper: Decimal
    choices: tuple[str, ...] = ()
    dimension: int = 1

    @property
    def step(self) -> float | None:
        """How far apart the values are that are kept of a number, in its unit; None of a choice.

        >>> Measure(Decimal(0), Decimal(10) ** 12).step
        931.3225746154785
        """
        return None if self.choices else float(self.upper - self.lower) / GRID_SIZE

    @classmethod
    def of_choices(cls, choices: Iterable[str]) -> "Measure":
        """A choice of one of these."""
        labels = tuple(choices)
        return cls(Decimal(0), Decimal(len(labels) - 1), labels)

    def text(self, name: str) -> str:
        """How it is stored."""
        if self.choices:
            return f"{name}:{json.dumps(self.choices, ensure_ascii=False, separators=(',', ':'))}"
        several = f":{self.dimension}" if self.dimension > 1 else ""
        return f"{name}:{self.lower}:{self.upper}{several}"

    @classmethod
    def read(cls, text: str) -> tuple[str, "Measure"]:
        """Name and measure from how it is stored."""
        name, _, rest = text.partition(":")
        if rest.startswith("["):
            return name, cls.of_choices(json.loads(rest))
        lower, upper, *several = rest.split(":")
        return name, cls(Decimal(lower), Decimal(upper), dimension=int(several[0]) if several else 1)


class Measures:
    """The named measures of a study, in the order of its coordinates; false where there are none.

    Args:
        texts: Every measure as `Measure.text` writes it, in their order.

    >>> measures = Measures(["income:0:9000", "age:18:99", 'party:["red","blue"]'])
    >>> measures.place("age"), measures.named["age"].upper, measures.named["party"].choices
    (1, Decimal('99'), ('red', 'blue'))
    >>> measures = Measures(["place:0:1:2", "age:18:99"])
    >>> measures.place("age"), measures.dimension
    (2, 3)
    """

    __slots__ = ("named", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        self.named: dict[str, Measure] = dict(map(Measure.read, self.texts))

    @classmethod
    def of(cls, named: Mapping[str, Measure]) -> "Measures":
        """From the measure of each name."""
        return cls(one.text(name) for name, one in named.items())

    def __bool__(self) -> bool:
        return bool(self.named)

    def __len__(self) -> int:
        return len(self.named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measures) and [*self.named.items()] == [*other.named.items()]

    def __hash__(self) -> int:
        return hash(tuple(self.named.items()))

    def __repr__(self) -> str:
        return f"Measures({list(self.texts)})"

    @property
    def several(self) -> bool:
        """Whether there are more than one, as coordinates of a value."""
        return len(self.named) > 1

    def place(self, name: str) -> int:
        """Which coordinate a measure is, from 0 on; of one of several the first."""
        before = list(self.named).index(name)
        return sum(one.dimension for one in list(self.named.values())[:before])

    def single(self, *, choices: bool) -> list[str]:
        """The measures that are choices, or that are numbers and no vectors."""
        return [
            name for name, one in self.named.items() if bool(one.choices) is choices and one.dimension == 1
        ]

    @property
    def dimension(self) -> int:
        """Coordinates of all of them together."""
        return sum(one.dimension for one in self.named.values())


NO_MEASURES = Measures()
"""The measures of a study that asks for one value, and has no name of its own for it."""
