"""What an analyst asks, made canonical: equal questions have equal digests."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.core.epsilon import share_of
from app.core.errors import FieldError, InvalidRequest
from app.core.release import Asked
from app.core.study import NO_SIZE, NOT_OF_CHOICES, StudyDefinition, assumption
from app.estimators import confidence, registry
from app.estimators.hourglass import FLOOR, LEVEL_PARAMETER
from app.estimators.interface import Question
from app.estimators.transformed import MOMENTS, Transformed
from app.services.statistics.any_question import AnyQuestion, digest_of
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.levels import Level, level_of, tilt_of

MEAN, SUM, VARIANCE, SD = "mean", "sum", "variance", "sd"

COUNT = "count"

STATISTICS = (MEAN, SUM, VARIANCE, SD)
"""What is read off one release of a mean. In add_remove_one studies the two last ones have a release of their
own, with three sums in place of two, and a sum has none: the number of people is secret."""

RANGE, DECLARED, FOUND = "range", "declared", "found"
"""The parameter that says over which range a mean is taken: the study's, or one that is found first."""

RANGE_PART = "range_part"
"""The parameter that says which part of the price finds it."""

REGRESSION, PAIR, ON, AT = "regression", "measures", "on", "at"
"""A line of one number on another one: `of` names the first, a parameter the second, and another one a number
of the second."""

NO_SUM = "there is no sum where the number of people is secret"

NO_RANGE = f"must be {DECLARED} or {FOUND}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question as it was asked.

    Attributes:
        statistic: What of the study, one of `STATISTICS`.
        estimator: Name, or None for `auto`.
        share: Part of each personal epsilon to use [ppm]; None for the study's default.
        until: In place of it, what half of the interval is to be at most: the smallest share for which that
            is predicted [the statistic's unit].
        epsilon: The most that any person may be charged [micro-epsilon]; None for no such cap.
        expected_size: add_remove_one: what to take for the secret number of people.
        least_epsilon: add_remove_one: the least that people must have offered; None where the service chooses
            [micro-epsilon].
        tilt: See `StudyDefinition`; None for the study's [ppm].
        where: Of whom, as name:label with commas between; empty for all people.
        by: Attributes with commas between, of each cell of which it asks; empty for none.
        simultaneous, standardize, of, between: What is read off the answer, see `statistics.reading`.
        label_weights: See `AnyQuestion`.
        read: What is read off the answer, where this is the question of a reading and has `until`.
        measure: Of which measure, in a study of several; in others empty, or the name of the one.
        level: Of intervals; how an answer is read is no part of the question.
        parameters: Raw text of the estimator's parameters.
    """

    statistic: str = "mean"
    estimator: str | None = None
    share: int | None = None
    until: float | None = None
    epsilon: int | None = None
    expected_size: float | None = None
    least_epsilon: int | None = None
    tilt: int | None = None
    where: str = ""
    by: str = ""
    simultaneous: bool = False
    standardize: str = ""
    of: str = ""
    between: str = ""
    label_weights: LabelWeights | None = None
    read: "Ask | None" = None
    measure: str = ""
    level: float = confidence.LEVEL
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved(AnyQuestion):
    """A question for a mean, or what is read off one.

    Attributes:
        estimator: As asked; `auto` stays `auto`.
        parameters: Parsed values of the parameters that were given or have defaults.
        spread: Whether the answer must have a variance. No part of the question: a mean has it too.
    """

    parameters: Mapping[str, object]
    spread: bool = False

    @property
    def statistic(self) -> str:
        """What it is for, as its releases say it: all else is read off a mean."""
        return MEAN

    @property
    def chooses(self) -> bool:
        """Where an estimator's own parameter says who takes part, all may."""
        return self.level is not None and self.parameters.get(LEVEL_PARAMETER.name, FLOOR) == FLOOR

    def assumption(self, study: StudyDefinition) -> str:
        """See `AnyQuestion`."""
        return assumption(self.assumed(study))

    @property
    def digest(self) -> bytes:
        """See `AnyQuestion`."""
        return digest_of(replace(self, tilt=self.tilt or None).to_json())

    @property
    def by_parts(self) -> Asked:
        """See `AnyQuestion`."""
        question = replace(self, tilt=self.tilt or None)
        parts = {name: value for name, value in question.asked().items() if name not in ("share", "epsilon")}
        family = digest_of({**question.to_json(), "parameters": parts})
        return Asked(family=family, share=self.share, cap=self.epsilon)

    def combined(self) -> Asked:
        """What the free answers are kept under that combine those to this question with all others."""
        family = digest_of({"statistic": MEAN, "combines": self.by_parts.family.hex()})
        return Asked(family=family, share=0, cap=None)

    def to_json(self) -> dict[str, object]:
        """The question as it stands on its releases."""
        asked = {"statistic": MEAN, "estimator": self.estimator, "parameters": self.asked()}
        return asked | self.of_whom_and_what

    def _special(self) -> Mapping[str, object]:
        return self.parameters

    def question(
        self,
        study: StudyDefinition,
        *,
        people: int | None,
        expected_size: float | None = None,
        variance: float | None = None,
    ) -> Question:
        """The estimators' view of the question; `variance` in the data's unit squared."""
        size = self.expected_size if self.expected_size is not None else expected_size
        if self.level is not None and self.level.size is not None:
            size = self.level.size
        return Question(
            relation=study.relation,
            grid=study.grid,
            cap=self.offer(study.amount(study.epsilon_max)),
            floor=self.offer(study.amount(study.epsilon_min) if self.level is None else self.level.floor),
            delta=study.delta,
            people=people,
            expected_size=size,
            sizes=() if self.level is None else self.level.sizes,
            tilt=self.assumed_tilt(study),
            variance=None if variance is None else variance / float(study.grid.width) ** 2,
            parameters=self.parameters,
        )


def resolve(study: StudyDefinition, ask: Ask) -> Resolved:
    """Check a question against its study and fill in the defaults.

    Raises:
        InvalidRequest: names every offending field.
    """
    if ask.statistic not in STATISTICS:
        raise InvalidRequest.field("statistic", f"must be one of {', '.join(STATISTICS)}")
    secret, spread = study.hides_people, ask.statistic in (VARIANCE, SD)
    if secret and ask.statistic == SUM:
        raise InvalidRequest.field("statistic", NO_SUM)
    check_measure(study, ask)
    of = study.of_measure(ask.measure)
    if of.choices:
        raise InvalidRequest.field("statistic", NOT_OF_CHOICES)
    if of.dimension > 1:
        raise InvalidRequest.field("statistic", no_number(of))
    errors: list[FieldError] = []
    asked = asked_of(study, ask, errors)
    name = ask.estimator or registry.AUTO
    if secret and (spread or ask.by):
        if name not in (registry.AUTO, Transformed.name):
            what = f"a {ask.statistic}" if spread else "an answer by labels"
            errors.append(FieldError("estimator", f"must be {Transformed.name} for {what}"))
        name = Transformed.name
    values: dict[str, object] = {}
    try:
        values = _parameters(study, ask, name)
    except InvalidRequest as refusal:
        errors += refusal.fields
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    if secret and spread:
        values[MOMENTS.name] = 2
    elif values.get(MOMENTS.name) == MOMENTS.default:
        del values[MOMENTS.name]  # Questions of before it was a parameter keep their digests.
    return Resolved(estimator=name, parameters=values, spread=spread, **asked)


def asked_of(study: StudyDefinition, ask: Ask, errors: list[FieldError]) -> dict[str, Any]:
    """Whom a question asks and what it may take of them: fields that every question has, by their names.

    Args:
        study, ask: What is asked of which study.
        errors: Takes what is wrong with them.
    """
    level: Level | None = None
    where: Mapping[str, str] = {}
    by = ""
    if ask.expected_size is not None and not study.hides_people:
        # It would make another question of the same one, which people would pay for again.
        errors.append(FieldError("expected_size", NO_SIZE))
    try:
        level = level_of(study, ask.least_epsilon)
    except InvalidRequest as refusal:
        errors += refusal.fields
    try:
        where = conditions(study, ask)
        by = attributes(study, ask, where)
    except InvalidRequest as refusal:
        errors += refusal.fields
    share, epsilon = bounds(study, ask)
    return {
        "share": share,
        "epsilon": epsilon,
        "cap": None if epsilon is None else study.amount(epsilon),
        "expected_size": ask.expected_size,
        "least_epsilon": ask.least_epsilon,
        "level": level,
        "tilt": tilt_of(study, ask.tilt),
        "where": where,
        "by": by,
        "measure": ask.measure,
        "label_weights": ask.label_weights,
    }


def _parameters(study: StudyDefinition, ask: Ask, name: str) -> dict[str, object]:
    """Values of an estimator's parameters, with defaults where none are given."""
    declared = {
        parameter.name: parameter for parameter in registry.parameters(name, study.relation, study.noise)
    }
    values: dict[str, object] = {name: parameter.default for name, parameter in declared.items()}
    errors: list[FieldError] = []
    for given, text in ask.parameters.items():
        if given == RANGE:
            if text != DECLARED:
                reason = f"must be {DECLARED} for a {ask.statistic}" if text == FOUND else NO_RANGE
                errors.append(FieldError(RANGE, reason))
        elif given == RANGE_PART:
            errors.append(FieldError(given, f"goes with {RANGE}={FOUND} alone"))
        elif given not in declared:
            those = ", ".join(one.wire for one in declared.values())
            those = f"it has {those}" if declared else "it has none"
            wire = LEVEL_PARAMETER.wire if given == LEVEL_PARAMETER.name else given
            errors.append(FieldError(wire, f"not a parameter of {name} for a {ask.statistic}; {those}"))
        else:
            try:
                values[given] = declared[given].parse(text)
            except ValueError as error:
                errors.append(FieldError(declared[given].wire, str(error)))
    if errors:
        raise InvalidRequest.naming(errors, "the question is ")
    return values


def bounds(study: StudyDefinition, ask: Ask) -> tuple[int, int | None]:
    """Share [ppm] and cap [micro-epsilon] of a question; a cap that no person's share reaches is none.

    It would make another question of the same one, which people would pay for again.
    """
    share = study.default_share if ask.share is None else ask.share
    if ask.epsilon is None or study.amount(ask.epsilon) >= share_of(study.amount(study.epsilon_max), share):
        return share, None
    return share, ask.epsilon


def of_vectors(study: StudyDefinition, ask: Ask) -> bool:
    """Whether the values that it asks about have several coordinates."""
    if not study.measures.several:
        return study.dimension > 1
    of = study.measures.named.get(ask.measure)
    return of is not None and of.dimension > 1


def no_number(study: StudyDefinition) -> str:
    """Why values of several coordinates have no answer to a question for numbers."""
    return (
        f"is for numbers, and these values have {study.dimension} coordinates: ask for "
        f"{', '.join(STATISTICS)} or count, or start a K-means session"
    )


def conditions(study: StudyDefinition, ask: Ask) -> Mapping[str, str]:
    """Of whom a question asks, checked: the label of each attribute that it names."""
    try:
        return study.attributes.conditions(ask.where) if ask.where else {}
    except ValueError as error:
        raise InvalidRequest.field("where", str(error)) from None


def check_measure(study: StudyDefinition, ask: Ask) -> None:
    """Refuse a question that does not name a measure of a study of several, or names one of another.

    A reading leaves out the name in a study of one, so that a question is the same with and without it.
    """
    if not study.measures.several:
        if ask.measure:
            raise InvalidRequest.field("measure", f"must be {study.one_measure}, or left out")
    elif ask.measure not in study.measures.named:
        reason = "must be one of the study's measures" if ask.measure else "is required in a study of several"
        raise InvalidRequest.field("measure", f"{reason}: {', '.join(study.measures.named)}")


def attributes(study: StudyDefinition, ask: Ask, where: Mapping[str, str]) -> str:
    """The attributes by whose labels a question asks, checked, in the order of the study."""
    if not ask.by:
        return ""
    try:
        by = study.attributes.together(ask.by)
    except ValueError as error:
        raise InvalidRequest.field("by", str(error)) from None
    for name in by.split(","):
        if name in where:
            raise InvalidRequest.field("by", f"names {name}, of which where names the label")
    return by
