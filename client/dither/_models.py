"""What the SDK gives back, and the record that it takes.

What comes from the service has the names that it has there; `raw` holds the whole document, with whatever
else the service says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from dither._answer_models import Bin as Bin
from dither._answer_models import ChoiceShare as ChoiceShare
from dither._answer_models import Coordinate as Coordinate
from dither._answer_models import Count as Count
from dither._answer_models import FoundRange as FoundRange
from dither._answer_models import Interval as Interval
from dither._answer_models import LabelAnswer as LabelAnswer
from dither._answer_models import Quartile as Quartile
from dither._answer_models import SearchesPart as SearchesPart
from dither._answer_models import Spread as Spread
from dither._answer_models import Statistic as Statistic
from dither._errors import FieldProblem
from dither._session_models import SessionEntry, SessionSpending
from dither._tables import Plotted, Shown
from dither.device.numbers import Numeric, Value

Trust = Literal["central", "local", "public"]
"""Whom a contributor trusts: the service, no one, or all people."""

EntryState = Literal["pending", "accepted", "refused", "replaced", "withdrawn"]
"""Life of an entry in the device's ledger. Pending: about to be sent, or sent and not answered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonRange:
    """Admissible personal epsilons of a study: from `min` to `max`."""

    min: Decimal
    max: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One of the things that a study asks for.

    Attributes:
        lower, upper: Range of a number, in the data's unit; of a choice that of their numbers.
        choices: What people choose one of; empty for a number.
        dimension: Coordinates of a value, each of them in the range; 1 for a number.
        step: Values are kept to the nearest multiple of this above `lower`; None for a choice.
    """

    lower: Decimal
    upper: Decimal
    choices: tuple[str, ...] = ()
    dimension: int = 1
    step: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Study(Shown):
    """One question for a bounded number, for several of them, or for a choice.

    Attributes:
        slug, title, description: Its address, the question for people, and more about it.
        series: Slug of the series that it belongs to; None for none.
        lower, upper: Range of a value, in the data's unit.
        step: Values are kept to the nearest multiple of this above `lower`; None for choices and for several
            measures.
        relation: `replace_one` or `add_remove_one`: what the service's guarantee compares.
        trust: Accepted trust tags.
        epsilon: The least and the largest admissible personal epsilon.
        epsilons: The only admissible ones, in their order; empty where all in that range are.
        default_share: Part of each personal epsilon that a release uses by default.
        tilt: How far the mean of those who ask for little privacy may differ from the others', as a part of
            the range, for questions that do not say.
        noise: Of answers: `laplace`, whose privacy is counted in epsilon, or `gaussian`, in mu^2.
        delta: At which epsilons hold in a study with Gaussian noise; 0 with Laplace noise.
        dimension: Coordinates of a value, each of them in the range; 1 for a number.
        local_mechanism: Randomizer for local reports.
        attributes: What each contribution says of its owner: names, and the labels that each may have.
        choices: What people choose one of; the range is that of their numbers. Empty where they give numbers.
        measures: The numbers and choices that it asks each person for, by name; of several lower and upper
            are then 0 and 1. Empty where a person gives one value without another name.
        state: `open`; `closed` to contributions; or, with stored answers only, `archived` or `retired`.
        warnings: When it was just made: what new people cannot offer with their lifetime budgets.
    """

    slug: str
    title: str = ""
    description: str = ""
    series: str | None = None
    lower: Decimal
    upper: Decimal
    step: float | None = None
    relation: str
    trust: tuple[str, ...]
    epsilon: EpsilonRange
    epsilons: tuple[Decimal, ...] = ()
    default_share: Decimal | None
    tilt: Decimal | None = None
    delta: Decimal = Decimal(0)
    noise: str = "laplace"
    dimension: int = 1
    local_mechanism: str | None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    choices: tuple[str, ...] = ()
    measures: Mapping[str, Measure] = field(default_factory=dict)
    state: str | None
    warnings: tuple[str, ...] = ()
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What the service holds for a subject now.

    Attributes:
        study, subject, trust: Whose it is and whom it trusts.
        epsilon: The epsilon that holds; None for public.
        epsilon_used_at_most: What the default question would use of it at this moment, in steps from the
            study's default share to 1; often far less.
        status: Whether it was new, there already, or took another one's place.
    """

    study: str
    subject: str
    trust: str
    epsilon: Decimal | None
    epsilon_used_at_most: Decimal | None
    status: Literal["created", "unchanged", "replaced"]


@dataclass(frozen=True, slots=True)
class Record:
    """One contribution of a bulk load. Epsilon and trust may be left to the call.

    Attributes:
        value: In a study of measures all of them by name, as {"income": 1200, "party": "red"}.
        attributes: Labels of the subject, in a study that has attributes.
    """

    subject: str
    value: Value | Mapping[str, Value]
    epsilon: Numeric | None = None
    trust: Trust | None = None
    attributes: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RecordResult:
    """What became of one record.

    Attributes:
        status: What happened.
        code: Of the refusal, the service's or that of a `DeviceRefusal`.
        errors: The fields that are to blame, and why.
        detail: One sentence for a person, where this device refused; may be empty.
    """

    status: Literal["created", "unchanged", "refused"]
    code: str | None = None
    errors: tuple[FieldProblem, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """How many records of a bulk load are done, and what became of them."""

    records: int
    created: int
    unchanged: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What became of a bulk load: one result a record, in their order, and how many of each."""

    results: tuple[RecordResult, ...] = field(repr=False)
    created: int
    unchanged: int
    refused: int

    @property
    def refusals(self) -> tuple[tuple[int, RecordResult], ...]:
        """What was refused, each with its row: 1 is the first record."""
        rows = enumerate(self.results, start=1)
        return tuple((row, result) for row, result in rows if result.status == "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Plotted):
    """One published answer; it never changes.

    Attributes:
        id, study, statistic, estimator, parameters: Which answer, to which question, made how.
        estimate: The noisy answer, in the data's unit; None where there is none.
        standard_error: Of the noise.
        interval: For the mean of the people who contributed.
        population_interval: For the mean of the population they were drawn from.
        anytime: As `interval`, which it holds, for all steps of the question at once: however often one looks
            and whatever one stops for. None of answers that are not sharpened, and of former releases.
        assumption: What both intervals assume of the people, in words; None of counts and former releases.
        about: Where their number is secret: whom it is about, and about how many they are, in words.
        least_epsilon, most_epsilon: There, what they offered at least, and what larger offers count as; None
            elsewhere, and of former releases.
        where: The labels of the people whom it is about; None where it is about all.
        measure: Which of several measures it is about; None in a study of one value.
        by, groups: The attribute by which it was asked, and the answer for each of its labels; None without.
        standardize: Of a mean over known shares of the population: them; None of others.
        between: Of a difference: the first label less the second, by their attribute; None of others.
        range: Where the values are, if that was asked for; the estimate is then the mean of the values moved
            into it. None of a mean over the study's range.
        variance, sd: Of the values, at no further price; None where the release says nothing of them.
        coordinates: Of values of several coordinates, in their order; None for others.
        bins: Of a histogram or a distribution; None for other statistics.
        searches: Of a quantile: the people who answered searches that it joins in; None without.
        choices: Of shares, in the order of the study; None for other statistics.
        count, mean, quartiles: Of a description, beside `sd`; None for other statistics.
        predicted_error: Root mean square error of what is asked that the plan predicted: in the data's unit,
            of a variance in its square, as a part of all people for the share of a bin or a choice or the
            rank of a quantile, in people for a count, and in the product of both units for a covariance; of a
            description that of the mean, and of values of several coordinates that of each. None of a
            variance, an sd, a difference or a mean over known shares that is read off a release from before
            releases said so.
        relation: What the guarantee compares.
        share, share_before: The part of each epsilon that the question has used in all, and before; or None.
        refines: The release that this one sharpens.
        epsilon_max, epsilon_max_total: The largest charge to a person by this release, and with those that
            it sharpens.
        people, people_left_out: The people who contributed, and those of them that could not take part; None
            where their number is secret.
        left_out_because: Why not: `budget_exhausted`, of a combination `in_no_answer`, of a measure
            `measure_not_reported`, of few people with a label `label_too_small`; None where all could.
        combines: The answers that it combines, at no price; None of an answer that was paid for.
        weights: Where it is secret who is there: what a person counts for being in each of these; they sum to
            1. It is the mean of the people of all of them, weighed so.
        created_at: When it was published.
        new_contributions: Whether contributions came in since; None where that is secret or not said.
    """

    id: str
    study: str
    statistic: str
    estimator: str
    parameters: Mapping[str, object] | None
    estimate: float | None
    standard_error: float | None
    interval: Interval | None
    population_interval: Interval | None
    anytime: Interval | None = None
    assumption: str | None = None
    about: str | None = None
    least_epsilon: float | None = None
    most_epsilon: float | None = None
    where: Mapping[str, str] | None = None
    measure: str | None = None
    by: str | None = None
    groups: tuple[LabelAnswer, ...] | None = None
    standardize: Mapping[str, Mapping[str, float]] | None = None
    between: Mapping[str, Sequence[str]] | None = None
    range: FoundRange | None = None
    variance: Spread | None = None
    sd: Spread | None = None
    coordinates: tuple[Coordinate, ...] | None = None
    bins: tuple[Bin, ...] | None = None
    searches: SearchesPart | None = None
    choices: tuple[ChoiceShare, ...] | None = None
    count: Count | None = None
    mean: Statistic | None = None
    quartiles: tuple[Quartile, ...] | None = None
    predicted_error: float | None = None
    relation: str | None
    share: float | None = None
    share_before: float | None = None
    refines: str | None = None
    epsilon_max: Decimal | None
    epsilon_max_total: Decimal | None = None
    people: int | None
    people_left_out: int | None
    left_out_because: str | None
    combines: tuple[str, ...] | None = None
    weights: tuple[float, ...] | None = None
    created_at: datetime | None
    new_contributions: bool | None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """A lifetime budget: what contributions hold of it, the part of that which is gone, and what is free."""

    total: Decimal
    reserved: Decimal
    spent: Decimal
    remaining: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAmounts:
    """A lifetime budget for studies with Gaussian noise: mu^2, which adds up, and its epsilons at a delta."""

    mu2: Amounts
    epsilon: Amounts
    delta: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a subject can lose in all, by both budgets: (epsilon, delta)."""

    epsilon: Decimal
    delta: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySpending:
    """What a subject offered in one study, what is gone of it, and whether the contribution is live.

    In a study with Gaussian noise `epsilon` and `spent` are read at the study's delta; `mu2` and `mu2_spent`
    are what they are read from, and None in other studies.
    """

    study: str
    trust: str | None
    epsilon: Decimal | None
    spent: Decimal
    mu2: Decimal | None = None
    mu2_spent: Decimal | None = None
    live: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Shown):
    """A subject's lifetime budget, as the service keeps it, and what is held by study and by session."""

    subject: str
    epsilon: Amounts
    gaussian: GaussianAmounts | None = None
    in_all: Promise | None = None
    studies: tuple[StudySpending, ...] = ()
    sessions: tuple[SessionSpending, ...] = ()
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One thing that this device gave away.

    Attributes:
        study, subject, trust: Where, for whom, and as what.
        epsilon: What it may cost altogether, what was spent in the study before included; None for public.
        noise_epsilon: What a local report was randomized with.
        counted: What it brings the subject's total in this study up to.
        state: What became of it.
        made_at: When.
    """

    study: str
    subject: str
    trust: str
    epsilon: Decimal | None
    noise_epsilon: Decimal | None
    counted: Decimal
    state: EntryState
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLedger:
    """Everything that this device gave away.

    Attributes:
        entries: Contributions, in the order they were made.
        sessions: Sessions, in the order of enrolment.
        totals: By subject: at most this much epsilon in all studies and sessions, without public values.
    """

    entries: tuple[LedgerEntry, ...]
    sessions: tuple[SessionEntry, ...]
    totals: Mapping[str, Decimal]
