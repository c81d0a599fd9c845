"""The simulated people: what their values are, and when their devices are online.

Everything here is repeatable from the seed. What protects people never is: their devices draw it from the
operating system's entropy.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from pathlib import Path

from dither import Measure, Study

from app.cli.common import usage_error
from dither_research.seeded import seeded

DAY_SECONDS = 20.0
"""Every device is online for the same share of each of these, and then offline for the rest."""

Value = str | tuple[str, ...] | dict[str, str | tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One simulated device.

    Attributes:
        subject: Its owner.
        value: Of its owner, as decimal text; a tuple in a study of vectors, by name in one of measures, a
            label in one of choices.
        phase: When in a day it comes online, as a share of a day.
        attributes: The labels of its owner, in a study with attributes.
    """

    subject: str
    value: Value
    phase: float
    attributes: Mapping[str, str] = field(default_factory=dict)


def read_values(path: Path, study: Study) -> list[Value]:
    """One value a line: of choices a label; several numbers are separated by semicolons, commas or blanks.

    Raises:
        BadParameter: there is none, it is not UTF-8, or a line has not one number a measure.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise usage_error(f"--values: {path} is not UTF-8") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise usage_error(f"--values: there is no value in {path}")
    if study.choices:
        return list(lines)
    rows = [
        [part.strip() for part in re.split("[;,]", line)]
        if study.measures and re.search("[;,]", line)
        else re.sub("[;,]", " ", line).split()
        for line in lines
    ]
    coordinates = sum(one.dimension for one in study.measures.values())
    if study.measures and any(len(row) != coordinates for row in rows):
        raise usage_error(f"--values: each line must have {', '.join(study.measures)}")
    return [_value(study, row) for row in rows]


def generate_values(study: Study, count: int, seed: str) -> list[Value]:
    """Uniform values of the study's range, to four digits of it, or uniform choices."""
    source = seeded(f"simulated values {seed}")
    if study.choices:
        return [study.choices[place] for place in source.integers(0, len(study.choices), size=count)]
    kinds: Sequence[Study | Measure] = [*study.measures.values()] or [study]
    asked = [one for one in kinds for _ in range(one.dimension)]
    places = source.integers(0, 10_001, size=(count, len(asked)))
    return [
        _value(study, [_at(one, int(place)) for place, one in zip(row, asked, strict=True)]) for row in places
    ]


def _at(of: Study | Measure, place: int) -> str:
    """A number at a place from 0 to 10,000 of the range, or a choice."""
    if of.choices:
        return of.choices[place % len(of.choices)]
    return str(of.lower + (of.upper - of.lower) * Decimal(place) / 10_000)


def _value(study: Study, parts: list[str]) -> Value:
    if study.measures:
        left = iter(parts)
        rows = {name: tuple(islice(left, one.dimension)) for name, one in study.measures.items()}
        return {name: row if len(row) > 1 else row[0] for name, row in rows.items()}
    return tuple(parts) if len(parts) > 1 else parts[0]


def make_devices(
    values: list[Value],
    count: int,
    *,
    prefix: str,
    seed: str,
    attributes: Mapping[str, Sequence[str]] | None = None,
) -> list[Device]:
    """The devices; where there are more of them than values, values come again. Labels are uniform."""
    phases, source = seeded(f"simulated days {seed}").random(count), seeded(f"simulated labels {seed}")
    labels = {
        name: [its[place] for place in source.integers(0, len(its), size=count)]
        for name, its in (attributes or {}).items()
    }
    return [
        Device(
            subject=f"{prefix}{number}",
            value=values[number % len(values)],
            phase=float(phases[number]),
            attributes={name: own[number] for name, own in labels.items()},
        )
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """Who is online when.

    Attributes:
        share: Of all devices, and of every device's day.
        seconds: How long a day is.
    """

    share: float
    seconds: float = DAY_SECONDS

    def until_online(self, device: Device, elapsed: float) -> float:
        """Seconds until a device is online; 0 where it is."""
        place = (elapsed / self.seconds + device.phase) % 1.0
        return 0.0 if place < self.share else (1.0 - place) * self.seconds

    def until_offline(self, device: Device, elapsed: float) -> float | None:
        """Seconds for which a device that is online stays so; None: for ever."""
        if self.share >= 1:
            return None
        place = (elapsed / self.seconds + device.phase) % 1.0
        return max(self.share - place, 0.0) * self.seconds
