"""The OpenAPI document: FastAPI's, plus what our own request handling adds to it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from app.estimators.registry import AUTO, ESTIMATORS
from app.web import reference

SUMMARY = "Differentially private statistics over people who each choose their own epsilon"

DESCRIPTION = """
People send a number, several, or a choice each, with a **personal epsilon** or a **trust tag**; analysts get
noisy statistics; an exact ledger makes sure that no person is ever charged more than they agreed to.

Every error is a problem document (RFC 9457) with a stable `code`. Numbers are read exactly as written.
"""

PROBLEM_REFERENCE = "#/components/schemas/Problem"

PROBLEM_SCHEMA: Mapping[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457. Names offending fields and reasons, never their values.",
    "type": "object",
    "required": ["type", "title", "status", "code", "detail", "errors", "request_id"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:dither:problem:budget_exhausted"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "code": {"type": "string", "examples": ["budget_exhausted"]},
        "detail": {"type": "string"},
        "request_id": {
            "type": "string",
            "description": "As in the header X-Request-Id and in the log of the service.",
        },
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "reason"],
                "properties": {"field": {"type": "string"}, "reason": {"type": "string"}},
            },
        },
        "share": {
            "type": ["number", "null"],
            "description": "Of says_nothing: the least share that would do; null where none would.",
        },
        "people": {
            "type": ["integer", "null"],
            "description": "Of says_nothing: how many people would do; null where no number would.",
        },
        "half_width": {
            "type": ["number", "null"],
            "description": "Of out_of_reach: the smallest half of the interval that is predicted at a share.",
        },
    },
}

_DESCRIPTIONS: Mapping[int, str] = {
    400: "The request is malformed",
    401: "A valid token is needed",
    403: "The token does not allow this",
    404: "Not found",
    409: "It contradicts what is stored, or the privacy budget is exhausted",
    408: "The document took too long",
    413: "The document is too large",
    415: "The media type is not supported",
    422: "Some field is not admissible",
    429: "Too many requests",
    500: "Internal fault",
    503: "The service cannot answer now",
}

_HEADERS: Mapping[int, Mapping[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "required": True}},
    429: {"Retry-After": {"schema": {"type": "string"}, "required": True}},
    503: {"Retry-After": {"schema": {"type": "string"}, "required": True}},
}


def problem_responses(
    *, token: bool, path_parameters: bool, body: bool, conflicts: bool
) -> dict[int | str, dict[str, Any]]:
    """The problems that a route can answer with.

    Args:
        token: The route takes a token.
        path_parameters: Its path names something that may not exist.
        body: It reads a document.
        conflicts: What is stored can stand against it.
    """
    statuses = {422, 500, 503}
    statuses |= {401, 403, 429} if token else set()
    statuses |= {400, 404} if path_parameters else set()
    statuses |= {400, 408, 413, 415} if body else set()
    statuses |= {409} if conflicts else set()
    return {status: problem_response(status) for status in sorted(statuses)}


def problem_response(status: int) -> dict[str, Any]:
    """The OpenAPI response object of a problem."""
    response: dict[str, Any] = {
        "description": _DESCRIPTIONS[status],
        "content": {"application/problem+json": {"schema": {"$ref": PROBLEM_REFERENCE}}},
    }
    if status in _HEADERS:
        response["headers"] = _HEADERS[status]
    return response


def install(app: FastAPI) -> None:
    """Make the application describe itself with the problem schema and the bearer scheme, once."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title,
                version=app.version,
                summary=SUMMARY,
                description=DESCRIPTION,
                routes=app.routes,
                tags=app.openapi_tags,
            )
            components = document.setdefault("components", {})
            components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
            components["securitySchemes"] = {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token made by an admin, or the one in DIR/admin.token.",
                }
            }
            _name_estimators(document)
            for schema in components["schemas"].values():
                for example in schema.get("examples", ()):
                    _say_null(example, schema, components["schemas"])
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]  # as FastAPI has it
    app.state.reference = cache(lambda: reference.whole(app.openapi()))


def _name_estimators(document: Mapping[str, Any]) -> None:
    """Name the estimators that settings allow, too: routes are made before settings are read."""
    for path in document["paths"].values():
        for operation in path.values():
            kinds = [one["schema"] for one in operation.get("parameters", ()) if one["name"] == "estimator"]
            for media in operation.get("requestBody", {}).get("content", {}).values():
                kinds += [media["schema"]["properties"]["estimator"]] if _asks(media["schema"]) else []
            for kind in kinds:
                kind["enum"] = [AUTO, *ESTIMATORS]


def _say_null(example: object, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> None:
    """Have an example say null where a field is required: FastAPI leaves out every null."""
    schema = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    for alternative in schema.get("anyOf", ()):
        _say_null(example, alternative, schemas)
    if isinstance(example, list):
        for item in example:
            _say_null(item, schema.get("items", {}), schemas)
    elif isinstance(example, dict):
        for name in schema.get("required", ()):
            example.setdefault(name, None)
        for name, value in example.items():
            _say_null(value, schema.get("properties", {}).get(name, {}), schemas)


def _asks(schema: Mapping[str, Any]) -> bool:
    return "estimator" in schema.get("properties", {})
