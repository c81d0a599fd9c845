"""A plot's canvas: its sizes, axes, ticks and units, and bars on it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from app.dashboard.scales import Scale

TICK_WIDTH = 7.0
"""Of a character of a tick's label [pixels]."""


@dataclass(frozen=True, slots=True)
class Size:
    """A canvas [pixels]."""

    name: str
    width: int
    height: int

    @property
    def x_ticks(self) -> int:
        """How many ticks fit below."""
        return max(3, self.width // 75)

    @property
    def y_ticks(self) -> int:
        """How many ticks fit beside."""
        return max(3, self.height // 55)


FULL = Size("wide", 1120, 300)
HALF = Size("wide", 540, 270)
LOW = Size("wide", 540, 170)
NARROW = Size("narrow", 320, 240)

Marks = Callable[[Scale, Scale], Sequence[str]]
"""What is drawn, once the scales are known."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot.

    Attributes:
        unit: What it shows.
        scale: Makes its scale, for a start and an end [pixels].
    """

    unit: str
    scale: Callable[[float, float], Scale]


def draw_both(title: str, x: Axis, y: Axis, marks: Marks, size: Size = HALF) -> Markup:
    """A plot with its axes, for a wide screen and for a narrow one."""
    drawn = "".join(_drawing(one, title, x, y, marks) for one in (size, NARROW))
    return Markup(drawn)  # noqa: S704 - every text in it is escaped below


def _drawing(size: Size, title: str, x: Axis, y: Axis, marks: Marks) -> str:
    bottom, top = size.height - 44.0, 26.0
    vertical = y.scale(bottom, top)
    y_ticks = vertical.ticks(size.y_ticks)
    left = 14 + TICK_WIDTH * max((len(text) for _, text in y_ticks), default=1)
    right = size.width - 12.0
    horizontal = x.scale(left, right)
    parts = [
        f'<svg class="plot {size.name}" viewBox="0 0 {size.width} {size.height}" role="img" '
        f'aria-label="{escape(title)}" focusable="false">',
        f'<text class="unit" x="2" y="14">{escape(y.unit)}</text>',
    ]
    for value, text in y_ticks:
        at = vertical(value)
        parts.append(f'<line class="grid" {ends((left, at), (right, at))}/>')
        parts.append(
            f'<text class="tick" x="{left - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">{escape(text)}</text>'
        )
    parts += marks(horizontal, vertical)
    parts.append(f'<line class="axis" {ends((left, bottom), (right, bottom))}/>')
    for value, text in horizontal.ticks(size.x_ticks):
        at = horizontal(value)
        half = len(text) * TICK_WIDTH / 2
        shown = min(max(at, half), size.width - half)
        parts.append(f'<line class="axis" {ends((at, bottom), (at, bottom + 4))}/>')
        parts.append(
            f'<text class="tick" x="{shown:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">'
            f"{escape(text)}</text>"
        )
    unit = f'x="{right:.1f}" y="{size.height - 6}" text-anchor="end"'
    parts.append(f'<text class="unit" {unit}>{escape(x.unit)}</text></svg>')
    return "".join(parts)


def ends(one: tuple[float, float], other: tuple[float, float]) -> str:
    """Where a line begins and ends, as attributes of it."""
    return f'x1="{one[0]:.1f}" x2="{other[0]:.1f}" y1="{one[1]:.1f}" y2="{other[1]:.1f}"'


def points(places: Iterable[tuple[float, float]]) -> str:
    """The corners of a polyline or a polygon, as text of their attribute."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def reach(kind: str, at: float, low: float, high: float) -> str:
    """An interval that stands up."""
    return f'<g class="{kind}"><line {ends((at, low), (at, high))}/></g>'


def bar(left: float, width: float, base: float, top: float, tone: str, text: str) -> str:
    """A bar with its text; a value that is not 0 is never thinner than a pixel."""
    height = abs(base - top)
    if height == 0:
        return ""
    height = max(height, 1.0)
    gap = min(1.5, width * 0.15)
    return (
        f'<rect class="bar {tone}" x="{left + gap / 2:.1f}" y="{min(top, base - 1):.1f}" '
        f'width="{max(width - gap, 0.5):.1f}" height="{height:.1f}"><title>{escape(text)}</title></rect>'
    )


def estimate(
    at: float, value: float, lower: float, upper: float, text: str, up: Scale, shown: tuple[float, float]
) -> str:
    """An estimate with its interval and their text; what lies outside of what is shown is cut off."""
    bottom, top = shown
    low, high, middle = (up(min(max(end, bottom), top)) for end in (lower, upper, value))
    caps = "".join(
        f"<line {ends((at - 4, y), (at + 4, y))}/>"
        for end, y in ((lower, low), (upper, high))
        if bottom <= end <= top
    )
    return (
        f'<g class="estimate"><title>{escape(text)}</title><line {ends((at, low), (at, high))}/>{caps}'
        f'<circle cx="{at:.1f}" cy="{middle:.1f}" r="4"/></g>'
    )
