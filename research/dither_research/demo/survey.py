"""The demo's people: a published survey, with made-up privacy wishes.

The answers are real: 6,366 married women in a magazine's survey of 1974 (Fair, "A Theory of Extramarital
Affairs", Journal of Political Economy 86, 1978). The file is read from the wheel of `statsmodels`, whose
code is not imported. What each woman offers and whom she trusts is drawn from her number, so it is the same
in every run, and independent of her answers.
"""

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Literal

from dither import Record

from app.cli.common import CommandFailed
from app.cli.extensions import RESEARCH

PACKAGE = "statsmodels"
FILE = Path("datasets/fair/fair.csv")

Trust = Literal["central", "local", "public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One study with every person who takes part in it.

    Attributes:
        slug, title: Its address and its question.
        lower, upper: Range of an answer.
        relation: What stays secret.
        epsilon: The least and the most that a woman may offer, as decimal text.
        records: One a woman.
    """

    slug: str
    title: str
    lower: int
    upper: int
    relation: Literal["replace_one", "add_remove_one"]
    epsilon: tuple[str, str]
    records: tuple[Record, ...]

    @property
    def true_mean(self) -> float:
        """The mean of these answers in the file. No service knows it."""
        return fmean(float(str(record.value)) for record in self.records)

    def with_newcomers(self) -> tuple["Survey", "Survey"]:
        """The women who answer at first, and every tenth one, who comes later."""
        late = self.records[9::10]
        early = tuple(record for place, record in enumerate(self.records) if place % 10 != 9)
        return replace(self, records=early), replace(self, records=late)

    @property
    def tags(self) -> dict[str, int]:
        """How many women chose each trust tag."""
        counts: dict[str, int] = {}
        for record in self.records:
            counts[str(record.trust)] = counts.get(str(record.trust), 0) + 1
        return counts

    @property
    def trust(self) -> list[Trust]:
        """The trust tags that were chosen."""
        return sorted({record.trust for record in self.records if record.trust is not None})


def read_answers() -> Sequence[dict[str, str]]:
    """The rows of the file, by column.

    Raises:
        CommandFailed: the package that ships it is not installed.
    """
    spec = find_spec(PACKAGE)
    path = Path(spec.origin).parent / FILE if spec is not None and spec.origin is not None else None
    if path is None or not path.exists():
        raise CommandFailed(f"the demo reads a data set that {PACKAGE} ships: pip install '{RESEARCH}[demo]'")
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def surveys() -> tuple[Survey, Survey, Survey]:
    """The three studies, filled with every person in the file.

    Raises:
        CommandFailed: see `read_answers`.
    """
    answers = read_answers()
    married = Survey(
        slug="years-married",
        title="How many years married?",
        lower=0,
        upper=30,
        relation="replace_one",
        epsilon=("0.1", "2"),
        records=_records(answers, "years-married", "yrs_married", ("0.1", "2"), public=0.03),
    )
    age = Survey(
        slug="age",
        title="How old are you?",
        lower=15,
        upper=50,
        relation="replace_one",
        epsilon=("0.5", "4"),
        records=_records(answers, "age", "age", ("0.5", "4"), local=0.25),
    )
    affair = Survey(
        slug="affair",
        title="Ever had an affair?",
        lower=0,
        upper=1,
        relation="add_remove_one",
        epsilon=("0.5", "2"),
        records=_records(answers, "affair", "affairs", ("0.5", "2")),
    )
    return married, age, affair


def _records(
    answers: Sequence[dict[str, str]],
    slug: str,
    column: str,
    epsilon: tuple[str, str],
    *,
    public: float = 0,
    local: float = 0,
) -> tuple[Record, ...]:
    low, high = float(epsilon[0]), float(epsilon[1])
    records = []
    for number, answer in enumerate(answers, start=1):
        subject = f"woman-{number:04}"
        value = str(int(float(answer[column]) > 0)) if column == "affairs" else answer[column]
        place = _draw(slug, subject, "trust")
        trust: Trust
        trust = "public" if place < public else "local" if place < public + local else "central"
        offer = None if trust == "public" else f"{low * (high / low) ** _draw(slug, subject, 'epsilon'):.2g}"
        records.append(Record(subject, value, offer, trust))
    return tuple(records)


def _draw(*names: str) -> float:
    """A number in [0, 1) that depends on nothing but these names."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48
