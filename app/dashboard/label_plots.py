"""Plots of answers for labels side by side, and of what is read off them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from markupsafe import Markup

from app.core.attributes import label_of, listed
from app.core.numbers import headline, percent
from app.dashboard.canvas import FULL, HALF, Axis, Size, bar, draw_both, ends, estimate, reach
from app.dashboard.scales import Linear, Named, Scale
from app.web.documents.release import IntervalOut, ReleaseOut
from app.web.documents.shape import (
    CoordinateOut,
    CorrelationReleaseOut,
    CountReleaseOut,
    CovarianceReleaseOut,
    DescriptionOfLabelOut,
    DescriptionOut,
    QuantileReleaseOut,
)

_QUARTILES = ("first quartile", "median", "third quartile")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """An estimate of a name with its interval, and what else is known of it.

    Attributes:
        together: An interval that holds with all others.
        always: One that holds at all steps of the question, from the second one on.
        drawn: Where it is drawn to.
    """

    name: str
    value: float
    interval: IntervalOut
    together: IntervalOut | None = None
    always: IntervalOut | None = None
    drawn: float | None = None

    @property
    def numbers(self) -> Sequence[float]:
        """Everything that is drawn of it."""
        found = [self.value] if self.drawn is None else [self.value, self.drawn]
        intervals = (self.interval, self.together, self.always)
        return found + [end for one in intervals if one is not None for end in (one.lower, one.upper)]


OfOneNumber = QuantileReleaseOut | CountReleaseOut | CovarianceReleaseOut | CorrelationReleaseOut
"""Answers of one number for each label, besides means."""


def labels(release: ReleaseOut | OfOneNumber) -> Markup:
    """The estimate for each label with its intervals, and a line at that for the whole.

    Drawn to the whole, an estimate is an open dot beside. A sum or a count of the whole is far from those of
    its labels, and has no line.
    """
    points = [
        _Point(
            name=label_of(one.where, release.by or ""),
            value=one.estimate,
            interval=one.interval,
            together=getattr(one, "simultaneous", None),
            always=getattr(one, "anytime", None) if release.refines else None,
            drawn=getattr(one, "drawn_to_whole", None),
        )
        for one in release.groups or ()
        if one.estimate is not None and one.interval is not None
    ]
    line = None if release.statistic in ("sum", "count") else release.estimate
    return _side_by_side(
        f"The {release.statistic} for each label, with {{}} intervals for these people",
        points,
        line,
        x=listed(release.by or ""),
        y=release.statistic,
        size=FULL,
    )


def together(read: ReleaseOut, release: ReleaseOut) -> Markup:
    """A difference beside the line at zero, or a standardized mean beside that of these people."""
    if read.between:
        ((one, other),) = read.between.values()
        names, line, title = [f"{one} less {other}"], 0.0, "The difference, and no difference"
    else:
        names, line, title = ["standardized"], release.estimate, "Standardized, and the mean of these people"
    points = [one for name in names for one in _both(read, f"{name}, ", steps=bool(release.refines))]
    return _side_by_side(f"{title}, with {{}} intervals", points, line, x="for whom", y=read.statistic)


def _both(read: ReleaseOut, name: str = "", *, steps: bool) -> list[_Point]:
    """What an estimate says of these people and of the population, with `steps` that of all steps, too."""
    these = _Point(
        name=f"{name}these people",
        value=read.estimate,
        interval=read.interval,
        always=read.anytime if steps else None,
    )
    return [these, replace(these, name=f"{name}population", interval=read.population_interval, always=None)]


def mean(release: ReleaseOut, lower: float, upper: float) -> Markup:
    """A mean with its intervals for these people and for the population, in the range of its values."""
    points = _both(release, steps=bool(release.refines))
    title = "The mean with its {} intervals, in the range of the study"
    return _side_by_side(title, points, None, x="for whom", y="mean", size=FULL, shown=(lower, upper))


def coordinates(found: Sequence[CoordinateOut], *, y: str, steps: bool) -> Markup:
    """The estimate of each coordinate with its intervals, with `steps` that of all steps, too."""
    points = [
        _Point(
            name=str(one.coordinate),
            value=one.estimate,
            interval=one.interval,
            together=one.simultaneous,
            always=one.anytime if steps else None,
        )
        for one in found
    ]
    title = f"The {y} of each coordinate, with {{}} intervals for these people"
    return _side_by_side(title, points, None, x="coordinate", y=y, size=FULL)


def described(release: DescriptionOut) -> Markup:
    """The quartiles of all people and of those of each label as a box, and their mean beside it."""
    named: list[tuple[str, DescriptionOut | DescriptionOfLabelOut]] = [("all people", release)]
    named += [(label_of(one.where, release.by or ""), one) for one in release.groups or () if one.quartiles]
    boxes = [
        (
            [
                _Point(name=f"{name}, {which}", value=quartile.estimate, interval=quartile.interval)
                for which, quartile in zip(_QUARTILES, one.quartiles or (), strict=True)
            ],
            _Point(name=f"{name}, mean", value=one.mean.estimate, interval=one.mean.interval)
            if one.mean
            else None,
        )
        for name, one in named
    ]
    numbers = [
        number
        for quartiles, mean in boxes
        for one in (*quartiles, mean)
        if one is not None
        for number in one.numbers
    ]
    shown = _around(numbers)

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        for place, (quartiles, mean) in enumerate(boxes):
            left, right = across(place + 0.15), across(place + 0.65)
            half = up(quartiles[0].value), up(quartiles[-1].value)
            drawn.append(bar(left, right - left, *half, "box", f"{named[place][0]}: half of the people"))
            for beside, one in zip((0.25, 0.4, 0.55, 0.8), (*quartiles, mean), strict=True):
                if one is not None:
                    low, high = one.interval.lower, one.interval.upper
                    at = across(place + beside)
                    drawn.append(estimate(at, one.value, low, high, _said(one), up, shown))
        return drawn

    return draw_both(
        f"Quartiles and mean, with {percent(release.quartiles[0].interval.level)} intervals one by one",
        Axis(listed(release.by or ""), partial(Named, [name for name, _ in named])),
        Axis("value", partial(Linear, *shown)),
        marks,
        FULL if release.groups else HALF,
    )


def _around(numbers: Sequence[float]) -> tuple[float, float]:
    """What is shown: all of them and a margin."""
    low, high = min(numbers), max(numbers)
    margin = (high - low) * 0.06 or 1.0
    return low - margin, high + margin


def _side_by_side(
    title: str,
    points: Sequence[_Point],
    line: float | None,
    *,
    x: str,
    y: str,
    size: Size = HALF,
    shown: tuple[float, float] | None = None,
) -> Markup:
    """Estimates beside each other; the title has {} where it says the level of their intervals."""
    if not points:
        return Markup("")
    shown = shown or _around(
        [number for one in points for number in one.numbers] + ([] if line is None else [line])
    )

    def marks(across: Scale, up: Scale) -> Sequence[str]:
        drawn = []
        if line is not None:
            whole = ends((across(0), up(line)), (across(len(points)), up(line)))
            drawn.append(f'<line class="offered" {whole}/>')
        for place, one in enumerate(points):
            at, beside = across(place + 0.5), across(place + 0.7)
            for kind, its in (("reach always", one.always), ("reach together", one.together)):
                if its is not None:
                    low, high = max(its.lower, shown[0]), min(its.upper, shown[1])
                    drawn.append(reach(kind, at, up(low), up(high)))
            drawn.append(
                estimate(at, one.value, one.interval.lower, one.interval.upper, _said(one, y), up, shown)
            )
            if one.drawn is not None:
                drawn.append(f'<circle class="step ahead" cx="{beside:.1f}" cy="{up(one.drawn):.1f}" r="4"/>')
        return drawn

    always = ", dotted at all steps" if any(one.always for one in points) else ""
    return draw_both(
        title.format(percent(points[0].interval.level)) + always,
        Axis(x, partial(Named, [one.name for one in points])),
        Axis(y, partial(Linear, *shown)),
        marks,
        size,
    )


def _said(one: _Point, statistic: str = "") -> str:
    said = headline(one.value, one.interval.lower, one.interval.upper, statistic)
    return "{}: {}, {level}: {} to {}".format(one.name, *said, level=percent(one.interval.level))
