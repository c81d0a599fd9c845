"""How the mean of a study changed since the last one of its series, and the trend of the series; free."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from app.core.errors import InvalidRequest
from app.core.numbers import headline
from app.core.release import StoredRelease
from app.core.study import Study
from app.estimators import confidence
from app.estimators.interface import Interval, NotApplicable
from app.estimators.series import Wave, combined, slope
from app.estimators.together import KnownError
from app.services.statistics.questions import MEAN, Ask
from app.web.documents.release import IntervalOut
from app.web.documents.types import WireOut

CHANGE, TREND = "change", "trend"

SERIES = (CHANGE, TREND)
"""What is read off the published means of a series of studies."""

ASKED = ("where", "measure", "of", "level")
"""What may be asked of them beside the statistic."""


_CLIPPED = "; a mean that noise carried out of the range counts as what it was before it was clipped"


class WaveOut(WireOut):
    """The published mean of one study of a series."""

    study: str
    created_at: datetime = Field(description="When the study was made, by which the series is in order.")
    release: UUID
    estimate: float
    interval: IntervalOut


class SeriesOut(WireOut):
    """A change, or a trend, off what is published: it costs nothing."""

    statistic: str
    of: str
    series: str
    study: str = Field(description="The study that was asked about: the last one of those that are read.")
    since: str | None = Field(description="Of a change: the study before it; null of a trend.")
    measure: str | None
    where: dict[str, str] | None
    estimate: float = Field(
        description="Of a change the mean of this study less that of the one before, in the data's unit; "
        "of a trend the slope of the line through all means by least squares, in that unit per study."
    )
    standard_error: float
    interval: IntervalOut = Field(
        description="For the people of these studies, who may be the same ones. Of means that say their "
        "interval alone, as where the number of people is secret, its level is lower: .9 for two of them."
    )
    population_interval: IntervalOut | None = Field(
        description="For the populations that they were drawn from; null where too many bounds could fail."
    )
    answers: list[WaveOut] = Field(description="The means that it is read off, in the order of the series.")
    without_answer: list[str] = Field(
        description="Studies of the series without a published answer to the question: they are left out."
    )
    in_words: str

    @classmethod
    def of_waves(
        cls, statistic: str, study: Study, ask: Ask, found: Sequence[tuple[Study, StoredRelease | None]]
    ) -> "SeriesOut":
        """The statistic off the answers of the studies of a series, the oldest one first.

        Raises:
            NotApplicable: fewer than two of them have an answer, or this study has none.
        """
        documents = [(one, json.loads(its.body)) for one, its in found if its is not None]
        if len(documents) < 2 or documents[-1][0].id != study.id:
            here = any(one.id == study.id for one, _ in documents)
            where = "there is none of a study before this one" if here else "this study has none"
            about = "".join(f" of {one}" for one in (ask.measure, ask.where) if one)
            raise NotApplicable(f"A {statistic} is read off published means{about}, and {where}.")
        used = documents[-2:] if statistic == CHANGE else documents
        weights = [-1.0, 1.0] if statistic == CHANGE else slope(len(used))
        waves = [_wave(one, document, ask) for one, document in used]
        try:
            with confidence.at(ask.level):
                read = combined(list(zip(weights, waves, strict=True)))
        except ValueError:
            raise NotApplicable(
                "Intervals of more than ten means, each with its own risk, say nothing together."
            ) from None
        since = used[0][0].definition.slug
        shown = headline(read.estimate, read.interval.lower, read.interval.upper).in_words
        kept = any(one.clipped for one in waves)
        level = f"{100 * read.interval.level:g}%"
        per = f"since {since}" if statistic == CHANGE else f"per study since {since}"
        return cls.model_validate(
            {
                "statistic": statistic,
                "of": MEAN,
                "series": study.definition.series,
                "study": study.definition.slug,
                "since": since if statistic == CHANGE else None,
                "measure": ask.measure or None,
                "where": used[-1][1].get("where"),
                **asdict(read),
                "answers": [
                    {
                        "study": one.definition.slug,
                        "created_at": one.created_at,
                        "release": document["id"],
                        "estimate": document["estimate"],
                        "interval": document["interval"],
                    }
                    for one, document in used
                ],
                "without_answer": [one.definition.slug for one, its in found if its is None],
                "in_words": f"{shown} {per} ({level} interval)" + (_CLIPPED if kept else ""),
            }
        )


def check_asked(statistic: str, ask: Ask) -> Ask:
    """The question for each mean, where no more was asked than that has.

    Raises:
        InvalidRequest: names what it has no place for.
    """
    plain = Ask(statistic=MEAN, where=ask.where, measure=ask.measure, level=ask.level)
    rest = [name for name in Ask.__dataclass_fields__ if name not in (*ASKED, "statistic")]
    if given := [name for name in rest if getattr(ask, name) != getattr(plain, name)]:
        names = [*ask.parameters, *(name for name in given if name != "parameters")]
        raise InvalidRequest.field(names[0], f"does not apply to a {statistic}: it reads what is published")
    if ask.of not in ("", MEAN):
        raise InvalidRequest.field("of", f"must be {MEAN}")
    return plain


def _wave(study: Study, document: dict[str, Any], ask: Ask) -> Wave:
    grid = study.definition.of_measure(ask.measure).grid
    error = document.get("error")
    return Wave(
        estimate=document["estimate"],
        noise=document["standard_error"] / document.get("shrinkage", 1.0),
        lower=float(grid.lower),
        upper=float(grid.upper),
        interval=Interval(**document["interval"]),
        population_interval=Interval(**document["population_interval"]),
        error=None if error is None else KnownError.read(error),
    )
