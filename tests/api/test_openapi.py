"""The OpenAPI document, and schemathesis against the real service with it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from app.api.routing import StrictRoute
from app.main import create_app
from app.settings import Settings
from tests.api.service import SUBJECT_KEY, VALUE

PHASES = {
    "analyse": "examples,fuzzing,stateful",
    "contribute": "examples,fuzzing,stateful",
    "admin": "examples,coverage,fuzzing,stateful",
}
"""What each role tries. Only an admin gets past the door of every operation, so only an admin tries every
boundary of every field; and comes last, for it revokes tokens that it finds."""

MAX_EXAMPLES = 5
"""Random requests an operation and phase; enough to find what a change breaks, few enough to be quick."""


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return create_app(Settings(subject_key=SUBJECT_KEY))


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def test_it_is_openapi_31_with_a_bearer_scheme(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"


def test_every_operation_says_what_it_does_and_who_may(app: FastAPI, document: dict[str, Any]) -> None:
    tokens = {
        f"{method} {route.path_format}": bool(route.access.roles)
        for route in app.routes
        if isinstance(route, StrictRoute)
        for method in route.methods or ()
    }
    assert tokens.keys() == {name for name, _ in operations(document)}
    for name, operation in operations(document):
        assert operation["summary"], name
        assert operation["description"], name
        assert operation["tags"], name
        if tokens[name]:
            assert operation["security"] == [{"bearer": []}], name
        else:
            assert operation.get("security") in (None, [{}, {"bearer": []}]), name


def test_every_refusal_is_declared_as_a_problem(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"], (name, status)
        assert {"422", "500", "503"} <= operation["responses"].keys(), name
        if operation.get("security") == [{"bearer": []}]:
            assert {"401", "403"} <= operation["responses"].keys(), name
        if "{" in name:
            assert {"400", "404"} <= operation["responses"].keys(), name
        if "requestBody" in operation:
            assert {"400", "413", "415"} <= operation["responses"].keys(), name


def test_every_document_has_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            text = str(content) + str(_referenced(document, content["schema"]))
            assert "example" in text, (name, media_type)


def _referenced(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    reference = schema.get("$ref", "").rpartition("/")[2]
    return document["components"]["schemas"].get(reference)


def test_no_extension_of_ours_reaches_the_document(document: dict[str, Any]) -> None:
    assert not [name for _, operation in operations(document) for name in operation if name.startswith("x-")]


def test_the_reference_names_every_operation(document: dict[str, Any]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
    named = {
        (method, re.sub(r"\{\w+\}", "{}", path))
        for method, path in re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)`", text)
    }
    described = {
        (name.split(" ")[0], re.sub(r"\{\w+\}", "{}", name.split(" ")[1])) for name, _ in operations(document)
    }
    assert described - named == set()
    assert named - described == {("GET", "/openapi.json")}


@pytest.mark.system
def test_schemathesis_finds_nothing(live_server: Any, tmp_path: Path) -> None:
    """All phases and checks but one: ranges across fields and studies cannot be told in a JSON schema, so
    a request may fit the document and still be refused with 422."""
    service = live_server()
    with service.client() as admin:
        made = admin.post(
            "/v1/studies",
            json={
                "slug": "commute-minutes",
                "lower": 0,
                "upper": 120,
                "trust": ["central", "local", "public"],
            },
        )
        assert made.status_code == 201
    with service.client(service.create_token("contribute")) as contributor:
        path = "/v1/studies/commute-minutes/contributions"
        assert contributor.post(path, json=VALUE).status_code == 201
    for role, phases in PHASES.items():
        token = service.admin_token if role == "admin" else service.create_token(role)
        run = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.base_url}/openapi.json"),
                *("--header", f"Authorization: Bearer {token}"),
                *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
                *(
                    "--phases",
                    phases,
                    "--max-examples",
                    str(MAX_EXAMPLES),
                    "--seed",
                    "1",
                    "--generation-database",
                    "none",
                ),
                *("--no-color", "--workers", "1"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, f"{role}:\n{run.stdout[-8000:]}{run.stderr[-2000:]}"
        tested = re.search(r"Tested: (\d+)", run.stdout)
        assert tested is not None, run.stdout
        assert int(tested.group(1)) >= 24, run.stdout
    assert "request.failed" not in service.output()
