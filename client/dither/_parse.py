"""Answers that take more than `build`."""

from decimal import Decimal
from typing import Literal

from dither._documents import Contribution
from dither._errors import FieldProblem, NoGain, ProblemError, ResponseError, SaysNothing
from dither._models import RecordResult
from dither._wire import build, decode
from dither.device.numbers import epsilon_cost

_CREATED, _UNCHANGED = RecordResult("created"), RecordResult("unchanged")


def problem(
    status: int, body: bytes, *, request: str, certain: bool, retry_after: float | None = None
) -> ProblemError:
    """The error for a refusal; also where a proxy sent it and there is no problem document."""
    try:
        document = decode(body)
    except ResponseError:
        document = None
    document = document if isinstance(document, dict) else {}
    rows = document.get("errors")
    errors = []
    for row in rows if isinstance(rows, list) else ():
        try:
            errors.append(build(FieldProblem, row))
        except ResponseError:
            continue
    code = _text(document.get("code")) or f"http_{status}"
    kind = next((kind for kind in (NoGain, SaysNothing) if kind.code == code), ProblemError)
    refusal = kind(
        status=status,
        code=code,
        detail=_text(document.get("detail")) or _text(document.get("title")),
        errors=errors,
        request=request,
        request_id=_text(document.get("request_id")),
        retry_after=retry_after,
        certain=certain,
    )
    if isinstance(refusal, SaysNothing):
        share, people = document.get("share"), document.get("people")
        refusal.share = float(share) if isinstance(share, int | float | Decimal) else None
        refusal.people = people if isinstance(people, int) else None
    return refusal


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def contribution(
    body: bytes, status: Literal["created", "unchanged", "replaced"], offered: int | None
) -> Contribution:
    """The answer to a contribution.

    Raises:
        ResponseError: also where more than was offered is said to hold.
    """
    document = decode(body)
    stored = build(Contribution, {**document, "status": status} if isinstance(document, dict) else document)
    if offered is not None and stored.epsilon is not None and epsilon_cost(stored.epsilon) > offered:
        raise ResponseError("the service says that a larger epsilon holds than was offered")
    return stored


def batch(body: bytes, expected: int) -> list[RecordResult]:
    """The results of one batch, one a record."""
    document = decode(body)
    rows = document.get("results") if isinstance(document, dict) else None
    if not isinstance(rows, list) or len(rows) != expected:
        raise ResponseError("the service's answer has not one result a record")
    return [_record_result(row) for row in rows]


def _record_result(row: object) -> RecordResult:
    status = row.get("status") if isinstance(row, dict) else None
    if status == "created":
        return _CREATED
    if status == "unchanged":
        return _UNCHANGED
    return build(RecordResult, row)
