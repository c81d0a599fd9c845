"""The file of a publication: signed as a whole, each answer in the tree of all releases.

A leaf of the tree is SHA-256 of the public part of a release, its number and its answer, and a keyed digest
of its link in the hash chain. So a file shows that an answer stands, as it is, in a tree whose root was
signed, and says nothing of what people were charged: that digest hides its link from all who lack the key.
The root is signed as a checkpoint, a signed note of https://c2sp.org/tlog-checkpoint, and the file by the
same key.
Without a witness no signature excludes that a service shows another tree to others.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from app.core.errors import ServiceError
from app.core.merkle import leaf_hash, root_of
from app.formats.strict_json import decode_foreign

FORMAT = "dither-publication-1"

KEY_NAME = "dither"
"""Of the keys in notes."""

_ED25519 = b"\1"
_SIGNED_FILE = b"dither publication\n"

MOST_BYTES = 512 * 2**20
"""Of a file that is verified: more than the largest answer takes."""


def canonical(value: object) -> bytes:
    """The one way in which equal JSON values are written.

    >>> canonical({"b": 1.5, "a": [1]})
    b'{"a":[1],"b":1.5}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def log_name(tree_key: bytes) -> str:
    """The name of a tree, the first line of its checkpoints: another key makes another tree."""
    return f"dither/{hashlib.sha256(b'dither tree' + tree_key).hexdigest()[:32]}"


def commitment_of(tree_key: bytes, link: bytes) -> bytes:
    """A digest that binds a release to its link in the hash chain, and hides that link, 32 bytes."""
    return hmac.digest(tree_key, link, "sha256")


def leaf_of(number: int, answer: object, commitment: bytes) -> bytes:
    """The hash of the leaf of a release.

    Args:
        number: Its place in the hash chain, from 1.
        answer: What it says, as a JSON value.
        commitment: See `commitment_of`.
    """
    public = hashlib.sha256(canonical({"number": number, "answer": answer})).digest()
    return leaf_hash(public + commitment)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A key that files are held to."""

    key: bytes

    @property
    def id(self) -> bytes:
        """The first four bytes of a note's signature."""
        return hashlib.sha256(KEY_NAME.encode() + b"\n" + _ED25519 + self.key).digest()[:4]

    @property
    def text(self) -> str:
        """As tools for signed notes take it: name, id and key."""
        return f"{KEY_NAME}+{self.id.hex()}+{base64.b64encode(_ED25519 + self.key).decode()}"

    @classmethod
    def of(cls, text: str) -> "PublicKey":
        """The key that `text` gives.

        Raises:
            ValueError: it is none.
        """
        name, _, rest = text.partition("+")
        claimed, _, encoded = rest.partition("+")
        raw = base64.b64decode(encoded, validate=True)
        one = cls(key=raw[1:])
        if name != KEY_NAME or raw[:1] != _ED25519 or len(one.key) != 32 or one.id.hex() != claimed:
            raise ValueError("no public key of Dither")
        return one

    def holds(self, signature: bytes, text: bytes) -> bool:
        """Whether a signature, behind the key's id, is of this key and of this text."""
        if signature[:4] != self.id:
            return False
        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(signature[4:], text)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """The key of an installation.

    Args:
        seed: 32 secret bytes.
    """

    __slots__ = ("_key", "public")

    def __init__(self, seed: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = PublicKey(key=self._key.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"SigningKey({self.public.id.hex()})"

    def sign(self, text: bytes) -> bytes:
        """The signature of a text, behind the key's id."""
        return self.public.id + self._key.sign(text)

    def checkpoint(self, log: str, size: int, root: bytes) -> str:
        """A signed root of a tree."""
        body = f"{log}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = base64.b64encode(self.sign(body.encode())).decode()
        return f"{body}\n\u2014 {KEY_NAME} {signature}\n"

    def sealed(self, document: Mapping[str, Any]) -> bytes:
        """A file: the document and its signature."""
        signature = base64.b64encode(self.sign(_SIGNED_FILE + canonical(document))).decode()
        return json.dumps({**document, "signature": signature}, ensure_ascii=False).encode()


class NoPublication(Exception):
    """A text has not the form of a publication's file, or of its keys; the message says why."""


class Fault(StrEnum):
    """Why a file does not hold."""

    OTHER_KEY = "it is signed by none of these keys"
    CHANGED = "it is not what was signed"
    CHECKPOINT = "its checkpoint is not signed by the key of the file"
    NOT_IN_TREE = "an answer is not in the tree whose root is signed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a file is worth.

    Attributes:
        fault: Why it does not hold; None where it does.
        answers: How many it shows.
        log, size: The tree that they are in, and its leaves.
        expires_at: As the file says.
    """

    fault: Fault | None
    answers: int = 0
    log: str = ""
    size: int = 0
    expires_at: str | None = None


def read_keys(data: bytes) -> list[PublicKey]:
    """The keys in the document of `/.well-known/dither-keys.json`.

    Raises:
        NoPublication: it is none.
    """
    try:
        document = decode_foreign(data, MOST_BYTES)
        if keys := document["keys"]:
            return [PublicKey.of(one["key"]) for one in keys]
    except (ServiceError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise NoPublication("the keys are no document as /.well-known/dither-keys.json gives it")


def verify(data: bytes, keys: Iterable[PublicKey]) -> Verdict:
    """Hold a file to the keys of its service, without the service.

    Raises:
        NoPublication: it is not the file of a publication.
    """
    try:
        document = decode_foreign(data, MOST_BYTES)
    except ServiceError as error:
        raise NoPublication(f"the file is not JSON as it was published: {error.detail}") from None
    if document.get("format") != FORMAT:
        raise NoPublication(f"the file is no publication: its format is not {FORMAT}")
    try:
        signature = _decoded(document.pop("signature", None))
        signed = _SIGNED_FILE + canonical(document)
        key = next((one for one in keys if one.id == signature[:4]), None)
        if key is None:
            return Verdict(fault=Fault.OTHER_KEY)
        if not key.holds(signature, signed):
            return Verdict(fault=Fault.CHANGED)
        return _in_tree(document, key)
    except (ValueError, KeyError, TypeError, AttributeError):
        return Verdict(fault=Fault.CHANGED)


def _in_tree(document: Mapping[str, Any], key: PublicKey) -> Verdict:
    body, _, signatures = document["checkpoint"].partition("\n\n")
    prefix = f"\u2014 {KEY_NAME} "
    signed = f"{body}\n".encode()
    lines = [line.removeprefix(prefix) for line in signatures.splitlines() if line.startswith(prefix)]
    if not any(key.holds(_decoded(line), signed) for line in lines):
        return Verdict(fault=Fault.CHECKPOINT)
    log, size, root = body.split("\n")
    answers: Sequence[Mapping[str, Any]] = document["answers"]
    for one in answers:
        leaf = leaf_of(one["number"], one["answer"], bytes.fromhex(one["commitment"]))
        proof = [_decoded(hash_) for hash_ in one["proof"]]
        if root_of(leaf, one["number"] - 1, int(size), proof) != _decoded(root):
            return Verdict(fault=Fault.NOT_IN_TREE)
    return Verdict(
        fault=None, answers=len(answers), log=log, size=int(size), expires_at=document["expires_at"]
    )


def _decoded(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
