"""The field types of the wire: exact numbers, plain text, epsilons."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Self
from uuid import UUID

from dither.device.texts import subject_fault
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from app.core.attributes import TAKEN
from app.core.epsilon import (
    MAX_EPSILON,
    MICRO,
    delta_limit,
    delta_to_json,
    epsilon_limit,
    epsilon_to_json,
    round_down_to_significant,
)
from app.core.grid import NotANumber
from app.core.measures import VALUE
from app.core.numbers import JsonNumber, to_decimal, to_integer, why_no_number
from app.estimators.confidence import LEVELS
from app.web.patterns import ATTRIBUTE_PATTERN, LABEL_PATTERN, LANGUAGE_PATTERN, SLUG_PATTERN
from app.web.validation_messages import InvalidValue

MAX_BOUND = Decimal(10) ** 15
"""The ends of a range lie within this of zero."""

MAX_SIZE = 10**12
"""The largest expected size."""

MOST_SHARES = 1000
"""Of all answers of a schedule together: twenty years of whole epsilons, one a week."""

MAX_LIFETIME = 10**9
"""The largest lifetime epsilon."""

EPSILON_TEXT = r"^([1-9][0-9]{0,5}(\.[0-9]{1,30})?|0\.0{0,5}[1-9][0-9]{0,24})$"
"""An epsilon as text, the way it is best written."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def above_lower(value: Decimal, info: ValidationInfo) -> Decimal:
    """Hold the upper end of a range above the lower one, where that one was readable."""
    if value <= info.data.get("lower", value - 1):
        raise InvalidValue("must be above lower")
    return value


class WireIn(BaseModel):
    """A document that clients send: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _is_an_object(cls, value: object) -> object:
        # FastAPI validates from attributes too, and every object has some.
        if not isinstance(value, dict):
            raise InvalidValue("must be an object")
        return value


class WireOut(BaseModel):
    """A document that clients get, read off the attributes of a record. More fields may come at any time."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    @classmethod
    def made_of(cls, *records: object, **given: object) -> Self:
        """The document whose fields are given, or those of the first record that has them."""
        for record in records:
            own = [name for name in cls.model_fields if name not in given and hasattr(record, name)]
            given |= {name: getattr(record, name) for name in own}
        return cls.model_validate(given)


def decimal_in(text: str, least: int | Decimal, most: int | Decimal, most_in_words: str = "") -> Decimal:
    """The exact value of a decimal number within bounds; the upper one may have words of its own.

    Raises:
        InvalidValue: it is none, not finite, or not within them.
    """
    number = finite(text)
    if not least <= number <= most:
        raise InvalidValue(f"must be at least {least} and at most {most_in_words or most}")
    return number


def finite(text: str) -> Decimal:
    """The exact value of a decimal number.

    Raises:
        InvalidValue: it is none, or not finite.
    """
    try:
        return to_decimal(text)
    except NotANumber:
        raise InvalidValue(why_no_number(text)) from None


def json_number(read: Callable[[str], object]) -> BeforeValidator:
    """Takes a JSON number, and reads it as it was written."""

    def of_number(value: object) -> object:
        if type(value) is not JsonNumber:
            raise InvalidValue("must be a number")
        return read(value)

    return BeforeValidator(of_number)


def _number_or_text(read: Callable[[str], object]) -> BeforeValidator:
    """Takes a JSON number or a string that holds one, and reads it as it was written."""

    def of_either(value: object) -> object:
        if not isinstance(value, str):
            raise InvalidValue("must be a number, or a string that holds one")
        return read(value)

    return BeforeValidator(of_either)


def _bound(text: str) -> Decimal:
    number = finite(text)
    if abs(number) > MAX_BOUND:
        raise InvalidValue("must lie within 10^15 of zero")
    if Decimal(repr(float(number))) != number:
        raise InvalidValue("has more digits than a double-precision number holds")
    return number


def _integer(value: object) -> int:
    if type(value) is not JsonNumber:
        raise InvalidValue("must be an integer")
    try:
        return to_integer(value)
    except NotANumber:
        raise InvalidValue("must be an integer") from None


def parse_epsilon(text: str) -> int:
    """An epsilon as micro-epsilon, rounded down.

    Raises:
        InvalidValue: not an admissible one.
    """
    number = finite(text)
    if not 0 < number * MICRO <= MAX_EPSILON:
        raise InvalidValue("must be above 0 and at most 1000000")
    return _not_lost(epsilon_limit(number))


def _tier(text: str) -> int:
    micro = parse_epsilon(text)
    if finite(text) != Decimal(micro).scaleb(-6) or round_down_to_significant(micro) != micro:
        raise InvalidValue("must have at most three significant digits, to which offers are rounded down")
    return micro


def parse_share(text: str) -> int:
    """A share as parts per million, rounded down.

    Raises:
        InvalidValue: not an admissible one.
    """
    number = finite(text)
    if not 0 < number <= 1:
        raise InvalidValue("must be above 0 and at most 1")
    return _not_lost(int(number * MICRO))


def parse_shares(text: str) -> int:
    """Shares of several answers together as parts per million, rounded down.

    Raises:
        InvalidValue: not an admissible sum of them.
    """
    return _not_lost(int(decimal_in(text, 0, MOST_SHARES) * MICRO))


def _not_lost(millionths: int) -> int:
    if millionths == 0:
        raise InvalidValue("must be at least 0.000001")
    return millionths


def parse_tilt(text: str) -> int:
    """A tilt as parts per million of the range, rounded up: it bounds what may be.

    Raises:
        InvalidValue: not an admissible one.
    """
    return math.ceil(decimal_in(text, 0, 1) * MICRO)


def parse_size(text: str) -> float:
    """A number of people, or a guess at one.

    Raises:
        InvalidValue: not an admissible one.
    """
    return float(decimal_in(text, 1, MAX_SIZE, "10^12"))


def parse_half_width(text: str) -> float:
    """Half of an interval that is wanted, above 0.

    Raises:
        InvalidValue: not an admissible one.
    """
    number = float(finite(text))
    if not 0 < number < math.inf:
        raise InvalidValue("must be above 0")
    return number


def parse_level(text: str) -> float:
    """At which level intervals are read, one of `confidence.LEVELS`.

    Raises:
        InvalidValue: not one of them.
    """
    known = {str(level): level for level in LEVELS}
    try:
        found = known.get(str(float(text)))
    except ValueError:
        found = None
    if found is None:
        raise InvalidValue(f"must be one of {', '.join(known)}; that of the hourglass is hourglass_level")
    return found


def _lifetime(text: str) -> int:
    return epsilon_limit(decimal_in(text, 0, MAX_LIFETIME, "10^9"))


def _delta(text: str) -> int:
    number = finite(text)
    if not 0 <= number < 1:
        raise InvalidValue("must be at least 0 and below 1")
    return delta_limit(number)


def _text(value: object) -> str:
    if type(value) is not str:
        raise InvalidValue("must be a string")
    if _CONTROL.search(value):
        raise InvalidValue("holds control characters")
    return value


def _prose(value: object) -> str:
    _text(value.replace("\n", " ") if type(value) is str else value)
    return str(value)


def _new_subject(value: str) -> str:
    if (fault := subject_fault(value)) is not None:
        raise InvalidValue(fault)
    return value


def _distinct(value: object) -> object:
    if isinstance(value, list) and all(type(item) is str for item in value) and len(set(value)) != len(value):
        raise InvalidValue("names something twice")
    return value


def schema(**keywords: object) -> WithJsonSchema:
    """The JSON schema of a type whose validation is our own."""
    return WithJsonSchema(keywords)


EPSILON_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0.000001, "maximum": MAX_EPSILON // MICRO},
        {"type": "string", "pattern": EPSILON_TEXT},
    ],
    "description": "Read exactly as written, down to 0.000001; a string is read like a number.",
    "examples": [1.5, "0.25"],
}

Bound = Annotated[
    Decimal,
    json_number(_bound),
    schema(type="number", minimum=-int(MAX_BOUND), maximum=int(MAX_BOUND)),
]
"""An end of a range."""

Integer = Annotated[int, BeforeValidator(_integer)]
"""An integer, also where it is written as 3.0."""

Epsilon = Annotated[int, _number_or_text(parse_epsilon), WithJsonSchema(EPSILON_SCHEMA)]
"""An epsilon, in micro-epsilon from here on."""

Tier = Annotated[int, _number_or_text(_tier), WithJsonSchema(EPSILON_SCHEMA)]
"""An epsilon of at most three significant digits, in micro-epsilon from here on."""

Lifetime = Annotated[
    int,
    _number_or_text(_lifetime),
    schema(
        anyOf=[
            {"type": "number", "minimum": 0, "maximum": MAX_LIFETIME},
            {"type": "string", "pattern": r"^[0-9]{1,9}(\.[0-9]{1,30})?$"},
        ]
    ),
]
"""A lifetime epsilon, in micro-epsilon from here on."""

Share = Annotated[
    int,
    json_number(parse_share),
    schema(type="number", minimum=0.000001, maximum=1, examples=[0.1]),
]
"""A part of an epsilon, in parts per million from here on."""

Shares = Annotated[
    int,
    json_number(parse_shares),
    schema(type="number", minimum=0.000001, maximum=MOST_SHARES, examples=[1]),
]
"""Parts of an epsilon that several answers take together, in parts per million from here on."""

Tilt = Annotated[int, json_number(parse_tilt), schema(type="number", minimum=0, maximum=1, examples=[0.1])]
"""A part of the range, in parts per million from here on."""

Number = Annotated[Decimal, json_number(finite)]
"""A decimal number, exact."""

Delta = Annotated[
    int,
    json_number(_delta),
    schema(type="number", minimum=0, exclusiveMaximum=1, examples=[0.000001]),
]
"""A delta, in units of 1e-12 from here on."""


def _in_units(show: Callable[[int], float]) -> BeforeValidator:
    """Shows an integer of the ledger as a decimal number; a number that is one already stays."""
    return BeforeValidator(lambda value: show(value) if type(value) is int else value)


EpsilonOut = Annotated[float, _in_units(epsilon_to_json)]
"""An epsilon; a record has it in micro-epsilon."""

Mu2Out = Annotated[float, _in_units(epsilon_to_json)]
"""mu^2; a record has it in 1e-6."""

ShareOut = Annotated[float, _in_units(epsilon_to_json)]
"""A part of each epsilon; a record has it in parts per million."""

TiltOut = Annotated[float, _in_units(epsilon_to_json)]
"""A part of the range; a record has it in parts per million."""

DeltaOut = Annotated[float, _in_units(delta_to_json)]
"""A delta; a record has it in units of 1e-12."""

DigestOut = Annotated[str, BeforeValidator(lambda value: value.hex() if isinstance(value, bytes) else value)]
"""A digest in hexadecimal digits; a record has its bytes."""

IdOut = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, UUID) else value)]
"""An id."""

Text = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(min_length=1, max_length=200),
    schema(type="string", minLength=1, maxLength=200, pattern=r"^[^\x00-\x1f\x7f]*$"),
]
"""A line of text for people."""

Prose = Annotated[
    str,
    BeforeValidator(_prose),
    StringConstraints(max_length=2000),
    schema(type="string", maxLength=2000, pattern=r"^[^\x00-\x09\x0b-\x1f\x7f]*$"),
]
"""Text for people, of one line or several; may be empty."""

Slug = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(pattern=SLUG_PATTERN),
    schema(type="string", pattern=SLUG_PATTERN, examples=["commute-minutes"]),
]
"""What addresses a study."""

Language = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(pattern=LANGUAGE_PATTERN),
    schema(type="string", pattern=LANGUAGE_PATTERN, examples=["de"]),
]
"""The code of a language."""

AttributeName = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(pattern=ATTRIBUTE_PATTERN),
    schema(type="string", pattern=ATTRIBUTE_PATTERN, **{"not": {"enum": list(TAKEN)}}),
]
"""What addresses an attribute of a study."""

MeasureName = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(pattern=ATTRIBUTE_PATTERN),
    schema(
        type="string",
        pattern=ATTRIBUTE_PATTERN,
        **{"not": {"enum": [name for name in TAKEN if name != VALUE]}},
    ),
]
"""What addresses a measure of a study."""

Label = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(pattern=LABEL_PATTERN),
    schema(type="string", pattern=LABEL_PATTERN, examples=["north"]),
]
"""One of the values of an attribute."""

SubjectId = Annotated[
    str,
    BeforeValidator(_text),
    StringConstraints(min_length=1, max_length=256),
    schema(type="string", minLength=1, maxLength=256, examples=["alice"]),
]
"""An external id of a person."""

NewSubjectId = Annotated[SubjectId, AfterValidator(_new_subject)]
"""An external id by which a person's contribution may arrive."""

Distinct = BeforeValidator(_distinct)
"""For arrays that name each thing once."""
