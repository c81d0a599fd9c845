"""What the store returns: one frozen record a thing.

A record has the units of the ledger (micro-epsilon, 1e-12 of delta, digests as bytes); a wire model of `web`
reads it by its attributes and shows it in the units of people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from app.core.study import Relation, StudyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A lifetime budget in one currency, in its unit.

    Attributes:
        total: The budget.
        reserved: What contributions and sessions hold of it.
        spent: The part of `reserved` that is gone.
    """

    total: int
    reserved: int
    spent: int

    @property
    def remaining(self) -> int:
        """What can still be reserved."""
        return self.total - self.reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A subject's lifetime budget. Epsilon in micro-epsilon, delta in 1e-12."""

    subject: bytes
    budget: int
    reserved: int
    spent: int
    delta_budget: int
    delta_reserved: int
    delta_spent: int

    @property
    def epsilon(self) -> Balance:
        """The account in epsilon."""
        return Balance(total=self.budget, reserved=self.reserved, spent=self.spent)

    @property
    def delta(self) -> Balance:
        """The account in delta."""
        return Balance(total=self.delta_budget, reserved=self.delta_reserved, spent=self.delta_spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLine:
    """One study on a subject's statement. An archived one holds of epsilon and delta what was spent."""

    study: str
    state: StudyState
    trust: str
    live: bool
    epsilon: int
    spent: int
    delta: int
    delta_spent: int
    contributed_on: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """One session on a subject's statement."""

    session: str
    study: str
    protocol: str
    epsilon: int
    spent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A subject's account with one line a study, and one a session."""

    account: Account
    studies: tuple[StudyLine, ...]
    sessions: tuple[SessionLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """All lifetime budgets were raised.

    Attributes:
        epsilon: What was added to each [micro-epsilon].
        at_most: Up to which budget; None for no bound [micro-epsilon].
        new_people: The budget of a person who is new from then on [micro-epsilon].
    """

    epsilon: int
    at_most: int | None
    new_people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalCharge:
    """What one release cost one person."""

    release: UUID
    study: str
    estimator: str
    epsilon: int
    delta: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortCharge:
    """What one release cost each member of one cohort; `offered` is the most that each may ever spend."""

    cohort_id: int
    trust: str
    epoch: int
    offered: int
    people: int
    epsilon: int
    delta: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine(CohortCharge):
    """A charge in the ledger, with the release that made it and its place in the chain."""

    number: int
    release: UUID
    study: str
    estimator: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailLine:
    """What an admin did.

    Attributes:
        id: Place in the trail.
        at: When.
        actor: A token's id, or who else did it, as `command line`.
        actor_name: The name of that token; None where it is none.
        action: Such as `budget.set`.
        target: A slug, an id, or the digest of an external id.
        target_name: The name of the token that it is; None where it is none.
        detail: In the units of the ledger.
    """

    id: int
    at: datetime
    actor: str
    actor_name: str | None
    action: str
    target: str
    target_name: str | None
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseLine:
    """A release in the ledger.

    Attributes:
        number: Place in the hash chain.
        release: Its id.
        study: Slug.
        estimator, estimator_version: What answered.
        sequence: 1 is the first answer to its question.
        estimate, standard_error: None for an answer that is not one number.
        epsilon_max: The most that it charged anyone [micro-epsilon].
        hash: Its link.
        created_at: When.
    """

    number: int
    release: UUID
    study: str
    estimator: str
    estimator_version: int
    sequence: int
    estimate: float | None
    standard_error: float | None
    epsilon_max: int
    hash: bytes
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAudit:
    """What is kept of an audit.

    Attributes:
        at: When.
        rules: How many rules were checked.
        counts: How many rows were looked at.
        findings: The broken rules.
    """

    at: datetime
    rules: int
    counts: Mapping[str, int]
    findings: Sequence[str]

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelease:
    """What the ledger holds of the release of a K-means round.

    Attributes:
        release: Its id.
        scales: Of its noise, one a query; empty where it is none.
        relation, dimension: Of its study.
        epsilons: The different charges that it made [micro-epsilon].
        delta: The largest delta that it charged [1e-12].
        closed_a_round: Whether a round of a session was closed with it.
    """

    release: UUID
    scales: tuple[float, ...]
    relation: Relation
    dimension: int
    epsilons: tuple[int, ...]
    delta: int
    closed_a_round: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link of the hash chain.

    Attributes:
        number: Its place, from 1.
        release: The release that it seals.
        previous: The hash before it, as it is stored.
        hash: Its hash, as it is stored.
        recomputed: Its hash, from `previous`, the release and its charges.
    """

    number: int
    release: UUID
    previous: bytes
    hash: bytes
    recomputed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The head of the hash chain, and the audit that was recorded last."""

    number: int
    hash: bytes
    last_audit: RecordedAudit | None
