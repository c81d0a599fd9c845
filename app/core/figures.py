"""Figures over all people, as they are kept and shown. Amounts in micro-epsilon."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from app.core.records import Balance, InStudy


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """People whose amount is at least `lower` and below `upper`; in the last bin at most."""

    lower: int
    upper: int
    people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile:
    """The smallest amount that this percentage of people does not exceed."""

    percent: int
    epsilon: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How an amount is spread over people; without bins and percentiles where there are none.

    Attributes:
        width: Width of a bin; bin k holds amounts in [k width, (k + 1) width), and the last one its upper
            edge too.
        counts: People in each bin.
        percentiles: By percent.
        total: Sum over all people.
    """

    width: int = 1
    counts: tuple[int, ...] = ()
    percentiles: tuple[Percentile, ...] = ()
    total: int = 0

    @property
    def bins(self) -> tuple[Bin, ...]:
        """The bins with their edges."""
        return tuple(
            Bin(lower=place * self.width, upper=(place + 1) * self.width, people=people)
            for place, people in enumerate(self.counts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFigures:
    """What people have reserved and spent."""

    people: int
    reserved: Distribution
    spent: Distribution


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonBin:
    """People who chose a personal epsilon of at least `lower` and below `upper`; public people: 0 to 0."""

    lower: int
    upper: int
    central: int = 0
    local: int = 0
    public: int = 0
    reserved: int = 0
    spent: int = 0

    @property
    def people(self) -> int:
        """All of them."""
        return self.central + self.local + self.public


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonFigures:
    """Who chose which epsilon and trusts whom."""

    bins: tuple[EpsilonBin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day (UTC): people who contributed to a study for the first time, and releases."""

    day: date
    contributions: int
    releases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFigures:
    """Days on which something happened, newest first."""

    days: tuple[Day, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySummary:
    """How much of a study is there and left.

    Attributes:
        study: Slug.
        people: With a live contribution.
        reserved, spent: By live contributions.
        can_pay_percent: Central people who can still take part at the default share; None without any.
    """

    study: str
    people: int = 0
    reserved: int = 0
    spent: int = 0
    can_pay_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearlyExhausted:
    """A person who has reserved most of one of their lifetime budgets.

    Attributes:
        subject: The digest in hexadecimal digits.
        total, reserved: Of that budget [micro-epsilon; as the store returns it, in the account's unit].
        delta: At which it was read; 0 where it is the one in epsilon [1e-12].
    """

    subject: str
    total: int
    reserved: int
    delta: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """How many people or studies need attention, and some of them."""

    number: int
    people: tuple[NearlyExhausted, ...] = ()
    studies: tuple[StudySummary, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The installation at a glance.

    Attributes:
        subjects: People known.
        contributions: Live ones.
        states: Studies by state.
        epsilon: All lifetime budgets in epsilon together.
        mu2: All those for studies with Gaussian noise [1e-6].
        near: People near exhaustion.
        dry: Open studies in which few can still pay.
    """

    subjects: int
    contributions: int
    states: Mapping[str, int]
    epsilon: Balance
    mu2: Balance
    near: Attention
    dry: Attention


Figure = BudgetFigures | EpsilonFigures | DayFigures | StudySummary | Overview
"""One kept document. No kind has all the fields of another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All lifetime budgets together, and how many people have reserved nearly all of theirs."""

    subjects: int
    budget: int
    reserved: int
    most_reserved: int
    gaussian_budget: int
    gaussian_reserved: int
    near: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """An amount over all people: its sum, people by number of their bin, the amount at each percentile."""

    total: int
    bins: Mapping[int, int]
    percentiles: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldGroup(InStudy):
    """People with a live contribution to a study and the same trust tag, offer, and what is held of it.

    `amount` is what they offered, `amount_reserved` and `amount_spent` what the study holds and has used of
    it.
    """

    study_id: int
    trust: str
    amount: int
    amount_reserved: int
    amount_spent: int
    people: int

    @property
    def epsilon(self) -> int:
        """What each offered, at the study's delta [micro-epsilon]."""
        return self.read(self.amount)

    @property
    def reserved(self) -> int:
        """What the study holds of it, at the study's delta [micro-epsilon]."""
        return self.read(self.amount_reserved)

    @property
    def spent(self) -> int:
        """What each has spent, at the study's delta [micro-epsilon]."""
        return self.read(self.amount_spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """How many things happened to a study on a day."""

    study_id: int
    day: date
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStudy:
    """What the figures need to know of a study; `default_share` in parts per million."""

    id: int
    slug: str
    state: str
    default_share: int
