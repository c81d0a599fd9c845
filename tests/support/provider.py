"""A small OpenID Connect provider: keys, a discovery document, and tokens as good or bad as one likes."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "dither"

ROLES = {
    "team": {"role": "analyse"},
    "guests": {"role": "analyse", "studies": ["own-study"]},
    "more guests": {"role": "analyse", "studies": ["other-study"]},
    "operators": {"role": "admin"},
    "app": {"role": "contribute"},
}
"""What the values of the claim `roles` allow at a service with these settings."""


class Provider:
    """An issuer on localhost.

    Attributes:
        issuer: Its address.
        keys: Private keys by name; what is published is what is in here.
        asked: Paths that were asked for, in order.
        status: What its documents are answered with.
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

    def public_pem(self, kid: str) -> bytes:
        return bytes(
            self.keys[kid]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )

    def document(self, path: str) -> object:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.claimed_issuer or self.issuer, "jwks_uri": f"{self.issuer}/keys"}
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
            body = json.dumps(made.document(self.path)).encode()
            self.send_response(made.status)
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
