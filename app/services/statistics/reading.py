"""What is read off the answers for labels: a difference, a standardized mean, intervals that hold together.

All of it is post-processing of one release by labels, see `app.estimators.together`. It costs that release
where there is none yet, and nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from app.core.errors import FieldError, InvalidRequest
from app.core.grid import NotANumber, parse_decimal
from app.core.study import StudyDefinition
from app.estimators import confidence
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.questions import (
    AT,
    COUNT,
    DECLARED,
    FOUND,
    MEAN,
    ON,
    PAIR,
    RANGE,
    REGRESSION,
    STATISTICS,
    SUM,
    Ask,
    no_number,
    of_vectors,
)

DIFFERENCE = "difference"

READ = (*STATISTICS, DIFFERENCE)
"""Every statistic that is read off a release of a mean."""

_ROUNDING = Fraction(1, 10**6)
"""How far shares of a population may be from 1 together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read off a release.

    Attributes:
        ask: The question of the release.
        statistic: One of `READ`, or of a shape.
        simultaneous: Whether labels have intervals that hold at once, besides.
        by: The attributes of the labels that are read.
        shares: Of the population that each label of an attribute has, if known; those of one sum to 1. Empty
            without.
        between: The two labels of a difference; empty for other statistics.
        level: Of the intervals that are read.
        line: Of a regression the number that is explained, and the one that explains; empty for others.
        at: Of a regression where on the second one its line is asked for [its unit]; None for nowhere.
    """

    ask: Ask
    statistic: str
    simultaneous: bool = False
    by: str = ""
    shares: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    between: tuple[str, ...] = ()
    level: float = confidence.LEVEL
    line: tuple[str, ...] = ()
    at: float | None = None

    @classmethod
    def of(cls, study: StudyDefinition, ask: Ask) -> "Reading":
        """Check what is to be read off.

        Raises:
            InvalidRequest: names every offending field.
        """
        if ask.measure == study.one_measure:
            ask = replace(ask, measure="")
        errors: list[FieldError] = []
        shares: Mapping[str, Mapping[str, Fraction]] = {}
        between: tuple[str, ...] = ()
        by = ask.by
        try:
            if ask.statistic == DIFFERENCE:
                by, between = _between(study, ask.between)
        except ValueError as error:
            errors.append(FieldError("between", str(error)))
        line: tuple[str, ...] = ()
        at: float | None = None
        if ask.statistic == REGRESSION:
            ask, line, at = _line(study, ask)
        if ask.statistic != DIFFERENCE:
            where = {"of": f"a {DIFFERENCE} and a {REGRESSION}", "between": f"a {DIFFERENCE}"}
            errors += [
                FieldError(name, f"applies to {those}") for name, those in where.items() if getattr(ask, name)
            ]
        elif ask.of not in ("", MEAN):
            errors.append(FieldError("of", f"must be {MEAN}"))
        try:
            if ask.standardize and ask.statistic == MEAN:
                shares = _shares(study, ask.standardize)
                by = ",".join(shares)
        except ValueError as error:
            errors.append(FieldError("standardize", str(error)))
        if ask.standardize and ask.statistic != MEAN:
            errors.append(FieldError("standardize", f"applies to a {MEAN}"))
        if ask.by and set(by.split(",")) != set(ask.by.split(",")):
            errors.append(FieldError("by", f"must be {by} here, or not be given"))
        if ask.simultaneous and ask.statistic not in (MEAN, SUM, DIFFERENCE):
            errors.append(FieldError("simultaneous", f"applies to {MEAN}, {SUM} and {DIFFERENCE}"))
        elif ask.simultaneous and not by:
            errors.append(FieldError("simultaneous", "applies to answers by labels: give by"))
        if ask.until is not None and (reason := _no_until(study, ask)):
            errors.append(FieldError("until", reason))
        if ask.statistic in READ and of_vectors(study, ask):
            if ask.statistic == DIFFERENCE:
                raise InvalidRequest.field("statistic", no_number(study.of_measure(ask.measure)))
            names = ("standardize", "simultaneous")
            errors += [
                FieldError(name, "does not apply to values of several coordinates")
                for name in names
                if getattr(ask, name)
            ]
        if errors:
            raise InvalidRequest.naming(errors, "the question is ")
        statistic = MEAN if ask.statistic == DIFFERENCE else ask.statistic
        ask, level = replace(ask, level=confidence.LEVEL), ask.level
        plain = replace(
            ask, statistic=statistic, by=by, simultaneous=False, standardize="", of="", between=""
        )
        reading = cls(
            ask=plain,
            statistic=ask.statistic,
            simultaneous=ask.simultaneous,
            by=by,
            shares=shares,
            between=between,
            level=level,
            line=line,
            at=at,
        )
        read = None if ask.until is None else ask
        return replace(reading, ask=replace(plain, label_weights=reading._weighed(study), read=read))

    @property
    def label_weights(self) -> LabelWeights | None:
        """What labels weigh in the number that is read off several; None where none is."""
        return self.ask.label_weights

    def _weighed(self, study: StudyDefinition) -> LabelWeights | None:
        if self.between:
            one, other = self.between
            return LabelWeights(cells=study.attributes.cells(self.by), fixed={one: 1.0, other: -1.0})
        if not self.shares:
            return None
        shares = {
            name: {label: float(share) for label, share in own.items()} for name, own in self.shares.items()
        }
        return LabelWeights.of_shares(study.attributes, self.by, shares)


def _no_until(study: StudyDefinition, ask: Ask) -> str:
    """Why the answer to a question cannot be asked for by its half-width; empty where it can.

    Decided from question and study alone. Half of an interval is predicted where neither values nor a secret
    number of people decide it; of others there is at most a bound, which is compared with nothing.
    """
    if ask.share is not None or ask.epsilon is not None:
        return "is in place of share and epsilon"
    if ask.parameters.get(RANGE) == FOUND:
        return f"applies to a {DECLARED} range: over one that is found first, that decides the interval"
    if not study.hides_people:
        widths = (MEAN, SUM, DIFFERENCE)
        return "" if ask.statistic in widths else f"applies to {', '.join(widths)}: no others' is predicted"
    return "" if ask.statistic == COUNT else f"applies to {COUNT} here: no other half-width is predicted"


def _line(study: StudyDefinition, ask: Ask) -> tuple[Ask, tuple[str, str], float | None]:
    """A question for the line of one number on another one as one for both, these, and where it is asked for.

    Raises:
        InvalidRequest: they are not given as it takes them.
    """
    parameters = dict(ask.parameters)
    line, at = (ask.of, parameters.pop(ON, "")), parameters.pop(AT, None)
    errors = [
        FieldError(name, "is needed: a number that is explained, and on the one that explains it")
        for name, value in zip(("of", ON), line, strict=True)
        if not value
    ]
    if PAIR in parameters:
        errors.append(FieldError(PAIR, f"does not apply to a {REGRESSION}, which takes of and {ON}"))
    try:
        place = None if at is None else _place(study, line[1], at)
    except ValueError as error:
        errors.append(FieldError(AT, str(error)))
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    return replace(ask, of="", parameters={**parameters, PAIR: ",".join(line)}), line, place


def _place(study: StudyDefinition, measure: str, text: str) -> float:
    """A number in the range of a measure; that there is such a measure is for its question to say.

    Raises:
        ValueError: the reason.
    """
    try:
        mantissa, exponent = parse_decimal(text)
    except NotANumber:
        raise ValueError("must be a number") from None
    place = mantissa * Fraction(10) ** exponent
    named = study.measures.named.get(measure)
    if named is not None and not named.lower <= place <= named.upper:
        raise ValueError(f"must lie in the range of {measure}, {named.lower:f} to {named.upper:f}")
    return float(place)


def _attribute(study: StudyDefinition, text: str, example: str) -> tuple[str, list[str]]:
    """The attribute, and what is behind its colon.

    Raises:
        ValueError: the reason.
    """
    name, colon, rest = text.partition(":")
    if not colon:
        raise ValueError(f"must be {example}")
    if name not in study.attributes.labels:
        raise ValueError(study.attributes.unknown("an attribute"))
    return name, rest.split(",")


def _between(study: StudyDefinition, text: str) -> tuple[str, tuple[str, ...]]:
    name, labels = _attribute(study, text, "an attribute and two of its labels, such as region:north,south")
    known = study.attributes.labels[name]
    if len(labels) != 2 or labels[0] == labels[1] or not set(labels) <= set(known):
        raise ValueError(f"must name two labels of {name}: {', '.join(known)}")
    return name, tuple(labels)


def _shares(study: StudyDefinition, text: str) -> Mapping[str, Mapping[str, Fraction]]:
    """The shares of each attribute that is named, in the order of the study.

    Raises:
        ValueError: the reason.
    """
    found: dict[str, Mapping[str, Fraction]] = {}
    for part in text.split(";"):
        name, shares = _shares_of_one(study, part)
        if name in found:
            raise ValueError(f"names {name} twice")
        found[name] = shares
    if len(found) > 1 and study.hides_people:
        raise ValueError(
            "must name one attribute where the number of people is secret: the shares of several are met by "
            "weights that depend on how many people each combination of labels has"
        )
    return {name: found[name] for name in study.attributes.labels if name in found}


def _shares_of_one(study: StudyDefinition, text: str) -> tuple[str, Mapping[str, Fraction]]:
    name, parts = _attribute(
        study, text, "an attribute and the share of each label, such as region:north=.4,south=.6"
    )
    known = study.attributes.labels[name]
    found: dict[str, Fraction] = {}
    for part in parts:
        label, equals, number = part.partition("=")
        if not equals or label not in known or label in found:
            raise ValueError(f"must give every label of {name} once, as label=share: {', '.join(known)}")
        found[label] = _share(number)
    if len(found) != len(known):
        raise ValueError(f"must give every label of {name}: {', '.join(known)}")
    total = sum(found.values(), Fraction())
    if abs(total - 1) > _ROUNDING:
        raise ValueError(f"must have shares of {name} that sum to 1, and they sum to {float(total):g}")
    return name, {label: found[label] / total for label in known}


def _share(text: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal(-1)
    # An exponent would make a fraction of any size.
    if not (number.is_finite() and 0 <= number <= 1 and len(text) <= 32 and number.adjusted() > -32):
        raise ValueError("must have shares between 0 and 1")
    return Fraction(number)
