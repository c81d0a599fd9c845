"""A sizing, from fields of text."""

from collections.abc import Mapping

from pydantic import ValidationError

from app.core.errors import InvalidRequest
from app.core.numbers import JsonNumber
from app.services.statistics.questions import Ask
from app.services.statistics.sizing import Sizing
from app.web.documents.sizing import SizingIn
from app.web.validation_messages import field_errors

WORDS = ("relation", "noise", "local_mechanism")
"""Fields that are no numbers."""


def read_sizing(
    fields: Mapping[str, str], *, estimator: str | None = None, parameters: Mapping[str, str] | None = None
) -> Sizing:
    """The sizing that a form or a command line describes.

    Args:
        fields: Text by the fields of `SizingIn`.
        estimator: Name, or None for all that apply.
        parameters: Raw text of the estimator's parameters.

    Raises:
        InvalidRequest: names every offending field.
    """
    document = {name: text if name in WORDS else JsonNumber(text) for name, text in fields.items()}
    try:
        asked = SizingIn.model_validate(document)
    except ValidationError as refusal:
        raise InvalidRequest.naming(field_errors(refusal.errors())) from None
    return asked.sizing(Ask(estimator=estimator, parameters=parameters or {}))
