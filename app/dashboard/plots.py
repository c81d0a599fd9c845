"""Plots as SVG: drawn on the server, colored by the style sheet, with axes and units.

Each plot is drawn for its place on a wide screen and for a narrow one; the style sheet shows one of them.
Numbers are in the table that the page puts beneath it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial

from markupsafe import Markup

from app.dashboard.canvas import FULL, HALF, LOW, Axis, Size, bar, draw_both, estimate
from app.dashboard.canvas import points as corners
from app.dashboard.scales import Counted, Linear, Logarithmic, Scale, Time, nice_ceiling

FAR_WIDER = 4
"""An interval that is this many times as wide as the median one is cut off."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values of one name.

    Attributes:
        name: For the legend.
        tone: Class of its color: a, b or c.
        values: One for each bin.
    """

    name: str
    tone: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class PlotBin:
    """A bin of a histogram."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """An answer with its interval."""

    at: datetime
    value: float
    lower: float
    upper: float
    title: str


def histogram(
    title: str,
    bins: Sequence[PlotBin],
    series: Sequence[Series],
    *,
    x: str,
    y: str,
    logarithmic: bool = False,
    on_top: bool = False,
    size: Size = HALF,
) -> Markup:
    """Bars over bins, those of several series side by side, or on top of each other."""
    if not bins:
        return Markup("")
    rows = list(zip(*(one.values for one in series), strict=True))
    heights = [sum(values) if on_top else max(values) for values in rows]
    top = nice_ceiling(max(heights, default=0.0))
    low, high = bins[0].lower, bins[-1].upper
    if logarithmic:
        low = low or bins[0].upper / 2

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for bin_, values in zip(bins, rows, strict=True):
            left, right = across(max(bin_.lower, low)), across(bin_.upper)
            width, below = (right - left) / (1 if on_top else len(series)), 0.0
            for one, value in zip(series, values, strict=True):
                text = f"{one.name}: {value:,.10g} at {bin_.lower:.6g} to {bin_.upper:.6g}"
                drawn.append(bar(left, width, up(below), up(below + value), one.tone, text))
                if on_top:
                    below += value
                else:
                    left += width
        return drawn

    return draw_both(
        title,
        Axis(x, partial(Logarithmic if logarithmic else Linear, low, high)),
        Axis(y, partial(Linear, 0, top)),
        marks,
        size,
    )


def daily(
    title: str, days: Sequence[tuple[date, int]], *, y: str, tone: str = "a", size: Size = HALF
) -> Markup:
    """One bar a day, in the order of the days."""
    if not days:
        return Markup("")
    top = nice_ceiling(max(number for _, number in days), 4)
    first = datetime.combine(days[0][0], datetime.min.time(), UTC).timestamp()
    last = datetime.combine(days[-1][0] + timedelta(days=1), datetime.min.time(), UTC).timestamp()

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for day, number in days:
            left = datetime.combine(day, datetime.min.time(), UTC).timestamp()
            width = across(left + 86_400) - across(left)
            drawn.append(bar(across(left), width, up(0), up(number), tone, f"{day}: {number:,}"))
        return drawn

    return draw_both(
        title,
        Axis("day (UTC)", partial(Time, first, last - 1)),
        Axis(y, partial(Linear, 0, top)),
        marks,
        size,
    )


def estimates(title: str, points: Sequence[Estimate], *, y: str) -> Markup:
    """Answers over time with their intervals; what is far wider than usual is cut off and sets no scale."""
    if not points:
        return Markup("")
    widths = sorted(point.upper - point.lower for point in points if point.upper > point.lower) or [0.0]
    usual = FAR_WIDER * widths[(len(widths) - 1) // 2]
    near = [point for point in points if point.upper - point.lower <= usual]
    low = min(point.lower for point in near)
    high = max(point.upper for point in near)
    margin = (high - low) * 0.06 or 1.0
    bottom, top = low - margin, high + margin
    times = [point.at.timestamp() for point in points]
    pad = max((max(times) - min(times)) * 0.05, 1.0)

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for point in points:
            at = across(point.at.timestamp())
            drawn.append(estimate(at, point.value, point.lower, point.upper, point.title, up, (bottom, top)))
        return drawn

    return draw_both(
        title,
        Axis("time (UTC)", partial(Time, min(times) - pad, max(times) + pad)),
        Axis(y, partial(Linear, bottom, top)),
        marks,
        FULL,
    )


def saturation(title: str, *, largest: float, point: float | None) -> Markup:
    """What a release at share 1 charges for an offered epsilon, and what of the offer stays unused."""
    end_of_x = nice_ceiling(largest)
    bend = end_of_x if point is None else min(point, end_of_x)

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        origin, corner = (across(0), up(0)), (across(bend), up(bend))
        end, offered = (across(end_of_x), up(bend)), (across(end_of_x), up(end_of_x))
        drawn = [
            f'<polyline class="offered" points="{corners((origin, offered))}"/>',
            f'<polyline class="charged" points="{corners((origin, corner, end))}"/>',
        ]
        if bend < end_of_x:
            drawn.insert(0, f'<polygon class="free" points="{corners((corner, offered, end))}"/>')
            x = (across(bend) + 2 * across(end_of_x)) / 3
            y = (up(bend) * 2 + up(end_of_x)) / 3
            drawn.append(
                f'<text class="note" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">privacy for free</text>'
            )
        return drawn

    return draw_both(
        title,
        Axis("offered epsilon", partial(Linear, 0, end_of_x)),
        Axis("charged epsilon", partial(Linear, 0, end_of_x)),
        marks,
    )


def narrowing(
    title: str,
    left: Sequence[tuple[float, float]],
    *,
    rounds: int,
    low: float,
    high: float,
    y: str,
) -> Markup:
    """What a search has left of the range from low to high: before it, and after each closed round."""
    if not left:
        return Markup("")
    margin = (high - low) * 0.04

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        width = min((across(1) - across(0)) * 0.6, 48)
        return [
            bar(
                across(number) - width / 2,
                width,
                up(lower),
                up(upper),
                "a",
                f"after {number} rounds: {lower:.6g} to {upper:.6g}",
            )
            for number, (lower, upper) in enumerate(left)
        ]

    return draw_both(
        title,
        Axis("closed rounds", partial(Counted, -0.5, rounds + 0.5)),
        Axis(y, partial(Linear, low - margin, high + margin)),
        marks,
        FULL,
    )


def wandering(
    title: str,
    centers: Sequence[Sequence[Sequence[float]]],
    *,
    rounds: int,
    low: float,
    high: float,
) -> Markup:
    """Where the center of each cluster went, round after round, with its number where it is now.

    Args:
        title: What it shows.
        centers: By round, from the first centers on, by cluster, by coordinate. One coordinate is drawn over
            the rounds; of more, the first two are drawn over each other.
        rounds: How many there will be.
        low, high: The range of every coordinate.
    """
    if not centers or not centers[0]:
        return Markup("")
    plane = len(centers[0][0]) > 1
    margin = (high - low) * 0.04
    value, passed = partial(Linear, low - margin, high + margin), partial(Counted, -0.3, rounds + 0.3)

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for cluster in range(len(centers[0])):
            track = [
                (across(step[cluster][0] if plane else number), up(step[cluster][1 if plane else 0]))
                for number, step in enumerate(centers)
            ]
            (x, y), tone = track[-1], "abc"[cluster % 3]
            now = ", ".join(f"{value:.6g}" for value in centers[-1][cluster])
            drawn.append(
                f'<g class="track {tone}"><title>cluster {cluster + 1}: {now}</title>'
                f'<polyline points="{corners(track)}"/><circle cx="{x:.1f}" cy="{y:.1f}" r="9"/>'
                f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{cluster + 1}</text></g>'
            )
        return drawn

    return draw_both(
        title,
        Axis("first coordinate", value) if plane else Axis("closed rounds", passed),
        Axis("second coordinate" if plane else "value", value),
        marks,
        FULL,
    )


def answered(title: str, answers: Sequence[int], *, size: Size = LOW) -> Markup:
    """How many answers each round has."""
    top = nice_ceiling(max(answers, default=0), 4)

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        width = min((across(1) - across(0)) * 0.6, 48)
        return [
            bar(across(number) - width / 2, width, up(0), up(one), "c", f"round {number}: {one:,}")
            for number, one in enumerate(answers, 1)
        ]

    return draw_both(
        title,
        Axis("round", partial(Counted, 0.5, len(answers) + 0.5)),
        Axis("answers", partial(Counted, 0, top)),
        marks,
        size,
    )
