"""A contribution on its way in, and what became of it."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from app.core.study import Currency, Trust

ANY_EPSILON = (1 << 63) - 1
"""More than any epsilon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One validated contribution.

    Attributes:
        subject: HMAC-SHA256 of the external id, 32 bytes.
        sender: The token that sent it: to no other is it told whether it repeats what is there.
        trust: Trust tag.
        asked: The epsilon that was offered, rounded to three significant digits; 0 for public
            [micro-epsilon].
        epsilon: The most that it may ever cost its owner, what was already spent in this study included:
            `asked` in the study's currency.
        currency: Of the study.
        value: Grid point; for local the report; 0 where there is a vector.
        vector: Grid points of the coordinates, in studies of vectors; local: reports of measures, None for
            one that was not reported.
        bounded: Whether it is a report whose range belongs to the whole epsilon.
        segment: Number of the combination of its labels, see `app.core.attributes`; `INSIDE` more of a report
            that was made inside the study's reporting range.
        drawn_at_most: The most with which an honest device can have drawn the report [the study's currency].
    """

    subject: bytes
    sender: UUID
    trust: Trust
    asked: int
    epsilon: int
    value: int
    vector: tuple[int | None, ...] | None = None
    bounded: bool = False
    drawn_at_most: int = ANY_EPSILON
    currency: Currency = Currency.LAPLACE
    segment: int = 0

    @property
    def mu2(self) -> int | None:
        """What it reserves in mu^2 [1e-6]; None in a study with Laplace noise."""
        return self.currency.mu2(self.epsilon)


class Outcome(StrEnum):
    """What became of an offer. The refusals have the codes of the matching errors."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    REPLACED = "replaced"
    CONTRIBUTION_EXISTS = "contribution_exists"
    BUDGET_EXHAUSTED = "budget_exhausted"
    EPSILON_BELOW_SPENT = "epsilon_below_spent"
    REPORT_AFTER_SPENDING = "report_after_spending"
    IMPOSSIBLE_REPORT = "invalid_request"
    STUDY_CLOSED = "study_closed"

    @property
    def accepted(self) -> bool:
        """Whether the offer is stored now."""
        return self in (Outcome.CREATED, Outcome.UNCHANGED, Outcome.REPLACED)
