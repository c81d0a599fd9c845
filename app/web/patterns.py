"""What names and texts in documents and addresses look like, and how a refusal says it."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from app.core.errors import InvalidRequest

SLUG_PATTERN = "^[a-z0-9][a-z0-9-]{0,62}$"
"""What addresses a study."""

ATTRIBUTE_PATTERN = "^[a-z][a-z0-9_-]{0,31}$"
"""What addresses an attribute of a study."""

LANGUAGE_PATTERN = "^[a-z]{2,3}$"
"""The code of a language."""

LABEL_PATTERN = r"^[^\s,;=\x00-\x1f\x7f]([^,;=\x00-\x1f\x7f]{0,62}[^\s,;=\x00-\x1f\x7f])?$"
"""A label: no comma, semicolon or equals sign, and no space at its ends."""

IN_WORDS: Mapping[str, str] = {
    SLUG_PATTERN: "must be 1 to 63 of the characters a to z, 0 to 9 and -, the first one no -",
    ATTRIBUTE_PATTERN: "must be 1 to 32 of the characters a to z, 0 to 9, _ and -, the first one a letter",
    LANGUAGE_PATTERN: "must be the code of a language, of two or three letters from a to z",
    LABEL_PATTERN: "must be 1 to 64 characters, none of them a comma, a semicolon or an equals sign, "
    "without a space at its ends",
}
"""What a text must be that does not match a pattern."""


def refuse_nul(fields: Iterable[tuple[str, str]]) -> None:
    """Refuse fields of an address or of a form that no text in the database can hold.

    Raises:
        InvalidRequest: names the first one with the character NUL.
    """
    for name, value in fields:
        if "\0" in name or "\0" in value:
            raise InvalidRequest.field(name, "must not contain the character NUL")


def is_encoded_utf8(encoded: bytes) -> bool:
    """Whether a part of an address is UTF-8 once its percent-encoding is taken away."""
    try:
        unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        return False
    return True
