"""The only map from an error to what a client sees of it (RFC 9457).

Every `ServiceError` class has a row here and a heading in docs/problems.md; a test holds it to both. A
problem names offending fields and reasons, never their values.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from app.core import errors
from app.core.epsilon import epsilon_to_json
from app.core.errors import FieldError, ServiceError
from app.core.quota import QuotaExhausted
from app.estimators.interface import NoContributions, NotApplicable
from app.formats.strict_json import DuplicateKey
from app.web.rate import RateLimited
from app.web.request_log import REFUSAL, current_request_id
from app.web.validation_messages import field_errors

MEDIA_TYPE = "application/problem+json"

TYPE_PREFIX = "urn:dither:problem:"
"""What a problem's `type` starts with; the code follows."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How one class of errors is shown.

    Attributes:
        status, title: Of the response.
        surely_not_held: Whether the service holds nothing of a contribution that it refuses so, also not from
            an earlier try or with another token. Devices then count nothing; both clients have the list.
    """

    status: int
    title: str
    surely_not_held: bool = False


KINDS: Mapping[type[ServiceError], Kind] = {
    errors.InvalidRequest: Kind(422, "The request is not admissible"),
    DuplicateKey: Kind(422, "A field is given twice"),
    errors.MalformedDocument: Kind(400, "The document is malformed"),
    errors.DocumentTooLarge: Kind(413, "The document is too large"),
    errors.UnsupportedMediaType: Kind(415, "The media type is not supported"),
    errors.NotFound: Kind(404, "Not found"),
    errors.Gone: Kind(410, "No longer published"),
    errors.Conflict: Kind(409, "The request contradicts what is stored"),
    errors.ContributionExists: Kind(409, "There is another contribution already"),
    errors.EpsilonBelowSpent: Kind(409, "The epsilon is less than what was spent", surely_not_held=True),
    errors.ReportAfterSpending: Kind(409, "A report needs what was spent before", surely_not_held=True),
    errors.StudyExists: Kind(409, "The slug is taken"),
    errors.StudyClosed: Kind(409, "The study is closed", surely_not_held=True),
    errors.StudyArchived: Kind(409, "The study is archived"),
    errors.StudyRetired: Kind(409, "The study is retired"),
    errors.BudgetBelowReserved: Kind(409, "The budget is less than what is reserved"),
    errors.IdempotencyKeyReused: Kind(409, "The Idempotency-Key was used for another request"),
    errors.RoundClosed: Kind(409, "The round is closed"),
    errors.RoundNotOpen: Kind(409, "The round is not open yet"),
    errors.NotYourRound: Kind(409, "The subject is asked in another round"),
    errors.AnswerExists: Kind(409, "There is another answer already"),
    errors.PrivacyRefusal: Kind(409, "Refused for privacy"),
    errors.BudgetExhausted: Kind(409, "The privacy budget is exhausted", surely_not_held=True),
    errors.NoGain: Kind(409, "A new answer would be no gain"),
    errors.SaysNothing: Kind(409, "The answer would say nothing"),
    errors.OutOfReach: Kind(409, "No share reaches this half-width"),
    NoContributions: Kind(409, "There is no contribution yet"),
    NotApplicable: Kind(409, "The estimator has no answer here"),
    errors.RequestTimeout: Kind(408, "The document took too long"),
    errors.Unauthenticated: Kind(401, "A valid token is needed"),
    errors.Forbidden: Kind(403, "The token does not allow this"),
    RateLimited: Kind(429, "Too many requests"),
    QuotaExhausted: Kind(429, "The token's quota is used up"),
    errors.Unavailable: Kind(503, "The service cannot answer now"),
    errors.InternalFault: Kind(500, "Internal fault"),
    ServiceError: Kind(500, "Internal fault"),
}

# These belong to no `ServiceError`: they are HTTP's own.
METHOD_NOT_ALLOWED = "method_not_allowed"
HEAD_TOO_LARGE = "head_too_large"

_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    431: {"Connection": "close"},
    503: {"Retry-After": "1"},
}

INTERNAL_DETAIL = "The fault was logged."


def problem(
    *,
    status: int,
    code: str,
    title: str,
    detail: str,
    fields: Sequence[FieldError] = (),
    members: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem document, under the id of the request that it answers; `members` are its own beside these."""
    document: dict[str, object] = {
        "type": TYPE_PREFIX + code,
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": [{"field": error.field, "reason": error.reason} for error in fields],
        **(members or {}),
    }
    request_id = current_request_id()
    if request_id is not None:
        document["request_id"] = request_id
    return Response(
        json.dumps(document).encode(),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers={**_HEADERS.get(status, {}), **(headers or {})},
    )


def kind_of(error: ServiceError) -> Kind:
    """The row of an error's class."""
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def problem_of(error: ServiceError) -> Response:
    """The problem document of an expected error. An internal one tells nothing but its code."""
    kind = kind_of(error)
    if kind.status == 500:
        return internal_fault()
    headers: dict[str, str] = {}
    if isinstance(error, RateLimited | QuotaExhausted) and error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, RateLimited):
        headers |= error.headers
    members: dict[str, object] = {}
    if isinstance(error, errors.SaysNothing):
        share = None if error.share is None else epsilon_to_json(error.share)
        members = {"share": share, "people": error.people}
    if isinstance(error, errors.OutOfReach):
        members = {"half_width": error.half_width}
    return problem(
        status=kind.status,
        code=error.code,
        title=kind.title,
        detail=error.detail,
        fields=error.fields,
        members=members,
        headers=headers,
    )


def internal_fault() -> Response:
    """The bare 500."""
    kind = KINDS[errors.InternalFault]
    return problem(
        status=kind.status, code=errors.InternalFault.code, title=kind.title, detail=INTERNAL_DETAIL
    )


def head_too_large() -> Response:
    """The refusal of a request whose header fields never end."""
    return problem(
        status=431,
        code=HEAD_TOO_LARGE,
        title="The request's head is too large",
        detail="The request line and the header fields are too long.",
    )


async def on_service_error(request: Request, error: Exception) -> Response:
    """Expected errors, as problems; internal ones go on to LimitsMiddleware, which logs them."""
    assert isinstance(error, ServiceError)
    if kind_of(error).status == 500:
        raise error
    request.scope[REFUSAL] = error
    state = request.scope.get("state") or {}
    if "api" in state:
        state["api"].metrics.refused(error.code)
    return problem_of(error)


async def on_validation_error(request: Request, error: Exception) -> Response:
    """Pydantic's refusals, as ours."""
    assert isinstance(error, RequestValidationError)
    return await on_service_error(request, errors.InvalidRequest.naming(field_errors(error.errors())))


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's own refusals: unknown path and unknown method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return problem(
            status=405,
            code=METHOD_NOT_ALLOWED,
            title="The method is not allowed",
            detail="This path does not take this method; the Allow header lists those it takes.",
            headers={"Allow": ", ".join(allowed_methods(request))},
        )
    if error.status_code == 404:
        path, why = request.url.path, "There is nothing at this path."
        if "/v1/v1" in path:
            why += " It has /v1 twice: the address of the service ends before the first one."
        elif path.endswith("/"):
            why += " It ends with /, which no path here does."
        return await on_service_error(request, errors.NotFound(why))
    if error.status_code == 400:
        return await on_service_error(request, errors.MalformedDocument("The request could not be read."))
    return internal_fault()


def allowed_methods(request: Request) -> list[str]:
    """Every method of the resource at the request's path: the template with the fewest variables."""
    matching = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    best = min(len(route.param_convertors) for route in matching)
    return sorted(
        {name for route in matching if len(route.param_convertors) == best for name in route.methods}
    )


def install(app: FastAPI) -> None:
    """Make every error leave as a problem document. LimitsMiddleware handles the unexpected."""
    app.add_exception_handler(ServiceError, on_service_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(HTTPException, on_http_exception)
