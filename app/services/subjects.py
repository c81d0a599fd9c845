"""The only place where an external id becomes what the database knows: a keyed digest."""

import hashlib
import hmac

_REQUESTS, _LINKS, _SIGNING = b"\xffrequests", b"\xfflinks", b"\xffsigning"
"""Separate what is derived from the key from digests of ids: no text in UTF-8 has this first byte."""


class SubjectKey:
    """The server's key for subjects. Its digest of an external id cannot be reversed without it."""

    __slots__ = ("_key", "_keyed", "_links", "_requests")

    def __init__(self, key: bytes) -> None:
        """Raises ValueError for a key under 32 bytes."""
        if len(key) < 32:
            raise ValueError("the subject key needs at least 32 bytes")
        self._key = key
        # Copied for each id: to look the hash up and read the key again takes longer.
        self._keyed = hmac.new(key, digestmod="sha256")
        self._requests = hmac.digest(key, _REQUESTS, "sha256")
        self._links = hmac.digest(key, _LINKS, "sha256")

    def __repr__(self) -> str:
        return "SubjectKey(...)"

    def digest(self, external_id: str) -> bytes:
        """HMAC-SHA256 of the id, 32 bytes."""
        keyed = self._keyed.copy()
        keyed.update(external_id.encode())
        return keyed.digest()

    def request_digest(self, request: bytes) -> bytes:
        """HMAC-SHA256 of a request about a person under a key of its own, 32 bytes."""
        return hmac.digest(self._requests, request, "sha256")

    def link_digest(self, what: str, *secrets: str) -> bytes:
        """HMAC-SHA256 of what belongs to a link under a key of its own, 32 bytes.

        Args:
            what: The use of the digest: that of one use is none of another.
            secrets: Texts without the character NUL.
        """
        return hmac.digest(self._links, "\0".join((what, *secrets)).encode(), "sha256")

    def signing_seed(self) -> bytes:
        """The secret of the key that signs what is published, 32 bytes: who has the one needs no other."""
        return hmac.digest(self._key, _SIGNING, "sha256")

    def fingerprint(self) -> bytes:
        """Tells whether a database was filled under this key, and nothing about the key."""
        return hashlib.sha256(b"dither subject key" + self.digest("fingerprint")).digest()
