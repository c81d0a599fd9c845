"""JWTs of an OpenID Connect provider: which are good, whom they make, and what happens without keys."""

import base64
import gzip
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from app.web import oidc
from tests.api.service import Service, assert_problem, open_service
from tests.api.test_permissions import KEYS, ROUTES
from tests.support.provider import AUDIENCE, Provider


@pytest.fixture
async def service(database_url: str, issuer: Provider) -> AsyncIterator[Service]:
    async with open_service(database_url, **issuer.settings) as service:
        yield service


def unsigned(header: dict[str, Any], token: str) -> str:
    """The token with another header and no signature."""
    encoded = base64.urlsafe_b64encode(json.dumps(header).encode()).decode().rstrip("=")
    return f"{encoded}.{token.split('.')[1]}."


def with_header(text: str, issuer: Provider) -> str:
    """The header may be anything: it is read before any signature is checked."""
    encoded = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return f"{encoded}.{issuer.token().split('.', 1)[1]}"


def with_public_key_as_secret(issuer: Provider) -> str:
    """The classic confusion: HMAC under the public key, which everybody knows."""
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    header = {"alg": "HS256", "kid": "rsa", "typ": "JWT"}
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims)
    )
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        f"{head}.{body}".encode(), issuer.public_pem("rsa")
    )
    return f"{head}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def by_another_key(issuer: Provider) -> str:
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    return jwt.encode(claims, stranger, algorithm="RS256", headers={"kid": "rsa"})


def without_a_key(issuer: Provider) -> str:
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    return jwt.encode(claims, issuer.keys["rsa"], algorithm="RS256")


NOW = int(time.time())


def with_claims(issuer: Provider, more: str) -> str:
    """Well signed, with a text for its claims that no library would write."""
    claims = {"iss": issuer.issuer, "aud": AUDIENCE, "sub": "somebody", "roles": ["team"]}
    return issuer.signed(f"{json.dumps(claims)[:-1]}, {more}}}".encode())


BAD: dict[str, Callable[[Provider], str]] = {
    "another audience": lambda p: p.token(aud="another service"),
    "no audience": lambda p: p.token(aud=None),
    "another issuer": lambda p: p.token(iss="https://id.example"),
    "an issuer with a slash": lambda p: p.token(iss=p.issuer + "/"),
    "expired": lambda p: p.token(exp=NOW - 3600),
    "without an end": lambda p: p.token(exp=None),
    "not yet valid": lambda p: p.token(nbf=NOW + 3600),
    "no subject": lambda p: p.token(sub=None),
    "an empty subject": lambda p: p.token(sub=""),
    "algorithm none": lambda p: unsigned({"alg": "none", "kid": "rsa"}, p.token()),
    "a list of algorithms": lambda p: unsigned({"alg": [], "kid": "rsa"}, p.token()),
    "an algorithm that is an object": lambda p: unsigned({"alg": {}, "kid": "rsa"}, p.token()),
    "a number of 5,000 digits": lambda p: with_header(
        '{"alg": "RS256", "kid": "rsa", "x": ' + "9" * 5_000 + "}", p
    ),
    "deep nesting": lambda p: with_header("[" * 11_000, p),
    "no signature": lambda p: p.token().rpartition(".")[0] + ".",
    "HMAC with the public key": with_public_key_as_secret,
    "another key": by_another_key,
    "a key of the other kind": lambda p: p.token("rsa", headers={"kid": "ec"}),
    "an unknown key": lambda p: p.token(headers={"kid": "unknown"}),
    "no key": without_a_key,
    "something critical": lambda p: p.token(headers={"crit": ["b64"], "b64": True}),
    "not a JWT": lambda p: "a.b.c",
    "an end of 401 digits": lambda p: with_claims(p, '"exp": 1' + "0" * 400),
    "an infinite end": lambda p: with_claims(p, '"exp": 1e400'),
    "an end that is not a number": lambda p: with_claims(p, '"exp": NaN'),
    "an end in a text": lambda p: with_claims(p, '"exp": "' + "9" * 400 + '"'),
    "an end that is true": lambda p: with_claims(p, '"exp": true'),
    "an end that is a list": lambda p: with_claims(p, '"exp": []'),
    "an endless beginning": lambda p: with_claims(p, '"exp": 1e15, "nbf": 1e400'),
    "two ends": lambda p: with_claims(p, '"exp": 1, "exp": 9000000000'),
    "nested claims": lambda p: with_claims(p, '"exp": 9000000000, "x": ' + "[" * 5_000 + "]" * 5_000),
    "open nested claims": lambda p: p.signed(b"[" * 11_000),
    "half a surrogate pair": lambda p: with_claims(p, '"exp": 9000000000, "jti": "\\ud800"'),
    "claims that are no object": lambda p: p.signed(b"[]"),
    "claims that are not UTF-8": lambda p: p.signed(b'{"exp": "\xff"}'),
    "too long": lambda p: p.token(padding="x" * 20_000),
}


async def test_a_good_token_is_let_in(service: Service, issuer: Provider) -> None:
    for kid in ("rsa", "ec"):
        assert (await service.call("GET", "/v1/studies", issuer.token(kid))).status_code == 200
    several = issuer.token(aud=["another service", AUDIENCE])
    assert (await service.call("GET", "/v1/studies", several)).status_code == 200
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize("what", BAD)
async def test_a_bad_token_is_refused(service: Service, issuer: Provider, what: str) -> None:
    before = await service.rows()
    response = await service.call("GET", "/v1/studies", BAD[what](issuer))
    assert_problem(response, "unauthenticated", 401)
    assert await service.rows() == before


async def test_no_route_lets_a_bad_token_in(service: Service, issuer: Provider) -> None:
    for kind in ("another audience", "expired", "algorithm none"):
        token = BAD[kind](issuer)
        for method, path in KEYS:
            allowed, options = ROUTES[method, path]
            if "nobody" in allowed and path != "/metrics":
                continue
            concrete = re.sub(r"\{\w+\}", "x", path)
            response = await service.call(method, concrete, token, **options)
            assert_problem(response, "unauthenticated", 401)


async def test_the_role_follows_from_the_claims(service: Service, issuer: Provider) -> None:
    for slug in ("own-study", "other-study", "third-study"):
        await service.study(slug=slug)

    async def listed(*values: str) -> list[str]:
        response = await service.call("GET", "/v1/studies", issuer.token(roles=list(values)))
        return [item["slug"] for item in response.json()["items"]]

    assert await listed("guests") == ["own-study"]
    assert await listed("guests", "more guests", "unknown") == ["other-study", "own-study"]
    assert len(await listed("guests", "team")) == 3
    for values in ([], ["unknown"], ["team", "operators"], ["leads", "team"], [1], {"team": True}, None):
        response = await service.call("GET", "/v1/studies", issuer.token(roles=values))
        assert_problem(response, "forbidden", 403)
    assert (await service.call("GET", "/v1/admin/tokens", issuer.token(roles="operators"))).status_code == 200
    assert_problem(await service.call("GET", "/v1/admin/tokens", issuer.token()), "forbidden", 403)
    metrics = await service.call("GET", "/metrics", issuer.token(roles="operators"))
    assert "unmatched" not in metrics.text
    assert metrics.status_code == 200


async def test_one_value_may_give_several_roles(service: Service, issuer: Provider) -> None:
    study = await service.study(slug="own-study")
    await service.crowd(study, 60)
    both = issuer.token(roles=["leads"])
    assert (await service.call("GET", "/v1/admin/tokens", both)).status_code == 200
    asked = await service.call("POST", f"/v1/studies/{study}/releases", both, json={"share": 1})
    assert asked.status_code == 201
    less = issuer.token(roles=["leads too"])
    assert (await service.call("GET", f"/v1/studies/{study}/releases", less)).status_code == 200
    assert_problem(await service.call("GET", "/v1/admin/tokens", less), "forbidden", 403)
    tokens = (await service.call("GET", "/v1/admin/tokens?limit=200", "admin")).json()["items"]
    [mine] = [token for token in tokens if token["by_provider"]]
    assert (mine["roles"], mine["studies"]) == (["analyse", "admin"], ["own-study"])


async def test_people_are_named_on_request(database_url: str, issuer: Provider) -> None:
    """By the digest until then; afterwards as the provider names them, where it does so in a line of text."""
    named = {**issuer.settings, "oidc_name_claim": "preferred_username"}

    async def name(service: Service, **claims: Any) -> str:
        assert (await service.call("GET", "/v1/studies", issuer.token(**claims))).status_code == 200
        tokens = (await service.call("GET", "/v1/admin/tokens?limit=200", "admin")).json()["items"]
        [mine] = [token["name"] for token in tokens if token["by_provider"]]
        return str(mine)

    async with open_service(database_url, **issuer.settings) as service:
        digest = await name(service, preferred_username="ada")
        assert digest.startswith("identity ")
    async with open_service(database_url, **named) as service:
        assert await name(service) == digest
        for wrong in ("", "a\nb", "x" * 201, 7, ["ada"]):
            assert await name(service, preferred_username=wrong) == digest
        assert await name(service, preferred_username="ada") == "ada"
        assert await name(service) == "ada", "of two JWTs one may say no name"
        assert await name(service, preferred_username="ada lovelace") == "ada lovelace"
        trail = (await service.call("GET", "/v1/admin/audit?action=token.identity", "admin")).json()["items"]
        assert len(trail) == 3


async def test_a_claim_may_lie_deeper(database_url: str, issuer: Provider) -> None:
    settings = {
        **issuer.settings,
        "oidc_role_claim": "realm_access.roles",
        "oidc_jwks_url": f"{issuer.issuer}/other-keys",
    }
    async with open_service(database_url, **settings) as service:
        token = issuer.token(roles=None, realm_access={"roles": ["team"]})
        assert (await service.call("GET", "/v1/studies", token)).status_code == 200
        assert_problem(await service.call("GET", "/v1/studies", issuer.token()), "forbidden", 403)
    assert issuer.asked == ["/other-keys"]


async def test_an_identity_has_a_quota_keys_and_a_name_in_the_audit(
    service: Service, issuer: Provider
) -> None:
    study = await service.study()
    await service.crowd(study)
    path = f"/v1/studies/{study}/releases"
    key = {"Idempotency-Key": "same"}
    first = await service.call("POST", path, issuer.token(), json={"share": 0.1, "fresh": True}, headers=key)
    again = await service.call(
        "POST", path, issuer.token("ec"), json={"share": 0.1, "fresh": True}, headers=key
    )
    assert first.status_code == 201
    assert again.content == first.content
    other = await service.call(
        "POST", path, issuer.token(sub="else"), json={"share": 0.1, "fresh": True}, headers=key
    )
    assert other.content != first.content

    tokens = (await service.call("GET", "/v1/admin/tokens?limit=200", "admin")).json()["items"]
    mine = [token for token in tokens if token["by_provider"]]
    assert [token["role"] for token in mine] == ["analyse", "analyse"]
    assert "somebody" not in json.dumps(tokens)
    quota = {"share": 0.15, "period_seconds": 3600}
    for token in mine:
        base = f"/v1/admin/tokens/{token['id']}"
        assert (await service.call("PUT", f"{base}/quota", "admin", json=quota)).status_code == 200
        rotated = await service.call("POST", f"{base}/rotate", "admin", json={})
        assert_problem(rotated, "conflict", 409)
    refused = await service.call("POST", path, issuer.token(), json={"share": 0.1, "fresh": True})
    assert_problem(refused, "quota_exhausted", 429)
    for token in mine:
        await service.call("DELETE", f"/v1/admin/tokens/{token['id']}", "admin")
    assert_problem(await service.call("GET", "/v1/studies", issuer.token()), "unauthenticated", 401)
    moved = issuer.token(roles="operators")
    assert_problem(await service.call("GET", "/v1/studies", moved), "unauthenticated", 401)
    assert (await service.call("GET", "/v1/studies", issuer.token(sub="third"))).status_code == 200


class Ages:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def ages(service: Service) -> Ages:
    clock = Ages()
    assert service.api.oidc is not None
    service.api.oidc._keys._clock = clock
    return clock


async def status(service: Service, token: str) -> int:
    return (await service.call("GET", "/v1/studies", token)).status_code


async def test_new_keys_are_fetched_and_old_ones_forgotten(
    service: Service, issuer: Provider, ages: Ages
) -> None:
    old = issuer.token("ec")
    assert await status(service, old) == 200
    issuer.keys["new"] = ec.generate_private_key(ec.SECP256R1())
    del issuer.keys["ec"]
    ages.now = oidc.PAUSE_SECONDS / 2
    assert await status(service, issuer.token("new")) == 401, "asked a moment ago"
    ages.now = oidc.PAUSE_SECONDS
    assert await status(service, issuer.token("new")) == 200
    assert await status(service, old) == 401
    asked = len(issuer.asked)
    for number in range(20):
        assert await status(service, issuer.token("rsa", headers={"kid": f"k{number}"})) == 401
    assert len(issuer.asked) == asked
    del issuer.keys["new"]
    issuer.keys["rsa"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ages.now += oidc.FRESH_SECONDS + 1
    assert await status(service, issuer.token()) == 200


async def test_without_keys_nobody_is_let_in(service: Service, issuer: Provider, ages: Ages) -> None:
    issuer.status = 500
    response = await service.call("GET", "/v1/studies", issuer.token())
    assert_problem(response, "unavailable", 503)
    assert response.headers["retry-after"] == "1"
    asked = len(issuer.asked)
    assert await status(service, issuer.token()) == 503
    assert len(issuer.asked) == asked, "not asked again at once"
    assert await status(service, service.tokens["analyse"]) == 200, "our own tokens need no provider"
    issuer.status = 200
    ages.now += oidc.PAUSE_SECONDS
    assert await status(service, issuer.token()) == 200
    issuer.status = 500
    ages.now += oidc.KEEP_SECONDS - 1
    assert await status(service, issuer.token()) == 200
    ages.now += oidc.PAUSE_SECONDS
    assert await status(service, issuer.token()) == 503


@pytest.mark.parametrize(
    "extra",
    [
        {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
        {"kty": "RSA", "kid": "broken", "n": "AQAB"},
        {"kty": "RSA", "kid": "broken", "n": 5, "e": []},
        {"kty": "RSA", "kid": "broken", "n": "", "e": "\u00e9"},
        {"kty": "EC", "kid": "broken", "crv": "P-256", "x": {}, "y": "AAAA"},
        {"kty": "EC", "kid": "broken", "crv": "P-256", "x": "A" * 43, "y": "A" * 43},
        {"kty": "RSA", "kid": "broken", "use": "enc", "n": "AQAB", "e": "AQAB"},
        {"kty": "OKP", "kid": "edwards", "crv": "Ed25519", "x": "AAAA"},
        "not a key",
        {},
    ],
)
async def test_keys_of_other_kinds_are_passed_over(service: Service, issuer: Provider, extra: Any) -> None:
    issuer.extra = [extra]
    assert await status(service, issuer.token()) == 200
    if isinstance(extra, dict) and extra.get("kty") == "oct":
        forged = jwt.encode(
            {"iss": issuer.issuer}, "secret" * 8, algorithm="HS256", headers={"kid": "shared"}
        )
        assert await status(service, forged) == 401


async def test_a_weak_key_is_no_key(service: Service, issuer: Provider) -> None:
    issuer.keys["weak"] = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = issuer.token("weak")
    assert await status(service, token) == 401


ANSWERS: dict[str, Callable[[], Iterable[bytes]]] = {
    "nested brackets": lambda: [b"[" * 100_000],
    "closed nested brackets": lambda: [b'{"keys": ', b"[" * 9_000, b"]" * 9_000, b"}"],
    "half a surrogate pair": lambda: [b'{"issuer": "\\ud800", "keys": "\\ud800", "id_token": "\\ud800"}'],
    "addresses that are none": lambda: [
        b'{"issuer": 1, "jwks_uri": "https://[", "token_endpoint": "https://[", "authorization_endpoint": "https://["}'
    ],
    "a long number": lambda: [b'{"keys": [], "id_token": ', b"9" * 5_000, b"}"],
    "not UTF-8": lambda: [b"\xff\xfe{}"],
    "nothing": list,
    "text": lambda: [b"<html>not found</html>"],
    "a field twice": lambda: [b'{"keys": [], "keys": [], "id_token": "a.b.c", "id_token": "a.b.c"}'],
    "endless": lambda: (b" " * 65_536 for _ in range(5_000)),
}
"""What a provider may answer, or whoever speaks for it."""


@pytest.mark.parametrize("where", ["/.well-known/openid-configuration", "/keys"])
@pytest.mark.parametrize("what", ANSWERS)
async def test_what_a_provider_must_not_answer_lets_nobody_in(
    service: Service, issuer: Provider, where: str, what: str
) -> None:
    issuer.raw[where] = ANSWERS[what]()
    assert_problem(await service.call("GET", "/v1/studies", issuer.token()), "unavailable", 503)
    assert issuer.sent < 20 * oidc.MAX_DOCUMENT_BYTES, "it read on"


async def test_a_compressed_answer_is_not_blown_up(service: Service, issuer: Provider) -> None:
    """The service asks for none, and 20 MB take 20 kB."""
    issuer.raw["/keys"] = [gzip.compress(b" " * 20_000_000)]
    issuer.raw_headers = {"Content-Encoding": "gzip"}
    assert_problem(await service.call("GET", "/v1/studies", issuer.token()), "unavailable", 503)


async def test_a_provider_that_never_finishes_is_not_waited_for(
    service: Service, issuer: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "ANSWER_SECONDS", 0.2)
    finished = threading.Event()

    def drops() -> Iterator[bytes]:
        while not finished.wait(0.02):
            yield b" "

    issuer.raw["/keys"] = drops()
    try:
        assert_problem(await service.call("GET", "/v1/studies", issuer.token()), "unavailable", 503)
    finally:
        finished.set()


async def test_whom_a_token_was_issued_to_is_the_providers_matter(service: Service, issuer: Provider) -> None:
    """An app asks with a token that was issued to it, for us."""
    assert await status(service, issuer.token(azp="an app")) == 200


@pytest.mark.parametrize("document", ["another issuer", "not an object", "no keys", "huge"])
async def test_a_provider_that_talks_nonsense_has_no_keys(
    service: Service, issuer: Provider, monkeypatch: pytest.MonkeyPatch, document: str
) -> None:
    honest = issuer.document
    if document == "another issuer":
        issuer.claimed_issuer = "https://id.example"
    else:
        nonsense: object = {"not an object": [], "no keys": {"keys": 5}, "huge": {"keys": ["x" * 2**20]}}[
            document
        ]
        monkeypatch.setattr(issuer, "document", lambda path: nonsense if path == "/keys" else honest(path))
    assert await status(service, issuer.token()) == 503


async def test_a_private_key_that_is_published_signs_nothing(service: Service, issuer: Provider) -> None:
    issuer.keys["leaked"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    token = issuer.token("leaked")
    document = jwt.algorithms.RSAAlgorithm.to_jwk(issuer.keys.pop("leaked"), as_dict=True)
    issuer.extra = [{**document, "kid": "leaked"}]
    assert await status(service, token) == 401
    assert await status(service, issuer.token()) == 200


async def test_without_a_provider_a_jwt_is_an_unknown_token(database_url: str, issuer: Provider) -> None:
    async with open_service(database_url) as service:
        response: httpx.Response = await service.call("GET", "/v1/studies", issuer.token())
        assert_problem(response, "unauthenticated", 401)
    assert issuer.asked == []
