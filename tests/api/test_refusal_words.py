"""Refusals of documents and queries are in the service's words, with fields as clients wrote them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.api.service import Service

ODD: tuple[object, ...] = (
    *(None, True, -1, 1.5, "", "a b", "x" * 3_000, [], ["a", "a"], [1], {}, {"a": 1}, {"a b": ["x", "x"]}),
    *({"max": "x", "min": 0}, [[1, "x"], [2]], {"a": {"choices": [1]}, "b": {"upper": {}}}),
)
"""What is put in the place of each field."""

WORDS = ("", "x", "-1", "nan", "1.5", "a:b", "x" * 3_000)
"""What is put in the place of each parameter."""

ENDING = re.compile(r"/(batch|archive|retire|close|finish)$")
"""Routes whose requests end what the others are about, or have no document of fields."""

FOREIGN = re.compile(
    r"[\[\]()]|\b(Input|Value error|function|union|constrained|valid|NoneType|instance|is not admissible)\b"
)
"""What a validator's own locations and reasons have, and the service's do not."""


def documents(schema: Mapping[str, Any]) -> Iterator[object]:
    """Bad documents of a route: each field left out, and with each odd value, beside those of an example."""
    good: dict[str, Any] = next(iter(schema.get("examples", ())), {})
    yield from ODD
    for name in schema["properties"]:
        yield {other: value for other, value in good.items() if other != name}
        for odd in ODD:
            yield good | {name: odd}


def requests(described: Mapping[str, Any]) -> Iterator[tuple[str, str, str, object]]:
    """Method, path, query and document of bad requests to every route."""
    schemas = described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            if method == "post" and ENDING.search(path):
                continue
            for parameter in operation.get("parameters", ()):
                if parameter["in"] == "query":
                    yield from ((method, path, urlencode({parameter["name"]: word}), ...) for word in WORDS)
            content = operation.get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
            for variant in schema.get("oneOf", [schema]):
                if "properties" in variant:
                    yield from ((method, path, "", document) for document in documents(variant))


@pytest.mark.long
async def test_refusals_are_in_our_words(service: Service) -> None:
    study = await service.study(trust=["central", "local", "public"])
    wish = {"protocol": "minimum", "epsilon": 1, "participants": 100}
    made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)
    session = made.json()["id"]
    named = {"study": study, "subject": "ann", "statistic": "mean"}
    roles: dict[tuple[str, str], str] = {}
    refused = 0
    for method, path, query, document in requests(service.app.openapi()):
        where = re.sub(r"\{(\w+)[^}]*\}", lambda part: named.get(part[1], session), path)
        sent = {} if document is ... else {"json": document}
        for role in [roles[method, path]] if (method, path) in roles else ["admin", "contribute", "analyse"]:
            response = await service.call(method.upper(), f"{where}?{query}", role, **sent)
            if response.status_code != 403:
                roles[method, path] = role
                break
        if response.status_code < 400:
            continue
        assert response.status_code < 500, (method, path, query, document)
        for error in response.json()["errors"]:
            refused += 1
            told = f"{error['field']}: {error['reason']}"
            assert FOREIGN.search(told) is None, (method, path, query, document, told)
    assert refused > 1_000
