"""Bad input is a problem document with the right status, never a 500, and stores nothing."""

import gzip
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.api.service import VALUE, Service, assert_problem, open_service
from tests.support.databases import Server

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(postgres_server: Server) -> AsyncIterator[Service]:
    """One service for all of them: what is refused leaves nothing behind, which every test asserts."""
    with postgres_server.database() as url:
        async with open_service(url, lifetime_epsilon=1000) as service:
            yield service


@pytest_asyncio.fixture(loop_scope="module")
async def study(service: Service) -> str:
    """A study of each test's own."""
    return await service.study(trust=["central", "local", "public"])


def with_text(**texts: str) -> bytes:
    """The JSON of a good contribution with some fields replaced by raw JSON text, or left out where empty."""
    fields = {name: json.dumps(value) for name, value in VALUE.items()} | texts
    return ("{" + ",".join(f'"{name}":{text}' for name, text in fields.items() if text) + "}").encode()


# name: (document, code, status, offending fields)
DOCUMENTS: dict[str, tuple[bytes, str, int, tuple[str, ...]]] = {
    "NaN": (with_text(value="NaN"), "invalid_request", 422, ("value",)),
    "Infinity": (with_text(value="Infinity"), "invalid_request", 422, ("value",)),
    "-Infinity": (with_text(value="-Infinity"), "invalid_request", 422, ("value",)),
    "NaN epsilon": (with_text(epsilon="NaN"), "invalid_request", 422, ("epsilon",)),
    "huge exponent": (with_text(value="1e400"), "invalid_request", 422, ("value",)),
    "huge negative exponent": (with_text(value="1e-400"), "invalid_request", 422, ("value",)),
    "endless exponent": (with_text(value="1e" + "9" * 1000), "invalid_request", 422, ("value",)),
    "endless integer": (with_text(value="9" * 10_000), "invalid_request", 422, ("value",)),
    "huge epsilon": (with_text(epsilon="1e400"), "invalid_request", 422, ("epsilon",)),
    "boolean value": (with_text(value="true"), "invalid_request", 422, ("value",)),
    "boolean epsilon": (with_text(epsilon="false"), "invalid_request", 422, ("epsilon",)),
    "string value": (with_text(value='"37.5"'), "invalid_request", 422, ("value",)),
    "null value": (with_text(value="null"), "invalid_request", 422, ("value",)),
    "array value": (with_text(value="[1]"), "invalid_request", 422, ("value",)),
    "object value": (with_text(value='{"x":1}'), "invalid_request", 422, ("value",)),
    "above the range": (with_text(value="100.0000001"), "invalid_request", 422, ("value",)),
    "below the range": (with_text(value="-1e-30"), "invalid_request", 422, ("value",)),
    "no value": (with_text(value=""), "invalid_request", 422, ("value",)),
    "no epsilon": (with_text(epsilon=""), "invalid_request", 422, ("epsilon",)),
    "no trust": (with_text(trust=""), "invalid_request", 422, ("trust",)),
    "nothing": (b"{}", "invalid_request", 422, ("subject", "value", "epsilon", "trust")),
    "zero epsilon": (with_text(epsilon="0"), "invalid_request", 422, ("epsilon",)),
    "negative epsilon": (with_text(epsilon="-1"), "invalid_request", 422, ("epsilon",)),
    "epsilon over the study's": (with_text(epsilon="10.1"), "invalid_request", 422, ("epsilon",)),
    "epsilon under the study's": (with_text(epsilon="0.0001"), "invalid_request", 422, ("epsilon",)),
    "words for an epsilon": (with_text(epsilon='"a lot"'), "invalid_request", 422, ("epsilon",)),
    "unknown trust": (with_text(trust='"blind"'), "invalid_request", 422, ("trust",)),
    "number for a trust": (with_text(trust="1"), "invalid_request", 422, ("trust",)),
    "unknown field": (with_text(note='"hello"'), "invalid_request", 422, ("note",)),
    "report of central trust": (with_text(report="5"), "invalid_request", 422, ("report",)),
    "value of local trust": (with_text(trust='"local"'), "invalid_request", 422, ("report", "value")),
    "epsilon of public trust": (with_text(trust='"public"'), "invalid_request", 422, ("epsilon",)),
    "duplicate key": (with_text(**{'value":1,"value': "2"}), "duplicate_key", 422, ("value",)),
    "duplicate escaped key": (with_text(**{"val\\u0075e": "2"}), "duplicate_key", 422, ("value",)),
    "invalid UTF-8": (with_text().replace(b"alice", b"\xff"), "malformed_document", 400, ()),
    "UTF-16": (with_text().decode().encode("utf-16"), "malformed_document", 400, ()),
    "byte order mark": (b"\xef\xbb\xbf" + with_text(), "malformed_document", 400, ()),
    "half a surrogate pair": (with_text(trust='"\\ud800"'), "malformed_document", 400, ()),
    "broken off": (with_text()[:-1], "malformed_document", 400, ()),
    "something behind": (with_text() + b"1", "malformed_document", 400, ()),
    "single quotes": (b"{'value':1}", "malformed_document", 400, ()),
    "leading zero": (with_text(value="01"), "malformed_document", 400, ()),
    "hexadecimal": (with_text(value="0x1"), "malformed_document", 400, ()),
    "plus sign": (with_text(value="+1"), "malformed_document", 400, ()),
    "control character": (with_text(trust='"\x00"'), "malformed_document", 400, ()),
    "nesting bomb": (with_text(value="[" * 30_000), "malformed_document", 400, ()),
    "closed nesting bomb": (with_text(value="[" * 2000 + "]" * 2000), "malformed_document", 400, ()),
    "nested objects": (with_text(value='{"a":' * 5000 + "1" + "}" * 5000), "malformed_document", 400, ()),
    "empty": (b"", "malformed_document", 400, ()),
    "white space": (b" \n ", "malformed_document", 400, ()),
    "100 MB": (b"[" + b" " * 100_000_000 + b"]", "document_too_large", 413, ()),
}

SUBJECTS: dict[str, tuple[bytes, str, int, tuple[str, ...]]] = {
    "no subject": (with_text(subject=""), "invalid_request", 422, ("subject",)),
    "empty subject": (with_text(subject='""'), "invalid_request", 422, ("subject",)),
    "number for a subject": (with_text(subject="5"), "invalid_request", 422, ("subject",)),
    "endless subject": (with_text(subject=f'"{"x" * 257}"'), "invalid_request", 422, ("subject",)),
    "an array": (b"[]", "invalid_request", 422, ("body",)),
    "a number": (b"5", "invalid_request", 422, ("body",)),
    "null": (b"null", "invalid_request", 422, ("body",)),
}


@pytest.mark.parametrize("name", [*DOCUMENTS, *SUBJECTS])
async def test_a_bad_contribution_is_refused(service: Service, study: str, name: str) -> None:
    document, code, status, fields = (DOCUMENTS | SUBJECTS)[name]
    before = await service.rows()
    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions", "contribute", content=document, headers=JSON
    )
    problem = assert_problem(response, code, status, *fields)
    assert_no_value(problem)
    assert await service.rows() == before


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_a_bad_replacement_is_refused(service: Service, study: str, name: str) -> None:
    document, code, status, fields = DOCUMENTS[name]
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    budget = await service.call("GET", "/v1/subjects/alice/budget", "contribute")
    response = await service.call(
        "PUT",
        f"{path}/alice",
        "contribute",
        content=document.replace(b'"subject":"alice",', b""),
        headers=JSON,
    )
    expected = tuple(field for field in fields if field != "subject")
    assert_no_value(assert_problem(response, code, status, *expected))
    after = await service.call("GET", "/v1/subjects/alice/budget", "contribute")
    assert after.content == budget.content


async def test_a_replacement_names_its_subject_in_the_path_only(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions"
    await service.call("POST", path, "contribute", json=VALUE)
    response = await service.call("PUT", f"{path}/alice", "contribute", json=VALUE)
    problem = assert_problem(response, "invalid_request", 422, "subject")
    assert problem["errors"][0]["reason"] == "is in the path, and not in the document"


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in ("100 MB",)])
async def test_a_bad_record_of_a_batch_is_refused(service: Service, study: str, name: str) -> None:
    document, code, status, _ = DOCUMENTS[name]
    before = await service.rows()
    good = json.dumps({**VALUE, "subject": "good"}).encode()
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions/batch",
        "contribute",
        content=b"[" + good + b"," + document + b"]",
        headers=JSON,
    )
    if status == 422:
        result = response.json()
        assert [entry["status"] for entry in result["results"]] == ["created", "refused"]
        assert result["results"][1]["code"] == code
        assert_no_value(result["results"][1])
        assert (await service.rows())["contribution"] == before["contribution"] + 1
    elif name == "something behind":
        assert_problem(response, "malformed_document", 400)
        assert await service.rows() == before
    else:
        assert_problem(response, code, status)
        assert await service.rows() == before


def assert_no_value(problem: dict[str, object]) -> None:
    """Nothing that only the document held is in the answer."""
    text = json.dumps(problem)
    for value in ("37.5", "alice", "hello", "a lot", "blind", "100.0000001", "9999"):
        assert value not in text, text


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "multipart/form-data; boundary=x",
        "json",
        "",
    ],
)
async def test_a_document_must_be_announced_as_json(
    service: Service, study: str, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions",
        "contribute",
        content=json.dumps(VALUE).encode(),
        headers=headers,
    )
    assert_problem(response, "unsupported_media_type", 415)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=UTF-8", "Application/JSON", 'application/json;charset="utf-8"'],
)
async def test_json_may_be_announced_in_any_spelling(service: Service, study: str, content_type: str) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions",
        "contribute",
        content=json.dumps(VALUE).encode(),
        headers={"Content-Type": content_type},
    )
    assert response.status_code == 201


async def test_a_single_document_is_not_decompressed(service: Service, study: str) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{study}/contributions",
        "contribute",
        content=gzip.compress(json.dumps(VALUE).encode()),
        headers={**JSON, "Content-Encoding": "gzip"},
    )
    assert_problem(response, "unsupported_media_type", 415)


async def test_a_body_without_an_announced_length_is_counted(service: Service, study: str) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    response = await service.call(
        "POST", f"/v1/studies/{study}/contributions", "contribute", content=endless(), headers=JSON
    )
    assert_problem(response, "document_too_large", 413)
    assert sent <= 80_000, "it read on"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/studies?limits=5", "limits"),
        ("/v1/studies?limit=0", "limit"),
        ("/v1/studies?limit=201", "limit"),
        ("/v1/studies?limit=many", "limit"),
        ("/v1/studies?limit=5&limit=6", "limit"),
        ("/v1/studies?cursor=%00", "cursor"),
        ("/v1/studies?cursor=AA", "cursor"),
        ("/v1/studies?cursor=" + "x" * 501, "cursor"),
        ("/v1/admin/tokens?cursor=AAAA", "cursor"),
        ("/v1/admin/budgets?cursor=MDBmZg", "cursor"),
        ("/v1/admin/ledger?cursor=" + "OTk5" * 20, "cursor"),
        ("/v1/studies/{study}?x=1", "x"),
        ("/health/live?x=1", "x"),
    ],
)
async def test_a_bad_query_is_refused(service: Service, study: str, path: str, field: str) -> None:
    response = await service.call("GET", path.format(study=study), "admin")
    assert_problem(response, "invalid_request", 422, field)


@pytest.mark.parametrize("slug", ["unknown", "UPPER", "-x", "x" * 64, "%00", "a%2Fb", "%C3%A9", "1%0A"])
async def test_an_unknown_study_is_not_found(service: Service, slug: str) -> None:
    for method, path in (("GET", ""), ("POST", "/contributions"), ("GET", "/plan"), ("POST", "/close")):
        token = {"/contributions": "contribute", "/plan": "analyse"}.get(path, "admin")
        response = await service.call(method, f"/v1/studies/{slug}{path}", token, json=VALUE)
        assert_problem(response, "not_found", 404)


async def test_a_path_must_be_utf8(service: Service, study: str) -> None:
    for path in (f"/v1/studies/{study}/contributions/%FF", "/v1/studies/%FF/contributions/x"):
        response = await service.call("DELETE", path, "contribute")
        assert_problem(response, "malformed_document", 400)
    response = await service.call("DELETE", f"/v1/studies/{study}/contributions/%EF%BF%BD", "contribute")
    assert_problem(response, "not_found", 404)


@pytest.mark.parametrize("subject", ["", "x" * 257])
async def test_a_subject_in_a_path_has_a_length(service: Service, study: str, subject: str) -> None:
    response = await service.call("DELETE", f"/v1/studies/{study}/contributions/{subject}", "contribute")
    assert_problem(response, "invalid_request", 422, "subject")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/v1/studies", "GET, POST"),
        ("GET", "/v1/studies/s/contributions", "POST"),
        ("POST", "/v1/studies/s/contributions/alice", "DELETE, PUT"),
        ("GET", "/v1/studies/s/contributions/batch", "POST"),
        ("DELETE", "/health/live", "GET"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_another_method_is_refused_with_those_allowed(
    service: Service, method: str, path: str, allowed: str
) -> None:
    response = await service.call(method, path, "admin")
    assert_problem(response, "method_not_allowed", 405)
    assert response.headers["allow"] == allowed


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/v2/studies", "/v1/studies/", "//v1/studies"])
async def test_an_unknown_path_is_not_found(service: Service, path: str) -> None:
    assert_problem(await service.call("GET", path, "admin"), "not_found", 404)


async def test_an_unknown_parameter_is_answered_with_all_that_there_are(service: Service, study: str) -> None:
    """Of every route: what the OpenAPI document says of it."""
    described = service.app.openapi()
    tried = 0
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
            address = re.sub(r"{\w+}", "mean", path.replace("{study}", study))
            options: dict[str, Any] = {"json": {}} if method in ("post", "put", "patch") else {}
            for role in ("admin", "analyse", "contribute"):
                refused = await service.call(method.upper(), f"{address}?shar=1", role, **options)
                if refused.status_code == 422 and refused.json()["errors"][0]["field"] == "shar":
                    reason = refused.json()["errors"][0]["reason"]
                    missing = [name for name in names if not re.search(rf"\b{name}\b", reason)]
                    assert not missing, (method, path, reason)
                    tried += 1
    assert tried > 40


@pytest.mark.parametrize("path", ["plan", "statistics/mean", "releases"])
async def test_a_parameter_that_is_given_twice_says_what_is_possible(
    service: Service, study: str, path: str
) -> None:
    method = "POST" if path == "releases" else "GET"
    for query, reason in (
        ("by=sex&by=sex", "the study has no attributes"),
        ("where=sex:f", "the study has no attributes"),
        ("share=1&share=1", "is given twice: it takes one value"),
    ):
        refused = await service.call(method, f"/v1/studies/{study}/{path}?{query}", "analyse")
        problem = assert_problem(refused, "invalid_request", 422, query.partition("=")[0])
        assert problem["errors"][0]["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("path", "document", "field", "reason"),
    [
        ("/v1/studies/{study}/releases", {"q": 0.5}, "q", "it has"),
        ("/v1/studies/{study}/releases", {"estimator": "adpm", "q": 0.5}, "q", "it has none"),
        (
            "/v1/studies/{study}/releases",
            {"statistic": "histogram", "q": 0.5},
            "q",
            "not a parameter of a histogram; it has edges, bins",
        ),
        ("/v1/studies/{study}/releases", {"range_part": 0.5}, "range_part", "goes with range=found alone"),
        ("/v1/admin/budgets/raise", {"epsilon": 1, "reason": ""}, "reason", "must not be empty"),
        ("/v1/studies/{study}/releases", {"by": ["a", "b"]}, "by", "the study has no attributes"),
        ("/v1/studies/{study}/releases", {"shar": 1}, "shar", "share, until, epsilon, expected_size"),
        ("/v1/studies/{study}/releases", {"parameters": {"bin": 1}}, "bin", "edges, bins"),
        ("/v1/studies/{study}/releases", {"freshly": True}, "freshly", "allow_worse, fresh"),
    ],
)
async def test_a_refusal_says_what_there_is_instead(
    service: Service, study: str, path: str, document: dict[str, object], field: str, reason: str
) -> None:
    role = "admin" if "admin" in path else "analyse"
    response = await service.call("POST", path.format(study=study), role, json=document)
    assert_problem(response, "invalid_request", 422, field)
    assert reason in response.json()["errors"][0]["reason"]


async def test_a_statistic_that_is_none_names_those_that_are(service: Service, study: str) -> None:
    response = await service.call("GET", f"/v1/studies/{study}/statistics/average", "analyse")
    assert_problem(response, "not_found", 404)
    assert "there are mean, sum" in response.json()["detail"]


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (b'[{"subject":"a"},{"subject":"b",}]', "record 2 is malformed"),
        (b'[{"subject":"a"},', "ends before the array does"),
        (b'[{"subject":"a"}] 1', "follows the array"),
    ],
)
async def test_a_malformed_array_says_where(service: Service, study: str, text: bytes, detail: str) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", content=text, headers=JSON)
    assert_problem(response, "malformed_document", 400)
    assert detail in response.json()["detail"]


async def test_a_record_that_is_no_object_is_named(service: Service, study: str) -> None:
    path = f"/v1/studies/{study}/contributions/batch"
    response = await service.call("POST", path, "contribute", content=b"[5]", headers=JSON)
    [result] = response.json()["results"]
    assert result["errors"] == [{"field": "record", "reason": "must be an object"}]
