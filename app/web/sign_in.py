"""Signing in with the identity provider: the authorization code flow with PKCE, at the dashboard.

What a browser keeps between leaving for the provider and coming back (`Pending`) is worth nothing to anyone
else: the code that the provider gives is good only together with the verifier, and the ID token only with the
nonce.

References:
    RFC 6749, section 4.1; RFC 7636 (PKCE); OpenID Connect Core 1.0, section 3.1.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from authlib.common.security import generate_token
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from app.core.errors import Forbidden, MalformedDocument, Unavailable
from app.formats.strict_json import decode_foreign
from app.web.oidc import BearerIdentity, Verifier, ask, endpoint_of

if TYPE_CHECKING:
    import httpx

SCOPE = "openid"

SECRET_LENGTH = 48
"""Characters of state, nonce and verifier (43 to 128 for a verifier, RFC 7636, section 4.1)."""

MAX_PENDING_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """A sign-in that has begun.

    Attributes:
        state: Ties the provider's answer to the browser that left.
        nonce: Ties the ID token to it.
        verifier: Proves to the provider that the code is redeemed where the sign-in began.
    """

    state: str
    nonce: str
    verifier: str

    def to_text(self) -> str:
        """For a cookie."""
        return json.dumps(asdict(self), separators=(",", ":")).encode().hex()

    @classmethod
    def from_text(cls, text: str) -> "Pending":
        """What `to_text` made.

        Raises:
            Forbidden: anything else.
        """
        try:
            found = decode_foreign(bytes.fromhex(text), MAX_PENDING_BYTES)
            values = {name: found[name] for name in ("state", "nonce", "verifier")}
        except (MalformedDocument, ValueError, KeyError):
            values = {}
        if not values or not all(isinstance(value, str) and value.isascii() for value in values.values()):
            raise Forbidden("The sign-in did not begin in this browser, or took too long.")
        return cls(**values)


class SignIn:
    """Signs people in with a provider.

    Args:
        verifier: Of the provider's JWTs.
        http: For its token endpoint.
        client_id: What the provider calls this installation.
        client_secret: Its password there; None for a public client.
    """

    def __init__(
        self, verifier: Verifier, http: "httpx.AsyncClient", client_id: str, client_secret: str | None
    ) -> None:
        self._verifier = verifier
        self._http = http
        self._client_id = client_id
        self._client_secret = client_secret

    async def begin(self, redirect_uri: str) -> tuple[str, Pending]:
        """Where to send the browser, and what it keeps meanwhile.

        Raises:
            Unavailable: the provider does not say where.
        """
        pending = Pending(**{name: generate_token(SECRET_LENGTH) for name in ("state", "nonce", "verifier")})
        url = prepare_grant_uri(
            endpoint_of(await self._verifier.discovery(), "authorization_endpoint"),
            client_id=self._client_id,
            response_type="code",
            redirect_uri=redirect_uri,
            scope=SCOPE,
            state=pending.state,
            nonce=pending.nonce,
            code_challenge=create_s256_code_challenge(pending.verifier),
            code_challenge_method="S256",
        )
        return str(url), pending

    async def finish(self, pending: Pending, answer: Mapping[str, str], redirect_uri: str) -> BearerIdentity:
        """Who came back.

        Args:
            pending: What the browser kept.
            answer: The query that the provider sent it back with.
            redirect_uri: As at the beginning.

        Raises:
            Forbidden: the provider refused, the answer is not to this sign-in, or no role follows.
            Unauthenticated: the ID token is not good.
            Unavailable: the provider does not answer.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(), pending.state.encode()):
            raise Forbidden("The identity provider's answer belongs to another sign-in.")
        if "code" not in answer:
            raise Forbidden("The identity provider did not sign you in.")
        id_token = await self._redeem(answer["code"], pending.verifier, redirect_uri)
        return await self._verifier.verify_sign_in(id_token, self._client_id, pending.nonce)

    async def _redeem(self, code: str, verifier: str, redirect_uri: str) -> str:
        """The ID token that a code is good for."""
        import httpx

        public = {} if self._client_secret else {"client_id": self._client_id}
        body = prepare_token_request(
            "authorization_code", redirect_uri=redirect_uri, code=code, code_verifier=verifier, **public
        )
        password = (
            httpx.BasicAuth(self._client_id, self._client_secret)
            if self._client_secret
            else httpx.USE_CLIENT_DEFAULT
        )
        endpoint = endpoint_of(await self._verifier.discovery(), "token_endpoint")
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await ask(self._http, "POST", endpoint, content=body, headers=headers, auth=password)
        if answer is None:
            raise Forbidden("The identity provider did not accept the sign-in.")
        id_token = answer.get("id_token")
        if not isinstance(id_token, str):
            raise Unavailable("the identity provider does not answer with an ID token")
        return id_token
