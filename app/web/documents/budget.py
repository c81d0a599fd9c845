"""Budgets on the wire."""

from datetime import date, datetime

from pydantic import ConfigDict, Field, field_validator

from app.core.records import Statement
from app.core.study import StudyState
from app.web.documents.types import (
    Delta,
    DeltaOut,
    DigestOut,
    Epsilon,
    EpsilonOut,
    IdOut,
    Lifetime,
    Mu2Out,
    Text,
    WireIn,
    WireOut,
)
from app.web.validation_messages import InvalidValue


class AmountsOut(WireOut):
    """A lifetime budget.

    `reserved` is held by contributions and sessions; `spent` is the part of it that is gone.
    """

    total: EpsilonOut
    reserved: EpsilonOut
    spent: EpsilonOut
    remaining: EpsilonOut


class GaussianOut(WireOut):
    """A lifetime budget for studies with Gaussian noise: mu^2, and what that is as an epsilon at a delta."""

    mu2: AmountsOut = Field(description="What is reserved and spent; it adds up exactly.")
    epsilon: AmountsOut = Field(
        description="The same as epsilons at `delta`, rounded up; they do not add up."
    )
    delta: DeltaOut


class PromiseOut(WireOut):
    """What a person can lose in all: (epsilon, delta)."""

    epsilon: EpsilonOut
    delta: DeltaOut


class AccountOut(WireOut):
    """One person's account in a list."""

    subject: DigestOut = Field(description="Digest of the external id: all that the database knows.")
    epsilon: AmountsOut
    gaussian: GaussianOut | None = Field(description="Null where no such budget was granted.")
    in_all: PromiseOut


class StudyLineOut(WireOut):
    """What one study holds of a person's budget."""

    study: str
    state: StudyState = Field(description="Of the study; an archived one has freed what it did not spend.")
    trust: str
    live: bool = Field(description="False once withdrawn: what was spent stays.")
    epsilon: EpsilonOut = Field(
        description="What is reserved, once the study is archived what was spent; with Gaussian noise at the "
        "study's delta."
    )
    spent: EpsilonOut
    mu2: Mu2Out | None = Field(description="What is reserved with Gaussian noise; null with Laplace noise.")
    mu2_spent: Mu2Out | None
    contributed_on: date | None = Field(
        description="The day (UTC) of the first contribution; null from before days were kept."
    )
    attributes: dict[str, str] = Field(description="The labels that are held of the person.")


class SessionLineOut(WireOut):
    """What taking part in one session holds of a person's budget."""

    session: str
    study: str
    protocol: str = Field(
        description="What was sent: in `kmeans` a noisy value and categories, else yes or no."
    )
    epsilon: EpsilonOut = Field(
        description="What is reserved; once the session has finished, what was spent."
    )
    spent: EpsilonOut


class BudgetOut(WireOut):
    """One person's statement."""

    subject: str
    epsilon: AmountsOut = Field(description="For studies with Laplace noise, and for sessions.")
    gaussian: GaussianOut | None = Field(
        description="For studies with Gaussian noise; null where no such budget was granted."
    )
    in_all: PromiseOut = Field(description="What the person can lose in all, by both budgets.")
    studies: list[StudyLineOut]
    sessions: list[SessionLineOut]

    @classmethod
    def of(cls, subject: str, statement: Statement) -> "BudgetOut":
        """The statement of the person with this external id."""
        return cls.made_of(statement, statement.account, subject=subject)


class GaussianIn(WireIn):
    """A lifetime budget for studies with Gaussian noise."""

    epsilon: Lifetime
    delta: Delta = Field(description="At which the epsilon holds; above 0.")

    @field_validator("delta")
    @classmethod
    def _is_above_zero(cls, value: int) -> int:
        if not value:
            raise InvalidValue("must be above 0")
        return value

    @property
    def pair(self) -> tuple[int, int]:
        """(epsilon, delta) [micro-epsilon, 1e-12]."""
        return self.epsilon, self.delta


class LifetimeIn(WireIn):
    """A new lifetime budget."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 20, "reason": "asked for more on 2030-01-31"}]}
    )

    epsilon: Lifetime
    gaussian: GaussianIn | None = Field(
        None, description="The budget for studies with Gaussian noise; as it is if not given."
    )
    reason: Text = Field(description="For the audit trail.")


class RaiseIn(WireIn):
    """More for everyone."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 0.5, "reason": "another year", "at_most": 20}]}
    )

    epsilon: Epsilon = Field(description="What is added to every lifetime budget.")
    at_most: Lifetime | None = Field(
        None, description="Budgets are raised up to this; those above it stay as they are."
    )
    delta: Delta = Field(
        0,
        description="If above 0, the budgets for studies with Gaussian noise are raised: by the mu^2 that "
        "the epsilon is at this delta, up to that of `at_most`.",
    )
    reason: Text = Field(description="For the audit trail.")


class RaiseOut(WireOut):
    """What was added to every lifetime budget."""

    epsilon: EpsilonOut
    at_most: EpsilonOut | None
    new_people: EpsilonOut = Field(
        description="Lifetime budget of a person who is new from now on; of Gaussian noise at `delta`."
    )
    delta: DeltaOut = Field(
        description="Above 0: the budgets for Gaussian noise were raised, and epsilons are read at it."
    )


class LinkOut(WireOut):
    """A link to a person's own page, for that person only."""

    url: str = Field(description="Works once.")
    expires_at: datetime


class PersonalChargeOut(WireOut):
    """What one release cost one person."""

    release: IdOut
    study: str
    estimator: str
    epsilon: EpsilonOut = Field(description="With Gaussian noise at the study's delta.")
    mu2: Mu2Out | None = Field(description="With Gaussian noise; null with Laplace noise.")
    created_at: datetime
