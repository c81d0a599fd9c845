"""What stands in a path, or narrows a list down."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BeforeValidator

from app.core.question import FIELDS, STATISTICS
from app.estimators.confidence import LEVELS
from app.web.documents.types import parse_level
from app.web.patterns import SLUG_PATTERN

StudyPath = Annotated[str, Path(description="Slug of the study.", examples=["commute-minutes"])]

OneStudy = Annotated[str | None, Query(pattern=SLUG_PATTERN, description="Slug of one study.")]

SubjectPath = Annotated[
    str,
    Path(
        description="External id of the person, percent-encoded.",
        json_schema_extra={"minLength": 1, "maxLength": 256},
        examples=["alice"],
    ),
]

StatisticPath = Annotated[
    str,
    Path(
        description="What to estimate: " + ", ".join(STATISTICS) + ".",
        json_schema_extra={"enum": [*STATISTICS]},
        examples=["mean"],
    ),
]

LevelQuery = Annotated[
    float,
    BeforeValidator(lambda given: parse_level(str(given))),
    Query(
        description=FIELDS["level"].description,
        json_schema_extra={"minimum": min(LEVELS), "maximum": max(LEVELS)},
    ),
]

IdPath = Annotated[str, Path(json_schema_extra={"format": "uuid"})]

PublicationPath = Annotated[
    str, Path(description="Slug of the publication.", examples=["how-long-people-commute"])
]
