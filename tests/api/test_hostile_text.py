"""Text that no database column takes, at every place where a request has text: refused, never a fault."""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

import httpx
import pytest

from tests.api.service import Service
from tests.api.test_permissions import ROUTES, Stage

HOSTILE = {"NUL": "%00", "NUL within": "a%00b", "half a surrogate pair": "%ED%A0%80", "not UTF-8": "%FFx"}
"""Percent-encoded, for addresses and forms."""

HOSTILE_BYTES = (b"a\0b", b"\xff", b"\xed\xa0\x80")
HOSTILE_TEXTS = ("\0", "a\0b", "\ud800")

REFUSED = {400, 404, 415, 422}

HEADERS = (
    *("accept", "accept-encoding", "authorization", "content-encoding", "content-type", "cookie"),
    *("forwarded", "host", "if-none-match", "origin", "sec-fetch-site", "traceparent", "x-forwarded-for"),
    "x-request-id",
)
"""Beside those that the OpenAPI document names: what is read before a route is, or might be."""

JSON = {"Content-Type": "application/json"}

Text = TypeVar("Text", str, bytes)

Operation = tuple[str, str, Mapping[str, Any]]


class Walk:
    """Every operation of the OpenAPI document, with a token that may and what makes it succeed."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.stage = Stage(service)
        self.document = service.app.openapi()

    def operations(self) -> Iterator[Operation]:
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                yield method.upper(), path, operation

    def secret(self, method: str, path: str) -> str:
        allowed, _ = ROUTES[method, path]
        role = next(role for role in ("admin", "analyse", "contribute") if role in allowed)
        return self.service.tokens[role]

    async def call(self, method: str, path: str, concrete: str, **options: Any) -> httpx.Response:
        given = {**ROUTES[method, path][1], **options}
        return await self.service.call(method, concrete, self.secret(method, path), **given)

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """A schema, without references and without null."""
        for of in ("anyOf", "oneOf", "allOf"):
            if of in schema:
                return self.resolved(next(one for one in schema[of] if one.get("type") != "null"))
        if "$ref" in schema:
            return self.resolved(self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
        return schema


@pytest.fixture
async def walk(service: Service) -> Walk:
    walk = Walk(service)
    await walk.stage.set()
    return walk


def named(operation: Mapping[str, Any], place: str) -> list[str]:
    return [one["name"] for one in operation.get("parameters", ()) if one["in"] == place]


def in_turn(texts: Sequence[Text], number: int) -> Sequence[Text]:
    """One text: of many places that all have one reader each meets every text somewhere, and no place all."""
    return (texts[number % len(texts)],)


def assert_refused(response: httpx.Response, *what: object) -> None:
    assert response.status_code in REFUSED, (*what, response.status_code, response.text)
    assert response.json()["detail"], what


@pytest.mark.long
async def test_every_parameter_refuses_text_that_cannot_be_kept(walk: Walk) -> None:
    tried = 0
    for method, path, operation in walk.operations():
        concrete = walk.stage.path(path)
        for text in HOSTILE.values():
            queries = [f"{name}={text}" for name in ("unknown", *named(operation, "query"))]
            for query in (*queries, f"{text}=1"):
                assert_refused(await walk.call(method, path, f"{concrete}?{query}"), method, path, query)
                tried += 1
    assert tried > 500


@pytest.mark.long
async def test_every_part_of_a_path_refuses_text_that_cannot_be_kept(walk: Walk) -> None:
    for method, path, operation in walk.operations():
        for name in named(operation, "path"):
            for text in HOSTILE.values():
                concrete = walk.stage.path(path.replace(f"{{{name}}}", "HERE")).replace("HERE", text)
                response = await walk.call(method, path, concrete)
                if name == "subject" and "%00" in text:
                    # Any text is the id of a person: only its keyed hash is kept.
                    assert response.status_code < 500, (method, concrete, response.text)
                else:
                    assert_refused(response, method, concrete)


@pytest.mark.long
async def test_no_header_is_a_fault(walk: Walk) -> None:
    for number, (method, path, operation) in enumerate(walk.operations()):
        declared = named(operation, "header")
        for place, name in enumerate((*HEADERS, *declared)):
            for text in HOSTILE_BYTES if name in declared else in_turn(HOSTILE_BYTES, number + place):
                headers = [(name.encode(), text)]
                if name != "authorization":
                    headers.append((b"authorization", f"Bearer {walk.secret(method, path)}".encode()))
                response = await walk.service.client.request(
                    method, walk.stage.path(path), headers=headers, **ROUTES[method, path][1]
                )
                assert response.status_code < 500, (method, path, name, text, response.text)
                if name in declared:
                    assert_refused(response, method, path, name, text)


def hostile(walk: Walk, schema: Mapping[str, Any], document: Any, text: str) -> Iterator[Any]:
    """The document with hostile text in place of each value that it has or could have, and for a name."""
    yield text
    schema = walk.resolved(schema)
    if isinstance(document, dict) or "properties" in schema:
        whole = document if isinstance(document, dict) else {}
        yield {**whole, text: 1}
        properties = schema.get("properties", {})
        for name in {**whole, **properties}:
            for inner in hostile(walk, properties.get(name, {}), whole.get(name), text):
                yield {**deepcopy(whole), name: inner}
    elif isinstance(schema.get("additionalProperties"), dict):
        for inner in hostile(walk, schema["additionalProperties"], None, text):
            yield {"north": inner}
    elif isinstance(document, list) or "items" in schema:
        first = document[0] if isinstance(document, list) and document else None
        for inner in hostile(walk, schema.get("items", {}), first, text):
            yield [inner]


@pytest.mark.long
async def test_no_document_is_a_fault(walk: Walk) -> None:
    tried = 0
    for method, path, operation in walk.operations():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            continue
        schema, good = content["application/json"].get("schema", {}), ROUTES[method, path][1].get("json", {})
        for text in HOSTILE_TEXTS:
            for document in hostile(walk, schema, good, text):
                sent = {
                    "content": json.dumps(document).encode(),
                    "headers": {"Content-Type": "application/json"},
                }
                response = await walk.call(method, path, walk.stage.path(path), json=None, **sent)
                tried += 1
                assert response.status_code < 500, (method, path, document, response.text)
                if "\ud800" in text and "batch" not in path:
                    assert_refused(response, method, path, document)
    assert tried > 300
