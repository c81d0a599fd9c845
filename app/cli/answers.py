"""Answers as they are printed."""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TypeVar

from dither import (
    Bin,
    CellShare,
    ChoiceShare,
    Coordinate,
    Count,
    FoundRange,
    Interval,
    LabelAnswer,
    LinePoint,
    Quartile,
    Release,
    Statistic,
)

from app.cli.common import console, print_details, print_table, show
from app.core.attributes import label_of
from app.core.numbers import Headline, counted, headline
from app.web.documents.release import error_of

T = TypeVar("T")

_AT_ALL_STEPS = "at all steps"
"""Of an interval that holds for all answers to a question at once; shown from the second one on."""


def show_release(found: Release) -> None:
    """Print an answer to any statistic."""
    if found.groups is not None and found.estimate is not None:
        named = ["label", "people", "estimate", "these people", "population"]
        if found.refines is not None and any(one.anytime for one in found.groups):
            named.append(_AT_ALL_STEPS)
        if any(one.simultaneous for one in found.groups):
            named.append("all labels together")
        if found.standardize:
            named.append("weight")
        if any(one.drawn_to_whole is not None for one in found.groups):
            named.append("drawn to the whole")
        if any(one.outside_at_most is not None for one in found.groups):
            named.append("outside at most")
        print_table([_label(one, found) for one in found.groups], {name: name for name in named})
    parts = (
        _parts(found, lambda of: of.bins, partial(_bin, found)),
        _parts(found, lambda of: of.choices, partial(_choice, found)),
        _parts(found, lambda of: of.cells, partial(_cell, found)),
        _parts(found, partial(_line, found), lambda row: row),
        _parts(found, _described, lambda row: row),
        _parts(found, lambda of: of.coordinates, partial(_coordinate, found.statistic)),
    )
    for shown in parts:
        if shown:
            print_table(shown, {name: name for name in shown[0]})
    spread = found.sd if found.statistic == "mean" else None
    unit, of = error_of(found.statistic, of_coordinates=found.coordinates is not None)
    error = f" {of}" if found.statistic == "describe" or found.coordinates is not None else ""
    details: Mapping[str, object] = {
        "estimate": _headline(found),
        f"{found.statistic} of these people" if found.population_interval else "interval": interval_text(
            found.interval
        ),
        f"{found.statistic} of these people, {_AT_ALL_STEPS}": found.refines and interval_text(found.anytime),
        f"{found.statistic} of the population": interval_text(found.population_interval),
        "standard deviation": spread and _shown(spread, "sd").estimate,
        "standard deviation of these people": spread and interval_text(spread.interval),
        "standard deviation of the population": spread and interval_text(spread.population_interval),
        "range found": found.range and _range(found.range),
        "reports inside": found.reporting_range and _range(found.reporting_range),
        "measure": found.measure,
        "of": found.where and ", ".join(f"{name} {label}" for name, label in found.where.items()),
        "weighed by": found.standardize and _standardized(found.standardize),
        "between": found.between and _between(found.between),
        "an interval": found.assumption,
        "people": found.about if found.people is None else found.people,
        "left out": _left_out(found),
        "noise, standard error": found.standard_error,
        f"predicted error{error}, {unit}": None
        if found.standard_error or found.predicted_error is None
        else f"{show(found.predicted_error)} (root mean square)",
        "share": _share(found),
        "p-value of independence": found.p_value,
        "combines": found.combines and f"{len(found.combines)} answers",
        "mean of": found.weights and "the people of all these answers; who is in several counts more",
        "largest charge": found.epsilon_max,
        "estimator": found.estimator,
        "relation": found.relation,
        "new contributions since": found.new_contributions,
        "release": found.id,
    }
    print_details({name: show(value) for name, value in details.items() if value is not None})
    if found.new_contributions:
        console.print(
            f"People have contributed since: `dither plan {found.study}` says what a new answer costs."
        )


def _parts(
    found: Release,
    of: Callable[[Release | LabelAnswer], Sequence[T] | None],
    shown: Callable[[T], dict[str, object]],
) -> list[dict[str, object]]:
    """A row for each bin or choice, of all people and then of each label, if it was asked by labels."""
    if found.groups is None:
        return [shown(one) for one in of(found) or ()]
    answers: list[tuple[str, Release | LabelAnswer]] = [("all", found)]
    answers += [(label_of(one.where, found.by or ""), one) for one in found.groups]
    return [{"label": label, **shown(one)} for label, answer in answers for one in of(answer) or ()]


def _quarters(band: Sequence[LinePoint]) -> list[LinePoint]:
    """The points of a band at quarters of its range."""
    ends = band[0].at, band[-1].at
    places = [ends[0] + (ends[1] - ends[0]) * quarter / 4 for quarter in range(5)]
    return [min(band, key=lambda one: abs(one.at - place)) for place in places]


def _line(found: Release, of: Release | LabelAnswer) -> list[dict[str, object]]:
    """Slope, intercept and R squared of a line, a row each, and where it is; none of another answer."""
    if of.slope is None or of.intercept is None or of.r_squared_interval is None:
        return []
    rows: list[tuple[str, float | None, Interval | LinePoint, Interval | None]] = [
        (name, one.estimate, one.interval, one.population_interval)
        for name, one in (("slope", of.slope), ("intercept", of.intercept))
    ]
    rows.append(("R squared", of.r_squared, of.r_squared_interval, None))
    places: list[tuple[float, float, Interval | LinePoint]] = [
        (one.at, one.estimate, one) for one in (_quarters(of.band) if of.band else ())
    ]
    if of.prediction is not None:
        places = [(of.prediction.at, of.prediction.estimate, of.prediction.interval)]
    rows += [(f"{found.of} at {found.on} {show(at)}", estimate, ends, None) for at, estimate, ends in places]
    return [
        _numbered(
            "number", name, headline(estimate or 0.0, these.lower, these.upper).estimate, these, population
        )
        for name, estimate, these, population in rows
    ]


def _described(found: Release | LabelAnswer) -> list[dict[str, object]]:
    """Count, mean, standard deviation and quartiles, a row each; none of another answer."""
    if found.quartiles is None:
        return []
    rows: list[tuple[str, str, Interval, Interval | None]] = []
    if found.count is not None:
        rows.append(("count", _shown(found.count).estimate, found.count.interval, None))
    for name, one, statistic in (("mean", found.mean, "mean"), ("standard deviation", found.sd, "sd")):
        if one is not None:
            rows.append((name, _shown(one, statistic).estimate, one.interval, one.population_interval))
    rows += [
        (f"quantile {one.q:g}", _shown(one).estimate, one.interval, one.population_interval)
        for one in found.quartiles
    ]
    return [_numbered("name", *row) for row in rows]


def _numbered(
    heading: str, name: str, estimate: str, these: Interval | LinePoint, population: Interval | None
) -> dict[str, object]:
    """A row of a table of several numbers."""
    ends = {"these people": _ends(these), "population": "" if population is None else _ends(population)}
    return {heading: name, "estimate": estimate, **ends}


def _ends(interval: Interval | LinePoint) -> str:
    """Both ends: six digits, or four of half the width where large numbers lie close together."""
    half = (interval.upper - interval.lower) / 2
    if not 0 < half < 1e-3 * max(abs(interval.lower), abs(interval.upper)):
        return f"{show(interval.lower)} to {show(interval.upper)}"
    places = 3 - math.floor(math.log10(half))
    return " to ".join(show(Decimal(str(round(end, places)))) for end in (interval.lower, interval.upper))


def _bin(found: Release, one: Bin) -> dict[str, object]:
    return {"from": one.lower, "to": one.upper, **_share_of(found, one, "all bins together")}


def _choice(found: Release, one: ChoiceShare) -> dict[str, object]:
    return {"choice": one.choice, **_share_of(found, one, "all choices together")}


def _cell(found: Release, one: CellShare) -> dict[str, object]:
    return {**one.where, **_share_of(found, one, "all pairs together")}


def _coordinate(statistic: str, one: Coordinate) -> dict[str, object]:
    together = {} if one.simultaneous is None else {"all coordinates together": _ends(one.simultaneous)}
    spread = {} if one.sd is None else {"standard deviation": _shown(one.sd, "sd").estimate}
    return {
        "coordinate": one.coordinate,
        "estimate": _shown(one, statistic).estimate,
        "these people": _ends(one.interval),
        "population": _ends(one.population_interval),
        **together,
        **spread,
    }


def _share_of(found: Release, one: Bin | CellShare | ChoiceShare, jointly: str) -> dict[str, object]:
    """A share with its intervals."""
    intervals = {
        "these people": one.interval,
        "population": one.population_interval,
        jointly: one.simultaneous,
        _AT_ALL_STEPS: one.anytime if found.refines else None,
    }
    said = {name: headline(one.share, of.lower, of.upper) for name, of in intervals.items() if of is not None}
    ends = {name: f"{of.lower} to {of.upper}" for name, of in said.items()}
    return {"share": said["these people"].estimate, **ends}


def _headline(found: Release) -> str | None:
    """The estimate with its interval, no more exact than that."""
    if found.estimate is None or found.interval is None:
        return None if found.estimate is None else show(found.estimate)
    return headline(found.estimate, found.interval.lower, found.interval.upper, found.statistic).in_words


def _shown(one: Statistic | Count | Quartile | Coordinate, statistic: str = "") -> Headline:
    return headline(one.estimate, one.interval.lower, one.interval.upper, statistic)


def _range(found: FoundRange) -> str:
    people = (
        ""
        if found.people_outside_at_most is None
        else f", {counted(found.people_outside_at_most, 'person', 'people')}"
    )
    return (
        f"{show(found.lower)} to {show(found.upper)}; outside, and counted as its nearer end: at most "
        f"{found.outside_at_most:.2%}{people}"
    )


def _left_out(found: Release) -> str | None:
    if not found.people_left_out:
        return show(found.people_left_out) if found.people is not None else None
    return f"{found.people_left_out} ({(found.left_out_because or '').replace('_', ' ')})"


def interval_text(interval: Interval | None) -> str | None:
    """An interval in words; None for none."""
    if interval is None:
        return None
    return f"{_ends(interval)} ({100 * interval.level:g}% interval)"


def _label(one: LabelAnswer, found: Release) -> dict[str, object]:
    estimate: object = one.estimate
    if one.estimate is not None and one.interval is not None:
        estimate = headline(one.estimate, one.interval.lower, one.interval.upper, found.statistic).estimate
    return {
        "label": label_of(one.where, found.by or ""),
        "people": one.people if one.noisy_count is None else _counted(one, one.noisy_count),
        "estimate": estimate,
        "these people": interval_text(one.interval),
        "population": interval_text(one.population_interval),
        _AT_ALL_STEPS: interval_text(one.anytime),
        "all labels together": interval_text(one.simultaneous),
        "weight": one.weight,
        "drawn to the whole": one.drawn_to_whole,
        "outside at most": None if one.outside_at_most is None else f"{one.outside_at_most:.2%}",
    }


def _counted(one: LabelAnswer, noisy_count: float) -> str:
    """About how many people have a label; former releases say no more than what they weigh."""
    return one.about or f"about {max(0, round(noisy_count))} or more"


def _standardized(shares: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(
        ", ".join(f"{label} {share:g}" for label, share in own.items()) for own in shares.values()
    )


def _between(labels: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name} {' less '.join(pair)}" for name, pair in labels.items())


def _share(found: Release) -> str | None:
    """What the question has used of each epsilon; None for what was free."""
    free = not found.epsilon_max and not found.epsilon_max_total
    if found.share is None or found.combines or free:
        return None
    before = f" ({found.share_before:g} before)" if found.share_before else ""
    return f"{found.share:g} of each epsilon in all{before}"
