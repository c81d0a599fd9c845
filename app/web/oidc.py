"""Bearer JWTs of an OpenID Connect provider, beside our own tokens.

Fails closed: a token that is not certainly good is refused, and if the provider's keys are
unavailable, every token is refused.
"""

import asyncio
import binascii
import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jwt
import structlog
from jwt.utils import base64url_decode

from app.core.errors import Forbidden, MalformedDocument, Unauthenticated, Unavailable
from app.core.principal import Role
from app.formats.strict_json import decode_foreign

if TYPE_CHECKING:
    import httpx

ALGORITHMS = {"RS256": "RSA", "ES256": "EC"}
"""Signatures that are taken, and the type of their keys. Nothing symmetric, and never `none`."""

LEEWAY_SECONDS = 30
"""How far the provider's clock and ours may be apart."""

FRESH_SECONDS = 300.0
"""Keys older than this are fetched again."""

KEEP_SECONDS = 3600.0
"""Keys older than this are not used, even if the provider does not answer."""

PAUSE_SECONDS = 10.0
"""The provider is asked no more often than this, whatever keys tokens name."""

ANSWER_SECONDS = 10.0
"""How long the provider may take for one answer, from the first byte to the last."""

THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that need no TLS."""

MAX_DOCUMENT_BYTES = 1 << 20

MAX_TOKEN_LENGTH = 16 * 1024

MIN_RSA_BITS = 2048

MOST_NAME = 200
"""Characters of a name, as of a token."""

log = structlog.get_logger("dither.oidc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a value of the role claim allows.

    Attributes:
        roles: The roles.
        studies: Slugs they are limited to; None for all.
    """

    roles: frozenset[Role]
    studies: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BearerIdentity:
    """Who bears a good JWT.

    Attributes:
        digest: SHA-256 of issuer and subject.
        name: What to call them, where the operator asks for that and the provider says it.
        grant: What they may do.
        expires_at: From then on the JWT is refused [seconds since 1970].
    """

    digest: bytes
    name: str | None
    grant: Grant
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An OpenID Connect provider and what its claims mean here.

    Attributes:
        issuer: Exactly as in the claim `iss`.
        audience: What the claim `aud` must name.
        jwks_url: Where the keys are; None to ask the provider's discovery document.
        role_claim: Name of the claim with the roles, or a path to it with dots.
        roles: What its values allow.
        name_claim: Name of the claim that people are called by; None to call them by a digest.
    """

    issuer: str
    audience: str
    jwks_url: str | None
    role_claim: str
    roles: Mapping[str, Grant]
    name_claim: str | None = None


class Verifier:
    """Checks JWTs of one provider.

    Args:
        provider: The provider.
        http: For its documents.
        clock: Seconds that only ever grow, for the age of keys.
    """

    def __init__(
        self, provider: Provider, http: "httpx.AsyncClient", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._provider = provider
        self._keys = Keys(provider, http, clock)

    async def verify(self, token: str) -> BearerIdentity:
        """Who bears this token.

        Raises:
            Unauthenticated: it is not a good one.
            Forbidden: it is, but no role follows from it, or other ones from each of two values.
            Unavailable: the provider's keys cannot be had.
        """
        return self._identity(await self._claims(token, self._provider.audience))

    async def verify_sign_in(self, token: str, client_id: str, nonce: str) -> BearerIdentity:
        """Who signed in, by an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

        Args:
            token: A JWT.
            client_id: Whom it must be for, and issued to.
            nonce: What its claim `nonce` must be.

        Raises:
            Unauthenticated, Forbidden, Unavailable: as for `verify`.
        """
        claims = await self._claims(token, client_id)
        if claims.get("nonce") != nonce:
            raise Unauthenticated("the JWT belongs to another sign-in")
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else client_id) != client_id:
            raise Unauthenticated("the JWT was issued to another client")
        return self._identity(claims)

    async def _claims(self, token: str, audience: str) -> Mapping[str, Any]:
        """The claims of a JWT that is good for an audience."""
        key = await self._keys.get(*_header(token))
        try:
            return _JWT.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                audience=audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Unauthenticated(f"the JWT is refused: {type(error).__name__}") from None

    def _identity(self, claims: Mapping[str, Any]) -> BearerIdentity:
        subject, expires_at = claims["sub"], claims["exp"]
        if not isinstance(subject, str) or not subject:
            raise Unauthenticated("the JWT names no subject")
        # JWTs write times as numbers (RFC 7519, section 2); the library would take text, too.
        if type(expires_at) not in (int, float):
            raise Unauthenticated("the JWT does not say when it expires")
        return BearerIdentity(
            digest=hashlib.sha256(json.dumps([self._provider.issuer, subject]).encode()).digest(),
            name=self._name(claims),
            grant=self._grant(claims),
            expires_at=float(expires_at) + LEEWAY_SECONDS,
        )

    async def discovery(self) -> Mapping[str, Any]:
        """What the provider says of itself; kept for as long as keys are fresh.

        Raises:
            Unavailable: it says nothing, or is another issuer.
        """
        return await self._keys.discovery()

    def _name(self, claims: Mapping[str, Any]) -> str | None:
        """What to call whom a JWT is about; None where it does not say that in a line of text."""
        name = claims.get(self._provider.name_claim) if self._provider.name_claim else None
        return name if isinstance(name, str) and 0 < len(name) <= MOST_NAME and name.isprintable() else None

    def _grant(self, claims: Mapping[str, Any]) -> Grant:
        values = _claim(claims, self._provider.role_claim)
        grants = [self._provider.roles[value] for value in values if value in self._provider.roles]
        if not grants:
            raise Forbidden("The JWT is good, but no role follows from its claims.")
        if len({grant.roles for grant in grants}) > 1:
            raise Forbidden("Several values of the claim give other roles each; one value may give several.")
        if any(grant.studies is None for grant in grants):
            return Grant(roles=grants[0].roles, studies=None)
        return Grant(
            roles=grants[0].roles,
            studies=frozenset().union(*(grant.studies for grant in grants if grant.studies is not None)),
        )


class StrictJwt(jwt.PyJWT):
    """JWTs whose claims are strict JSON: of two readers, neither sees other claims than the other."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        try:
            return decode_foreign(decoded["payload"], MAX_TOKEN_LENGTH)
        except MalformedDocument as refusal:
            raise jwt.DecodeError(refusal.detail) from None


_JWT = StrictJwt()


async def ask(http: "httpx.AsyncClient", method: str, url: str, **options: Any) -> Mapping[str, Any] | None:
    """The JSON object that a provider answers a request with; None where it refuses the request.

    The answer is read uncompressed, to the limit of its size and no further.

    Args:
        http: The way there.
        method, url, options: Of the request, as httpx takes them.

    Raises:
        Unavailable: no answer in time, or another one.
    """
    import httpx  # as much as a web framework: only who has a provider loads it

    headers = {"Accept": "application/json", "Accept-Encoding": "identity", **options.pop("headers", {})}
    body = bytearray()
    try:
        async with (
            asyncio.timeout(ANSWER_SECONDS),
            http.stream(method, url, headers=headers, **options) as response,
        ):
            if response.is_client_error:
                return None
            if response.status_code != 200:
                raise Unavailable("the identity provider does not answer with a document")
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_DOCUMENT_BYTES:
                    break
        return decode_foreign(bytes(body), MAX_DOCUMENT_BYTES)
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
        raise Unavailable("the identity provider does not answer") from error
    except MalformedDocument as refusal:
        raise Unavailable(f"the identity provider's answer cannot be read: {refusal.detail}") from None


def endpoint_of(discovery: Mapping[str, Any], name: str) -> str:
    """An address that a provider says of itself.

    Raises:
        Unavailable: it says none, or one that neither TLS nor this machine protects.
    """
    import httpx

    found = discovery.get(name)
    try:
        url = httpx.URL(found) if isinstance(found, str) else None
    except httpx.InvalidURL:
        url = None
    if url is None or not url.host or (url.scheme != "https" and url.host not in THIS_MACHINE):
        raise Unavailable(f"the identity provider's {name} is no https:// address")
    return str(url)


class Keys:
    """The provider's public keys, fetched when they are needed and kept for a while."""

    def __init__(self, provider: Provider, http: "httpx.AsyncClient", clock: Callable[[], float]) -> None:
        self._provider = provider
        self._http = http
        self._clock = clock
        self._known: Mapping[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._asked: float | None = None
        self._turn = asyncio.Lock()
        self._discovered: tuple[float, Mapping[str, Any]] | None = None

    async def discovery(self) -> Mapping[str, Any]:
        """See `Verifier.discovery`."""
        if self._discovered is None or self._clock() - self._discovered[0] > FRESH_SECONDS:
            self._discovered = self._clock(), await self._discover()
        return self._discovered[1]

    async def get(self, kid: str, algorithm: str) -> jwt.PyJWK:
        """The key of this name for this algorithm.

        Raises:
            Unauthenticated: the provider has no such key.
            Unavailable: it is not known what keys the provider has.
        """
        if self._age() > FRESH_SECONDS or kid not in self._known:
            await self._refresh(kid)
        if self._age() > KEEP_SECONDS:
            raise Unavailable("the keys of the identity provider cannot be had")
        key = self._known.get(kid)
        if key is None or key.algorithm_name != algorithm:
            raise Unauthenticated("the JWT is signed with an unknown key")
        return key

    async def _refresh(self, kid: str) -> None:
        """Fetch the keys, one request at a time and not too often; what fails leaves them as they are."""
        async with self._turn:
            if self._age() <= FRESH_SECONDS and kid in self._known:
                return
            if self._asked is not None and self._clock() - self._asked < PAUSE_SECONDS:
                return
            self._asked = self._clock()
            try:
                self._known = _usable(await self._fetch())
                self._fetched = self._clock()
            except Unavailable as error:
                log.warning("oidc.keys_unavailable", reason=error.detail)

    async def _fetch(self) -> Sequence[Any]:
        url = self._provider.jwks_url
        if url is None:
            url = endpoint_of(await self._discover(), "jwks_uri")
        keys = (await self._document(url)).get("keys")
        if not isinstance(keys, list):
            raise Unavailable("the identity provider answers with no set of keys")
        return keys

    async def _discover(self) -> Mapping[str, Any]:
        base = self._provider.issuer.rstrip("/")
        document = await self._document(f"{base}/.well-known/openid-configuration")
        if document.get("issuer") != self._provider.issuer:
            raise Unavailable("the discovery document is another issuer's")
        return document

    async def _document(self, url: str) -> Mapping[str, Any]:
        document = await ask(self._http, "GET", url)
        if document is None:
            raise Unavailable("the identity provider does not answer with a document")
        return document

    def _age(self) -> float:
        return float("inf") if self._fetched is None else self._clock() - self._fetched


def _header(token: str) -> tuple[str, str]:
    """Key and algorithm that a JWT names.

    Raises:
        Unauthenticated: none, or an algorithm that is not taken.
    """
    if len(token) > MAX_TOKEN_LENGTH:
        raise Unauthenticated("the JWT is too long")
    try:
        header = decode_foreign(base64url_decode(token.partition(".")[0]), MAX_TOKEN_LENGTH)
    except (MalformedDocument, binascii.Error, UnicodeEncodeError):
        raise Unauthenticated("the token is not a JWT") from None
    kid, algorithm = header.get("kid"), header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise Unauthenticated(f"a JWT must be signed with {' or '.join(ALGORITHMS)}")
    if not isinstance(kid, str) or "crit" in header:
        raise Unauthenticated("a JWT must name its key, and nothing that must be understood beside it")
    return kid, algorithm


def _usable(keys: Sequence[Any]) -> dict[str, jwt.PyJWK]:
    """The keys that sign with an algorithm that is taken; providers may publish others beside them."""
    found: dict[str, jwt.PyJWK] = {}
    for document in keys:
        for algorithm, kind in ALGORITHMS.items():
            if (
                isinstance(document, dict)
                and isinstance(document.get("kid"), str)
                and document.get("kty") == kind
                # A private key that is published is known to all.
                and "d" not in document
                and document.get("use", "sig") == "sig"
                and document.get("alg", algorithm) == algorithm
                and (kind != "EC" or document.get("crv") == "P-256")
            ):
                try:
                    key = jwt.PyJWK(document, algorithm)
                except (jwt.PyJWTError, ValueError, TypeError):
                    continue
                if kind != "RSA" or key.key.key_size >= MIN_RSA_BITS:
                    found[document["kid"]] = key
    return found


def _claim(claims: Mapping[str, Any], name: str) -> list[str]:
    """The values of a claim: a name, else a path with dots; a string counts as one value."""
    value: object = claims.get(name)
    if value is None:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    return [entry for entry in values if isinstance(entry, str)]
