"""Attributes: what a study asks of people beside the value, one of a few declared labels each.

The labels that a person gives are one combination of all that are possible, and its number is the person's
segment: the attributes are the digits of a number in mixed radix, the first one the most significant. Of a
report that was made inside the study's reporting range (`app.core.reporting_range`) it is `INSIDE` more, so
that such reports are cohorts of their own.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from app.core.reporting_range import INSIDE

MAX_COMBINATIONS = 1_000
"""Combinations of labels that a study may have."""

TAKEN = (
    "attributes",
    "epsilon",
    "report",
    "reporting_range",
    "reports",
    "subject",
    "trust",
    "value",
    "values",
)
"""What contributions and tables of them have already, and no attribute may be called."""


class Attributes:
    """The declared attributes of a study, in their order; false where there are none.

    Args:
        texts: Every label as name:label, in their order.

    >>> attributes = Attributes(["region:north", "region:south", "age:-29", "age:30-59", "age:60-"])
    >>> attributes.segment({"region": "south", "age": "30-59"})
    4
    >>> attributes.labels_of(4)
    {'region': 'south', 'age': '30-59'}
    >>> sorted(attributes.where(attributes.conditions("age:60-")))
    [2, 5]
    """

    __slots__ = ("labels", "texts")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = tuple(texts)
        labels: dict[str, tuple[str, ...]] = {}
        for text in self.texts:
            name, _, label = text.partition(":")
            labels[name] = (*labels.get(name, ()), label)
        self.labels = labels

    @classmethod
    def of(cls, labels: Mapping[str, Sequence[str]]) -> "Attributes":
        """From the labels of each name."""
        return cls(f"{name}:{label}" for name, own in labels.items() for label in own)

    def __bool__(self) -> bool:
        return bool(self.labels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self.texts == other.texts

    def __hash__(self) -> int:
        return hash(self.texts)

    def __repr__(self) -> str:
        return f"Attributes({list(self.texts)})"

    @property
    def combinations(self) -> int:
        """How many segments there are; 1 without attributes."""
        return math.prod(map(len, self.labels.values()))

    def segment(self, given: Mapping[str, str]) -> int:
        """The number of a combination: one label of each attribute."""
        number = 0
        for name, labels in self.labels.items():
            number = number * len(labels) + labels.index(given[name])
        return number

    def labels_of(self, segment: int) -> dict[str, str]:
        """The combination of a number, be it of a report inside a reporting range or not."""
        found, segment = {}, segment % INSIDE
        for name, labels in reversed(self.labels.items()):
            segment, place = divmod(segment, len(labels))
            found[name] = labels[place]
        return {name: found[name] for name in self.labels}

    def conditions(self, text: str) -> dict[str, str]:
        """What `name:label,name:label` asks for, in the order of the study.

        Raises:
            ValueError: the reason; names and labels that are not declared stay out of it.
        """
        found: dict[str, str] = {}
        for condition in text.split(","):
            name, colon, label = condition.partition(":")
            if not colon:
                raise ValueError("must be name:label, such as region:north")
            if name not in self.labels:
                raise ValueError(self.unknown("attributes"))
            if label not in self.labels[name]:
                raise ValueError(f"must be a label of {name}: {', '.join(self.labels[name])}")
            if name in found:
                raise ValueError(f"names {name} twice")
            found[name] = label
        return {name: found[name] for name in self.labels if name in found}

    def together(self, text: str) -> str:
        """The attributes of `name,name`, in the order of the study: equal groups have equal texts.

        Raises:
            ValueError: the reason; names that are not declared stay out of it.
        """
        names = text.split(",")
        if not set(names) <= self.labels.keys():
            raise ValueError(self.unknown("attributes"))
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"names {twice} twice")
        return ",".join(name for name in self.labels if name in names)

    def unknown(self, wanted: str) -> str:
        """The refusal of a name that is not declared, by what was wanted.

        >>> Attributes(["sex:f", "sex:m"]).unknown("an attribute"), Attributes([]).unknown("an attribute")
        ('must name an attribute of the study: sex', 'the study has no attributes')
        """
        known = ", ".join(self.labels)
        return f"must name {wanted} of the study: {known}" if known else "the study has no attributes"

    def size(self, by: str) -> int:
        """How many cells some attributes have, of `together`; 1 of none."""
        return math.prod(len(self.labels[name]) for name in by.split(",") if name)

    def cells(self, by: str) -> dict[str, dict[str, str]]:
        """Every combination of the labels of some attributes, by what `label_of` calls it.

        >>> list(Attributes(["region:north", "region:south", "age:-29", "age:30-"]).cells("region,age"))
        ['north, -29', 'north, 30-', 'south, -29', 'south, 30-']
        """
        names = by.split(",")
        found = (dict(zip(names, one, strict=True)) for one in product(*map(self.labels.__getitem__, names)))
        return {label_of(where, by): where for where in found}

    def places(self, by: str) -> list[int]:
        """For each combination the place of its cell among those of some attributes."""
        found, after = [0] * self.combinations, self.combinations
        for name, labels in self.labels.items():
            size, after = len(labels), after // len(labels)
            if name in by.split(","):
                found = [place * size + segment // after % size for segment, place in enumerate(found)]
        return found

    def where(self, conditions: Mapping[str, str]) -> frozenset[int]:
        """The segments that meet every condition: the label of a name."""
        found = [0]
        for name, labels in self.labels.items():
            asked = conditions.get(name)
            places = [place for place, label in enumerate(labels) if asked in (None, label)]
            found = [segment * len(labels) + place for segment in found for place in places]
        return frozenset(found)


def conditions_of(where: Mapping[str, str]) -> str:
    """Labels as conditions that people read: `region:north, age:-29`."""
    return ", ".join(f"{name}:{label}" for name, label in where.items())


def listed(by: str) -> str:
    """Attributes as people read them: `region, age`."""
    return by.replace(",", ", ")


def label_of(where: Mapping[str, str], by: str) -> str:
    """What a group is called: its labels of the attributes that the question is by; none has a comma.

    >>> label_of({"sex": "f", "region": "north", "age": "-29"}, "region,age")
    'north, -29'
    """
    return ", ".join(where[name] for name in by.split(","))


NO_ATTRIBUTES = Attributes()
"""The attributes of a study that declares none."""
