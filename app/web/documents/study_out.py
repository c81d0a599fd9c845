"""A study as clients see it."""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field

from app.core.epsilon import delta_to_json, epsilon_to_json
from app.core.study import Currency, LocalMechanism, Relation, Study, StudyState, Trust
from app.web.documents.measure import MeasureOut
from app.web.documents.study import EXAMPLE
from app.web.documents.types import WireOut


class EpsilonRangeOut(WireOut):
    """Admissible personal epsilons."""

    min: float
    max: float


class StudyOut(WireOut):
    """A study."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    slug: str
    title: str
    description: str
    series: str | None
    lower: float
    upper: float
    relation: Relation
    trust: list[Trust]
    epsilon: EpsilonRangeOut
    default_share: float
    tilt: float
    noise: Currency
    delta: float
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
        "of the study are then 0 and 1. Empty where a person gives one value."
    )
    state: StudyState
    created_at: datetime

    @classmethod
    def of(cls, study: Study) -> "StudyOut":
        """The wire form of a stored study."""
        definition = study.definition
        return cls(
            slug=definition.slug,
            title=definition.title,
            description=definition.description,
            series=definition.series,
            lower=float(definition.lower),
            upper=float(definition.upper),
            relation=definition.relation,
            trust=[tag for tag in Trust if tag in definition.trust],
            epsilon=EpsilonRangeOut(
                min=epsilon_to_json(definition.epsilon_min), max=epsilon_to_json(definition.epsilon_max)
            ),
            default_share=epsilon_to_json(definition.default_share),
            tilt=epsilon_to_json(definition.tilt),
            noise=definition.noise,
            delta=delta_to_json(definition.delta),
            dimension=definition.dimension,
            local_mechanism="choice" if definition.choices else definition.local_mechanism,
            attributes={name: list(labels) for name, labels in definition.attributes.labels.items()},
            choices=list(definition.choices),
            measures={
                name: MeasureOut(
                    lower=float(one.lower),
                    upper=float(one.upper),
                    choices=list(one.choices),
                    dimension=one.dimension,
                )
                for name, one in definition.measures.named.items()
            },
            state=study.state,
            created_at=study.created_at,
        )


class SaturationOut(WireOut):
    """Where more epsilon would buy nothing, for one release at share 1 at this moment."""

    epsilon: float | None
