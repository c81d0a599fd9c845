"""What the demo asks about the households: a mean by town, the median, a mean over a range that is found."""

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from dither import Client, LabelAnswer, Release
from rich.table import Table

from app.cli.common import CommandFailed, console, new_table, show
from dither_research.demo.filling import by_device
from dither_research.demo.survey import Survey


def show_households(device: Client, analyst: Client, study: Survey) -> None:
    """Fill the study, and print each answer beside the truth.

    Raises:
        CommandFailed: an answer charges another epsilon than its plan said.
    """
    by_device(device, study)
    spent = _values(study)
    console.print(
        f"{len(spent):,} Spanish households of 1980 say how many pesetas they spend in a year, and how large "
        f"their town is. The range is 0 to {study.upper:,}, since one of them spends {max(spent):,.0f}. "
        "In thousands:\n"
    )
    means = _asked(analyst, study, "mean", {"by": "town"})
    middle = _asked(analyst, study, "median", {})
    found = _asked(analyst, study, "mean", {"range": "found"})
    table = new_table()
    table.add_column("")
    for heading in ("households", "true\nvalue", "noisy\nanswer", "95 % interval", "largest\ncharge"):
        table.add_column(heading, justify="right")
    for group in means.groups or ():
        town = group.where["town"]
        own = _values(study, town)
        _add(table, f"mean, {town} towns", own, fmean(own), group, means)
    _add(table, "mean, all", spent, fmean(spent), means, means)
    high, low = study.attributes["town"][-1], study.attributes["town"][0]
    apart = analyst.difference(study.slug, between={"town": [high, low]})
    if apart.id != means.id:
        raise CommandFailed(f"the difference is of {apart.id}, not of {means.id}")
    truth = fmean(_values(study, high)) - fmean(_values(study, low))
    _add(table, f"{high} less {low}", [*_values(study, high), *_values(study, low)], truth, apart, means)
    _add(table, "median", spent, median(spent), middle, middle)
    _add(table, "mean, range found", spent, fmean(spent), found, found)
    console.print(table, soft_wrap=False)
    assert found.range is not None
    console.print(
        "Each household paid for the mean of its own town alone; that of all, and the difference, are read "
        "off the same release, for nothing. "
        f"The range that was found is {found.range.lower:,.0f} to {found.range.upper:,.0f}. That mean is of "
        "the values moved into it, with noise for that range in place of the declared one."
    )


def _asked(analyst: Client, study: Survey, statistic: str, parameters: Mapping[str, Any]) -> Release:
    """A release, held to its plan."""
    rows = analyst.plan(study.slug, statistic=statistic, **parameters).estimators
    planned = next(row.epsilon_max for row in rows if row.chosen)
    release = analyst.release(study.slug, statistic=statistic, **parameters)
    if release.epsilon_max != planned:
        raise CommandFailed(f"the plan was to charge {planned}, {release} charges {release.epsilon_max}")
    return release


def _values(study: Survey, town: str | None = None) -> list[float]:
    """What was said, in towns of one size or in all."""
    return [
        float(str(record.value))
        for record in study.records
        if record.attributes is not None and town in (None, record.attributes["town"])
    ]


def _add(
    table: Table, what: str, own: Sequence[float], truth: float, answer: Release | LabelAnswer, paid: Release
) -> None:
    assert answer.interval is not None
    numbers = (truth, answer.estimate, answer.interval.lower, answer.interval.upper)
    true, noisy, low, high = (f"{number / 1_000:,.0f}" for number in numbers if number is not None)
    table.add_row(
        what,
        f"{len(own):,}",
        true,
        noisy,
        f"{low} to {high}",
        show(paid.epsilon_max),
    )
