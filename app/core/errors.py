"""Every error the service raises on purpose.

The classes carry a stable ``code`` and typed fields, never a data value and never an HTTP status:
`app.web.problems` is the only map from class to status.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

MAX_FIELDS = 10
"""Offending fields that an error names."""

MAX_NAME = 64
"""Characters of the name of an offending field: it may be any text that a client sent."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One offending field: its name, cut, and why it was refused, never its value."""

    field: str
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "field", self.field[:MAX_NAME])


class ServiceError(Exception):
    """Root of all expected errors.

    Attributes:
        code: Stable machine-readable name, documented in docs/problems.md.
        detail: One sentence for a person. Holds no data value.
        fields: The first offending fields, possibly none.
    """

    code: ClassVar[str] = "internal_fault"

    def __init__(self, detail: str, *, fields: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.fields = tuple(fields[:MAX_FIELDS])

    @classmethod
    def field(cls, name: str, reason: str) -> Self:
        """The error for one offending field."""
        error = FieldError(name, reason)
        return cls(f"{error.field}: {reason}", fields=[error])


class InvalidRequest(ServiceError):
    """The request is well formed but asks for something that is not admissible."""

    code = "invalid_request"

    @classmethod
    def naming(cls, fields: Sequence[FieldError], what: str = "") -> "InvalidRequest":
        """The error for several offending fields of one thing, such as "the answer is "."""
        names = dict.fromkeys(error.field for error in fields[:MAX_FIELDS])
        return cls(f"{what}not admissible: {', '.join(names)}", fields=fields)

    def within(self, name: str) -> "InvalidRequest":
        """The error with its fields inside the field of this name."""
        return self.naming([FieldError(f"{name}.{one.field}", one.reason) for one in self.fields])


class MalformedDocument(ServiceError):
    """The body is not a document of the announced type (JSON, CSV, gzip, UTF-8)."""

    code = "malformed_document"


class DocumentTooLarge(ServiceError):
    """The body is over the stated limit."""

    code = "document_too_large"

    @classmethod
    def over(cls, limit: int) -> "DocumentTooLarge":
        """The error of a body of more than `limit` bytes."""
        return cls(f"The document is over {limit} bytes.")


class RequestTimeout(ServiceError):
    """The body did not arrive in time."""

    code = "request_timeout"


class UnsupportedMediaType(ServiceError):
    """The content type or encoding of the body is not one this route reads."""

    code = "unsupported_media_type"


class NotFound(ServiceError):
    """What the path names does not exist, or is not visible to this token."""

    code = "not_found"


class Gone(NotFound):
    """What the path names was published, and has expired or was withdrawn."""

    code = "gone"


class Conflict(ServiceError):
    """The request contradicts what is already stored."""

    code = "conflict"


class ContributionExists(Conflict):
    """This subject already has another live contribution in this study."""

    code = "contribution_exists"


class EpsilonBelowSpent(Conflict):
    """The offered epsilon is less than what was already spent in this study."""

    code = "epsilon_below_spent"


class ReportAfterSpending(Conflict):
    """A local report needs the whole epsilon or delta, and a part of it was spent before."""

    code = "report_after_spending"


class StudyExists(Conflict):
    """The slug is taken by a study with another definition."""

    code = "study_exists"


class StudyClosed(Conflict):
    """The study takes no more contributions."""

    code = "study_closed"


class StudyArchived(Conflict):
    """The study has ended: it gives only the answers that are stored, and what was not spent is free."""

    code = "study_archived"


class StudyRetired(Conflict):
    """The study gives only the answers that are stored, and frees nothing."""

    code = "study_retired"


class BudgetBelowReserved(Conflict):
    """A lifetime budget cannot be set below what is reserved."""

    code = "budget_below_reserved"


class IdempotencyKeyReused(Conflict):
    """The Idempotency-Key was used for another request."""

    code = "idempotency_key_reused"


class RoundClosed(Conflict):
    """The answer comes too late: its round is closed, or the whole session has finished."""

    code = "round_closed"


class RoundNotOpen(Conflict):
    """The answer comes too early: its round has not begun."""

    code = "round_not_open"


class NotYourRound(Conflict):
    """This subject is assigned another round of the session."""

    code = "not_your_round"


class AnswerExists(Conflict):
    """This subject gave another answer in this round."""

    code = "answer_exists"


class PrivacyRefusal(ServiceError):
    """Answering would break the privacy promise."""

    code = "privacy_refusal"


class BudgetExhausted(PrivacyRefusal):
    """Not enough budget is left, neither for a reservation nor for a release."""

    code = "budget_exhausted"

    @classmethod
    def by_all(cls) -> "BudgetExhausted":
        """The error of a question that no person can pay for."""
        return cls("no person in this study can take part in such a release")


class NoGain(PrivacyRefusal):
    """The answer would be worse than the best one that the question has, or leave most people out."""

    code = "no_gain"


class SaysNothing(PrivacyRefusal):
    """The answer would tell no more than that it lies where every answer does.

    Attributes:
        share: The least that would do [ppm]; None: none would.
        people: How many would do at the share that was asked; None: no number would.
    """

    code = "says_nothing"

    def __init__(self, detail: str, *, share: int | None = None, people: int | None = None) -> None:
        super().__init__(detail)
        self.share = share
        self.people = people


class OutOfReach(ServiceError):
    """No share makes the answer as exact as it is wanted.

    Attributes:
        half_width: The smallest half of the interval that a share gives, as predicted; None where it is not
            [the statistic's unit].
    """

    code = "out_of_reach"

    def __init__(self, detail: str, *, half_width: float | None = None) -> None:
        super().__init__(detail)
        self.half_width = half_width


class Unauthenticated(ServiceError):
    """No token, or one that is unknown, expired or revoked."""

    code = "unauthenticated"


class Forbidden(ServiceError):
    """The token is valid but its role, studies or subject do not allow this."""

    code = "forbidden"


class Unavailable(ServiceError):
    """The service cannot answer now; the same request may succeed later."""

    code = "unavailable"


class InternalFault(ServiceError):
    """An invariant does not hold, a solver failed or no entropy was had: no answer, no charge."""

    code = "internal_fault"


class SchemaMismatch(Exception):
    """The database cannot be used as it is, so the service does not start; the message says what to do."""
