"""Budgets on the wire."""

from collections.abc import Callable
from datetime import date, datetime
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field

from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.records import Balance, Statement
from app.core.study import StudyState
from app.web.documents.types import (
    Delta,
    DeltaOut,
    DigestOut,
    Epsilon,
    EpsilonOut,
    IdOut,
    Lifetime,
    Text,
    WireIn,
    WireOut,
)


class AmountsOut(WireOut):
    """A lifetime budget.

    `reserved` is held by contributions and sessions; `spent` is the part of it that is gone.
    """

    total: float
    reserved: float
    spent: float
    remaining: float


def _shown(show: Callable[[int], float]) -> BeforeValidator:
    names = AmountsOut.model_fields
    return BeforeValidator(
        lambda value: (
            {name: show(getattr(value, name)) for name in names} if isinstance(value, Balance) else value
        )
    )


class AccountOut(WireOut):
    """One person's account in a list."""

    subject: DigestOut = Field(description="Digest of the external id: all that the database knows.")
    epsilon: Annotated[AmountsOut, _shown(epsilon_to_json)]
    delta: Annotated[AmountsOut, _shown(delta_to_json)]


class StudyLineOut(WireOut):
    """What one study holds of a person's budget."""

    study: str
    state: StudyState = Field(description="Of the study; an archived one has freed what it did not spend.")
    trust: str
    live: bool = Field(description="False once withdrawn: what was spent stays.")
    epsilon: EpsilonOut = Field(description="What is reserved; once the study is archived, what was spent.")
    spent: EpsilonOut
    delta: DeltaOut
    delta_spent: DeltaOut
    contributed_on: date | None = Field(
        description="The day (UTC) of the first contribution; null from before days were kept."
    )


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
    epsilon: Annotated[AmountsOut, _shown(epsilon_to_json)]
    delta: Annotated[AmountsOut, _shown(delta_to_json)]
    studies: list[StudyLineOut]
    sessions: list[SessionLineOut]

    @classmethod
    def of(cls, subject: str, statement: Statement) -> "BudgetOut":
        """The statement of the person with this external id."""
        return cls.model_validate(
            {
                "subject": subject,
                "epsilon": statement.account.epsilon,
                "delta": statement.account.delta,
                "studies": statement.studies,
                "sessions": statement.sessions,
            }
        )


class LifetimeIn(WireIn):
    """A new lifetime budget."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 20, "reason": "asked for more on 2030-01-31"}]}
    )

    epsilon: Lifetime
    delta: Delta | None = Field(None, description="As it is if not given.")
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
    reason: Text = Field(description="For the audit trail.")


class RaiseOut(WireOut):
    """What was added to every lifetime budget."""

    epsilon: EpsilonOut
    at_most: EpsilonOut | None
    new_people: EpsilonOut = Field(description="Lifetime budget of a person who is new from now on.")


class LinkOut(WireOut):
    """A link to a person's own page, for that person only."""

    url: str = Field(description="Works once.")
    expires_at: datetime


class PersonalChargeOut(WireOut):
    """What one release cost one person."""

    release: IdOut
    study: str
    estimator: str
    epsilon: EpsilonOut
    delta: DeltaOut
    created_at: datetime
