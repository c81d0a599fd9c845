"""Figures over all people on the wire, for admins."""

from datetime import date, datetime

from pydantic import ConfigDict, Field

from app.core.figures import StudySummary
from app.core.study import Trust
from app.web.documents.budget import AmountsOut
from app.web.documents.lists import PageOut
from app.web.documents.study_out import EXAMPLE, StudyOut
from app.web.documents.types import DigestOut, EpsilonOut, IdOut, Mu2Out, WireOut


class BinOut(WireOut):
    """People whose amount of epsilon is at least `lower` and below `upper`; in the last bin at most."""

    lower: EpsilonOut
    upper: EpsilonOut
    people: int


class PercentileOut(WireOut):
    """The smallest amount of epsilon that a percentage of people does not exceed."""

    percent: int
    epsilon: EpsilonOut


class DistributionOut(WireOut):
    """How an amount of epsilon is spread over people."""

    total: EpsilonOut
    bins: list[BinOut]
    percentiles: list[PercentileOut]


class HistogramOut(WireOut):
    """What people have reserved and spent: over all studies, or of one study.

    Over all studies it counts everything of the budget in epsilon, also sessions and withdrawn people's
    spending; of one study its live contributions only, with Gaussian noise as epsilons at the study's delta.
    """

    taken_at: datetime = Field(description="The moment that the figures show.")
    study: str | None
    people: int
    reserved: DistributionOut
    spent: DistributionOut


class EpsilonBinOut(WireOut):
    """People who chose a personal epsilon of at least `lower` and below `upper`; public people: 0 to 0."""

    lower: EpsilonOut
    upper: EpsilonOut
    central: int
    local: int
    public: int
    people: int
    reserved: EpsilonOut = Field(description="Of all of them together.")
    spent: EpsilonOut


class EpsilonsOut(WireOut):
    """Who chose which epsilon and trusts whom, and what that has cost them: live contributions only."""

    taken_at: datetime
    study: str | None
    bins: list[EpsilonBinOut]


class DayOut(WireOut):
    """One day (UTC) on which anything happened."""

    day: date
    contributions: int = Field(description="People who contributed to a study for the first time.")
    releases: int


class DaysOut(PageOut[DayOut]):
    """Days, newest first, for a year."""

    taken_at: datetime


class StudyFiguresOut(StudyOut):
    """A study with how much of it is there and left."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [EXAMPLE | {"people": 230, "reserved": 345, "spent": 34.5, "can_pay_percent": 100}]
        }
    )

    people: int = Field(description="With a live contribution.")
    reserved: EpsilonOut = Field(description="By live contributions; sessions hold more.")
    spent: EpsilonOut = Field(description="By live contributions, without sessions and people who withdrew.")
    can_pay_percent: float | None = Field(
        description="Central people who can still take part at the default share; null without any."
    )

    @classmethod
    def with_figures(cls, study: StudyOut, summary: StudySummary) -> "StudyFiguresOut":
        """A study with its summary."""
        return cls.made_of(study, summary)


class StudiesFiguresOut(PageOut[StudyFiguresOut]):
    """Studies with their figures."""

    taken_at: datetime


class CohortOut(WireOut):
    """People of a study who have always spent the same."""

    id: int
    trust: Trust
    epsilon: EpsilonOut = Field(
        description="What each of them may ever spend here; with Gaussian noise at the study's delta."
    )
    spent: EpsilonOut
    mu2: Mu2Out | None = Field(description="The same two with Gaussian noise; null with Laplace noise.")
    mu2_spent: Mu2Out | None
    people: int
    attributes: dict[str, str] = Field(description="Their labels.")


class TotalsOut(AmountsOut):
    """The epsilon, or the mu^2, of all people together."""


class NearOut(WireOut):
    """A person who has nearly nothing left of one of two budgets; that in mu^2 as epsilons at its delta."""

    subject: str = Field(description="Digest of the external id.")
    total: EpsilonOut
    reserved: EpsilonOut


class NearExhaustionOut(WireOut):
    """People who have reserved most of their lifetime budget, those with the least left first."""

    percent: int = Field(description="From this part of the budget on.")
    subjects: int
    examples: list[NearOut]


class DryStudyOut(WireOut):
    """An open study in which few can still take part."""

    study: str
    can_pay_percent: float


class DryOut(WireOut):
    """Open studies whose cohorts run dry, the driest first."""

    percent: int = Field(description="Below this part of their central people.")
    studies: int
    examples: list[DryStudyOut]


class AuditOut(WireOut):
    """The audit that was recorded last."""

    at: datetime
    clean: bool
    rules: int
    findings: list[str]


class ChainOut(WireOut):
    """The head of the hash chain, and whether the last audit found it whole."""

    number: int = Field(description="Releases in the chain.")
    hash: DigestOut
    last_audit: AuditOut | None


class StudyCountsOut(WireOut):
    """How many studies there are."""

    open: int
    closed: int = Field(description="Those that take nothing more, retired ones included.")


class ReleaseCountsOut(WireOut):
    """How many releases there are."""

    total: int
    today: int


class OverviewOut(WireOut):
    """The installation at a glance."""

    taken_at: datetime
    subjects: int
    contributions: int = Field(description="Live ones.")
    studies: StudyCountsOut
    releases: ReleaseCountsOut
    epsilon: TotalsOut
    mu2: TotalsOut = Field(description="The budgets for studies with Gaussian noise, in mu^2.")
    near_exhaustion: NearExhaustionOut
    dry: DryOut
    chain: ChainOut


class LedgerReleaseOut(WireOut):
    """A release in the ledger."""

    number: int
    release: IdOut
    study: str
    estimator: str
    estimator_version: int
    sequence: int = Field(description="1 is the first answer to its question.")
    estimate: float | None = Field(description="Null for a round of K-means, which is not one number.")
    standard_error: float | None
    epsilon_max: EpsilonOut = Field(description="With Gaussian noise at the study's delta.")
    mu2_max: Mu2Out | None = Field(description="With Gaussian noise; null with Laplace noise.")
    hash: DigestOut
    created_at: datetime
