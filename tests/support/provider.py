"""A small OpenID Connect provider: keys, a discovery document, and tokens as good or bad as one likes."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "dither"

CLIENT = "dither-dashboard"
"""What it calls a service where people sign in."""

ROLES = {
    "team": {"role": "analyse"},
    "guests": {"role": "analyse", "studies": ["own-study"]},
    "more guests": {"role": "analyse", "studies": ["other-study"]},
    "operators": {"role": "admin"},
    "app": {"role": "contribute"},
    "leads": {"roles": ["admin", "analyse"]},
    "leads too": {"roles": ["analyse", "admin"], "studies": ["own-study"]},
}
"""What the values of the claim `roles` allow at a service with these settings."""


class Provider:
    """An issuer on localhost.

    Attributes:
        issuer: Its address.
        keys: Private keys by name; what is published is what is in here.
        asked: Paths that were asked for, in order.
        status: What its documents are answered with.
        person: Claims of who signs in, beside those of every token; None: they give up.
        raw: What these paths are answered with, piece by piece, in place of a document.
        sent: Bytes of such pieces that went out.
    """

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {
            "rsa": rsa.generate_private_key(public_exponent=65537, key_size=2048),
            "ec": ec.generate_private_key(ec.SECP256R1()),
        }
        self.extra: list[Any] = []
        self.asked: list[str] = []
        self.status = 200
        self.issuer = ""
        self.claimed_issuer: str | None = None
        self.person: dict[str, Any] | None = {"sub": "ada", "roles": ["operators"]}
        self.secret: str | None = "a password"
        self.raw: dict[str, Iterable[bytes]] = {}
        self.raw_headers: dict[str, str] = {}
        self.sent = 0
        self._codes: dict[str, dict[str, str]] = {}

    @property
    def sign_in_settings(self) -> dict[str, Any]:
        """The settings of a service where people sign in with it."""
        return {**self.settings, "oidc_client_id": CLIENT, "oidc_client_secret": self.secret}

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser goes from the authorization endpoint: the person has said yes, or no."""
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT
        assert "openid" in query["scope"].split()
        assert query["code_challenge_method"] == "S256"
        if self.person is None:
            answer = {"error": "access_denied", "state": query["state"]}
        else:
            code = secrets.token_urlsafe(16)
            self._codes[code] = query
            answer = {"code": code, "state": query["state"]}
        return f"{query['redirect_uri']}?{urlencode(answer)}"

    def redeem(self, form: dict[str, str], authorization: str | None) -> dict[str, Any] | None:
        """What the token endpoint answers; None where it refuses. A code is good once."""
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or form.get("redirect_uri") != asked["redirect_uri"]:
            return None
        if self.secret is not None:
            basic = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
            if authorization != f"Basic {basic}":
                return None
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != asked["code_challenge"]:
            return None
        claims = {"aud": CLIENT, "nonce": asked["nonce"], **(self.person or {})}
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": self.token(**claims)}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a service that takes its tokens."""
        return {"oidc_issuer": self.issuer, "oidc_audience": AUDIENCE, "oidc_roles": ROLES}

    def token(self, kid: str = "rsa", *, headers: dict[str, Any] | None = None, **changes: Any) -> str:
        """A token that is good, but for what is changed; a claim that is None is left out."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": "somebody",
            "iat": now,
            "nbf": now,
            "exp": now + 300,
            "roles": ["team"],
            **changes,
        }
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(
            {name: value for name, value in claims.items() if value is not None},
            key,
            algorithm=algorithm,
            headers={"kid": kid, **(headers or {})},
        )

    def signed(self, claims: bytes) -> str:
        """A token with this text for its claims, whatever it is."""
        return jwt.api_jws.encode(claims, self.keys["rsa"], algorithm="RS256", headers={"kid": "rsa"})

    def public_pem(self, kid: str) -> bytes:
        return bytes(
            self.keys[kid]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    def document(self, path: str) -> object:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.claimed_issuer or self.issuer,
                "jwks_uri": f"{self.issuer}/keys",
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
            }
        published = []
        for kid, key in self.keys.items():
            algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            published.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"})
        return {"keys": [*self.extra, *published]}


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider that answers on a port of its own."""
    made = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            path, _, query = self.path.partition("?")
            if path == "/authorize":
                self.send_response(302)
                self.send_header("Location", made.authorize(dict(parse_qsl(query))))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            if not self.answered_raw(path):
                self.answer(made.status, made.document(self.path))

        def do_POST(self) -> None:
            made.asked.append(self.path)
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            if self.answered_raw(self.path):
                return
            found = made.redeem(form, self.headers["Authorization"])
            self.answer(*((400, {"error": "invalid_grant"}) if found is None else (made.status, found)))

        def answered_raw(self, path: str) -> bool:
            """Answer with what stands for the document, until nobody listens any more."""
            if path not in made.raw:
                return False
            self.send_response(200)
            for name, value in made.raw_headers.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):
                for piece in made.raw[path]:
                    self.wfile.write(piece)
                    made.sent += len(piece)
            return True

        def answer(self, status: int, document: object) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
