# ruff: noqa: D102 - the members of the protocols are described where they are stored
"""Budgets on the wire."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from pydantic import ConfigDict, Field

from app.core.epsilon import delta_to_json, epsilon_to_json
from app.web.documents.types import Delta, Lifetime, Text, WireIn, WireOut


class Account(Protocol):
    """What is shown of an account. Epsilon in micro-epsilon, delta in 1e-12."""

    @property
    def subject(self) -> bytes: ...
    @property
    def budget(self) -> int: ...
    @property
    def reserved(self) -> int: ...
    @property
    def spent(self) -> int: ...
    @property
    def delta_budget(self) -> int: ...
    @property
    def delta_reserved(self) -> int: ...
    @property
    def delta_spent(self) -> int: ...


class StudyLine(Protocol):
    """What is shown of one study on a statement."""

    @property
    def study(self) -> str: ...
    @property
    def trust(self) -> str: ...
    @property
    def live(self) -> bool: ...
    @property
    def epsilon(self) -> int: ...
    @property
    def spent(self) -> int: ...
    @property
    def delta(self) -> int: ...
    @property
    def delta_spent(self) -> int: ...
    @property
    def contributed_on(self) -> date | None: ...


class SessionLine(Protocol):
    """What is shown of one session on a statement."""

    @property
    def session(self) -> str: ...
    @property
    def study(self) -> str: ...
    @property
    def protocol(self) -> str: ...
    @property
    def epsilon(self) -> int: ...
    @property
    def spent(self) -> int: ...


class AmountsOut(WireOut):
    """A lifetime budget.

    `reserved` is held by contributions and sessions; `spent` is the part of it that is gone.
    """

    total: float
    reserved: float
    spent: float
    remaining: float

    @classmethod
    def epsilon_of(cls, account: Account) -> "AmountsOut":
        """The epsilon of an account."""
        return cls(
            total=epsilon_to_json(account.budget),
            reserved=epsilon_to_json(account.reserved),
            spent=epsilon_to_json(account.spent),
            remaining=epsilon_to_json(account.budget - account.reserved),
        )

    @classmethod
    def delta_of(cls, account: Account) -> "AmountsOut":
        """The delta of an account."""
        return cls(
            total=delta_to_json(account.delta_budget),
            reserved=delta_to_json(account.delta_reserved),
            spent=delta_to_json(account.delta_spent),
            remaining=delta_to_json(account.delta_budget - account.delta_reserved),
        )


class AccountOut(WireOut):
    """One person's account in a list."""

    subject: str = Field(description="Digest of the external id: all that the database knows.")
    epsilon: AmountsOut
    delta: AmountsOut

    @classmethod
    def of(cls, account: Account) -> "AccountOut":
        """The wire form of an account."""
        return cls(
            subject=account.subject.hex(),
            epsilon=AmountsOut.epsilon_of(account),
            delta=AmountsOut.delta_of(account),
        )


class StudyLineOut(WireOut):
    """What one study holds of a person's budget."""

    study: str
    trust: str
    live: bool = Field(description="False once withdrawn: what was spent stays.")
    epsilon: float = Field(description="What is reserved.")
    spent: float
    delta: float
    delta_spent: float
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
    epsilon: float = Field(description="What is reserved; once the session has finished, what was spent.")
    spent: float


class BudgetOut(WireOut):
    """One person's statement."""

    subject: str
    epsilon: AmountsOut
    delta: AmountsOut
    studies: list[StudyLineOut]
    sessions: list[SessionLineOut]

    @classmethod
    def of(
        cls,
        subject: str,
        account: Account,
        studies: Sequence[StudyLine],
        sessions: Sequence[SessionLine],
    ) -> "BudgetOut":
        """The wire form of a statement."""
        lines = [
            StudyLineOut(
                study=line.study,
                trust=line.trust,
                live=line.live,
                epsilon=epsilon_to_json(line.epsilon),
                spent=epsilon_to_json(line.spent),
                delta=delta_to_json(line.delta),
                delta_spent=delta_to_json(line.delta_spent),
                contributed_on=line.contributed_on,
            )
            for line in studies
        ]
        return cls(
            subject=subject,
            epsilon=AmountsOut.epsilon_of(account),
            delta=AmountsOut.delta_of(account),
            studies=lines,
            sessions=[
                SessionLineOut(
                    session=line.session,
                    study=line.study,
                    protocol=line.protocol,
                    epsilon=epsilon_to_json(line.epsilon),
                    spent=epsilon_to_json(line.spent),
                )
                for line in sessions
            ],
        )


class LifetimeIn(WireIn):
    """A new lifetime budget."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"epsilon": 20, "reason": "asked for more on 2030-01-31"}]}
    )

    epsilon: Lifetime
    delta: Delta | None = Field(None, description="As it is if not given.")
    reason: Text = Field(description="For the audit trail.")


class LinkOut(WireOut):
    """A link to a person's own page, for that person only."""

    url: str = Field(description="Works once.")
    expires_at: datetime


class PersonalChargeOut(WireOut):
    """What one release cost one person."""

    number: int = Field(description="Place of the release in the hash chain.")
    release: str
    study: str
    estimator: str
    epsilon: float
    delta: float
    created_at: datetime
