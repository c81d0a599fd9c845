"""What a reproduction is, and what comes out of it: rows, checks against the paper, errata."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Protocol, TypeVar

from dither_research.seeded import Random, seeded

T = TypeVar("T")

Row = Mapping[str, str | float]
"""One line of a CSV: column name to value."""


class Track(Protocol):
    """Goes through steps and shows how far it is."""

    def __call__(self, steps: Sequence[T]) -> Iterable[T]:
        """The steps, one by one."""


def untracked(steps: Sequence[T]) -> Sequence[T]:
    """Goes through steps and shows nothing."""
    return steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A number or a statement of a paper beside ours.

    Attributes:
        quantity: What is compared.
        paper: What the paper says; words where it gives no number.
        ours: What we get.
        note: What to know about a deviation.
    """

    quantity: str
    paper: str | float
    ours: str | float
    note: str = ""

    @property
    def deviation(self) -> float | None:
        """Ours minus the paper's, where both are numbers."""
        if isinstance(self.paper, str) or isinstance(self.ours, str):
            return None
        return self.ours - self.paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a reproduction computed.

    Attributes:
        rows: For the CSV.
        checks: The paper's numbers beside ours.
    """

    rows: tuple[Row, ...]
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Curves, in one panel or several.

    Attributes:
        x, y: Columns.
        series: Column that tells the curves apart.
        x_label, y_label: Axes, with units.
        panel: Column that tells the panels apart; empty for one panel.
        log_x, log_y: Logarithmic axes.
        error: Column with the standard error of y; empty for none.
        verticals, levels: Marked places, as (x or y, label).
        share_y: Whether all panels have the same y axis.
        legends: A legend in every panel, where they show different things.
        limits: Range of y, by panel.
    """

    x: str
    y: str
    series: str
    x_label: str
    y_label: str
    panel: str = ""
    log_x: bool = False
    log_y: bool = False
    error: str = ""
    verticals: tuple[tuple[float, str], ...] = ()
    levels: tuple[tuple[float, str], ...] = ()
    share_y: bool = True
    legends: bool = False
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A value over two axes, in one panel or several.

    Attributes:
        x, y, value: Columns; x and y are a full grid.
        x_label, y_label, value_label: Axes and color, with units.
        panel: Column that tells the panels apart; empty for one panel.
        log_x, log_y: Logarithmic axes.
        log_value: Logarithmic color, in panels that span more than a factor of 50.
    """

    x: str
    y: str
    value: str
    x_label: str
    y_label: str
    value_label: str
    panel: str = ""
    log_x: bool = False
    log_y: bool = False
    log_value: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Horizontal bars, grouped.

    Attributes:
        label: Column that names the bars of a group.
        value: Column with their length.
        series: Column that tells the bars of a group apart.
        value_label: Axis, with unit.
        error: Column with the spread; empty for none.
        mark: Column with a value to mark beside each bar; empty for none.
        log_value: Logarithmic axis.
    """

    label: str
    value: str
    series: str
    value_label: str
    error: str = ""
    mark: str = ""
    log_value: bool = False


Figure = Lines | Heat | Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One table or figure of a paper.

    Attributes:
        name: On the command line, and of the files.
        title: What it shows.
        paper: Where it is from.
        columns: Of the CSV: name to meaning and unit.
        figure: How to plot the rows.
        runs: How many runs it takes by default; None where nothing is simulated.
        run: What a run is, in the plural.
        compute: From runs, a source of random numbers and a progress bar to the outcome.
        errata: What is wrong in the paper here, or not private; each begins with "Wrong", "Not private" or
            "Unclear".
    """

    name: str
    title: str
    paper: str
    columns: Mapping[str, str]
    figure: Figure
    runs: int | None
    run: str = ""
    compute: Callable[[int, Random, Track], Outcome]
    errata: tuple[str, ...] = ()

    def reproduce(self, runs: int | None = None, track: Track = untracked) -> Outcome:
        """Compute it; the same runs give the same outcome.

        Args:
            runs: How many; by default `self.runs`.
            track: Progress.
        """
        return self.compute(max(1, runs or self.runs or 1), seeded(self.name), track)


def csv_text(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Rows as CSV with a header; floats with ten significant digits."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[column]) for column in columns])
    return text.getvalue()


def _cell(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return "" if math.isnan(value) else f"{value:.10g}"
