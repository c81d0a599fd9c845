"""Strict JSON (RFC 8259 and nothing else).

Refused here, whatever the fields are: duplicate keys, too many of them, lone surrogates, documents nested
too deeply. The work is linear in the length of the text, and the text bounds it alone.
Numbers of documents of this service stay text (`JsonNumber`), so that no field can be rounded before it is
validated; the literals NaN and Infinity, which Python's parser would accept, become numbers that every field
refuses by name. What other programs wrote is read by `decode_foreign`: the same rules, numbers of a machine
word, and a limit of its length.
"""

import json
import math
import re
from collections import Counter
from typing import Any, ClassVar, NoReturn

from app.core.errors import FieldError, InvalidRequest, MalformedDocument
from app.core.numbers import JsonNumber

MAX_DEPTH = 32
"""Deeper nesting than any document of this service has."""

MAX_KEYS = 1_000
"""More fields than any object of this service has."""

MAX_NUMBER_LENGTH = 40
"""More characters than any integer of 64 bits or any float has."""

_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class DuplicateKey(InvalidRequest):
    """A JSON object gives the same field twice, so that readers could disagree about it."""

    code: ClassVar[str] = "duplicate_key"


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(pairs) > MAX_KEYS:
        raise MalformedDocument(f"an object has more than {MAX_KEYS} fields")
    fields = dict(pairs)
    if len(fields) != len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name in times if times[name] > 1)
        raise DuplicateKey("a field is given twice", fields=[FieldError(twice, "is given twice")])
    return fields


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=JsonNumber, parse_int=JsonNumber, parse_constant=JsonNumber
)


def _integer(text: str) -> int:
    value = int(text) if len(text) <= MAX_NUMBER_LENGTH else None
    if value is None or not -(2**63) <= value < 2**63:
        raise MalformedDocument("the document holds an integer of more than 64 bits")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise MalformedDocument("the document holds a number that no float can hold")
    return value


def _no_number(_: str) -> NoReturn:
    raise MalformedDocument("the document holds NaN or Infinity")


_FOREIGN = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_float, parse_int=_integer, parse_constant=_no_number
)
_SKIPPER = json.JSONDecoder(object_pairs_hook=len, parse_float=len, parse_int=len, parse_constant=len)
"""Finds the end of a value that is refused: it converts nothing, so nothing in it can be too long."""


def decode_json(text: str) -> object:
    """The value of one JSON text.

    Args:
        text: The whole document, or one line of NDJSON.

    Raises:
        MalformedDocument: it is not JSON, is nested too deeply, has an object of too many fields or holds
            half a surrogate pair.
        DuplicateKey: an object gives a field twice.
    """
    return _decode(_DECODER, text)


def decode_foreign(data: bytes, limit: int) -> dict[str, Any]:
    """The object that another program wrote: a cookie, claims, what an identity provider answers.

    Args:
        data: The whole document.
        limit: The most bytes that it may have.

    Returns:
        Its fields; integers have 64 bits at most, other numbers are finite floats.

    Raises:
        MalformedDocument: it is longer, not UTF-8, no object, or nothing that `decode_json` takes.
    """
    if len(data) > limit:
        raise MalformedDocument(f"the document has more than {limit} bytes")
    try:
        value = _decode(_FOREIGN, decode_utf8(data))
    except DuplicateKey as duplicate:
        raise MalformedDocument(duplicate.detail) from None
    if not isinstance(value, dict):
        raise MalformedDocument("the document is not an object")
    return value


def _decode(decoder: json.JSONDecoder, text: str) -> object:
    try:
        value: object = decoder.decode(text)
    except json.JSONDecodeError as error:
        complaint = error.msg.removesuffix(" at")
        raise MalformedDocument(f"the document is not JSON: {complaint} at character {error.pos}") from None
    except RecursionError:
        raise MalformedDocument("the document is nested too deeply") from None
    _check(text, value)
    return value


def decode_element(text: str, place: int) -> tuple[object, int]:
    """The JSON value that starts at a place, and where it ends.

    A number at the end of the text may go on in text that is still to come.

    Returns:
        The value, or the `DuplicateKey` that refuses it: what follows such a value can still be read.

    Raises:
        json.JSONDecodeError: no complete value starts there.
        MalformedDocument: it is nested too deeply, has an object of too many fields or holds half a
            surrogate pair.
    """
    value: object
    try:
        try:
            value, end = _DECODER.raw_decode(text, place)
        except DuplicateKey as duplicate:
            return duplicate, _SKIPPER.raw_decode(text, place)[1]
    except RecursionError:
        raise MalformedDocument("the document is nested too deeply") from None
    _check(text[place:end], value)
    return value, end


def _check(text: str, value: object) -> None:
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise MalformedDocument("the document is nested too deeply")
    if _ESCAPED_SURROGATE.search(text) is not None and _holds_lone_surrogate(value):
        raise MalformedDocument("the document holds half a surrogate pair")


def decode_utf8(data: bytes) -> str:
    """The text of a document.

    Raises:
        MalformedDocument: it is not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedDocument("the document is not UTF-8") from None


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [child for parent in level for child in _children(parent)]
    return depth


def _holds_lone_surrogate(value: object) -> bool:
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str) and _LONE_SURROGATE.search(item):
            return True
        if isinstance(item, dict) and any(_LONE_SURROGATE.search(name) for name in item):
            return True
        rest.extend(_children(item))
    return False
