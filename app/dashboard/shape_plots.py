"""Plots of a histogram, of shares by choice and of a distribution function with what is known of them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from markupsafe import Markup, escape

from app.core.numbers import headline, percent
from app.dashboard import label_plots
from app.dashboard.canvas import FULL, TICK_WIDTH, Axis, bar, draw_both, points, reach
from app.dashboard.scales import Linear, Named, Scale, nice_ceiling
from app.web.documents.release import LabelOut, PublishedOut
from app.web.documents.shape import (
    CorrelationReleaseOut,
    DescriptionOut,
    HistogramReleaseOut,
    LineOut,
    Published,
    ShareOfBinOut,
    ShareOfCellOut,
    ShareOfChoiceOut,
)


def drawn(release: Published | None) -> dict[str, Any]:
    """The plots of an answer of several numbers, and of each label; None: not such."""
    names = ("rows_plot", "distribution_plot", "described_plot")
    plots: dict[str, Any] = dict.fromkeys(names) | {"of_labels": (), "line_plots": ()}
    if isinstance(release, CorrelationReleaseOut):
        plots["line_plots"] = _lines(release.lines, release.measures)
        plots["of_labels"] = [(one, _lines(one.lines, release.measures)) for one in release.groups or ()]
    if isinstance(release, DescriptionOut):
        plots["described_plot"] = label_plots.described(release)
    if isinstance(release, HistogramReleaseOut) and release.cumulative is not None:
        plots["distribution_plot"] = distribution(release.cumulative)
    if isinstance(release, PublishedOut) and release.sharpens:
        plots["rows_plot"] = _rows(release, release)
        plots["of_labels"] = [(one, _rows(release, one)) for one in release.groups or ()]
    return plots


def _lines(found: Sequence[LineOut] | None, measures: Sequence[str]) -> list[Markup]:
    """Both lines of a correlation; none where no person takes part."""
    return [line(one, *pair) for one, pair in zip(found or (), (measures, measures[::-1]), strict=False)]


def _rows(release: PublishedOut[Any], answer: PublishedOut[Any] | LabelOut) -> Markup:
    """The plot of the rows of an answer for all people or for a label; empty without any."""
    rows = getattr(answer, release.sharpens)
    if not rows:
        return Markup("")
    if release.sharpens == "coordinates":
        return label_plots.coordinates(rows, y=release.statistic, steps=bool(release.refines))
    if release.sharpens == "cells":
        return crossed(rows)
    draw: Mapping[str, Callable[..., Markup]] = {"bins": shares, "choices": choices}
    return draw[release.sharpens](rows, steps=bool(release.refines))


def shares(bins: Sequence[ShareOfBinOut], *, steps: bool) -> Markup:
    """A bar a bin, its height the share of the people in it, with its intervals; see `_bars`."""
    ends = [(one.lower, one.upper) for one in bins]
    return _bars(
        "bin",
        list(zip(bins, ends, strict=True)),
        Axis("value", partial(Linear, bins[0].lower, bins[-1].upper)),
        steps=steps,
    )


def choices(found: Sequence[ShareOfChoiceOut], *, steps: bool) -> Markup:
    """A bar a choice, its height the share of the people who made it, with its intervals; see `_bars`."""
    names = [one.choice for one in found]
    return _bars(
        "choice",
        [(one, (place + 0.1, place + 0.9)) for place, one in enumerate(found)],
        Axis("choice", partial(Named, names)),
        steps=steps,
    )


def _bars(
    by: str,
    bars: Sequence[tuple[ShareOfBinOut | ShareOfChoiceOut, tuple[float, float]]],
    x: Axis,
    *,
    steps: bool,
) -> Markup:
    """Shares as bars between two places each, with their intervals, with `steps` that of all steps, too."""
    always = [one.anytime if steps else None for one, _ in bars]
    top = nice_ceiling(max(it.upper for it in (*(one.simultaneous for one, _ in bars), *always) if it))

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for (one, (first, last)), ever in zip(bars, always, strict=True):
            left, right = across(first), across(last)
            drawn.append(bar(left, right - left, up(0), up(one.share), "a", _said(one)))
            its = {"reach always": ever, "reach together": one.simultaneous, "reach": one.interval}
            for kind, ends in its.items():
                if ends is not None:
                    drawn.append(reach(kind, (left + right) / 2, up(ends.lower), up(ends.upper)))
        return drawn

    level = percent(bars[0][0].interval.level)
    title = f"Share of the people by {by}, with {level} intervals, one by one and thin for all together"
    title += ", dotted at all steps" if any(always) else ""
    return draw_both(title, x, Axis("share", partial(Linear, 0, top)), marks, FULL)


def crossed(cells: Sequence[ShareOfCellOut]) -> Markup:
    """A rectangle a cell, the darker the more people are in it, with its share."""
    (first, second), most = cells[0].where, max(one.share for one in cells) or 1.0
    rows, columns = (list(dict.fromkeys(one.where[name] for one in cells)) for name in (first, second))

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for place, one in enumerate(cells):
            row, column = divmod(place, len(columns))
            left, right = across(column), across(column + 1)
            # Places go up, and the first row is at the top.
            low, high = up(len(rows) - 1 - row), up(len(rows) - row)
            drawn.append(
                f'<rect class="bar a" opacity="{0.06 + 0.44 * one.share / most:.2f}" x="{left + 1:.1f}" '
                f'y="{high + 1:.1f}" width="{max(right - left - 2, 0.5):.1f}" '
                f'height="{max(low - high - 2, 0.5):.1f}"><title>{escape(_said(one))}</title></rect>'
            )
            text = f"{100 * one.share:.3g} %"
            if right - left > len(text) * TICK_WIDTH and low - high > 14:
                middle = (left + right) / 2, (low + high) / 2 + 4
                drawn.append(
                    f'<text class="tick" x="{middle[0]:.1f}" y="{middle[1]:.1f}" text-anchor="middle">'
                    f"{text}</text>"
                )
        return drawn

    return draw_both(
        f"Share of the people by {first} and {second}",
        Axis(second, partial(Named, columns)),
        Axis(first, partial(Named, rows[::-1])),
        marks,
    )


def line(found: LineOut, of: str, on: str) -> Markup:
    """The line of one number on another one, in its band; what is far from the line is cut off."""
    band, places = found.band, [one.estimate for one in found.band]
    margin = max(max(places) - min(places), abs(places[0]) / 10, 1e-9)
    low, high = min(places) - margin, max(places) + margin

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        def line(values: Sequence[float]) -> list[tuple[float, float]]:
            ends = zip(band, values, strict=True)
            return [(across(one.at), up(min(max(value, low), high))) for one, value in ends]

        upper, lower = line([one.upper for one in band]), line([one.lower for one in band])
        return [
            f'<polygon class="free" points="{points([*upper, *reversed(lower)])}"/>',
            f'<polyline class="charged" points="{points(line(places))}"/>',
        ]

    return draw_both(
        f"The line of {of} on {on}, with a {percent(found.slope.interval.level)} band for these people",
        Axis(on, partial(Linear, band[0].at, band[-1].at)),
        Axis(of, partial(Linear, low, high)),
        marks,
        FULL,
    )


def distribution(bins: Sequence[ShareOfBinOut]) -> Markup:
    """The share of the people below each edge, in its band; nothing is known of what lies between edges."""

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        def line(values: Sequence[float]) -> list[tuple[float, float]]:
            ends = zip(bins, values, strict=True)
            return [(across(bins[0].lower), up(0)), *((across(one.upper), up(value)) for one, value in ends)]

        upper = line([one.interval.upper for one in bins])
        lower = line([one.interval.lower for one in bins])
        dots = [
            f'<circle class="charged" cx="{across(one.upper):.1f}" cy="{up(one.share):.1f}" r="3">'
            f"<title>{_said(one)}</title></circle>"
            for one in bins
        ]
        return [
            f'<polygon class="free" points="{points([*upper, *reversed(lower)])}"/>',
            f'<polyline class="charged" points="{points(line([one.share for one in bins]))}"/>',
            *dots,
        ]

    return draw_both(
        f"Share of the people below a value, with a {percent(bins[0].interval.level)} band for these people",
        Axis("value", partial(Linear, bins[0].lower, bins[-1].upper)),
        Axis("share below", partial(Linear, 0, 1)),
        marks,
        FULL,
    )


def _said(one: ShareOfBinOut | ShareOfCellOut | ShareOfChoiceOut) -> str:
    match one:
        case ShareOfChoiceOut():
            name = one.choice
        case ShareOfCellOut():
            name = ", ".join(one.where.values())
        case _:
            name = f"{one.lower:.6g} to {one.upper:.6g}"
    said = headline(one.share, one.interval.lower, one.interval.upper)
    return "{}: {}, {level}: {} to {}".format(name, *said, level=percent(one.interval.level))
