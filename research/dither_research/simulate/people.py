"""The simulated people: what their values are, and when their devices are online.

Everything here is repeatable from the seed. What protects people never is: their devices draw it from the
operating system's entropy.
"""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dither import Study

from app.cli.common import usage_error
from dither_research.seeded import seeded

DAY_SECONDS = 20.0
"""Every device is online for the same share of each of these, and then offline for the rest."""

Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One simulated device.

    Attributes:
        subject: Its owner.
        value: Of its owner, as decimal text; a tuple in a study of vectors.
        phase: When in a day it comes online, as a share of a day.
    """

    subject: str
    value: Value
    phase: float


def read_values(path: Path) -> list[Value]:
    """One value a line; the coordinates of a vector are separated by commas or blanks.

    Raises:
        BadParameter: there is none.
    """
    lines = (line.replace(",", " ").split() for line in path.read_text(encoding="utf-8").splitlines())
    values = [tuple(parts) if len(parts) > 1 else parts[0] for parts in lines if parts]
    if not values:
        raise usage_error(f"--values: there is no number in {path}")
    return values


def generate_values(study: Study, count: int, seed: str) -> list[Value]:
    """Uniform values of the study's range, to four digits of it."""
    places = seeded(f"simulated values {seed}").integers(0, 10_001, size=(count, study.dimension))
    width = study.upper - study.lower
    rows = [[str(study.lower + width * Decimal(int(place)) / 10_000) for place in row] for row in places]
    return [tuple(row) if len(row) > 1 else row[0] for row in rows]


def make_devices(values: list[Value], count: int, *, prefix: str, seed: str) -> list[Device]:
    """The devices; where there are more of them than values, values come again."""
    phases = seeded(f"simulated days {seed}").random(count)
    return [
        Device(subject=f"{prefix}{number}", value=values[number % len(values)], phase=float(phases[number]))
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
