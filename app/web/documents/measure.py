"""One of several numbers and choices of a study on the wire."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator

from app.core.attributes import TAKEN
from app.core.errors import FieldError, InvalidRequest
from app.core.measures import VALUE, Measure
from app.core.numbers import JsonNumber
from app.core.study import MAX_CHOICES, MAX_DIMENSION
from app.web.documents.types import (
    Bound,
    Distinct,
    Integer,
    Label,
    WireIn,
    WireOut,
    above_lower,
    schema,
)
from app.web.validation_messages import InvalidValue

# Not as alternatives: generators of clients make a class of each.
NUMBER_OR_CHOICE: Mapping[str, Any] = {
    "if": {"required": ["choices"]},
    "then": {"not": {"anyOf": [{"required": ["lower"]}, {"required": ["upper"]}]}},
    "else": {"required": ["lower", "upper"]},
}


def _without_default(schema: dict[str, Any]) -> None:
    del schema["default"]


def end_of_range(description: str) -> Any:
    """An end of the range, without which a study of numbers is refused."""
    return Field(
        None,
        validate_default=True,
        description=description,
        json_schema_extra=_without_default,
    )


def range_of_choices(value: object, info: ValidationInfo) -> object:
    """An end of the range: as it is given, or of the numbers of choices, for which none may be given."""
    choices = info.data.get("choices")
    if value is not None and not choices:
        return value
    if choices == []:
        raise InvalidValue("is required, unless there are choices")
    if value is not None:
        raise InvalidValue("is for numbers: a choice has no range")
    # Choices that are refused have some range, too.
    return JsonNumber(0 if info.field_name == "lower" else len(choices or "ab") - 1)


def _supported(dimension: int) -> int:
    if dimension not in range(1, MAX_DIMENSION + 1):
        raise InvalidValue(f"must be between 1 and {MAX_DIMENSION}")
    return dimension


Dimension = Annotated[
    Integer, AfterValidator(_supported), schema(type="integer", minimum=1, maximum=MAX_DIMENSION)
]
"""Coordinates of a value."""


class MeasureIn(WireIn):
    """One of the things that a study asks for: a number with a range, or a choice."""

    model_config = ConfigDict(json_schema_extra=dict(NUMBER_OR_CHOICE))

    choices: Annotated[list[Label], Distinct] = Field(
        default_factory=list,
        min_length=2,
        max_length=MAX_CHOICES,
        description="What people choose one of, in place of a number.",
        json_schema_extra={"uniqueItems": True, "examples": [["red", "green", "blue"]]},
    )
    lower: Bound = end_of_range("Lower end of the range of a number.")
    upper: Bound = end_of_range("Upper end of the range of a number.")

    dimension: Dimension = Field(
        1,
        description="Coordinates of a value, each of them in the range; all measures together have at "
        f"most {MAX_DIMENSION}.",
    )

    _numbers_have_a_range = field_validator("lower", "upper", mode="before")(range_of_choices)
    _above_lower = field_validator("upper")(above_lower)

    @field_validator("dimension")
    @classmethod
    def _choices_have_one(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("choices"):
            raise InvalidValue("must be 1 for choices")
        return value

    def measure(self) -> Measure:
        """The core's."""
        return Measure(self.lower, self.upper, tuple(self.choices), self.dimension)


def checked_measures(document: object) -> object:
    """Refuse measures with a name that is taken, each by its path: a measure alone may be the value itself.

    Raises:
        InvalidRequest: names every offending field.
    """
    measures = document if isinstance(document, dict) else {}
    found = [
        FieldError(f"measures.{name}", "is the name of another field of contributions")
        for name in measures
        if name in TAKEN and not (name == VALUE and len(measures) == 1)
    ]
    if found:
        raise InvalidRequest.naming(found)
    return document


class MeasureOut(WireOut):
    """One of the things that a study asks for."""

    lower: float = Field(description="Lower end of the range; of a choice the number of the first one.")
    upper: float = Field(description="Upper end of the range; of a choice the number of the last one.")
    step: float | None = Field(
        description="Values are kept to the nearest multiple of this above lower; null for a choice."
    )
    choices: list[str] = Field(description="What people choose one of; empty for a number.")
    dimension: int = Field(description="Coordinates of a value, each of them in the range; 1 for a number.")
