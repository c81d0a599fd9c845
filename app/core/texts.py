"""What a study says to people in other languages than its own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyText:
    """A study in one language.

    Attributes:
        title, description: None where they are those of the study.
        labels: What measures, choices, attributes and their labels are called, by their names.
    """

    title: str | None = None
    description: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class Texts:
    """A study in other languages, by their codes; false where there are none.

    Args:
        text: JSON, as it is stored.

    >>> texts = Texts('{"de": {"title": "Wie weit?", "labels": {"red": "rot"}}}')
    >>> texts.of("de").title, texts.of("de").labels["red"], texts.of("es").title
    ('Wie weit?', 'rot', None)
    """

    __slots__ = ("by_language",)

    def __init__(self, text: str = "{}") -> None:
        self.by_language = {code: StudyText(**said) for code, said in json.loads(text).items()}

    def __bool__(self) -> bool:
        return bool(self.by_language)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Texts) and self.by_language == other.by_language

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.by_language)))

    def of(self, language: str) -> StudyText:
        """What is said in a language; nothing of its own where there is none."""
        return self.by_language.get(language, StudyText())


NO_TEXTS = Texts()
"""Of a study that says everything in its own language alone."""
