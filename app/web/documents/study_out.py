"""A study as clients see it."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from app.core.study import Currency, LocalMechanism, Relation, Study, StudyState, Trust
from app.web.documents.measure import MeasureOut
from app.web.documents.study import EXAMPLE
from app.web.documents.types import DeltaOut, EpsilonOut, ShareOut, TiltOut, WireOut


class EpsilonRangeOut(WireOut):
    """Admissible personal epsilons."""

    min: EpsilonOut
    max: EpsilonOut


class StudyOut(WireOut):
    """A study."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    slug: str
    title: str
    description: str
    series: str | None
    lower: float
    upper: float
    step: float | None = Field(
        description="Values are kept to the nearest multiple of this above lower; null for choices, and for "
        "several measures, each of which has its own."
    )
    relation: Relation
    trust: list[Trust]
    epsilon: EpsilonRangeOut
    epsilons: list[EpsilonOut] = Field(
        description="The only admissible personal epsilons, in their order; empty where all in the range are."
    )
    default_share: ShareOut
    tilt: TiltOut
    noise: Currency
    delta: DeltaOut
    dimension: int
    local_mechanism: LocalMechanism | Literal["choice"] = Field(
        description="`choice` where there are choices: randomized response or unary encoding."
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
    state: StudyState
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
            "state": study.state,
            "created_at": study.created_at,
        }


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
