"""What a caller wants to contribute, checked against the study's description. Pure."""

import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import SupportsIndex, cast

from dither._calls import mapped
from dither._documents import Measure, ReportingRange, Study, Trust
from dither._errors import Faults, InvalidRequest, StudyUnsound, UnsupportedMechanism
from dither.device.choices import ChoiceRandomizer, choice_points
from dither.device.gaussian import micro_mu2, pure_epsilon
from dither.device.numbers import (
    DELTA_UNIT,
    GRID_SIZE,
    Grid,
    NotANumber,
    Number,
    Numeric,
    Value,
    epsilon_cost,
    epsilon_limit,
    round_down_to_significant,
)
from dither.device.randomizers import LocalMechanism, Randomizer, randomizer
from dither.device.texts import MAX_SUBJECT_LENGTH, spelled, subject_fault

_NOT_PLAIN = re.compile("[\ud800-\udfff]")
_RELATIONS = ("replace_one", "add_remove_one")
_TRUSTS: dict[str, Trust] = {"central": "central", "local": "local", "public": "public"}


AnyRandomizer = Randomizer | ChoiceRandomizer
OfOne = Number | str | tuple[Number, ...]
Written = OfOne | dict[str, OfOne]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A contribution that is admissible in its study.

    Attributes:
        subject, trust: For whom, and as what.
        epsilon: Rounded down to three significant digits; None for public [micro-epsilon].
        value: The value, as it is written; a tuple in a study of vectors, a label in one of choices, and
            these by name in one of measures.
        position: Its grid point, or those of its coordinates.
        randomizers: What makes a report of it, or of each measure; none where it is sent as it is.
        attributes: Names and labels, in the order of the study.
        inside: The reporting range of a report.
        delta: Above 0 where reports are pure and mu^2 pays for them: at which an epsilon is mu^2 [1e-12].
    """

    subject: str
    trust: Trust
    epsilon: int | None
    value: Written
    position: int | tuple[int, ...]
    randomizers: tuple[AnyRandomizer, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    inside: ReportingRange | None = None
    delta: int = 0

    def worth(self, epsilon: int) -> int:
        """What reports may be randomized with where they cost that much [micro-epsilon].

        >>> order = Order(subject="ann", trust="local", epsilon=10**6, value="yes", position=0, delta=10**6)
        >>> order.worth(10**6)
        188981
        """
        return pure_epsilon(micro_mu2(epsilon, self.delta)) if self.delta else epsilon


def make_order(
    study: Study,
    *,
    subject: str | int,
    value: Value | Mapping[str, Value],
    epsilon: Numeric | None,
    trust: str,
    attributes: Mapping[str, str] | None = None,
) -> Order:
    """Check what a caller wants to contribute.

    Raises:
        InvalidRequest: an argument is not admissible in this study.
        UnsupportedMechanism: this SDK cannot randomize for it.
    """
    faults = Faults()
    with faults:
        subject = new_subject(subject)
    tag = _TRUSTS.get(trust) if isinstance(trust, str) else None
    with faults:
        if tag is None:
            raise InvalidRequest("trust", "must be central, local or public")
        if tag not in study.trust:
            raise InvalidRequest("trust", f"must be one that the study accepts: {', '.join(study.trust)}")
    with faults:
        limit = _check_epsilon(study, epsilon, tag)
    local = tag == "local" in study.trust
    if study.dimension > 1 and not _several(study) and local:
        raise UnsupportedMechanism("local people of a study of vectors take part in its sessions instead")
    randomizers = _randomizers(study) if local else ()
    with faults:
        written, position = _written(study, value)
    with faults:
        labels = _labels(study, {} if attributes is None else attributes)
    faults.check()
    return Order(
        subject=cast(str, subject),
        trust=cast(Trust, tag),
        epsilon=limit,
        value=written,
        position=position,
        randomizers=randomizers,
        attributes=labels,
        inside=study.reporting_range if local else None,
        # A Gaussian randomizer turns an epsilon into mu^2 by itself.
        delta=0 if study.local_mechanism == LocalMechanism.GAUSSIAN else int(study.delta * DELTA_UNIT),
    )


def _written(study: Study, value: object) -> tuple[Written, int | tuple[int, ...]]:
    """A value as it is sent, and its place on the grid. One alone may be given by its name, too."""
    if not _several(study) and not isinstance(value, Mapping):
        return _one(study, value, "value")
    measures: Mapping[str, Study | Measure] = study.measures or {"value": study}
    written, positions = _measured(measures, value)
    if _several(study):
        return written, positions
    [one] = written.values()
    return one, positions if study.dimension > 1 else positions[0]


def _several(study: Study) -> bool:
    return len(study.measures) > 1


def _one(of: Study | Measure, value: object, name: str) -> tuple[OfOne, int | tuple[int, ...]]:
    """A number, a choice or a vector."""
    if of.dimension > 1:
        return _vector(of, value, name)
    if not of.choices:
        return _number(of, value, name)
    choice = spelled(value, of.choices) if isinstance(value, str) else None
    if choice is None:
        raise InvalidRequest(name, f"must be one of the {_whose(of)}'s choices: {', '.join(of.choices)}")
    return choice, choice_points(len(of.choices))[of.choices.index(choice)]


def _whose(of: Study | Measure) -> str:
    return "study" if isinstance(of, Study) else "measure"


def _measured(
    measures: Mapping[str, Study | Measure], value: object
) -> tuple[dict[str, OfOne], tuple[int, ...]]:
    if not isinstance(value, Mapping):
        raise InvalidRequest("value", f"must map the study's measures: {', '.join(measures)}")
    for name in value:
        if name not in measures:
            raise InvalidRequest(f"values.{name}", "is no measure of the study")
    faults = Faults()
    written: dict[str, OfOne] = {}
    positions: list[int] = []
    for name, measure in measures.items():
        with faults:
            if name not in value:
                raise InvalidRequest(f"values.{name}", "is needed: every measure of the study once")
            written[name], position = _one(measure, value[name], f"values.{name}")
            positions += position if isinstance(position, tuple) else [position]
    faults.check()
    return written, tuple(positions)


def _number(of: Study | Measure, value: object, name: str) -> tuple[Number, int]:
    outside = f"lies outside the {_whose(of)}'s range, {of.lower:f} to {of.upper:f}"
    return on_grid(grid_of(of.lower.as_integer_ratio(), of.upper.as_integer_ratio()), value, name, outside)


def on_grid(grid: Grid, value: object, name: str, outside: str) -> tuple[Number, int]:
    """A number, and its place on a grid.

    Raises:
        InvalidRequest: it is none, or not in the range: the reason is then `outside`.
    """
    try:
        number = Number.parse(value)  # type: ignore[arg-type]  # whatever a caller gives
    except NotANumber:
        raise InvalidRequest(name, "is not a finite decimal number") from None
    position = grid.point(number.mantissa, number.exponent)
    if position is None:
        raise InvalidRequest(name, outside)
    return number, position


def _labels(study: Study, given: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    for name in mapped("attributes", given, '{"region": "north"}'):
        if name not in study.attributes:
            raise InvalidRequest(f"attributes.{name}", "is no attribute of the study")
    faults = Faults()
    found = []
    for name, labels in study.attributes.items():
        with faults:
            if name not in given:
                raise InvalidRequest(f"attributes.{name}", "is needed: every attribute of the study once")
            label = spelled(given[name], labels) if isinstance(given[name], str) else None
            if label is None:
                raise InvalidRequest(
                    f"attributes.{name}", f"must be one of the study's labels: {', '.join(labels)}"
                )
            found.append((name, label))
    faults.check()
    return tuple(found)


def _vector(of: Study | Measure, value: object, name: str) -> tuple[tuple[Number, ...], tuple[int, ...]]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != of.dimension:
        raise InvalidRequest(name, f"must be {of.dimension} numbers, in a table with semicolons between them")
    found = [_number(of, coordinate, f"{name}.{place}") for place, coordinate in enumerate(value)]
    return tuple(number for number, _ in found), tuple(position for _, position in found)


def _randomizers(study: Study) -> tuple[AnyRandomizer, ...]:
    if _several(study):
        return tuple(
            ChoiceRandomizer(len(one.choices)) if one.choices else _of_numbers(study)
            for one in study.measures.values()
        )
    name = study.local_mechanism
    if study.choices:
        if name != "choice":
            raise UnsupportedMechanism(f"local mechanism {name!r} is not supported for choices, only choice")
        return (ChoiceRandomizer(len(study.choices)),)
    return (_of_numbers(study),)


def _of_numbers(study: Study) -> Randomizer:
    name = study.local_mechanism
    if name not in list(LocalMechanism):
        known = ", ".join(LocalMechanism)
        raise UnsupportedMechanism(f"local mechanism {name!r} is not supported, only {known}")
    found = randomizer(name, int(study.delta * DELTA_UNIT))
    if _several(study) and not found.is_bounded:
        raise UnsupportedMechanism(f"{name} reports of several measures are not supported")
    if found.has_delta and found.delta == 0:
        raise UnsupportedMechanism("Gaussian reports need a study with a delta")
    return found


@lru_cache(maxsize=64)
def grid_of(lower: tuple[int, int], upper: tuple[int, int]) -> Grid:
    """The grid of a range."""
    return Grid(Fraction(*lower), Fraction(*upper))


def _check_epsilon(study: Study, epsilon: Numeric | None, trust: Trust | None) -> int | None:
    if trust == "public":
        if epsilon is not None:
            raise InvalidRequest("epsilon", "makes no sense for a public value, which has no privacy at all")
        return None
    if epsilon is None:
        raise InvalidRequest("epsilon", "is needed, except for public values")
    try:
        limit = round_down_to_significant(epsilon_limit(epsilon))
    except NotANumber:
        raise InvalidRequest("epsilon", "is not a finite decimal number") from None
    if study.epsilons and limit not in map(epsilon_limit, study.epsilons):
        raise InvalidRequest("epsilon", f"must be one of {', '.join(map(str, study.epsilons))}")
    if not epsilon_cost(study.epsilon.min) <= limit <= epsilon_limit(study.epsilon.max):
        raise InvalidRequest("epsilon", f"must lie in [{study.epsilon.min}, {study.epsilon.max}]")
    return limit


def subject_text(subject: str | int) -> str:
    """A subject as the service knows it: a text, or the decimal digits of an integer.

    Raises:
        InvalidRequest: neither.
    """
    text: object = subject
    if isinstance(subject, SupportsIndex) and not isinstance(subject, bool):
        text = str(operator.index(subject))
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_SUBJECT_LENGTH:
        raise InvalidRequest(
            "subject", f"must be an integer or a text of 1 to {MAX_SUBJECT_LENGTH} characters"
        )
    if _NOT_PLAIN.search(text):
        raise InvalidRequest("subject", "is not plain Unicode text")
    return text


def new_subject(subject: str | int) -> str:
    """The same of one that gives something away.

    Raises:
        InvalidRequest: it is none, or one that the service does not take any more.
    """
    text = subject_text(subject)
    if (fault := subject_fault(text)) is not None:
        raise InvalidRequest("subject", fault)
    return text


def check_study(study: Study, slug: str) -> None:
    """Refuse a description that makes no sense.

    Raises:
        StudyUnsound: with what is wrong.
    """
    if study.slug != slug:
        raise StudyUnsound("the service described another study than the one asked for")
    if study.choices and (study.upper - study.lower != len(study.choices) - 1 or study.dimension != 1):
        raise StudyUnsound("the study's choices and range do not go together")
    if study.measures and study.dimension != sum(one.dimension for one in study.measures.values()):
        raise StudyUnsound("the study's measures and dimension do not go together")
    for one in study.measures.values():
        reported = _several(study) and "local" in study.trust
        if one.dimension < 1 or (one.dimension > 1 and (one.choices or reported)):
            raise StudyUnsound("the coordinates of a measure make no sense")
        if one.choices and one.upper - one.lower != len(one.choices) - 1:
            raise StudyUnsound("the choices and the range of a measure do not go together")
    if not study.lower < study.upper or any(not one.lower < one.upper for one in study.measures.values()):
        raise StudyUnsound("the study's range is empty")
    inside = study.reporting_range
    if inside and not (inside.zoom > 1 and 0 <= inside.start <= GRID_SIZE - GRID_SIZE // inside.zoom):
        raise StudyUnsound("the study's reporting range does not lie in its range")
    if study.relation not in _RELATIONS:
        raise StudyUnsound("the study promises privacy for an unknown relation")
    if not 0 < study.epsilon.min <= study.epsilon.max:
        raise StudyUnsound("the study's epsilons are not a range")
    if any(not study.epsilon.min <= one <= study.epsilon.max for one in study.epsilons):
        raise StudyUnsound("the study's epsilons do not lie in their range")
    if not 0 <= study.delta < 1 or study.dimension < 1:
        raise StudyUnsound("the study's delta or dimension is impossible")
    if (study.noise == "gaussian") != (study.delta > 0):
        raise StudyUnsound("the study's noise and delta do not go together")


def study_terms(study: Study) -> str:
    """What may never change about a study, as text that compares."""
    terms: dict[str, object] = {"attributes": study.attributes} if study.attributes else {}
    if study.choices:
        terms["choices"] = study.choices
    if study.measures:
        terms["measures"] = {
            name: one.choices
            or [list(end.as_integer_ratio()) for end in (one.lower, one.upper)]
            + ([one.dimension] if one.dimension > 1 else [])
            for name, one in study.measures.items()
        }
    return json.dumps(
        terms
        | {
            "range": [list(end.as_integer_ratio()) for end in (study.lower, study.upper)],
            "relation": study.relation,
            "delta": list(study.delta.as_integer_ratio()),
            "dimension": study.dimension,
            "local_mechanism": study.local_mechanism,
        },
        sort_keys=True,
    )
