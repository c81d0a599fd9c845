"""One value or report on its way in: a number or a choice, of a whole study or one of its measures."""

from collections.abc import Mapping, Sequence

from dither.device.choices import ChoiceRandomizer
from dither.device.randomizers import randomizer
from dither.device.texts import spelled

from app.core.errors import FieldError
from app.core.grid import NotANumber, parse_decimal
from app.core.numbers import JsonNumber, to_integer, why_no_number
from app.core.study import StudyDefinition
from app.mechanisms.local_reports import drawn_at_most

IMPOSSIBLE = "not a report of this study's mechanism with this epsilon"

MAX_LISTED = 20
"""Labels that a refusal lists."""


class ValueReader:
    """Reads what people answer to one question.

    Args:
        of: A study of one value, or of the coordinates of a vector; for a measure the study of that alone.
        whose: What has the range or the choices, for refusals.
    """

    def __init__(self, of: StudyDefinition, whose: str = "study") -> None:
        self._grid, self._dimension = of.grid, of.dimension
        self._choices = dict(zip(of.choices, of.choice_points, strict=True))
        self._reason = (
            f"must be one of the {whose}'s choices, as text: {listed(of.choices)}"
            if of.choices
            else f"outside the {whose}'s range, {of.lower:f} to {of.upper:f}"
        )
        self.randomizer = ChoiceRandomizer(len(of.choices)) if of.choices else randomizer(of.local_mechanism)

    def value(
        self, record: Mapping[str, object], name: str, errors: list[FieldError], field: str | None = None
    ) -> int:
        """The grid point of the value with this name; 0 where it is refused."""
        shown = field or name
        if self._choices:
            if name not in record:
                errors.append(FieldError(shown, "missing"))
                return 0
            label = record[name]
            point = self._choices.get(label) if type(label) is str else None
            if point is None and type(label) is str and (own := spelled(label, self._choices)) is not None:
                point = self._choices[own]
        else:
            number = read_number(record, name, errors, shown)
            if number is None:
                return 0
            point = self._grid.point(*number)
        if point is None:
            errors.append(FieldError(shown, self._reason))
            return 0
        return point

    def values(
        self, record: Mapping[str, object], name: str, errors: list[FieldError], field: str | None = None
    ) -> tuple[int, ...]:
        """The grid points of all coordinates of the value with this name; none where it is refused."""
        if self._dimension == 1:
            return (self.value(record, name, errors, field),)
        shown, given = field or name, record.get(name)
        if not isinstance(given, list) or len(given) != self._dimension:
            reason = f"must be an array of {self._dimension} numbers" if name in record else "missing"
            errors.append(FieldError(shown, reason))
            return ()
        named = {f"{shown}.{place}": number for place, number in enumerate(given)}
        return tuple(self.value(named, one, errors) for one in named)

    def report(
        self,
        record: Mapping[str, object],
        name: str,
        amount: int,
        errors: list[FieldError],
        field: str | None = None,
    ) -> tuple[int, int]:
        """A report, and the most with which it can have been drawn [unit of the local mechanism].

        Args:
            record, name: Where it is.
            amount: What it was randomized with at most; 0 where that was refused.
            errors: Gets what is wrong.
            field: What it is called there; by default its name.
        """
        shown = field or name
        if read_number(record, name, errors, shown) is None:
            return 0, 0
        try:
            report = to_integer(str(record[name]))
        except NotANumber:
            errors.append(FieldError(shown, "must be an integer on the study's grid"))
            return 0, 0
        drawn = drawn_at_most(self.randomizer, report, amount) if amount else 0
        if amount and not drawn:
            errors.append(FieldError(shown, IMPOSSIBLE))
        return report, drawn


def listed(names: Sequence[str]) -> str:
    """Labels for a refusal: the first ones where there are many."""
    return ", ".join([*names[:MAX_LISTED], *["..."][: len(names) > MAX_LISTED]])


def read_number(
    record: Mapping[str, object], name: str, errors: list[FieldError], field: str
) -> tuple[int, int] | None:
    """Mantissa and exponent of a number; None where it is refused."""
    number = record.get(name)
    if name not in record:
        errors.append(FieldError(field, "missing"))
        return None
    if type(number) is not JsonNumber:
        errors.append(FieldError(field, "must be a number"))
        return None
    try:
        return parse_decimal(number)
    except NotANumber:
        errors.append(FieldError(field, why_no_number(number)))
        return None
