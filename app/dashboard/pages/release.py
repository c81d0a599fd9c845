"""One release: its answer, and what else is read off it for nothing."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from starlette.responses import Response

from app.core.errors import InvalidRequest, ServiceError
from app.core.records import CohortCharge
from app.core.release import StoredRelease
from app.core.study import Study
from app.dashboard import forms, label_plots, shape_plots, steps
from app.dashboard.compared import Narrower, narrower, newest_of
from app.dashboard.questions import PREDICTION, READINGS, readings_of
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import BOTH, PageRoute
from app.estimators.confidence import LEVEL, LEVELS
from app.estimators.interface import NotApplicable
from app.services.shapes.shown import shown_off
from app.services.statistics.questions import MEAN, ON, REGRESSION
from app.services.statistics.reading import READ, Reading
from app.services.work import run
from app.web import question_params
from app.web.documents.release import ChargeOut, ReleaseOut
from app.web.documents.shape import (
    CorrelationReleaseOut,
    Published,
    RegressionReleaseOut,
    published,
)
from app.web.documents.study_out import StudyOut
from app.web.request import uuid_of

MOST_LEVELED = 64 * 1024
"""Size of an answer up to which its steps are read at its level [bytes]."""

LABELS = 20
"""Labels on a page, of a large answer that has several numbers for each."""

CHARGES = 200
"""Charges on a page."""


def address_of(release: UUID, fields: Mapping[str, str]) -> str:
    """The page of a release, with what was asked if that is read off it."""
    read = forms.given(fields, *READINGS)
    if read.get("statistic") not in {*READ} - {MEAN}:
        read.pop("statistic", None)
    return f"/releases/{release}" + (f"?{urlencode(read)}" if read else "")


async def show(request: PageRequest) -> Response:
    """One release, its intervals at a level; admins also see what it cost each cohort."""
    services = request.api.services
    first, level = _first(request), float(forms.chosen(request, "level", map(str, LEVELS)) or LEVEL)
    which = uuid_of(request.path_params["release"], "release")
    refusal: ServiceError | None = None
    release = await services.releases.part(which, first=first, labels=LABELS)
    request.refuse_other_studies(release.study)
    try:
        if level != LEVEL:
            release = await services.releases.part(which, first=first, labels=LABELS, level=level)
    except NotApplicable as error:
        level, refusal = LEVEL, error
    charges: Sequence[CohortCharge] = ()
    if request.is_admin:
        (charges,) = await services.releases.charges([release], most=CHARGES + 1)
    study = await request.study(release.study)
    shown = await run(published, release.body)
    # Those of large answers are not read as a whole, which other levels need.
    large = len(release.body) > MOST_LEVELED
    sharpened = await steps.steps_of(request, shown, LEVEL if large else level)
    better = await _better(request, study, shown)
    names = PREDICTION if isinstance(shown, CorrelationReleaseOut) else READINGS
    fields = forms.given(request.query_params, *names)
    read, line = None, None
    try:
        if isinstance(shown, ReleaseOut) and fields:
            read = await run(_read, release, shown, study, fields | {"level": str(level)})
        elif isinstance(shown, CorrelationReleaseOut) and fields:
            line = await run(_line, release, shown, study, fields | {"level": str(level)})
    except ServiceError as error:
        refusal = error
    by, groups = getattr(shown, "by", None), getattr(shown, "groups", None)

    def drawn() -> dict[str, Any]:
        plots = {"plots": shape_plots.drawn(shown), "steps_plot": steps.plot(sharpened)}
        return _label_plots(shown, read) | plots

    return render(
        request,
        "release.html",
        status=status_of(refusal),
        release=shown,
        read=read,
        line=line,
        refusal=refusal,
        fields=fields,
        level=level,
        levels=LEVELS,
        asked=fields if level == LEVEL else {**fields, "level": str(level)},
        readings=readings_of(study, shown),
        drawn=drawn,
        steps=sharpened,
        better=better,
        study=StudyOut.model_validate(study),
        charges=[ChargeOut.model_validate(row) for row in charges[:CHARGES]],
        more_charges=len(charges) > CHARGES,
        first_label=first,
        labels_in_all=study.definition.attributes.size(by) if by and groups is not None else 0,
        labels_shown=len(groups or ()),
        labels_on_a_page=LABELS,
    )


async def _better(request: PageRequest, study: Study, shown: Published) -> Narrower | None:
    """The one among the newest answers of a study that says the same more exactly."""
    return await run(narrower, shown, await newest_of(request, study))


def _first(request: PageRequest) -> int:
    """The place of the first label on the page, where not all are on it.

    Raises:
        InvalidRequest: it is none.
    """
    text = request.query_params.get("first", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 4):
        raise InvalidRequest.field("first", "must be the place of a label")
    return int(text)


def _read(release: StoredRelease, shown: ReleaseOut, study: Study, fields: Mapping[str, str]) -> ReleaseOut:
    """What an answer says of another statistic, of its labels together, or of two of them. Free.

    Raises:
        InvalidRequest, NotApplicable: it does not say that.
    """
    about = {"statistic": MEAN, "by": shown.by, "measure": shown.measure}
    given = {name: value for name, value in about.items() if value is not None} | dict(fields)
    reading = Reading.of(study.definition, question_params.read_question(given))
    if reading.statistic not in READ:
        raise InvalidRequest.field("statistic", f"must be one of {', '.join(READ)}")
    if reading.by and not shown.groups:
        raise NotApplicable("This release has no answers for labels. Ask for one by an attribute.")
    return ReleaseOut.model_validate_json(shown_off(release.body, reading, study.definition))


def _line(
    release: StoredRelease, shown: CorrelationReleaseOut, study: Study, fields: Mapping[str, str]
) -> RegressionReleaseOut:
    """What a correlation says of the line on one of its numbers, and where that is. Free.

    Raises:
        InvalidRequest: it does not say that.
    """
    on = fields.get(ON, shown.measures[0])
    if on not in shown.measures:
        raise InvalidRequest.field(ON, f"must be one of {', '.join(shown.measures)}")
    of = shown.measures[1 - shown.measures.index(on)]
    given = {"statistic": REGRESSION, "of": of, **fields, ON: on}
    reading = Reading.of(study.definition, question_params.read_question(given))
    return RegressionReleaseOut.model_validate_json(shown_off(release.body, reading, study.definition))


def _label_plots(release: Published, read: ReleaseOut | None) -> dict[str, Any]:
    """The plots of answers for labels, and of what is read off them; none of another release."""
    drawn: dict[str, Any] = {"labels_plot": None, "read_plot": None}
    if isinstance(release, label_plots.OfOneNumber) and release.groups:
        drawn["labels_plot"] = label_plots.labels(release)
    groups = (read or release).groups if isinstance(release, ReleaseOut) else None
    if isinstance(release, ReleaseOut) and groups:
        of = read if read is not None and not (read.between or read.standardize) else release
        of = of.model_copy(update={"groups": groups})
        drawn["labels_plot"] = label_plots.labels(of)
        if read is not None and (read.between or read.standardize):
            drawn["read_plot"] = label_plots.together(read, release)
    return drawn


ROUTES = (PageRoute("/dashboard/releases/{release}", show, roles=BOTH),)
