"""What names in documents and paths look like, and how a refusal says it."""

from collections.abc import Mapping

SLUG_PATTERN = "^[a-z0-9][a-z0-9-]{0,62}$"
"""What addresses a study."""

ATTRIBUTE_PATTERN = "^[a-z][a-z0-9_-]{0,31}$"
"""What addresses an attribute of a study."""

LABEL_PATTERN = r"^[^\s,;=\x00-\x1f\x7f]([^,;=\x00-\x1f\x7f]{0,62}[^\s,;=\x00-\x1f\x7f])?$"
"""A label: no comma, semicolon or equals sign, and no space at its ends."""

IN_WORDS: Mapping[str, str] = {
    SLUG_PATTERN: "must be 1 to 63 of the characters a to z, 0 to 9 and -, the first one no -",
    ATTRIBUTE_PATTERN: "must be 1 to 32 of the characters a to z, 0 to 9, _ and -, the first one a letter",
    LABEL_PATTERN: "must be 1 to 64 characters, none of them a comma, a semicolon or an equals sign, "
    "without a space at its ends",
}
"""What a text must be that does not match a pattern."""
