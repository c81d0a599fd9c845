"""One of several numbers of a study on the wire."""

from pydantic import Field, field_validator

from app.core.attributes import TAKEN
from app.core.errors import FieldError, InvalidRequest
from app.web.documents.types import Bound, WireIn, WireOut, above_lower


class MeasureIn(WireIn):
    """One of the numbers that a study asks for."""

    lower: Bound = Field(description="Lower end of the range.")
    upper: Bound = Field(description="Upper end of the range.")

    _above_lower = field_validator("upper")(above_lower)


def checked_measures(document: object) -> object:
    """Refuse measures that are no single numbers or have a name that is taken, each by its path.

    Raises:
        InvalidRequest: names every offending field.
    """
    reason = "is not supported: a measure is one number with lower and upper; ask for others in another study"
    measures = document if isinstance(document, dict) else {}
    found = [
        FieldError(f"measures.{name}", "is the name of another field of contributions")
        for name in measures
        if name in TAKEN
    ]
    found += [
        FieldError(f"measures.{name}.{field}", reason)
        for name, own in measures.items()
        for field in ("choices", "dimension")
        if isinstance(own, dict) and field in own
    ]
    if found:
        raise InvalidRequest.naming(found)
    return document


class MeasureOut(WireOut):
    """The range of one of the numbers that a study asks for."""

    lower: float
    upper: float
