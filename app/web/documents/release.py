"""Releases and plans on the wire.

A release is answered from its stored bytes; what depends on who asks, and when, is appended to them.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar
from uuid import UUID

from pydantic import ConfigDict, Field

from app.core.question import STATISTICS
from app.core.records import CohortCharge
from app.core.study import Relation
from app.web.documents.types import EpsilonOut, Mu2Out, WireOut

NoisyCount = Annotated[
    float | None,
    Field(
        description="People with noise, each counted as what they weigh over what larger offers count as: "
        "too few where some weigh less, see `about`. Only where their number is secret."
    ),
]


class IntervalOut(WireOut):
    """A confidence interval; `coverage` is exact, at_least, or worst_case (of independent values)."""

    level: float = Field(description="How often it holds, as 0.95.")
    lower: float
    upper: float
    coverage: str


class ChargeOut(WireOut):
    """What a release cost each member of one cohort; for admins."""

    cohort_id: int
    trust: str
    epoch: int
    offered: EpsilonOut
    people: int
    epsilon: EpsilonOut = Field(description="With Gaussian noise at the study's delta.")
    mu2: Mu2Out | None = Field(description="With Gaussian noise; null with Laplace noise.")


class StatisticOut(WireOut):
    """An estimate that is read off the same release, with its accuracy; it never costs anything more."""

    estimate: float = Field(
        description="In the data's unit; squared of a variance. One whose `interval` begins at 0 is hidden "
        "by noise: it is at most the other end, and the estimate says little."
    )
    standard_error: float = Field(description="Standard deviation of its noise, to first order.")
    predicted_error: float | None = Field(
        None, description="Root mean square error that the plan predicted; left out of former releases."
    )
    interval: IntervalOut = Field(description="For the dataset: the people who contributed.")
    population_interval: IntervalOut = Field(description="For the population that they were drawn from.")


class FoundRangeOut(WireOut):
    """The range that was found, and how many lie outside; values there count as its nearer end.

    A reporting range is about those who report inside it, if they are as those who answered its searches.
    """

    lower: float
    upper: float
    outside_at_most: float = Field(
        description="Part of all people that lies outside at most, in 95 of 100 answers."
    )
    people_outside_at_most: int | None = Field(
        description="The same in people; null where their number is secret."
    )


class ErrorBoundOut(WireOut):
    """An error is at most |X| + reach, X being a sum of Laplaces and a Normal part."""

    laplaces: list[tuple[float, int]] = Field(description="Scale of a Laplace in X, and how many there are.")
    normal: float = Field(description="Variance of the Normal part, at most.")
    reach: float = Field(description="What a tilt, and one person, can move the answer by.")
    risk: float = Field(description="That the variance is above its bound.")


class StepsOut(WireOut):
    """How noisy sums were drawn, step by step."""

    firsts: list[int] = Field(description="The share at which each sum was first drawn [parts per million].")
    places: list[int] = Field(description="The place of each in the risk that all of them share.")
    step: int = Field(description="The number of this answer among those of its question, from 1.")
    normal: bool = Field(description="Whether noise is Gaussian.")


class AnytimeBoundOut(WireOut):
    """What `anytime` is made of."""

    steps: StepsOut
    noises: list[float] = Field(
        description="Scale, or standard deviation, of each sum's noise in the answer."
    )
    rest: ErrorBoundOut = Field(description="All else.")


class KnownErrorOut(WireOut):
    """An answer before it is clipped to the range, and its error; those of labels are independent."""

    center: float
    dataset: ErrorBoundOut
    population: ErrorBoundOut
    anytime: AnytimeBoundOut | None = Field(
        None, description="About the dataset, at all steps; null of an answer without steps."
    )


class TogetherOut(WireOut):
    """Intervals of a secret label that hold together with those of other labels."""

    labels: int = Field(description="For how many labels in all.")
    interval: IntervalOut
    population_interval: IntervalOut


class OfferedOut(WireOut):
    """How many people offer at least this, with noise."""

    least_epsilon: float
    noisy_count: float


class LabelOut(WireOut):
    """What every answer for one label says."""

    model_config = ConfigDict(extra="allow")

    where: dict[str, str]
    people: int | None = Field(None, description="Left out where their number is secret.")
    people_left_out: int | None = Field(None, description="Left out where their number is secret.")
    noisy_count: NoisyCount = None
    about: str | None = Field(None, description="About how many they are; left out as that of the whole.")


class GroupOut(LabelOut):
    """The answer for one label."""

    estimate: float | None = Field(description="Null where no person with the label takes part.")
    outside_at_most: float | None = Field(
        None,
        description="With `range=found` or a reporting range: the part of these people that lies outside at "
        "most; as that of the whole, for all labels at once. Left out where their number is secret.",
    )
    standard_error: float | None
    predicted_error: float | None = Field(
        None,
        description="Root mean square error that the plan predicted for these people; left out of former "
        "releases.",
    )
    predicted_bias: float | None = Field(
        None,
        description="The part of it that every answer has: of unequal weights, and of shrinking. Those of "
        "several labels may add up; left out as `drawn_to_whole`.",
    )
    interval: IntervalOut | None
    population_interval: IntervalOut | None
    anytime: IntervalOut | None = Field(None, description="As that of the whole, for these people.")
    simultaneous: IntervalOut | None = Field(
        None,
        description="With `simultaneous=true`: for the dataset; those of all labels hold together.",
    )
    weight: float | None = Field(
        None, description="Its part of a standardized mean; left out of other answers."
    )
    drawn_to_whole: float | None = Field(
        None,
        description="The estimate drawn to that for all people, by as much as its error is more than the "
        "scatter of all labels: better for most small labels, if labels differ at random. Null with fewer "
        "than three labels that have an answer; left out of all but the mean.",
    )
    error: KnownErrorOut | None = Field(
        None,
        description="What intervals of this label with others are made of; left out as `drawn_to_whole`.",
    )
    together: list[TogetherOut] | None = Field(
        None, description="The same where labels are secret: for two labels, and for all."
    )


class AnswerOut(WireOut):
    """Which answer it is, to what, what made it, and its price."""

    model_config = ConfigDict(extra="allow")

    id: UUID
    study: str
    statistic: str
    estimator: str
    estimator_version: int
    parameters: dict[str, Any] = Field(description="Of the question, and of how it was answered.")
    relation: Relation = Field(description="What the guarantee compares.")
    epsilon_max: float = Field(
        description="The largest charge to a person by this answer; with Gaussian noise at `delta`."
    )
    mu2_max: float | None = Field(
        None, description="What it charged at most, in mu^2; left out with Laplace noise."
    )
    mu2_max_total: float | None = Field(
        None, description="The same with the answers that it sharpens; left out with Laplace noise."
    )
    delta: float | None = Field(None, description="Of the study; left out with Laplace noise.")
    created_at: datetime


OfLabel = TypeVar("OfLabel", bound=LabelOut)


class PublishedOut(AnswerOut, Generic[OfLabel]):
    """What every answer to a question says beside its numbers."""

    sharpens: ClassVar[str] = ""
    """The field of the numbers that further shares sharpen; empty where each answer has noise of its own."""

    where: dict[str, str] | None = Field(
        None, description="The labels of the people whom it is about; left out where it is about all."
    )
    by: str | None = Field(
        None, description="The attributes whose labels are the groups, with commas between; left out without."
    )
    measure: str | None = Field(
        None, description="Which of several measures it is about; left out in a study of one value."
    )
    groups: list[OfLabel] | None = Field(
        None, description="One for each declared label, in their order, beside the whole."
    )
    predicted_error: float | None = Field(
        description="Root mean square error of what is asked that the plan predicted: in its unit, of the "
        "share of a bin or a choice and of the rank of a quantile as a part of all people; of a description "
        "that of the mean, of several coordinates that of each. Null of `variance`, `sd`, `difference` and "
        "`standardize` read off a release from before releases said so."
    )
    assumption: str | None = Field(
        None, description="What intervals assume of the people, by the question's tilt."
    )
    share: float | None = Field(
        None,
        description="The part of each epsilon that the question has used in all; of an answer with "
        "noise of its own, by this answer.",
    )
    share_before: float | None = Field(None, description="What it had used before this answer.")
    refines: UUID | None = Field(
        None, description="The answer that this one sharpens, at the price of the rest."
    )
    epsilon_max_total: float | None = Field(
        None, description="The largest charge to a person by this answer and those that it sharpens."
    )
    people: int | None = Field(None, description="Live contributions; left out where their number is secret.")
    people_left_out: int | None = Field(
        None, description="Those that have no part in it; left out where their number is secret."
    )
    left_out_because: str | None = Field(
        None,
        description="Why, with blanks between: `budget_exhausted`; `local_reports_not_used`; "
        "`measure_not_reported`: their devices reported others; `label_too_small`: so few have their label "
        "that the middle of the range is nearer than any answer; of a combination `in_no_answer`: no answer "
        "that it combines has them; null where all have a part.",
    )
    noisy_count: NoisyCount = None
    about: str | None = Field(
        None,
        description="Whom it is about, and about how many they are, where their number is secret. Left out "
        "of former releases and elsewhere.",
    )
    least_epsilon: float | None = Field(None, description="What they offered at least; left out as `about`.")
    most_epsilon: float | None = Field(
        None, description="What larger offers count as; all weigh the same where it is the least. As `about`."
    )
    offered: list[OfferedOut] | None = Field(
        None,
        description="How many offer at least each level, asked first; left out of other answers.",
    )

    @property
    def sharpened(self) -> Sequence[Any]:
        """The numbers that further shares sharpen, with their intervals."""
        return getattr(self, self.sharpens) if self.sharpens else ()


class ReleaseOut(PublishedOut[GroupOut]):
    """One published answer, with its price and its accuracy.

    Asked for another statistic, `estimate`, `standard_error`, `predicted_error` and both intervals are that
    one's.
    """

    asked: str = Field(
        description="The estimator that was asked for; `auto` leaves the choice to the service."
    )
    standardize: dict[str, dict[str, float]] | None = Field(
        None,
        description="The known share of each label, of each attribute that the mean is standardized to; "
        "left out of other answers.",
    )
    reporting_range: FoundRangeOut | None = Field(
        None, description="Left out without reports inside a reporting range."
    )
    of: str | None = Field(None, description="Of a difference: of what; left out of other answers.")
    between: dict[str, list[str]] | None = Field(
        None, description="Of a difference: the first label less the second; left out of other answers."
    )
    estimate: float = Field(description="What is asked, with noise, in its unit.")
    standard_error: float = Field(description="Standard deviation of the noise in it.")
    interval: IntervalOut = Field(description="For the dataset: the people who contributed.")
    population_interval: IntervalOut = Field(description="For the population that they were drawn from.")
    anytime: IntervalOut | None = Field(
        None,
        description="As `interval`, which it holds, for all steps of the question at once: in 95 of 100 "
        "questions none of these is wrong, however often one looks and whatever one stops for. Left out of "
        "answers with noise of their own, of variances, and of what is read off several labels.",
    )
    error: KnownErrorOut | None = Field(
        None,
        description="What both intervals of a mean are made of. Left out of former releases, and where the "
        "number of people is secret.",
    )
    range: FoundRangeOut | None = Field(
        None,
        description="With `range=found`: where the values are. The estimate is the mean of the values moved "
        "into it, and both intervals are for that mean; left out for the declared range.",
    )
    variance: StatisticOut | None = Field(
        None, description="Of the values, in the data's unit squared; left out where nothing is known of it."
    )
    sd: StatisticOut | None = Field(None, description="The square root of the variance.")
    combines: list[UUID] | None = Field(
        None,
        description="The answers whose noisy sums this one combines, at no price: of each chain of steps the "
        "newest, and descriptions; left out of an answer that was paid for.",
    )
    weights: list[float] | None = Field(
        None,
        description="Where it is secret who is there: it is the mean of the people of all answers that it "
        "combines, each counted with the weights of those that have them; they sum to 1.",
    )

    @property
    def sharpened(self) -> Sequence[Any]:
        """The one number."""
        return (self,)


class CurrentReleaseOut(ReleaseOut):
    """The best answer to a question so far."""

    new_contributions: bool | None = Field(
        None, description="Whether contributions came after it; left out where that is secret."
    )


class ReleaseWithChargesOut(ReleaseOut):
    """A release; admins also see what it cost each cohort."""

    charges: list[ChargeOut] | None = Field(None, description="What it cost each cohort; for admins.")


class ClusterReleaseOut(AnswerOut):
    """What a round of a K-means session published about central and public people.

    Its `parameters` are the session, its round, and the centres it asked about.
    """

    counts: list[float] = Field(description="Of K-means: people next to each centre, with noise.")
    sums: list[list[float]] = Field(
        description="For each centre the sum of their values about the middle of the range, with noise."
    )
    count_error: float = Field(description="Standard deviation of the noise in a count.")
    sum_error: float = Field(description="Standard deviation of the noise in a coordinate of a sum.")
    noisy_count: float
    charges: list[ChargeOut] | None = None


ABOUT = frozenset({"of", "on", "measures", "measure", "where", "by", "range", "statistic", "parameters"})
"""The fields that `about` reads."""


def about(document: Mapping[str, Any]) -> str:
    """What an answer is about beside its statistic, in words; empty where it is of one value of all people.

    >>> about({"statistic": "quantile", "parameters": {"q": 0.9}, "where": {"region": "north"}, "by": "sex"})
    'quantile 0.9, region north, by sex'
    """
    parts = [document.get("measure"), " and ".join(document.get("measures") or ())]
    if document["statistic"] == "regression":
        parts.append(f"{document['of']} on {document['on']}")
    if document["statistic"] == "quantile":
        parts.append(f"quantile {document['parameters']['q']:g}")
    parts += [f"{name} {label}" for name, label in (document.get("where") or {}).items()]
    parts.append(document.get("by") and f"by {document['by'].replace(',', ' and ')}")
    parts.append(document.get("range") and "found range")
    return ", ".join(filter(None, parts))


def with_field(body: bytes, name: str, value: object) -> bytes:
    """A JSON object with one more field at its end, the rest byte for byte as it was."""
    addition = json.dumps({name: value}, allow_nan=False, separators=(",", ":")).encode()
    return body[:-1] + b"," + addition[1:]


def with_charges(body: bytes, charges: Sequence[CohortCharge]) -> bytes:
    """A release as admins see it: with what it cost each cohort."""
    shown = [ChargeOut.model_validate(charge).model_dump() for charge in charges]
    return with_field(body, "charges", shown)


def page_bytes(items: Sequence[bytes], next_cursor: str | None) -> bytes:
    """A page of documents that are JSON already."""
    return b'{"items":[' + b",".join(items) + b'],"next_cursor":' + json.dumps(next_cursor).encode() + b"}"


def error_of(statistic: str, *, of_coordinates: bool = False) -> tuple[str, str]:
    """The unit of the predicted error of an answer, and what it is the root mean square error of.

    >>> error_of("mean")
    ("in the data's unit", 'of the mean')
    """
    declared = STATISTICS.get(statistic, STATISTICS["mean"])
    of = declared.error or f"of the {statistic}{{}}"
    return declared.unit, of.format(" of each coordinate" if of_coordinates else "")
