"""Answers as people look at them: rows, data frames, HTML for a notebook, plots, CSV and Parquet.

All is made from the document of the service, so fields that a newer one adds are there, too.
"""

import csv
import errno
import io
import json
import os
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dither._errors import InvalidRequest

Row = dict[str, object]

PARTS = ("bins", "choices", "cells", "coordinates", "quartiles")
"""Lists of a document whose items are rows of their own; what is theirs is called `bins.lower` and so on."""

BESIDE = ("count", "mean", "sd", "slope", "intercept", "r_squared", "prediction")
"""Of a description, beside its quartiles, and of a line."""

GROUPS = "groups"
"""The answers by group of a document: rows beside the whole, with the same names and `where`."""

_SPREADS = ("variance", "sd")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")


class Drawn(NamedTuple):
    """What is drawn of an estimate, in the data's unit.

    Attributes:
        label: What it is of.
        value: The estimate.
        interval: The ends of its interval.
        together: Those of one that holds together with those of all others.
        always: Those of one that holds at all steps of its question, from the second one on.
        to_whole: The estimate drawn to that for all people.
        statistic: Which one it is, where that is not the answer's.
    """

    label: str
    value: float
    interval: tuple[float, float] | None = None
    together: tuple[float, float] | None = None
    always: tuple[float, float] | None = None
    to_whole: float | None = None
    statistic: str = ""

    def in_words(self, statistic: str) -> str:
        """It and its interval, of this statistic."""
        statistic = self.statistic or statistic
        if self.interval is None:
            return f"{self.value:.4g}"
        lower, upper = self.interval
        if statistic in _SPREADS:
            return spread_in_words(self.value, lower, upper)
        always = "" if self.always is None else ", at all steps {:.4g} to {:.4g}".format(*self.always)
        return f"{self.value:.4g} ({lower:.4g} to {upper:.4g}{always})"


class Document(Protocol):
    """What the service sent: an answer, a study, a budget, a token, a session."""

    @property
    def raw(self) -> Mapping[str, object]:
        """All that it said."""


class Shown:
    """An answer that can be looked at as a table."""

    __slots__ = ()

    raw: Mapping[str, object]

    def _rows(self) -> list[Row]:
        return rows_of(self.raw)

    def to_dataframe(self, *, full: bool = False) -> Any:
        """A `pandas.DataFrame` of this alone, as `dither.to_dataframe` makes one of several."""
        return to_dataframe([self], full=full)

    def _few(self) -> list[Row]:
        """Rows for people: of an answer its estimates alone."""
        return self._rows()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = [row | _hidden(row) for row in self._rows()]
        if len(rows) == 1:
            rows = [{"": name, " ": value} for name, value in rows[0].items() if value is not None]
        return _html(rows)


class Plotted(Shown):
    """An answer that can be drawn, too."""

    __slots__ = ()

    def __str__(self) -> str:
        """Its estimates and intervals in a line."""
        name, drawn = self._drawn()
        shown = [*(one for _, one in _beside(self._rows())), *drawn]
        said = "; ".join(f"{one.label} {one.in_words(name)}" for one in shown).removeprefix("all ")
        return f"{name} of {self.raw.get('study')}: {said}" if said else repr(self)

    def _repr_html_(self) -> str:
        """The sentence, the plot where matplotlib is installed, and all fields, for notebooks."""
        said, table = escape(str(self)), Shown._repr_html_(self)
        return f"<p>{said}</p>{self._image(said)}<details><summary>All fields</summary>{table}</details>"

    def _image(self, said: str) -> str:
        drawn = self._drawn()[1]
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return ""
        if not drawn:
            return ""
        figure, content = Figure((6, 1.6 + 0.3 * len(drawn)), layout="constrained"), io.BytesIO()
        self.plot(figure.subplots())
        figure.savefig(content, format="png")
        return f'<img alt="{said}" src="data:image/png;base64,{b64encode(content.getvalue()).decode()}">'

    def _few(self) -> list[Row]:
        rows = self._rows()
        beside, drawn = _beside(rows), [(row, _drawn(row)) for row in rows]
        return [_estimate(row, one) for row, one in (*beside, *drawn) if one or not beside]

    def _unit(self, name: str) -> str:
        parts = any(self.raw.get(part) for part in ("bins", "choices"))
        unitless = name in ("count", "correlation", "estimate")
        return "share of the people" if parts else name if unitless else f"{name} (unit of the study)"

    def _drawn(self) -> tuple[str, list[Drawn]]:
        """What the estimates are, and each of them."""
        name = str(self.raw.get("statistic") or "estimate")
        rows = self._rows()
        # Beside a difference, the answers for labels are means.
        drawn = map(_drawn, rows[:1] if self.raw.get("between") else rows)
        return name, [one for one in drawn if one is not None]

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimates with their intervals: dashed where they hold together, dotted at all steps.

        One estimate alone is a dot, and several are bars. Estimates drawn to the whole are open dots, and a
        difference is beside a line at zero.

        Args:
            ax: `matplotlib.axes.Axes` to draw on; a new figure if it is None.

        Returns:
            The axes.

        Raises:
            InvalidRequest: matplotlib is not installed.
        """
        name, drawn = self._drawn()
        ax = _axes(ax)
        places = list(range(len(drawn)))
        values = [one.value for one in drawn]
        if len(drawn) == 1:
            ax.plot(values, places, "o", color="#30688a", label="estimate")
        else:
            ax.barh(places, values, color="#7aa6c2", height=0.6, label="estimate")
        level = _level(self._rows())
        for style, cap, said, ends in (
            (":", 0, f"{level}interval, at all steps", [one.always for one in drawn]),
            ("--", 0, f"{level}interval, all together", [one.together for one in drawn]),
            ("-", 3, f"{level}interval", [one.interval for one in drawn]),
        ):
            reach = [
                # The interval of a share may end at 0 while its estimate is below.
                (place, value, max(0.0, value - pair[0]), max(0.0, pair[1] - value))
                for place, value, pair in zip(places, values, ends, strict=True)
                if pair is not None
            ]
            if reach:
                at, of, below, above = zip(*reach, strict=True)
                bars = ax.errorbar(
                    of, at, xerr=(below, above), fmt="none", ecolor="black", capsize=cap, label=said
                )
                bars[2][0].set_linestyle(style)
        to_whole = [(one.to_whole, place) for place, one in enumerate(drawn) if one.to_whole is not None]
        if to_whole:
            look = {"markerfacecolor": "white", "markeredgecolor": "black"}
            ax.plot(*zip(*to_whole, strict=True), "o", label="drawn to the whole", **look)
        if self.raw.get("between"):
            ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(places, [one.label for one in drawn])
        ax.invert_yaxis()
        ax.set_xlabel(self._unit(name))
        if drawn:
            ax.legend()
        if study := self.raw.get("study"):
            ax.set_title(str(study))
        return ax


class PlanTable(Plotted):
    """A plan: a sentence, and one row an estimator."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(self.raw["in_words"])

    def _repr_html_(self) -> str:
        """The sentence above the table, for notebooks."""
        return f"<p>{escape(str(self))}</p>{Plotted._repr_html_(self)}"

    def _rows(self) -> list[Row]:
        return [row for one in _objects(self.raw["estimators"]) for row in rows_of(one)]

    def _few(self) -> list[Row]:
        return self._rows()

    def _unit(self, name: str) -> str:
        return name

    def _drawn(self) -> tuple[str, list[Drawn]]:
        rows = [(str(row["estimator"]), row.get("predicted_error")) for row in self._rows()]
        return "predicted error", [
            Drawn(name, float(of)) for name, of in rows if isinstance(of, int | Decimal)
        ]


class InWords:
    """A variance or a standard deviation in words."""

    __slots__ = ()

    estimate: float
    interval: Any

    @property
    def in_words(self) -> str:
        """The estimate and its interval; "at most 3497" where the interval begins at 0: noise hides it."""
        return spread_in_words(self.estimate, self.interval.lower, self.interval.upper)


def spread_in_words(estimate: float, lower: float, upper: float) -> str:
    """The same, of an estimate and the ends of its interval.

    >>> spread_in_words(1200.0, 0.0, 3497.0)
    'at most 3497'
    """
    if lower <= 0 < upper:
        return f"at most {upper:.6g}"
    return f"{estimate:.6g} ({lower:.6g} to {upper:.6g})"


def rows_of(document: Mapping[str, object]) -> list[Row]:
    """The rows of one document: itself, or its bins or choices in place of itself; then those of its groups.

    >>> rows_of({"estimate": 3, "groups": [{"where": {"sex": "f"}, "estimate": 4}]})
    [{'estimate': 3}, {'estimate': 4, 'where.sex': 'f'}]
    """
    nested = {name: items for name in (GROUPS, *PARTS) if (items := _objects(document.get(name)))}
    plain = {name: value for name, value in document.items() if name not in nested}
    groups = nested.pop(GROUPS, [])
    rows = [_flat(plain | {name: item}) for name, items in nested.items() for item in items]
    # What is read off the answers for labels is not said of them. A line's `of` is a measure, of theirs, too.
    whole = ("between", "standardize") if "on" in plain else ("of", "between", "standardize")
    shared = {name: value for name, value in plain.items() if name not in whole}
    if "of" in plain and "of" in whole:
        shared["statistic"] = plain["of"]
    return (rows or [_flat(plain)]) + [row for group in groups for row in rows_of(shared | dict(group))]


def _objects(value: object) -> list[Mapping[str, object]]:
    """The items of a list of objects; none of anything else."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return []
    return value


def _flat(document: Mapping[str, object], prefix: str = "") -> Row:
    """A row of scalars; lists become JSON text."""
    row: Row = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            row |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            row[prefix + name] = json.dumps(value, default=float)
        else:
            row[prefix + name] = value
    return row


def _table(items: Iterable[Document], *, full: bool = True) -> tuple[list[str], list[Row]]:
    """Every column, in the order in which they come first, and the rows; those for people unless full.

    Raises:
        InvalidRequest: these are no documents of the service.
    """
    if not isinstance(items, Iterable):
        raise InvalidRequest("items", f"must be a list of answers or the like, not {_kind(items)}")
    rows = [row for item in items for row in _rows_of_item(item, full)]
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def _rows_of_item(item: object, full: bool) -> list[Row]:
    if isinstance(item, Shown):
        return item._rows() if full else item._few()
    raw = getattr(item, "raw", None)
    if not isinstance(raw, Mapping):
        wanted = "answers, studies, budgets, tokens or sessions"
        raise InvalidRequest("items", f"must be {wanted}, as a client gives them, not {_kind(item)}")
    return rows_of(raw)


def _kind(item: object) -> str:
    return type(item).__name__


def to_dataframe(items: Iterable[Document], *, full: bool = False) -> Any:
    """One `pandas.DataFrame` of several answers, studies or budgets.

    For example `to_dataframe(client.releases("commute"))`: a row an answer, a label, a bin or a choice.

    Args:
        items: What the service sent.
        full: Every field that it sent, nested ones as `interval.lower`; without it, answers have the columns
            study, statistic, of, estimate, lower and upper.

    Raises:
        InvalidRequest: pandas is not installed, or the items are of another kind.
    """
    try:
        import pandas
    except ImportError:
        raise _missing("to_dataframe", "pandas") from None
    columns, rows = _table(items, full=full)
    return pandas.DataFrame({name: _column([row.get(name) for row in rows]) for name in columns})


def save_table(items: Iterable[Document], path: str | os.PathLike[str]) -> int:
    """Write answers, studies or budgets to a file, a table with one row an answer, a bin or a choice.

    Args:
        items: For example `client.releases("commute")`.
        path: Ends in .csv or .parquet. A file that is there is replaced, once the new one is complete.

    Returns:
        How many rows it has.

    Raises:
        InvalidRequest: another ending, items of another kind, or pyarrow is not installed.
        OSError: the file cannot be written.
    """
    target = Path(path)
    if target.suffix not in _WRITERS:
        raise InvalidRequest("path", "must end in .csv or .parquet")
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such directory", str(target.parent))
    columns, rows = _table(items)
    scratch = target.with_name(f".{target.name}.partial")
    try:
        _WRITERS[target.suffix](columns, rows, scratch)
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
    return len(rows)


def _write_csv(columns: Sequence[str], rows: Sequence[Row], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _write_parquet(columns: Sequence[str], rows: Sequence[Row], path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise _missing("a Parquet file", "parquet") from None
    data = {name: _column([row.get(name) for row in rows]) for name in columns}
    parquet.write_table(pyarrow.table(data), path)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}


def _column(values: Sequence[object]) -> list[Any]:
    """Values of one type: numbers, moments, or else text; None stays None."""
    given = [value for value in values if value is not None]
    kinds = {type(value) for value in given}
    convert: Callable[[Any], Any] = str
    if kinds in ({bool}, {int}):
        return list(values)
    if kinds <= {int, float, Decimal}:
        convert = float
    elif kinds == {str} and all(_MOMENT.match(str(value)) for value in given):
        convert = datetime.fromisoformat
    return [None if value is None else convert(value) for value in values]


def _beside(rows: Iterable[Row]) -> list[tuple[Row, Drawn]]:
    """What a description or a line says once: of all people, and of each label."""
    first = dict[str, Row]()
    for row in rows:
        if row.get("statistic") in ("describe", "regression"):
            first.setdefault(_where(row), row)
    return [
        (row, Drawn(": ".join(filter(None, (where, part))), value, ends, statistic=part))
        for where, row in first.items()
        for part in BESIDE
        if (value := _number(row.get(f"{part}.estimate", row.get(part)))) is not None
        for ends in [_ends(row, f"{part}.interval") or _ends(row, f"{part}_interval")]
    ]


def _estimate(row: Row, one: Drawn | None) -> Row:
    """The six columns of a row of an answer, and of what is drawn of it."""
    lower, upper = (one.interval if one else None) or (None, None)
    return {
        "study": row.get("study"),
        "statistic": row.get("statistic"),
        "of": one.label if one else _where(row) or _whole(row),
        "estimate": one.value if one else None,
        "lower": lower,
        "upper": upper,
    }


def _level(rows: Iterable[Row]) -> str:
    """That of intervals, for a legend: "95 % "."""
    levels = {float(str(of)) for row in rows for name, of in row.items() if name.endswith("interval.level")}
    return f"{100 * max(levels):g} % " if levels else ""


def _where(row: Row) -> str:
    return ", ".join(str(label) for name, label in row.items() if name.startswith("where."))


def _drawn(row: Row) -> Drawn | None:
    """What of a row can be drawn; None where it has no estimate."""
    prefix = next((f"{part}." for part in PARTS if any(name.startswith(f"{part}.") for name in row)), "")
    value = next((row[name] for name in (f"{prefix}estimate", f"{prefix}share") if name in row), None)
    if not isinstance(value, int | float | Decimal) or (not prefix and "estimate" not in row):
        return None
    own = str(row.get(f"{prefix}choice", ""))
    if pair := [str(label) for name, label in row.items() if name.startswith("cells.where.")]:
        own = ", ".join(pair)
    if f"{prefix}coordinate" in row:
        own = f"coordinate {row[f'{prefix}coordinate']}"
    if f"{prefix}q" in row:
        own = f"quantile {row[f'{prefix}q']}"
    if f"{prefix}lower" in row:
        own = f"{row[f'{prefix}lower']} to {row[f'{prefix}upper']}"
    return Drawn(
        ": ".join(filter(None, (_where(row), own if prefix else ""))) or _whole(row),
        float(value),
        _ends(row, f"{prefix}interval"),
        _ends(row, f"{prefix}simultaneous"),
        _ends(row, f"{prefix}anytime") if row.get("refines") else None,
        _number(row.get("drawn_to_whole")),
    )


def _whole(row: Row) -> str:
    """What an estimate is called that is not of a label."""
    pair = next((str(labels) for name, labels in row.items() if name.startswith("between.")), None)
    if pair is not None:
        return " less ".join(json.loads(pair))
    return "standardized" if any(name.startswith("standardize.") for name in row) else "all"


def _ends(row: Row, name: str) -> tuple[float, float] | None:
    lower, upper = (_number(row.get(f"{name}.{end}")) for end in ("lower", "upper"))
    return None if lower is None or upper is None else (lower, upper)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) else None


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise _missing("plot", "matplotlib") from None
    return pyplot.subplots(layout="constrained")[1]


def _missing(what: str, extra: str) -> InvalidRequest:
    return InvalidRequest(what, f"takes an optional package: pip install 'dither[{extra}]'")


def _html(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name.strip())}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _hidden(row: Row) -> Row:
    """What is said in place of estimates of spreads that noise hides: those whose interval begins at 0."""
    own = row.get("statistic") in _SPREADS
    said: Row = {}
    for name in row:
        *within, last = name.split(".")
        of = within[-1] if within else ""
        if last != "estimate" or not (of in _SPREADS or (own and of in ("", "coordinates"))):
            continue
        prefix = name.removesuffix(last)
        ends = _ends(row, f"{prefix}interval")
        if ends is not None and ends[0] <= 0 < ends[1]:
            said[name] = spread_in_words(0.0, *ends)
    return said


def _text(value: object) -> str:
    if isinstance(value, Decimal | float):
        return f"{value:.6g}"
    return "" if value is None else escape(str(value))
