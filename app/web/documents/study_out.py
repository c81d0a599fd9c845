"""A study as clients see it."""

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict, Field, model_validator

from app.core.study import (
    Currency,
    LocalMechanism,
    Relation,
    Study,
    StudyDefinition,
    StudyState,
    Trust,
)
from app.web.documents.measure import MeasureOut
from app.web.documents.study import EXAMPLE as GIVEN
from app.web.documents.types import DeltaOut, EpsilonOut, IdOut, ShareOut, TiltOut, WireOut

EXAMPLE: dict[str, Any] = {
    **GIVEN,
    "description": "",
    "series": None,
    "step": 1.1175870895385742e-7,
    "epsilons": [],
    "tilt": 0.1,
    "noise": "laplace",
    "delta": 0,
    "dimension": 1,
    "local_mechanism": "laplace",
    "attributes": {"region": ["north", "south"]},
    "choices": [],
    "measures": {},
    "texts": {},
    "state": "open",
    "created_at": "2030-01-31T12:00:00Z",
}


class EpsilonRangeOut(WireOut):
    """The least and the largest admissible personal epsilon."""

    min: EpsilonOut
    max: EpsilonOut


class StudyTextOut(WireOut):
    """A study in another language: a title and a description where it has its own, and names by names."""

    title: str | None
    description: str | None
    labels: dict[str, str]


class ReportingRangeOut(WireOut):
    """Where devices of local people report; values outside count as its nearer end."""

    lower: float
    upper: float
    start: int = Field(description="Of it [grid steps]. Reports inside it state start/zoom.")
    zoom: int = Field(description="How often it fits into the range.")
    outside_at_most: float = Field(
        description="Part of those who answered its searches that lies outside, in 95 of 100 cases."
    )
    searches: list[IdOut] = Field(description="For its lower and its upper end.")


class StudyOut(WireOut):
    """A study."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    slug: str = Field(description="Its address.")
    title: str = Field(description="The question, for people.")
    description: str = Field(description="More about it.")
    series: str | None = Field(description="The series that it belongs to; null without.")
    lower: float = Field(description="Lower end of the range, in the data's unit.")
    upper: float = Field(description="Upper end of the range.")
    step: float | None = Field(
        description="Values are kept to the nearest multiple of this above lower; null for choices, and for "
        "several measures, each of which has its own."
    )
    relation: Relation = Field(
        description="What the guarantee compares: the number of people is public with replace_one, secret "
        "with add_remove_one."
    )
    trust: list[Trust] = Field(description="Whom contributors may trust.")
    epsilon: EpsilonRangeOut
    epsilons: list[EpsilonOut] = Field(
        description="The only admissible personal epsilons, in their order; empty where all in the range are."
    )
    default_share: ShareOut = Field(
        description="Part of each personal epsilon that a release uses by default."
    )
    tilt: TiltOut = Field(
        description="How far the mean of those who ask for little privacy may differ from the others', as a "
        "part of the range, for questions that do not say."
    )
    noise: Currency = Field(description="Of answers; privacy is counted in epsilon, or in mu^2.")
    delta: DeltaOut = Field(description="At which epsilons hold with Gaussian noise; 0 with Laplace noise.")
    dimension: int = Field(description="Coordinates of a value, each of them in the range; 1 for a number.")
    local_mechanism: LocalMechanism | Literal["choice"] = Field(
        description="Randomizer for local reports; `choice` where there are choices: randomized response or "
        "unary encoding."
    )
    attributes: dict[str, list[str]] = Field(description="Names and labels, in their order.")
    choices: list[str] = Field(
        description="What people choose one of, in their order; the range is that of their numbers. Empty "
        "where values are numbers."
    )
    measures: dict[str, MeasureOut] = Field(
        description="The numbers and choices that it asks each person for, in their order; lower and upper "
        "of a study of several are then 0 and 1. Empty where a person gives one value without another name."
    )
    reporting_range: ReportingRangeOut | None = Field(
        None, description="Where devices of local people report; null: in the whole range."
    )
    texts: dict[str, StudyTextOut] = Field(
        description="What it says in other languages, by their codes; empty where it has no other."
    )
    state: StudyState = Field(
        description="Open, closed to contributions, or, with stored answers only, archived or retired."
    )
    created_at: datetime

    @model_validator(mode="before")
    @classmethod
    def _of_a_study(cls, study: object) -> object:
        """A stored study as a document: what its definition has by another name, and where it stands."""
        if not isinstance(study, Study):
            return study
        definition = study.definition
        return {name: getattr(definition, name, None) for name in cls.model_fields} | {
            "trust": [tag for tag in Trust if tag in definition.trust],
            "epsilon": {"min": definition.epsilon_min, "max": definition.epsilon_max},
            "local_mechanism": "choice" if definition.choices else definition.local_mechanism,
            "attributes": definition.attributes.labels,
            "measures": definition.measures.named,
            "reporting_range": _reporting_range(definition),
            "texts": study.texts.by_language,
            "state": study.state,
            "created_at": study.created_at,
        }


def _reporting_range(study: StudyDefinition) -> dict[str, object] | None:
    if (found := study.reporting_range) is None:
        return None
    lower, upper = found.ends(study.grid)
    where = {"lower": lower, "upper": upper, "start": found.where.start, "zoom": found.where.zoom}
    return where | {"outside_at_most": found.outside, "searches": found.searches}


class StudyMadeOut(StudyOut):
    """A study that was just made; without `warnings` where there are none."""

    warnings: list[str] = Field(
        [],
        description="What new people cannot offer: more than their lifetime budget, or with Gaussian noise "
        "anything where no budget for it was granted.",
    )


class SaturationOut(WireOut):
    """Where more epsilon would buy nothing at this moment, in steps from the default share to 1."""

    epsilon: float | None
