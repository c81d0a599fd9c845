"""The only place where an external id becomes what the database knows: a keyed digest."""

import hashlib
import hmac

_REQUESTS = b"\xffrequests"
"""Separates digests of requests from those of ids: no text in UTF-8 has this first byte."""


class SubjectKey:
    """The server's key for subjects. Its digest of an external id cannot be reversed without it."""

    __slots__ = ("_key", "_requests")

    def __init__(self, key: bytes) -> None:
        """Raises ValueError for a key under 32 bytes."""
        if len(key) < 32:
            raise ValueError("the subject key needs at least 32 bytes")
        self._key = key
        self._requests = hmac.digest(key, _REQUESTS, "sha256")

    def __repr__(self) -> str:
        return "SubjectKey(...)"

    def digest(self, external_id: str) -> bytes:
        """HMAC-SHA256 of the id, 32 bytes."""
        return hmac.digest(self._key, external_id.encode(), "sha256")

    def request_digest(self, request: bytes) -> bytes:
        """HMAC-SHA256 of a request about a person under a key of its own, 32 bytes."""
        return hmac.digest(self._requests, request, "sha256")

    def fingerprint(self) -> bytes:
        """Tells whether a database was filled under this key, and nothing about the key."""
        return hashlib.sha256(b"dither subject key" + self.digest("fingerprint")).digest()
