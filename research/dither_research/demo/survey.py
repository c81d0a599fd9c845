"""The demo's people: a published survey, with made-up privacy wishes.

The answers are real: 6,366 married women in a magazine's survey of 1974 (Fair, "A Theory of Extramarital
Affairs", Journal of Political Economy 86, 1978). What each woman offers and whom she trusts is drawn from her
number, so it is the same in every run, and independent of her answers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

from dither import Client, Record

from dither_research.datasets import statsmodels_rows

Trust = Literal["central", "local", "public"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """One study with every person who takes part in it.

    Attributes:
        slug, title: Its address and its question.
        lower, upper: Range of an answer.
        relation: What stays secret.
        epsilon: The least and the most that a person may offer, as decimal text.
        records: One a person.
        attributes: Declared labels by the names of attributes.
    """

    slug: str
    title: str
    lower: int
    upper: int
    relation: Literal["replace_one", "add_remove_one"]
    epsilon: tuple[str, str]
    records: tuple[Record, ...]
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def true_mean(self) -> float:
        """The mean of these answers in the file. No service knows it."""
        return fmean(float(str(record.value)) for record in self.records)

    def with_newcomers(self) -> tuple["Survey", "Survey"]:
        """The women who answer at first, and every tenth one, who comes later."""
        late = self.records[9::10]
        early = tuple(record for place, record in enumerate(self.records) if place % 10 != 9)
        return replace(self, records=early), replace(self, records=late)

    def create(self, admin: Client) -> None:
        """Make the study."""
        admin.create_study(
            self.slug,
            title=self.title,
            lower=self.lower,
            upper=self.upper,
            relation=self.relation,
            trust=self.trust,
            epsilon_min=self.epsilon[0],
            epsilon_max=self.epsilon[1],
            attributes=self.attributes or None,
        )

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


def surveys() -> tuple[Survey, Survey, Survey]:
    """The three studies, filled with every person in the file.

    Raises:
        CommandFailed: the package that ships the survey is not installed.
    """
    answers = statsmodels_rows("fair")
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
    records = []
    for number, answer in enumerate(answers, start=1):
        subject = f"woman-{number:04}"
        value = str(int(float(answer[column]) > 0)) if column == "affairs" else answer[column]
        place = draw(slug, subject, "trust")
        trust: Trust
        trust = "public" if place < public else "local" if place < public + local else "central"
        offer = None if trust == "public" else made_up_offer(slug, subject, epsilon)
        records.append(Record(subject, value, offer, trust))
    return tuple(records)


def made_up_offer(slug: str, subject: str, epsilon: tuple[str, str]) -> str:
    """What a person offers: its logarithm is spread evenly over the admissible range."""
    low, high = float(epsilon[0]), float(epsilon[1])
    return f"{low * (high / low) ** draw(slug, subject, 'epsilon'):.2g}"


def draw(*names: str) -> float:
    """A number in [0, 1) that depends on nothing but these names."""
    return int.from_bytes(hashlib.sha256("/".join(names).encode()).digest()[:6], "big") / 2**48
