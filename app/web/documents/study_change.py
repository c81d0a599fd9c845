"""Changes of a study on the wire."""

from typing import Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator

from app.core.errors import FieldError, InvalidRequest
from app.web.documents.study import MAX_LANGUAGES, StudyIn, StudyTextIn
from app.web.documents.types import Language, Prose, Text, WireIn

FIXED = "is fixed when the study is made, since answers depend on it; make another study"
"""Why a field of a study cannot be changed."""


class StudyEditIn(WireIn):
    """What is said of a study, for people. What is not given stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"title": "How long is your way to work?", "reason": "a typo"}]}
    )

    title: Text | None = Field(None, description="The question.")
    description: Prose | None = Field(None, description="More about it; may be empty.")
    texts: dict[Language, StudyTextIn | None] = Field(
        default_factory=dict,
        max_length=MAX_LANGUAGES,
        description="What it says in other languages, by their codes; null forgets one.",
        json_schema_extra={"examples": [{"de": {"title": "Wie weit ist es?", "labels": {"red": "rot"}}}]},
    )
    reason: Text = Field(description="For the audit trail.")

    @model_validator(mode="before")
    @classmethod
    def _nothing_else_changes(cls, value: object) -> object:
        fixed = StudyIn.model_fields.keys() - cls.model_fields.keys()
        found = [name for name in value if name in fixed] if isinstance(value, dict) else []
        if found:
            raise InvalidRequest.naming([FieldError(name, FIXED) for name in found])
        return value

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.title is None and self.description is None and not self.texts:
            raise InvalidRequest.field("title", "give a title, a description or texts in other languages")
        return self


class ReportingRangeIn(WireIn):
    """The searches between which a reporting range is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [dict.fromkeys(("lower", "upper"), "6f1c2b3e-0000-4000-8000-000000000001")]
        }
    )

    lower: UUID = Field(description="The finished search for its lower end, such as of the quantile .02.")
    upper: UUID = Field(description="The finished search for its upper end, such as of the quantile .98.")


class ArchiveIn(WireIn):
    """The end of a study."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"reason": "last week's survey"}]})

    reason: Text = Field(description="For the audit trail.")
