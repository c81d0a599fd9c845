"""Texts that tell people and groups apart: ids and labels. The service and its clients read them alike."""

import re
from collections.abc import Iterable
from unicodedata import normalize

MAX_SUBJECT_LENGTH = 256
"""Characters of the id of a person."""

_NOT_PLAIN = re.compile("[\0\ud800-\udfff]")


def subject_fault(subject: str) -> str | None:
    """Why a text can be no id of a person that is new here; None where it can be one.

    An id is one text only, and part of an address: by another one its owner could not withdraw.

    >>> subject_fault("ada"), subject_fault("..")
    (None, 'cannot be part of an address')
    """
    if not 1 <= len(subject) <= MAX_SUBJECT_LENGTH:
        return f"must have 1 to {MAX_SUBJECT_LENGTH} characters"
    if subject in (".", ".."):
        return "cannot be part of an address"
    if _NOT_PLAIN.search(subject) is not None:
        return "is not plain Unicode text"
    if subject.isascii() or normalize("NFC", subject) == subject:
        return None
    return "has letters with their accents apart, which makes another id: write it in Unicode's NFC"


def spelled(text: str, known: Iterable[str], *, ignore_case: bool = False) -> str | None:
    """The one of some labels that a text is, be its accents written with the letters or apart; None for none.

    >>> spelled("zoe\u0308", ["zo\u00eb", "ada"]) == "zo\u00eb"
    True
    >>> spelled("JA", ["ja"], ignore_case=True)
    'ja'
    """
    labels = list(known)
    if text in labels:
        return text
    alike = [label for label in labels if normalize("NFC", label) == normalize("NFC", text)]
    if ignore_case and not alike:
        text = normalize("NFC", text).casefold()
        alike = [label for label in labels if normalize("NFC", label).casefold() == text]
    return alike[0] if len(alike) == 1 else None
