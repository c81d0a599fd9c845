"""How much of a study one token may use."""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from app.core.errors import ServiceError

FOR_EVER = 2**31 - 1
"""Period of a quota that never becomes free again [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a token may take of every study, on top of what people's own budgets allow.

    Attributes:
        share: The most that its releases of one study may take of any person's epsilon, together, within any
            stretch of time as long as the period [ppm].
        period_seconds: Length of that stretch.
    """

    share: int
    period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What a new release takes of its asker's quota [ppm]."""

    token_id: UUID
    share: int


class QuotaExhausted(ServiceError):
    """The token may not use that much of this study now.

    Attributes:
        retry_after: Seconds until it may; None where the question takes more than the whole quota.
    """

    code: ClassVar[str] = "quota_exhausted"

    def __init__(self, detail: str, *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
