"""Rows to pictures: one PNG a table or figure. The only module that knows matplotlib."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_never

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from dither_research.results import Bars, Figure, Heat, Lines, Row

COLORS = ("#0b6e99", "#d9730d", "#4c9f70", "#8e5ea2", "#c0392b", "#7f8c8d", "#b8860b", "#2c3e50")
"""Told apart in print and by color-blind eyes, with the markers."""

MARKERS = "osD^vPX*"
DPI = 110
_WIDTH = 5.2
_HEIGHT = 3.9
_LETTERS_PER_INCH = 12.5
_WIDE = 50.0


def save(figure: Figure, rows: Sequence[Row], title: str, path: Path) -> None:
    """Plot rows and write a PNG.

    Args:
        figure: How to plot them.
        rows: What to plot.
        title: Above the plot.
        path: Of the file.
    """
    match figure:
        case Lines():
            canvas = _lines(figure, rows)
        case Heat():
            canvas = _heat(figure, rows)
        case Bars():
            canvas = _bars(figure, rows)
        case _:
            assert_never(figure)
    width = int(canvas.get_figwidth() * _LETTERS_PER_INCH)
    canvas.suptitle(textwrap.fill(title, width), fontsize=10)
    canvas.savefig(path, dpi=DPI, metadata={"Software": None})


def _panels(names: Sequence[str], share_y: bool = True) -> tuple[Canvas, list[Axes]]:
    columns = 2 if len(names) == 4 else min(len(names), 3)
    lines = -(-len(names) // columns)
    canvas = Canvas(figsize=(_WIDTH * columns, _HEIGHT * lines), layout="constrained")
    grid: Any = canvas.subplots(lines, columns, squeeze=False, sharey=share_y)
    axes = list(grid.flat)
    for spare in axes[len(names) :]:
        spare.set_visible(False)
    return canvas, axes[: len(names)]


def _distinct(rows: Sequence[Row], column: str) -> list[str]:
    return list(dict.fromkeys(str(row[column]) for row in rows)) if column else [""]


def _of(rows: Sequence[Row], column: str, value: str) -> list[Row]:
    return [row for row in rows if str(row[column]) == value] if column else list(rows)


def _numbers(rows: Sequence[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def _lines(figure: Lines, rows: Sequence[Row]) -> Canvas:
    names = _distinct(rows, figure.panel)
    canvas, axes = _panels(names, figure.share_y)
    everywhere = _distinct(rows, figure.series)
    for axis, name in zip(axes, names, strict=True):
        panel = _of(rows, figure.panel, name)
        series = _distinct(panel, figure.series) if figure.legends else everywhere
        for index, curve in enumerate(series):
            points = sorted(_of(panel, figure.series, curve), key=lambda row: float(row[figure.x]))
            if not points:
                continue
            color = COLORS[index % len(COLORS)]
            style = ("-", "--", ":")[index // len(COLORS) % 3]
            few = len(points) <= 15
            axis.errorbar(
                _numbers(points, figure.x),
                _numbers(points, figure.y),
                yerr=_numbers(points, figure.error) if figure.error else None,
                label=curve,
                color=color,
                linestyle=style,
                linewidth=1.4,
                marker=MARKERS[index % len(MARKERS)] if few else "",
                markersize=3.5,
                capsize=2,
                zorder=3 - index / len(series),
            )
        _scale(axis, figure.log_x, figure.log_y)
        if figure.legends:
            axis.legend(fontsize=6.5, frameon=False, ncols=1 + len(series) // 6)
        for place, label in figure.verticals:
            axis.axvline(place, color="#555555", linewidth=0.9, linestyle=(0, (4, 3)))
            axis.annotate(
                label, (place, 0.98), xycoords=("data", "axes fraction"), xytext=(3, 0), **_NOTE, va="top"
            )
        for level, label in figure.levels:
            axis.axhline(level, color="#555555", linewidth=0.9, linestyle=(0, (4, 3)))
            axis.annotate(
                label, (0.99, level), xycoords=("axes fraction", "data"), xytext=(0, 3), **_NOTE, ha="right"
            )
        if limits := figure.limits.get(name):
            axis.set_ylim(*limits)
        _label(axis, figure.x_label, figure.y_label, name)
    if len(everywhere) > 1 and not figure.legends:
        _legend(canvas, axes)
    return canvas


def _legend(canvas: Canvas, axes: Sequence[Axes]) -> None:
    """Below the panels, as many columns as fit."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    labels, handles = list(found), list(found.values())
    fitting = int(canvas.get_figwidth() * _LETTERS_PER_INCH / (max(map(len, labels)) + 8))
    columns = max(1, min(len(labels), fitting))
    canvas.legend(handles, labels, loc="outside lower center", fontsize=8, frameon=False, ncols=columns)


_NOTE: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": "#333333"}


def _heat(figure: Heat, rows: Sequence[Row]) -> Canvas:
    names = _distinct(rows, figure.panel)
    canvas, axes = _panels(names)
    for axis, name in zip(axes, names, strict=True):
        panel = _of(rows, figure.panel, name)
        xs = sorted(set(_numbers(panel, figure.x)))
        ys = sorted(set(_numbers(panel, figure.y)))
        values = np.full((len(ys), len(xs)), math.nan)
        for row in panel:
            values[ys.index(float(row[figure.y])), xs.index(float(row[figure.x]))] = float(row[figure.value])
        logarithmic = figure.log_value and np.nanmax(values) > _WIDE * np.nanmin(values)
        norm = LogNorm() if logarithmic else None
        mesh = axis.pcolormesh(xs, ys, values, shading="nearest", cmap="viridis", norm=norm, rasterized=True)
        canvas.colorbar(mesh, ax=axis, label=figure.value_label)
        _scale(axis, figure.log_x, figure.log_y)
        _label(axis, figure.x_label, figure.y_label, name, grid=False)
    return canvas


def _bars(figure: Bars, rows: Sequence[Row]) -> Canvas:
    labels = _distinct(rows, figure.label)
    series = _distinct(rows, figure.series)
    canvas = Canvas(figsize=(_WIDTH * 1.35, 1.2 + 0.3 * len(labels) * len(series)), layout="constrained")
    axis: Axes = canvas.subplots()
    height = 0.8 / len(series)
    for index, name in enumerate(series):
        found = {str(row[figure.label]): row for row in _of(rows, figure.series, name)}
        places = [
            place + index * height - 0.4 + height / 2 for place, label in enumerate(labels) if label in found
        ]
        shown = [found[label] for label in labels if label in found]
        axis.barh(
            places,
            _numbers(shown, figure.value),
            height=height * 0.92,
            color=COLORS[index % len(COLORS)],
            label=name,
            xerr=_numbers(shown, figure.error) if figure.error else None,
            error_kw={"elinewidth": 1, "capsize": 2},
        )
        if figure.mark:
            axis.plot(
                _numbers(shown, figure.mark),
                places,
                linestyle="",
                marker="D",
                markersize=4,
                color="black",
                label=figure.mark if index == 0 else None,
            )
    axis.set_yticks(range(len(labels)), labels)
    axis.margins(y=0.01)
    axis.invert_yaxis()
    _scale(axis, figure.log_value, log_y=False)
    _legend(canvas, [axis])
    _label(axis, figure.value_label, "", "")
    return canvas


def _scale(axis: Axes, log_x: bool, log_y: bool) -> None:
    """Logarithmic axes with plain numbers; those of less than two decades with 2 and 5 as well."""
    for along, set_scale, logarithmic in (
        (axis.xaxis, axis.set_xscale, log_x),
        (axis.yaxis, axis.set_yscale, log_y),
    ):
        if not logarithmic:
            continue
        set_scale("log")
        low, high = along.get_view_interval()
        along.set_major_locator(LogLocator(subs=(1, 2, 5) if high < _WIDE * low else (1,)))
        along.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1000 else f"{value:g}")
        )
        along.set_minor_formatter(NullFormatter())


def _label(axis: Axes, x_label: str, y_label: str, title: str, *, grid: bool = True) -> None:
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)
    axis.set_title(title, fontsize=9)
    axis.tick_params(labelsize=8)
    if grid:
        axis.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
