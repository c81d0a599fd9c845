"""Scales: from data to positions on a plot, with ticks at readable values. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

_CHARACTERS = 60
"""Of all labels below a plot."""


class Scale(Protocol):
    """What an axis needs."""

    def __call__(self, value: float) -> float:
        """Where a value lies [pixels]."""

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Values with their labels, at most `most`."""


@dataclass(frozen=True, slots=True)
class Linear:
    """Equal steps for equal differences.

    Attributes:
        low, high: The range of values; must differ.
        start, end: Where they lie [pixels]; `start` may be the larger one.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a value lies [pixels]."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Multiples of 1, 2 or 5 times a power of ten: two at least, since one tells no scale."""
        step = nice_step((self.high - self.low) / max(most, 1))
        if len(self._multiples(step)) < 2:
            step = nice_step(step / 2.5)
        return [(number * step, label(number * step, step)) for number in self._multiples(step)][: most + 1]

    def _multiples(self, step: float) -> range:
        """Which multiples of a step are in the range."""
        return range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)


@dataclass(frozen=True, slots=True)
class Named:
    """A place of the same width for each name; the first one begins at 0.

    Attributes:
        names: What stands in the middle of a place; cut where it is long.
        start, end: Where they lie [pixels].
    """

    names: Sequence[str]
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Where a place begins [pixels]."""
        return self.start + value / len(self.names) * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """As many names as there is room for."""
        every = -(-len(self.names) // max(most, 1))
        length = _CHARACTERS * every // len(self.names)
        return [
            (
                place + 0.5,
                name if len(name) <= length else name[: max(1, length - 1)] + "\N{HORIZONTAL ELLIPSIS}",
            )
            for place, name in enumerate(self.names)
            if place % every == 0
        ]


@dataclass(frozen=True, slots=True)
class Logarithmic(Linear):
    """Equal steps for equal ratios; values must be above 0."""

    def __call__(self, value: float) -> float:
        """Where a value lies [pixels]."""
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Powers of ten, with 2 and 5 times them where there is room."""
        for mantissas, every in (((1, 2, 3, 5, 7), 1), ((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
            values = [
                mantissa * 10.0**power
                for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
                if power % every == 0
                for mantissa in mantissas
            ]
            shown = [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]
            if len(shown) <= most:
                return [(value, label(value, value)) for value in shown]
        return []


@dataclass(frozen=True, slots=True)
class Counted(Linear):
    """Like `Linear`, for what is counted: ticks are whole numbers."""

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Every whole number, or every second, fifth, tenth, ... of them."""
        step = max(1.0, nice_step((self.high - self.low) / most))
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [(number * step, f"{number * step:,.0f}") for number in range(first, last + 1)]


DAY = 86_400.0
STEPS: tuple[tuple[float, str], ...] = (
    (1, "%H:%M:%S"),
    (5, "%H:%M:%S"),
    (15, "%H:%M:%S"),
    (60, "%H:%M"),
    (300, "%H:%M"),
    (900, "%H:%M"),
    (3600, "%H:%M"),
    (3 * 3600, "%H:%M"),
    (6 * 3600, "%d %b %H:%M"),
    (DAY, "%d %b"),
    (2 * DAY, "%d %b"),
    (5 * DAY, "%d %b"),
    (10 * DAY, "%d %b"),
    (30 * DAY, "%d %b"),
    (90 * DAY, "%b %Y"),
    (365 * DAY, "%Y"),
)


@dataclass(frozen=True, slots=True)
class Time(Linear):
    """Moments as seconds since 1970, labeled in UTC."""

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round moments."""
        span = self.high - self.low
        step, form = next((entry for entry in STEPS if span / entry[0] <= most), STEPS[-1])
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        moments = [number * step for number in range(first, last + 1)][: most + 1]
        texts = (datetime.fromtimestamp(moment, UTC).strftime(form) for moment in moments)
        days = form.startswith("%d")
        return [
            (at, text.removeprefix("0") if days else text) for at, text in zip(moments, texts, strict=True)
        ]


def nice_step(step: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least `step`.

    >>> nice_step(0.3)
    0.5
    """
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def nice_ceiling(value: float, steps: int = 5) -> float:
    """A readable end for an axis from 0 that holds `value`; 1 for 0.

    >>> nice_ceiling(83)
    100.0
    """
    if value <= 0:
        return 1.0
    step = nice_step(value / steps)
    return math.ceil(value / step - 1e-9) * step


def label(value: float, step: float) -> str:
    """A number with as many decimals as its step has.

    >>> label(1500, 500), label(0.25, 0.05), label(2_000_000, 500_000)
    ('1,500', '0.25', '2M')
    """
    if value and abs(value) >= 1e6 and step >= 1e5:
        return f"{value / 1e6:.10g}M"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    text = f"{value:,.{min(decimals, 9)}f}"
    return "0" if float(text.replace(",", "")) == 0 else text
