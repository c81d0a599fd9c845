"""The OpenAPI document, and schemathesis against the real service with it."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from jsonschema_rs import Draft202012Validator

from app.api.routing import StrictRoute
from app.main import create_app
from app.settings import Settings
from tests.api.service import SUBJECT_KEY, VALUE

HOUSEHOLD: dict[str, Any] = {
    "slug": "household",
    "measures": {
        "rooms": {"lower": 1, "upper": 9},
        "place": {"lower": -1, "upper": 1, "dimension": 2},
        "heating": {"choices": ["gas", "wood"]},
    },
    "attributes": {"town": ["small", "large"]},
}
OF_HOUSEHOLD: dict[str, Any] = {
    "subject": "alice",
    "values": {"rooms": 3, "place": [0.5, -0.5], "heating": "wood"},
    "attributes": {"town": "small"},
    "epsilon": 1.5,
    "trust": "central",
}
KNOWN = """
[dictionaries]
studies = { values = ["commute-minutes", "household"] }
measures = { values = ["rooms", "place", "heating"] }
attributes = { values = ["town"] }
labels = { values = ["town:small", "town:large"] }

[parameters]
"path.study" = { dictionary = "studies", probability = 0.9 }
"query.measure" = { dictionary = "measures", probability = 0.4 }
"body.measure" = { dictionary = "measures", probability = 0.4 }
"query.by" = { dictionary = "attributes", probability = 0.4 }
"body.by" = { dictionary = "attributes", probability = 0.4 }
"query.where" = { dictionary = "labels", probability = 0.2 }
"""
"""Random text names no study, number, attribute or label that there is."""

OF_TOKENS = ("revoke_token", "rotate_token", "set_quota")
"""What may end the token that it is asked with, and makes all that follows a 401: tried last."""

PEOPLE = 300
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


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    components = document["components"]
    checked = 0
    for name, schema in components["schemas"].items():
        judge = Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": components})
        for example in schema.get("examples", ()):
            checked += 1
            assert [one.message for one in judge.iter_errors(example)] == [], name
            if required := schema.get("required"):
                less = {field: value for field, value in example.items() if field != required[0]}
                assert not judge.is_valid(less), "the control"
    assert checked > 15


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


def asked(app: FastAPI, document: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Which role tries which operations: each may be asked by it, and by no role before it."""
    left = {
        document["paths"][route.path_format][method.lower()]["operationId"]: route.access.roles
        for route in app.routes
        if isinstance(route, StrictRoute)
        for method in route.methods or ()
    }
    found = []
    for role in ("analyse", "contribute", "admin"):
        own = [name for name, roles in left.items() if (not roles or role in roles) and name not in OF_TOKENS]
        found.append((role, own))
        left = {name: roles for name, roles in left.items() if name not in own}
    return [*found, ("admin", list(left))]


@pytest.mark.system
def test_schemathesis_finds_nothing(
    live_server: Any, tmp_path: Path, app: FastAPI, document: dict[str, Any]
) -> None:
    """All phases and checks but one: ranges across fields and studies cannot be told in a JSON schema, so
    a request may fit the document and still be refused with 422."""
    service = live_server()
    plain = {"slug": "commute-minutes", "lower": 0, "upper": 120, "trust": ["central", "local", "public"]}
    with service.client() as admin:
        for study in (plain, HOUSEHOLD):
            assert admin.post("/v1/studies", json=study).status_code == 201
    with service.client(service.create_token("contribute")) as contributor:
        for slug, value in ((plain["slug"], VALUE), (HOUSEHOLD["slug"], OF_HOUSEHOLD)):
            people = [value, *({**value, "subject": f"p{number}"} for number in range(PEOPLE))]
            made = contributor.post(f"/v1/studies/{slug}/contributions/batch", json=people)
            assert made.json()["created"] == len(people), made.text
    (tmp_path / "schemathesis.toml").write_text(KNOWN)
    for role, chosen in asked(app, document):
        run = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.base_url}/openapi.json"),
                *("--header", f"Authorization: Bearer {service.create_token(role)}"),
                *("--checks", "all", "--exclude-checks", "positive_data_acceptance"),
                *("--phases", "examples,coverage,fuzzing,stateful"),
                *("--max-examples", str(MAX_EXAMPLES), "--seed", "1", "--generation-database", "none"),
                *("--no-color", "--workers", "1"),
                *(part for one in chosen for part in ("--include-operation-id", one)),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, f"{role}:\n{run.stdout[-8000:]}{run.stderr[-2000:]}"
        tested = re.search(r"Tested: (\d+)", run.stdout)
        assert tested is not None, run.stdout
        assert int(tested.group(1)) == len(chosen), run.stdout
    assert "request.failed" not in service.output()
    assert '"/v1/studies/{study}/releases", "status": 201' in service.output(), "no question was answered"
