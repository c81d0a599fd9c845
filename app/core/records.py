"""What the store returns: one frozen record a thing.

A record has the units of the ledger (micro-epsilon, 1e-6 of mu^2, 1e-12 of delta, digests as bytes); a wire
model of `web` reads it by its attributes and shows it in the units of people.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from app.core.attributes import Attributes
from app.core.epsilon import epsilon_of
from app.core.study import Relation, StudyState


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What people look for in a list.

    Attributes:
        search: Part of what an entry says of itself; empty for all.
        state, series: This one only unless None.
        sort: Name of the order, as the list has it; empty for its own.
    """

    search: str = ""
    state: str | None = None
    series: str | None = None
    sort: str = ""


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
class BalanceAtDelta:
    """A balance in mu^2 as epsilons at a delta, each rounded up: they do not add up."""

    total: int
    reserved: int
    spent: int
    remaining: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianAccount:
    """The account from which studies with Gaussian noise reserve.

    Attributes:
        mu2: What there is [1e-6 of mu^2].
        delta: At which it is read as an epsilon [1e-12].
    """

    mu2: Balance
    delta: int

    @property
    def epsilon(self) -> BalanceAtDelta:
        """The same as epsilons at the delta [micro-epsilon]."""
        names = ("total", "reserved", "spent", "remaining")
        return BalanceAtDelta(**{name: epsilon_of(getattr(self.mu2, name), self.delta) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a person can lose in all, by both accounts: (epsilon, delta) [micro-epsilon, 1e-12]."""

    epsilon: int
    delta: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A subject's lifetime budget: one account in micro-epsilon, one in 1e-6 of mu^2.

    Attributes:
        subject: Digest of the external id.
        budget, reserved, spent: The account in epsilon.
        gaussian_budget, gaussian_reserved, gaussian_spent: The account in mu^2.
        delta: Of the installation, at which mu^2 is read [1e-12].
    """

    subject: bytes
    budget: int
    reserved: int
    spent: int
    gaussian_budget: int
    gaussian_reserved: int
    gaussian_spent: int
    delta: int

    @property
    def epsilon(self) -> Balance:
        """The account in epsilon."""
        return Balance(total=self.budget, reserved=self.reserved, spent=self.spent)

    @property
    def gaussian(self) -> GaussianAccount | None:
        """The account in mu^2; None where no budget was ever granted."""
        if not (self.gaussian_budget or self.gaussian_reserved):
            return None
        mu2 = Balance(total=self.gaussian_budget, reserved=self.gaussian_reserved, spent=self.gaussian_spent)
        return GaussianAccount(mu2=mu2, delta=self.delta)

    @property
    def in_all(self) -> Promise:
        """Both accounts together: pure epsilon adds to the epsilon at delta, and delta stays."""
        if self.gaussian is None:
            return Promise(epsilon=self.budget, delta=0)
        return Promise(epsilon=self.budget + epsilon_of(self.gaussian_budget, self.delta), delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class InStudy:
    """Something that has amounts in the currency of a study.

    Attributes:
        delta: Of the study, at which mu^2 is read; 0 where the currency is epsilon [1e-12].
    """

    delta: int

    def read(self, amount: int) -> int:
        """An amount as an epsilon at the study's delta [micro-epsilon]."""
        return epsilon_of(amount, self.delta)

    def in_mu2(self, amount: int) -> int | None:
        """An amount in mu^2 [1e-6]; None where the currency is epsilon."""
        return amount if self.delta else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOfOffer(InStudy):
    """What is held of an offer, and what is gone of that, in the study's currency.

    Attributes:
        declared, segment: The labels, see `app.core.attributes`; none of a contribution that was withdrawn.
    """

    amount: int
    amount_spent: int
    declared: Attributes
    segment: int

    @property
    def attributes(self) -> dict[str, str]:
        """The labels of the people whose offer it is."""
        return self.declared.labels_of(self.segment)

    @property
    def epsilon(self) -> int:
        """What is reserved, at the study's delta [micro-epsilon]."""
        return self.read(self.amount)

    @property
    def spent(self) -> int:
        """What is gone of it, at the study's delta [micro-epsilon]."""
        return self.read(self.amount_spent)

    @property
    def mu2(self) -> int | None:
        """What is reserved [1e-6 of mu^2]."""
        return self.in_mu2(self.amount)

    @property
    def mu2_spent(self) -> int | None:
        """What is gone of it [1e-6 of mu^2]."""
        return self.in_mu2(self.amount_spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementLine(HeldOfOffer):
    """One study on a subject's statement. An archived one holds what was spent."""

    study: str
    state: StudyState
    trust: str
    live: bool
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
    studies: tuple[StatementLine, ...]
    sessions: tuple[SessionLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """All lifetime budgets were raised.

    Attributes:
        epsilon: What was added to each [micro-epsilon].
        at_most: Up to which budget; None for no bound [micro-epsilon].
        new_people: The budget of a person who is new from then on [micro-epsilon].
        delta: At which these epsilons are read of the budgets for Gaussian noise; 0: of those for Laplace
            noise and sessions [1e-12].
    """

    epsilon: int
    at_most: int | None
    new_people: int
    delta: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CostToPerson(InStudy):
    """What something cost a person, in the study's currency."""

    cost: int

    @property
    def epsilon(self) -> int:
        """The cost at the study's delta [micro-epsilon]."""
        return self.read(self.cost)

    @property
    def mu2(self) -> int | None:
        """The cost [1e-6 of mu^2]; None where the currency is epsilon."""
        return self.in_mu2(self.cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalCharge(CostToPerson):
    """What one release cost one person."""

    release: UUID
    study: str
    estimator: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortCharge(CostToPerson):
    """What one release cost each member of a cohort; `offer` is the most that each may ever spend."""

    cohort_id: int
    trust: str
    epoch: int
    offer: int
    people: int

    @property
    def offered(self) -> int:
        """The offer at the study's delta [micro-epsilon]."""
        return self.read(self.offer)


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortLine(HeldOfOffer):
    """A cohort as the ledger charges it: what each member may ever spend, and has spent."""

    id: int
    trust: str
    people: int


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
class ReleaseLine(InStudy):
    """A release in the ledger.

    Attributes:
        number: Place in the hash chain.
        release: Its id.
        study: Slug.
        estimator, estimator_version: What answered.
        sequence: 1 is the first answer to its question.
        estimate, standard_error: None for an answer that is not one number.
        most: The most that it charged anyone [the study's currency].
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
    most: int
    hash: bytes
    created_at: datetime

    @property
    def epsilon_max(self) -> int:
        """The most that it charged anyone, at the study's delta [micro-epsilon]."""
        return self.read(self.most)

    @property
    def mu2_max(self) -> int | None:
        """The same [1e-6 of mu^2]; None where the currency is epsilon."""
        return self.in_mu2(self.most)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRelease:
    """What the ledger holds of the release of a K-means round.

    Attributes:
        release: Its id.
        scales: Of its noise, one a query: of Laplace noise, or sigmas of Gaussian noise; empty where it is
            none.
        relation, dimension, delta: Of its study.
        costs: The different charges that it made [the study's currency].
        closed_a_round: Whether a round of a session was closed with it.
    """

    release: UUID
    scales: tuple[float, ...]
    relation: Relation
    dimension: int
    delta: int
    costs: tuple[int, ...]
    closed_a_round: bool
