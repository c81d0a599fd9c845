"""What a wanted error takes: what is asked, and what is answered."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from app.core.errors import InvalidRequest
from app.core.study import Currency, LocalMechanism, Relation, StudyDefinition, Trust
from app.services.statistics.questions import Ask
from app.services.statistics.sizing import MOST_PEOPLE, Sizing
from app.web.documents.fields import read
from app.web.documents.study import DEFAULT_SHARE, DEFAULT_TILT
from app.web.documents.types import (
    Bound,
    Delta,
    Epsilon,
    EpsilonOut,
    Integer,
    Number,
    Share,
    WireIn,
    WireOut,
    above_lower,
    decimal_in,
    json_number,
)
from app.web.validation_messages import InvalidValue


def _positive(number: Decimal) -> Decimal:
    if number <= 0:
        raise InvalidValue("must be above 0")
    return number


PartOfPeople = Annotated[Decimal, json_number(lambda text: decimal_in(text, 0, 1))]


class SizingIn(WireIn):
    """A study that is thought of: of error, people, epsilon and share, the one left out is asked for."""

    lower: Bound = Field(description="Lower end of the range.")
    upper: Bound = Field(description="Upper end of the range.")
    error: Annotated[Number, AfterValidator(_positive)] | None = Field(
        None, description="Wanted root mean square error about the mean of the people who contribute."
    )
    people: Integer | None = Field(None, description="How many people there are.")
    epsilon: Epsilon | None = Field(None, description="What each of them offers.")
    share: Share | None = Field(
        None, description="Part of it that one answer uses; 0.1 where it is left out and not asked for."
    )
    local: PartOfPeople = Field(Decimal(0), description="Part of the people who send local reports.")
    public: PartOfPeople = Field(Decimal(0), description="Part of the people whose values are public.")
    relation: Relation = Field(Relation.REPLACE_ONE, description="The study's relation.")
    noise: Currency = Field(Currency.LAPLACE, description="The noise of answers.")
    delta: Delta = Field(
        0, description="At which epsilons hold with gaussian noise, where it must be above 0."
    )
    local_mechanism: LocalMechanism = Field(
        LocalMechanism.HYBRID,
        description="What devices randomize local reports with; with gaussian noise always gaussian.",
    )

    _above_lower = field_validator("upper")(above_lower)

    @field_validator("people")
    @classmethod
    def _some_people(cls, value: int | None) -> int | None:
        if value is not None and not 1 <= value <= MOST_PEOPLE:
            raise InvalidValue(f"must be between 1 and {MOST_PEOPLE}")
        return value

    @field_validator("public")
    @classmethod
    def _parts_of_one(cls, value: Decimal, info: ValidationInfo) -> Decimal:
        if value + info.data.get("local", 0) > 1:
            raise InvalidValue("must be at most 1 together with local")
        return value

    @field_validator("relation")
    @classmethod
    def _no_reports_where_presence_is_secret(cls, value: Relation, info: ValidationInfo) -> Relation:
        if value is Relation.ADD_REMOVE_ONE and info.data.get("local"):
            raise InvalidValue("an add_remove_one study takes no local reports")
        return value

    @field_validator("local_mechanism")
    @classmethod
    def _pays_in_the_currency(cls, value: LocalMechanism, info: ValidationInfo) -> LocalMechanism:
        if (value is LocalMechanism.GAUSSIAN) is not (info.data.get("noise") is Currency.GAUSSIAN):
            raise InvalidValue("must be gaussian with gaussian noise, and with no other")
        return value

    def sizing(self, ask: Ask) -> Sizing:
        """The sizing of a question.

        Raises:
            InvalidRequest: not exactly one quantity is left out, or the delta does not fit the noise.
        """
        if self.noise.is_gaussian is not (self.delta > 0):
            reason = "must be above 0 with gaussian noise, and 0 with laplace noise"
            raise InvalidRequest.field("delta", reason)
        given = {name: getattr(self, name) for name in ("error", "people", "epsilon", "share")}
        missing = [name for name, value in given.items() if value is None]
        if len(missing) == 2 and "share" in missing:
            given["share"] = DEFAULT_SHARE
        elif len(missing) != 1:
            reason = "leave exactly one of error, people, epsilon and share out: that one is asked for"
            raise InvalidRequest.field(missing[0] if missing else "error", reason)
        return Sizing(
            study=StudyDefinition(
                slug="sizing",
                title="sizing",
                lower=self.lower,
                upper=self.upper,
                relation=self.relation,
                trust=frozenset(Trust),
                epsilon_min=1,
                epsilon_max=1,
                default_share=DEFAULT_SHARE,
                delta=self.delta,
                local_mechanism=(LocalMechanism.GAUSSIAN if self.noise.is_gaussian else self.local_mechanism),
                tilt=0 if self.relation.hides_people else DEFAULT_TILT,
            ),
            local=Fraction(self.local),
            public=Fraction(self.public),
            ask=ask,
            error=None if self.error is None else float(self.error),
            people=self.people,
            epsilon=given["epsilon"],
            share=given["share"],
        )


class SizedOut(WireOut):
    """What one estimator takes; null where no value is enough."""

    estimator: str
    summary: str
    chosen: bool
    people: int | None
    epsilon: EpsilonOut | None
    share: EpsilonOut | None
    predicted_error: float
    population_predicted_error: float | None
    epsilon_max: EpsilonOut


class SizingOut(WireOut):
    """What was asked for, and what every estimator that applies takes, the best one first."""

    asked: str
    estimators: list[SizedOut]


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
    unknown = {name: text for name, text in fields.items() if name not in SizingIn.model_fields}
    return read(SizingIn, fields, **unknown).sizing(Ask(estimator=estimator, parameters=parameters or {}))
