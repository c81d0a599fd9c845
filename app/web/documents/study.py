"""A study on the wire."""

from functools import partial
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
)

from app.core.attributes import MAX_COMBINATIONS, TAKEN, Attributes
from app.core.epsilon import MICRO, amount_of, epsilon_to_json, share_of
from app.core.measures import MAX_MEASURES, VALUE, Measures
from app.core.numbers import JsonNumber
from app.core.study import (
    MAX_CHOICES,
    MAX_DIMENSION,
    MAX_TIERS,
    Currency,
    LocalMechanism,
    Relation,
    StudyDefinition,
    Trust,
)
from app.web.documents.measure import Dimension, MeasureIn, checked_measures, end_of_range, range_of_choices
from app.web.documents.types import (
    AttributeName,
    Bound,
    Delta,
    Distinct,
    Epsilon,
    Label,
    Language,
    MeasureName,
    Prose,
    Share,
    Slug,
    Text,
    Tier,
    Tilt,
    WireIn,
    above_lower,
)
from app.web.validation_messages import InvalidValue

DEFAULT_EPSILON_MIN = MICRO // 1000
DEFAULT_GAUSSIAN_MIN = MICRO // 10
DEFAULT_EPSILON_MAX = 4 * MICRO
"""One who sees all answers about a person is at most 98.2 % sure of one of two equally likely values."""
DEFAULT_SHARE = MICRO // 10
DEFAULT_TILT = MICRO // 10
LEAST_SECRET_MIN = MICRO // 20
"""The least epsilon.min of a new add_remove_one study: answers about people who offer less are noise."""
MAX_LANGUAGES = 50
"""Languages that one change may have."""


def shown(value: int, default: float, description: str | None = None) -> Any:
    """A field whose default is documented in the unit of the wire."""
    return Field(value, description=description, json_schema_extra={"default": default})


EXAMPLE: dict[str, JsonValue] = {
    "slug": "commute-minutes",
    "title": "How long is your way to work?",
    "lower": 0,
    "upper": 120,
    "relation": "replace_one",
    "trust": ["central", "local"],
    "epsilon": {"min": 0.01, "max": 5},
    "default_share": 0.1,
}


class EpsilonRangeIn(WireIn):
    """Admissible personal epsilons."""

    min: Epsilon = shown(
        DEFAULT_EPSILON_MIN,
        epsilon_to_json(DEFAULT_EPSILON_MIN),
        "Smallest admissible personal epsilon; read exactly as written, down to 0.000001. With gaussian "
        "noise 0.1 if not given. In add_remove_one studies at least 0.05, and that if not given.",
    )
    max: Epsilon = shown(
        DEFAULT_EPSILON_MAX,
        epsilon_to_json(DEFAULT_EPSILON_MAX),
        "Largest admissible personal epsilon; read exactly as written.",
    )

    def least(self, noise: Currency) -> int:
        """The smallest one in a study with this noise [micro-epsilon]."""
        given = noise is Currency.LAPLACE or "min" in self.model_fields_set
        return self.min if given else min(DEFAULT_GAUSSIAN_MIN, self.max)

    @field_validator("max")
    @classmethod
    def _ordered(cls, value: int, info: ValidationInfo) -> int:
        if value < info.data.get("min", 0):
            raise InvalidValue("must be at least epsilon.min")
        return value


class StudyTextIn(WireIn):
    """A study in another language. What is not given is that of the study."""

    title: Text | None = Field(None, description="The question.")
    description: Prose | None = Field(None, description="More about it.")
    labels: dict[Label, Text] = Field(
        default_factory=dict,
        max_length=1000,
        description="What its measures, choices, attributes and their labels are called, by their names.",
    )


class StudyIn(WireIn):
    """A new study. What answers depend on is never changed afterwards."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [EXAMPLE],
            # Not as alternatives: generators of clients make a class of each, and none of the study.
            "if": {"not": {"anyOf": [{"required": ["choices"]}, {"required": ["measures"]}]}},
            "then": {"required": ["lower", "upper"]},
            "else": {"not": {"required": ["lower", "upper"]}},
        }
    )

    slug: Slug = Field(description="Address of the study: lower-case letters, digits, hyphens.")
    title: Text | None = Field(None, description="The question, for people. The slug if not given.")
    description: Prose = Field("", description="More about it, for people.")
    texts: dict[Language, StudyTextIn] = Field(
        default_factory=dict,
        max_length=MAX_LANGUAGES,
        description="What it says in other languages, by their codes.",
        json_schema_extra={"examples": [{"de": {"title": "Wie weit ist es?", "labels": {"red": "rot"}}}]},
    )
    series: Slug | None = Field(
        None, description="Series that it belongs to, as the weeks of a recurring survey do: a slug."
    )
    choices: Annotated[list[Label], Distinct] = Field(
        default_factory=list,
        min_length=2,
        max_length=MAX_CHOICES,
        description="What people choose one of, in place of a number: a study has these labels, or the ends "
        "of a range.",
        json_schema_extra={"uniqueItems": True, "examples": [["red", "green", "blue"]]},
    )
    measures: Annotated[dict[MeasureName, MeasureIn], BeforeValidator(checked_measures)] = Field(
        default_factory=dict,
        min_length=1,
        max_length=MAX_MEASURES,
        description="The numbers and choices that it asks each person for, by name, with the range or the "
        "choices of each. A person gives all of them, under one epsilon. A range or choices without a name "
        "are short for one measure named value.",
        json_schema_extra={
            "examples": [{"income": {"lower": 0, "upper": 9000}, "party": {"choices": ["red", "green"]}}]
        },
    )
    lower: Bound = end_of_range("Lower end of the range. Required, unless there are choices or measures.")
    upper: Bound = end_of_range("Upper end of the range. Required, unless there are choices or measures.")
    relation: Relation = Field(
        Relation.REPLACE_ONE,
        description="What one person changes: their value (the number of people is public), or whether "
        "they are there at all (it is secret).",
    )
    trust: Annotated[list[Trust], Distinct] = Field(
        [Trust.CENTRAL],
        min_length=1,
        description="Accepted trust tags.",
        json_schema_extra={"uniqueItems": True},
    )
    epsilon: EpsilonRangeIn = Field(default_factory=EpsilonRangeIn)
    epsilons: list[Tier] = Field(
        default_factory=list,
        min_length=1,
        max_length=MAX_TIERS,
        description="In place of a range: the only admissible personal epsilons, of at most three "
        "significant digits each. An offer is rounded down to three digits, and must then be one of them.",
        json_schema_extra={"uniqueItems": True, "examples": [[0.5, 1, 2]]},
    )
    default_share: Share = shown(
        DEFAULT_SHARE, epsilon_to_json(DEFAULT_SHARE), "Part of each personal epsilon that a release uses."
    )
    tilt: Tilt = shown(
        DEFAULT_TILT,
        epsilon_to_json(DEFAULT_TILT),
        "How far the mean of those who ask for little privacy may differ from the others', as a part of the "
        "range: answers are weighted for it, and their intervals hold within it. In add_remove_one studies "
        "it is 0 if not given, which assumes nothing there: intervals hold however privacy and values go "
        "together.",
    )
    noise: Currency = Field(
        Currency.LAPLACE,
        description="The noise of answers, and so what privacy is counted in: pure epsilon, or mu^2, which "
        "takes a delta and of which many answers take less.",
    )
    delta: Delta = Field(
        # Gaussian noise needs one, so what is left out is checked, too.
        default_factory=partial(JsonNumber, 0),
        validate_default=True,
        json_schema_extra={"default": 0},
        description="At which personal epsilons hold in a study with gaussian noise, where it must be "
        "above 0; laplace noise has none.",
    )
    dimension: Dimension = Field(
        1,
        description="Coordinates of a value, each of them in the range. Above 1 there are mean, sum, "
        "variance and sd of each of them, and K-means sessions.",
    )
    local_mechanism: LocalMechanism = Field(
        LocalMechanism.HYBRID,
        description="What devices randomize local reports with: gaussian in studies of one number with "
        "gaussian noise, one of the others elsewhere. Reports of values with several coordinates are "
        "laplace ones, whatever the default; those of choices are made by `choice`, and it is not given.",
    )

    attributes: dict[AttributeName, Annotated[list[Label], Distinct]] = Field(
        default_factory=dict,
        description="What each contribution says of its owner: names, and the labels that each may have, as "
        '{"region": ["north", "south"]}; at most 1,000 combinations. Public in replace_one studies, in '
        "add_remove_one studies as secret as presence.",
        json_schema_extra={"examples": [{"region": ["north", "south"]}]},
    )

    @field_validator("measures")
    @classmethod
    def _measures_or_choices(cls, value: dict[str, MeasureIn], info: ValidationInfo) -> dict[str, MeasureIn]:
        if value and info.data.get("choices"):
            raise InvalidValue("not beside choices: a choice among several is a measure of its own")
        if sum(one.dimension for one in value.values()) > MAX_DIMENSION:
            raise InvalidValue(f"must have at most {MAX_DIMENSION} coordinates together")
        return value

    @field_validator("lower", "upper", mode="before")
    @classmethod
    def _numbers_have_a_range(cls, value: object, info: ValidationInfo) -> object:
        """A study of choices has the range of their numbers, one of measures 0 to 1: neither is given."""
        measures = info.data.get("measures")
        if measures is None or measures:
            if value is not None:
                raise InvalidValue("is for studies of one number: each measure has a range of its own")
            return JsonNumber(0 if info.field_name == "lower" else 1)
        if value is None and info.data.get("choices") == []:
            raise InvalidValue("is required, unless there are choices or measures")
        return range_of_choices(value, info)

    _above_lower = field_validator("upper")(above_lower)

    @field_validator("trust")
    @classmethod
    def _presence_stays_secret(cls, value: list[Trust], info: ValidationInfo) -> list[Trust]:
        if Trust.LOCAL in value and info.data.get("relation") is Relation.ADD_REMOVE_ONE:
            raise InvalidValue("local reports would show who is there, which this relation keeps secret")
        measures = info.data.get("measures") or {}
        if Trust.LOCAL in value and len(measures) > 1 and any(one.dimension > 1 for one in measures.values()):
            raise InvalidValue(
                "must not have local beside a measure of several coordinates: a device reports one number or "
                "choice at a time; declare a measure for each coordinate"
            )
        return value

    @field_validator("epsilon")
    @classmethod
    def _range_is_ordered(cls, value: EpsilonRangeIn, info: ValidationInfo) -> EpsilonRangeIn:
        if value.min > value.max:
            raise InvalidValue("min must be at most max")
        secret = info.data.get("relation") is Relation.ADD_REMOVE_ONE
        if secret and "min" in value.model_fields_set and value.min < LEAST_SECRET_MIN:
            raise InvalidValue(
                f"min must be at least {epsilon_to_json(LEAST_SECRET_MIN):g} where the number of people is "
                "secret: an answer about those who offer less would be noise; or list epsilons"
            )
        return value

    @field_validator("epsilons")
    @classmethod
    def _listed_once(cls, value: list[int], info: ValidationInfo) -> list[int]:
        if len(set(value)) < len(value):
            raise InvalidValue("names something twice")
        admissible = info.data.get("epsilon")
        if admissible and admissible.model_fields_set:
            raise InvalidValue("not beside epsilon: a study has a list of epsilons or a range of them")
        return sorted(value)

    @field_validator("dimension")
    @classmethod
    def _dimension_is_of_numbers(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("choices"):
            raise InvalidValue("must be 1 for choices")
        if value > 1 and info.data.get("measures"):
            raise InvalidValue("must not be given beside measures: each of them has its own")
        return value

    @field_validator("delta")
    @classmethod
    def _fits_the_noise(cls, value: int, info: ValidationInfo) -> int:
        noise = info.data.get("noise")
        if noise is Currency.LAPLACE and value:
            raise InvalidValue("must be 0: laplace noise has no delta; a study with one has gaussian noise")
        if noise is Currency.GAUSSIAN:
            if not value:
                raise InvalidValue("must be at least 1e-12 for gaussian noise")
            admissible, share = info.data.get("epsilon"), info.data.get("default_share")
            listed = info.data.get("epsilons")
            if admissible and share and listed is not None:
                least = listed[0] if listed else admissible.least(noise)
                if not share_of(amount_of(least, value), share):
                    raise InvalidValue("is too small: the least epsilon buys nothing of it at default_share")
        return value

    @field_validator("local_mechanism")
    @classmethod
    def _fits_the_currency(cls, value: LocalMechanism, info: ValidationInfo) -> LocalMechanism:
        choices, vectors = _one_value(info)
        if choices:
            raise InvalidValue("must not be given with choices, which have a mechanism of their own")
        noise, several = info.data.get("noise"), len(info.data.get("measures") or ()) > 1
        if value is LocalMechanism.GAUSSIAN and noise is Currency.LAPLACE:
            raise InvalidValue("gaussian reports are paid in mu^2: they need a study with gaussian noise")
        if value is not LocalMechanism.GAUSSIAN and noise is Currency.GAUSSIAN and not (vectors or several):
            raise InvalidValue(
                f"{value} reports are paid in pure epsilon: gaussian noise needs gaussian ones"
            )
        reported = several and Trust.LOCAL in info.data.get("trust", [])
        if value in (LocalMechanism.LAPLACE, LocalMechanism.GAUSSIAN) and reported:
            raise InvalidValue(f"must not be {value} for reports of measures, which have a range each")
        if value is not LocalMechanism.LAPLACE and vectors:
            raise InvalidValue("must be laplace, which is what reports of vectors are randomized with")
        return value

    @field_validator("attributes")
    @classmethod
    def _labels_are_few(cls, value: dict[str, list[str]], info: ValidationInfo) -> dict[str, list[str]]:
        for name, labels in value.items():
            if name in (info.data.get("measures") or {}):
                raise InvalidValue(f"{name} is the name of a measure")
            if name in TAKEN:
                raise InvalidValue(f"{name} is the name of another field of contributions")
            if not labels:
                raise InvalidValue(f"{name} needs at least one label")
        if Attributes.of(value).combinations > MAX_COMBINATIONS:
            raise InvalidValue(f"have more than {MAX_COMBINATIONS:,} combinations of labels")
        return value

    def definition(self) -> StudyDefinition:
        """The core's definition: one measure is the value of the study, with its name if that is another."""
        several = len(self.measures) > 1
        one = self if several or not self.measures else next(iter(self.measures.values()))
        dimension = sum(own.dimension for own in self.measures.values()) if several else one.dimension
        measures = {name: own.measure() for name, own in self.measures.items() if several or name != VALUE}
        return StudyDefinition(
            slug=self.slug,
            title=self.slug if self.title is None else self.title,
            description=self.description,
            series=self.series,
            lower=one.lower,
            upper=one.upper,
            relation=self.relation,
            trust=frozenset(self.trust),
            epsilon_min=self._epsilon_min(),
            epsilon_max=self.epsilons[-1] if self.epsilons else self.epsilon.max,
            epsilons=tuple(self.epsilons),
            default_share=self.default_share,
            tilt=0 if self.relation.hides_people and "tilt" not in self.model_fields_set else self.tilt,
            delta=self.delta,
            dimension=dimension,
            local_mechanism=self._reports(one.dimension, choices=bool(one.choices), several=several),
            attributes=Attributes.of(self.attributes),
            choices=tuple(one.choices),
            measures=Measures.of(measures),
        )

    def _epsilon_min(self) -> int:
        if self.epsilons:
            return self.epsilons[0]
        least = self.epsilon.least(self.noise)
        secret = self.relation.hides_people and "min" not in self.epsilon.model_fields_set
        return min(max(least, LEAST_SECRET_MIN), self.epsilon.max) if secret else least

    def _reports(self, dimension: int, *, choices: bool, several: bool) -> LocalMechanism:
        if dimension > 1 or (several and Trust.LOCAL not in self.trust):
            return LocalMechanism.LAPLACE
        return (
            LocalMechanism.GAUSSIAN
            if self.noise.is_gaussian and not (several or choices)
            else self.local_mechanism
        )


def _one_value(info: ValidationInfo) -> tuple[bool, bool]:
    """Whether the one value of a study is a choice, and whether it has several coordinates."""
    measures = info.data.get("measures") or {}
    if len(measures) == 1:
        [one] = measures.values()
        return bool(one.choices), one.dimension > 1
    return bool(info.data.get("choices")), info.data.get("dimension", 1) > 1
