"""What docs/compatibility.md promises of `/v1`: the OpenAPI documents of former versions and of this one."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.live import ROOT
from tests.upgrades.former import each_version, former_environment, former_sources

Document = Mapping[str, Any]

BROKEN = {
    "0.9.0": [
        "gone: GET /v1/admin/studies/{study}/plan query level: string",
        "gone: GET /v1/studies/{study}/plan query level: string",
        "gone: GET /v1/studies/{study}/statistics/{statistic} query level: string",
    ]
}
"""What docs/compatibility.md says to be broken: the hourglass's own parameter has another name."""

SAID = """
import inspect, json, dither
from app.main import create_app
from app.settings import Settings

def arguments(method):
    found = inspect.signature(method).parameters
    # Keywords that a dictionary declares: `**fields: Unpack[...]`.
    declared = [one.annotation.__args__[0] for one in found.values()
                if one.kind is one.VAR_KEYWORD and hasattr(one.annotation, "__args__")]
    return [*found, *(name for one in declared for name in getattr(one, "__annotations__", ()))]

print(json.dumps({
    "version": dither.__version__,
    "document": create_app(Settings()).openapi(),
    "names": [*dither.__all__, *Settings.variables()],
    "methods": {name: arguments(one)
                for name, one in inspect.getmembers(dither.Client, callable) if name[0] != "_"},
}))
"""
"""What a version says of itself."""


def said(environment: Mapping[str, str]) -> dict[str, Any]:
    command = [sys.executable, "-c", SAID]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def parts(document: Document, schema: Document, place: str, within: tuple[str, ...] = ()) -> Iterator[str]:
    """A line for each field, type and word that a schema knows."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        if name not in within:
            yield from parts(document, document["components"]["schemas"][name], place, (*within, name))
        return
    for choice in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(choice, ()):
            yield from parts(document, one, place, within)
    kinds = schema.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        yield f"{place}: {kind}"
    for word in schema.get("enum", [schema["const"]] if "const" in schema else []):
        yield f"{place} = {word}"
    for field, one in schema.get("properties", {}).items():
        yield f"{place}.{field}"
        yield from parts(document, one, f"{place}.{field}", within)
    for key, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(schema.get(key), dict):
            yield from parts(document, schema[key], place + mark, within)


def needed(document: Document, schema: Document, place: str, within: tuple[str, ...] = ()) -> Iterator[str]:
    """A line for each field that a request must have."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        if name not in within:
            yield from needed(document, document["components"]["schemas"][name], place, (*within, name))
        return
    for field, one in schema.get("properties", {}).items():
        if field in schema.get("required", ()):
            yield f"{place}.{field}"
        yield from needed(document, one, f"{place}.{field}", within)
    if isinstance(schema.get("items"), dict):
        yield from needed(document, schema["items"], f"{place}[]", within)


def operations(document: Document) -> Iterator[tuple[str, Document]]:
    """Method and path of each operation, and what is said of it."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield f"{method.upper()} {path}", operation


def _json(content: Document) -> Document:
    return dict(content.get("application/json", {}).get("schema", {}))


def known(document: Document) -> set[str]:
    """All that a program can send and read."""
    found = set()
    for place, operation in operations(document):
        found.add(place)
        for parameter in operation.get("parameters", ()):
            at = f"{place} {parameter['in']} {parameter['name']}"
            found |= {at, *parts(document, parameter["schema"], at)}
        body = operation.get("requestBody", {}).get("content", {})
        found |= {f"{place} takes {kind}" for kind in body}
        found |= set(parts(document, _json(body), f"{place} takes "))
        for status, response in operation["responses"].items():
            if status < "400":
                at = f"{place} answers {status} "
                found |= {at, *parts(document, _json(response.get("content", {})), at)}
    return found


def demanded(document: Document) -> set[str]:
    """All that a program must send."""
    found = set()
    for place, operation in operations(document):
        for parameter in operation.get("parameters", ()):
            if parameter.get("required"):
                found.add(f"{place} {parameter['in']} {parameter['name']}")
        body = operation.get("requestBody", {}).get("content", {})
        found |= set(needed(document, _json(body), f"{place} takes "))
    return found


def _of_what_is_new(place: str, former: set[str]) -> bool:
    """Whether a field is part of one that a former document did not know."""
    outer = place.rpartition(".")[0]
    return " takes ." in outer and outer not in former


def broken(before: Document, now: Document) -> list[str]:
    """What a program that was written for a former document relies on, and this one has not."""
    former, routes = known(before), {place for place, _ in operations(before)}
    present = known(now)
    listed = {one.partition(" = ")[0] for one in present if " = " in one}
    gone = {
        one
        for one in former - present
        # What takes any text takes a former list of words.
        if " answers " in one or " = " not in one or one.partition(" = ")[0] in listed
    }
    more = {
        one
        for one in demanded(now) - demanded(before)
        if any(one.startswith(f"{place} ") for place in routes) and not _of_what_is_new(one, former)
    }
    return sorted([f"gone: {one}" for one in gone] + [f"demanded: {one}" for one in more])


@pytest.mark.long
@pytest.mark.parametrize("version", each_version())
def test_what_a_version_could_do_can_be_done(version: str, tmp_path: Path) -> None:
    sources = former_sources(version, tmp_path)
    before = said(former_environment(sources, sources / "client"))
    now = said(former_environment(ROOT, ROOT / "client"))
    assert before["version"] == version
    assert broken(before["document"], now["document"]) == BROKEN.get(version, [])
    assert set(before["names"]) <= set(now["names"]), "names of the SDK, and variables"
    for method, arguments in before["methods"].items():
        assert [one for one in arguments if one not in now["methods"][method]] == [], method


def test_what_breaks_a_program_is_found_and_what_is_new_is_not() -> None:
    before: dict[str, Any] = {
        "paths": {
            "/v1/a": {
                "post": {
                    "parameters": [{"name": "q", "in": "query", "schema": {"enum": ["x", "y"]}}],
                    "requestBody": {
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}
                    },
                    "responses": {
                        "200": {
                            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}
                        }
                    },
                }
            }
        },
        "components": {
            "schemas": {
                "In": {"type": "object", "properties": {"value": {"type": "number"}}},
                "Out": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Out"}},
                    },
                },
            }
        },
    }
    assert broken(before, before) == []
    now = copy.deepcopy(before)
    post: dict[str, Any] = now["paths"]["/v1/a"]["post"]
    schemas = now["components"]["schemas"]
    post["parameters"].append({"name": "r", "in": "query", "schema": {"type": "string"}})
    schemas["Out"]["properties"]["more"] = {"type": "string"}
    within = {"type": "object", "properties": {"least": {"type": "number"}}, "required": ["least"]}
    schemas["In"]["properties"] |= {"note": {"type": "string"}, "until": within}
    now["paths"]["/v1/b"] = {"get": {"parameters": [], "responses": {}}}
    assert broken(before, now) == []
    del schemas["Out"]["properties"]["id"]
    schemas["In"]["required"] = ["note"]
    post["parameters"][0]["schema"]["enum"] = ["x"]
    post["parameters"][1]["required"] = True
    assert broken(before, now) == [
        "demanded: POST /v1/a query r",
        "demanded: POST /v1/a takes .note",
        "gone: POST /v1/a answers 200 .id",
        "gone: POST /v1/a answers 200 .id: string",
        "gone: POST /v1/a query q = y",
    ]
