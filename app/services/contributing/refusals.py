"""What is said of an offer that the ledger refuses, the same for one record and for a million."""

from collections.abc import Mapping

from app.core.contribution import Outcome
from app.core.errors import (
    BudgetExhausted,
    ContributionExists,
    EpsilonBelowSpent,
    FieldError,
    InvalidRequest,
    ReportAfterSpending,
    ServiceError,
    StudyClosed,
)
from app.services.contributing.intake_values import IMPOSSIBLE

REFUSALS: Mapping[Outcome, tuple[type[ServiceError], FieldError]] = {
    Outcome.CONTRIBUTION_EXISTS: (
        ContributionExists,
        FieldError("subject", "has another live contribution in this study; replace it with PUT"),
    ),
    Outcome.BUDGET_EXHAUSTED: (
        BudgetExhausted,
        FieldError("epsilon", "does not fit the subject's lifetime budget"),
    ),
    Outcome.EPSILON_BELOW_SPENT: (
        EpsilonBelowSpent,
        FieldError("epsilon", "includes what was already spent in this study and must cover it"),
    ),
    Outcome.REPORT_AFTER_SPENDING: (
        ReportAfterSpending,
        FieldError("epsilon", "a report of this study takes the whole of it, and a part was spent before"),
    ),
    Outcome.IMPOSSIBLE_REPORT: (InvalidRequest, FieldError("report", IMPOSSIBLE)),
    Outcome.STUDY_CLOSED: (StudyClosed, FieldError("study", "is closed and takes no more contributions")),
}


def refuse(outcome: Outcome) -> None:
    """Raise the error of an offer that was not stored.

    Raises:
        ServiceError: it was not.
    """
    if not outcome.accepted:
        error, field = REFUSALS[outcome]
        raise error.field(field.field, field.reason)
