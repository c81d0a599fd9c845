"""The parameters of questions about the distribution of the values, and how they are read."""

from collections.abc import Mapping
from fractions import Fraction

from app.core import question
from app.core.epsilon import MICRO
from app.core.errors import FieldError, InvalidRequest
from app.core.grid import GRID_SIZE, NotANumber, parse_decimal
from app.core.question import DEFAULT_BINS, DIGITS, MOST_BINS
from app.core.study import StudyDefinition
from app.estimators.tree_levels import Aim
from app.services.statistics.questions import ON, PAIR

AIM = "for"
DEFAULT_PART = int(question.DEFAULT_PART * MICRO)


def read_bins(
    study: StudyDefinition, parameters: Mapping[str, str]
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Where bins begin [grid steps], and the ends of all bins [data's unit]."""
    grid = study.grid
    if "edges" not in parameters:
        bins = read_whole("bins", parameters.get("bins", str(DEFAULT_BINS)), 2, MOST_BINS)
        places = [Fraction(edge, bins) for edge in range(bins + 1)]
        starts = tuple((2 * edge * GRID_SIZE + bins) // (2 * bins) for edge in range(1, bins))
        return starts, tuple(grid.to_unit(place) for place in places)
    if "bins" in parameters:
        raise InvalidRequest.field("bins", "cannot be given beside edges")
    points: list[int] = []
    values: list[float] = []
    for text in parameters["edges"].split(","):
        try:
            mantissa, exponent = parse_decimal(text.strip())
        except NotANumber:
            raise InvalidRequest.field("edges", "must be numbers with commas between") from None
        point = grid.point(mantissa, exponent)
        if point is None:
            raise InvalidRequest.field("edges", study.outside_range)
        if points and point <= points[-1]:
            raise InvalidRequest.field("edges", "must rise, by more than 2^-30 of the range")
        points.append(point)
        values.append(float(mantissa * Fraction(10) ** exponent))
    inner = [(point, value) for point, value in zip(points, values, strict=True) if 0 < point < GRID_SIZE]
    if not 1 <= len(inner) < MOST_BINS:
        raise InvalidRequest.field("edges", f"must divide the range into 2 to {MOST_BINS} bins")
    ends = (float(study.lower), *(value for _, value in inner), float(study.upper))
    return tuple(point for point, _ in inner), ends


def read_pair(
    study: StudyDefinition, parameters: Mapping[str, str], *, choices: bool = False, line: bool = False
) -> tuple[str, ...]:
    """Two measures that go together, in one order: the answer is paid for once. Of a `line`, `of` and `on`.

    Args:
        study, parameters, line: Of the question.
        choices: Whether they are choices; else they are numbers.
    """
    numbers = study.measures.single(choices=choices)
    if len(numbers) < 2:
        kind = "choices" if choices else "numbers"
        raise InvalidRequest.field("statistic", f"is for studies of several {kind}: see measures")
    names = tuple(name.strip() for name in parameters.get(PAIR, "").split(","))
    known = ", ".join(numbers)
    if line:
        wrong = {"of": names[0] not in numbers, ON: names[-1] not in numbers or names[-1] == names[0]}
        errors = [
            FieldError(field, f"must be one of {known}" + (", another one than of" if field == ON else ""))
            for field, one in wrong.items()
            if one
        ]
        if errors:
            raise InvalidRequest.naming(errors, "the question is ")
    if len(names) != 2 or names[0] == names[1] or not set(names) <= set(numbers):
        raise InvalidRequest.field(PAIR, f"must be two of {known}, with a comma between")
    return tuple(name for name in numbers if name in names)


def read_rank(name: str, parameters: Mapping[str, str]) -> Fraction:
    """A number between 0 and 1."""
    if name not in parameters:
        raise InvalidRequest.field(name, "is needed for a quantile")
    reason = f"must be a number above 0 and below 1 with at most {DIGITS} decimals"
    try:
        mantissa, exponent = parse_decimal(parameters[name])
    except NotANumber:
        raise InvalidRequest.field(name, reason) from None
    rank = mantissa * Fraction(10) ** exponent
    if not 0 < rank < 1 or (rank * 10**DIGITS).denominator != 1:
        raise InvalidRequest.field(name, reason)
    return rank


def read_aim(parameters: Mapping[str, str]) -> Aim:
    """What of a quantile is to be as exact as it can be."""
    try:
        return Aim(parameters.get(AIM, Aim.INTERVAL))
    except ValueError:
        raise InvalidRequest.field(AIM, f"must be {' or '.join(Aim)}") from None


def read_whole(name: str, text: str, least: int, most: int) -> int:
    """A whole number between two."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise InvalidRequest.field(name, f"must be a whole number from {least} to {most}")
    return int(text)
