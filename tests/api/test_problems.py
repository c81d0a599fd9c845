"""Every error has one status, one title and one heading in the documentation."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import app
from app.core import errors
from app.core.errors import FieldError, ServiceError
from app.web.problems import HEAD_TOO_LARGE, KINDS, METHOD_NOT_ALLOWED, problem_of
from app.web.validation_messages import InvalidValue, field_errors, field_name
from tests.api.service import Service

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "problems.md"

OUTSIDE = ("app.cli", "app.dashboard")


def error_classes() -> list[type[ServiceError]]:
    """Every error class of the service, wherever it is defined."""
    for module in pkgutil.walk_packages(app.__path__, "app."):
        if not module.name.startswith(OUTSIDE):
            importlib.import_module(module.name)
    return sorted(set(_subclasses(ServiceError)), key=lambda cls: cls.__qualname__)


def _subclasses(cls: type[ServiceError]) -> Iterator[type[ServiceError]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from _subclasses(subclass)


ERRORS = error_classes()


@pytest.mark.parametrize("cls", ERRORS, ids=lambda cls: cls.__qualname__)
def test_every_error_has_a_row_of_its_own(cls: type[ServiceError]) -> None:
    assert cls in KINDS
    response = problem_of(cls("Some detail."))
    assert response.status_code == KINDS[cls].status
    assert response.media_type == "application/problem+json"


def test_no_row_is_without_an_error() -> None:
    assert set(KINDS) == set(ERRORS)


def test_errors_of_one_code_have_one_row() -> None:
    rows: dict[str, set[object]] = {}
    for cls in ERRORS:
        rows.setdefault(cls.code, set()).add(KINDS[cls])
    assert {code: len(kinds) for code, kinds in rows.items() if len(kinds) > 1} == {}


async def test_an_address_that_is_off_by_a_slip_says_by_which(service: Service) -> None:
    said = {
        path: (await service.call("GET", path)).json()["detail"]
        for path in ("/v1/v1/studies", "/v1/studies/", "/x")
    }
    assert "has /v1 twice" in said["/v1/v1/studies"]
    assert "ends with /" in said["/v1/studies/"]
    assert said["/x"] == "There is nothing at this path."


def test_every_code_has_a_heading_and_every_heading_a_code() -> None:
    headings = re.findall(r"^## `(\w+)`$", DOCUMENTATION.read_text(), re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert set(headings) == {cls.code for cls in ERRORS} | {METHOD_NOT_ALLOWED, HEAD_TOO_LARGE}


def test_every_heading_states_the_status() -> None:
    text = DOCUMENTATION.read_text()
    for cls in ERRORS:
        section = text.split(f"## `{cls.code}`")[1].split("\n## ")[0]
        assert f"Status {KINDS[cls].status}" in section, cls.code


def test_an_internal_fault_tells_nothing() -> None:
    body = problem_of(errors.InternalFault("the weights of alice", fields=[FieldError("alice", "x")])).body
    assert b"alice" not in bytes(body)


def test_reasons_hold_no_values() -> None:
    raw: list[dict[str, Any]] = [
        {"type": "missing", "loc": ("body", "a"), "input": "secret"},
        {"type": "value_error", "loc": ("body", "b"), "ctx": {"error": InvalidValue("is not nice")}},
        {"type": "value_error", "loc": ("body", "c"), "ctx": {"error": ValueError("bad: secret")}},
        {"type": "never_heard_of", "loc": ("query", "d", 0), "msg": "secret", "ctx": {"x": "secret"}},
    ]
    assert field_errors(raw) == [
        FieldError("a", "is required"),
        FieldError("b", "is not nice"),
        FieldError("c", "is not admissible"),
        FieldError("d.0", "is not admissible"),
    ]


def test_a_field_name_is_never_long() -> None:
    assert len(field_name(("body", "x" * 1000))) == 100
    assert field_name(("body",)) == "body"
