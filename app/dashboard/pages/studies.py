"""Studies: what they are, what releases would cost, what was released, and asking."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

from markupsafe import Markup
from starlette.responses import Response

from app.core.epsilon import epsilon_to_json
from app.core.errors import InvalidRequest, NoGain, SaysNothing, ServiceError
from app.core.numbers import headline
from app.core.study import Study, StudyState
from app.dashboard import forms, label_plots, plots, shape_plots, steps
from app.dashboard.compared import outdone
from app.dashboard.languages import catalogs
from app.dashboard.pages.overview import following
from app.dashboard.pages.release import address_of
from app.dashboard.questions import QUESTION, completed, fields_of, statistics
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, ANALYST, BOTH, PageRoute, redirect
from app.estimators.interface import NotApplicable
from app.services.paging import Page
from app.services.replies import Idempotency
from app.services.shapes.questions import COORDINATES, SHARES, of_shape
from app.services.statistics.questions import FOUND, MEAN, RANGE, Ask
from app.services.statistics.reading import Reading
from app.services.work import run
from app.web import documents_out, question_params
from app.web.documents.fields import read
from app.web.documents.figures import EpsilonsOut
from app.web.documents.invitation import InvitationOut
from app.web.documents.lists import is_slug, is_uuid
from app.web.documents.plan import PlanOut
from app.web.documents.publication import PublicationOut
from app.web.documents.release import ReleaseOut, error_of
from app.web.documents.schedule import ScheduleOut
from app.web.documents.series import SERIES, SeriesOut, WaveOut
from app.web.documents.session import session_document
from app.web.documents.shape import (
    HistogramReleaseOut,
    Published,
    SharesReleaseOut,
    published,
)
from app.web.documents.study_change import ArchiveIn, StudyEditIn
from app.web.documents.study_out import StudyOut

ROWS = 50
SESSIONS = 10
INVITATIONS = 100
PUBLICATIONS = 100
SCHEDULES = 100
INSIST: Mapping[type[ServiceError], str] = {
    NoGain: "it is worse than the best one so far or leaves most people out",
    SaysNothing: "it will say nothing",
}
"""Why an answer is refused that can be insisted on."""

SORTS = {
    "title": "question",
    "created": "made last",
    "closed": "closed last",
    "released": "released last",
}
"""Orders of the list beside that of the addresses."""


async def list_studies(request: PageRequest) -> Response:
    """The studies that the token may see; admins also see how much of them is there and left."""
    services = request.api.services
    filters = forms.given(request.query_params, "search", "state", "series", "sort")
    lines = await services.studies.listing(
        ROWS,
        forms.cursor(request, is_slug),
        request.principal,
        forms.wanted(request, StudyState, SORTS),
    )
    found = Page(items=[line.study for line in lines.items], next_cursor=lines.next_cursor)
    figures = await following(documents_out.with_figures(services, found)) if request.is_admin else None
    return render(
        request,
        "studies.html",
        studies=[StudyOut.model_validate(study) for study in found.items]
        if figures is None
        else figures.items,
        lines={line.study.definition.slug: line for line in lines.items},
        next_cursor=found.next_cursor,
        first=request.is_admin and figures is None,
        filters=filters,
        states=[(state.value, state.value) for state in StudyState],
        sorts=SORTS.items(),
    )


async def show(request: PageRequest) -> Response:
    """One study."""
    return await page(request, forms.given(request.query_params, *QUESTION))


async def ask(request: PageRequest) -> Response:
    """Make a release. The form's key makes one of two clicks."""
    study = await request.study(request.path_params["study"])
    fields = completed(study.definition, forms.given(request.fields, *QUESTION))
    key = forms.key(request)
    try:
        question, fresh = question_params.read_plan({"statistic": statistics(study.definition)[0], **fields})
        reading = Reading.of(study.definition, question)
        services, asker = request.api.services, request.principal.token_id
        allow_worse = "allow_worse" in request.fields
        once = Idempotency.about_nobody(
            asker,
            f"dashboard-{key}",
            json.dumps([study.definition.slug, fields, allow_worse]).encode(),
        )
        release = await services.answering(study, reading.ask).release(
            study, reading.ask, once, asker=asker, allow_worse=allow_worse, fresh=fresh
        )
    except ServiceError as refusal:
        return await page(request, fields, refusal)
    found = reading.ask.parameters.get(RANGE) == FOUND
    is_mean = found or not of_shape(study.definition, reading.ask)
    return redirect(request, address_of(release.id, fields if is_mean else {}))


async def close(request: PageRequest) -> Response:
    """Take no more contributions."""
    found = await request.study(request.path_params["study"])
    await request.api.services.studies.close(found.definition.slug, request.principal)
    return redirect(request, f"/studies/{found.definition.slug}")


async def edit(request: PageRequest) -> Response:
    """Change the question and what is said about it."""
    text = forms.prose(request.fields.get("description", ""))

    async def change(slug: str) -> None:
        document = read(StudyEditIn, request.fields, description=text)
        await request.api.services.studies.edit(slug, request.principal, **document.model_dump())

    return await _changed(request, change)


async def translate(request: PageRequest) -> Response:
    """Say it in another language; a form without a title, a description and labels forgets that one."""
    fields = request.fields
    said: dict[str, object] = {
        name: text for name in ("title", "description") if (text := forms.prose(fields.get(name, "")))
    }

    async def change(slug: str) -> None:
        if labels := _names(fields.get("labels", "")):
            said["labels"] = labels
        texts = {fields.get("language", ""): said or None}
        document = read(StudyEditIn, {"reason": fields.get("reason", "")}, texts=texts)
        await request.api.services.studies.edit(slug, request.principal, **document.model_dump())

    return await _changed(request, change)


def _names(text: str) -> dict[str, str]:
    """What lines such as `red: rot` say."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, said = (part.strip() for part in line.rpartition(":"))
        if not colon or not name or name in found:
            raise InvalidRequest.field("labels", "needs lines such as red: rot; a name once")
        found[name] = said
    return found


async def archive(request: PageRequest) -> Response:
    """End a study for good, with a reason."""

    async def change(slug: str) -> None:
        document = read(ArchiveIn, request.fields)
        await request.api.services.studies.archive(slug, request.principal, document.reason)

    return await _changed(request, change)


async def _changed(request: PageRequest, change: Callable[[str], Awaitable[None]]) -> Response:
    """Change a study; its page then shows it, or why that was refused, with what was written."""
    slug = (await request.study(request.path_params["study"])).definition.slug
    try:
        await change(slug)
    except ServiceError as refusal:
        return await page(request, {}, changing=refusal)
    return redirect(request, f"/studies/{slug}")


async def _warnings(request: PageRequest, study: Study) -> list[str]:
    """What new people cannot offer, for admins, who may grant more."""
    if not request.is_admin or study.state is not StudyState.OPEN:
        return []
    return await request.api.services.budgets.warnings(study.definition)


async def _invitations(request: PageRequest, study: Study) -> list[InvitationOut]:
    """The links by which people answer, for admins."""
    if not request.is_admin:
        return []
    invitations = request.api.services.invitations
    found = await invitations.page(study, INVITATIONS, None)
    return [InvitationOut.of(one, invitations.state(one)) for one in found.items]


async def _publications(request: PageRequest, study: Study) -> list[PublicationOut]:
    """What of it everyone may read."""
    publications = request.api.services.publications
    found = await publications.page(study, PUBLICATIONS, None)
    return [PublicationOut.of(one, publications.state(one), request.known_url) for one in found.items]


async def _schedules(request: PageRequest, study: Study) -> list[ScheduleOut]:
    """What of it is asked by itself."""
    found = await request.api.services.schedules.page(study, SCHEDULES, None)
    return [ScheduleOut.of(one) for one in found.items]


async def page(
    request: PageRequest,
    fields: Mapping[str, str],
    refusal: ServiceError | None = None,
    *,
    changing: ServiceError | None = None,
    inviting: ServiceError | None = None,
    publishing: ServiceError | None = None,
    scheduling: ServiceError | None = None,
) -> Response:
    """The page of a study, with why something was refused: a question, a change, a link and so on."""
    services = request.api.services
    study = await request.study(request.path_params["study"], fresh=True)
    slug = study.definition.slug
    cursor = forms.cursor(request, is_uuid)
    plan, statistic = None, fields.get("statistic", statistics(study.definition)[0])
    fields = completed(study.definition, fields)
    vectors = study.definition.dimension > 1 and not study.definition.measures.several
    # First: what GET combines for nothing is then in the plan and in the list.
    current = None if cursor else await _current(request, study, fields)
    try:
        question, fresh = question_params.read_plan({"statistic": statistic, **fields})
        plan = await documents_out.plan(services, study, question, fresh=fresh)
    except InvalidRequest as error:
        refusal = refusal or error
    point, running, released = await asyncio.gather(
        services.releases.saturation(study),
        services.sessions.page(study, SESSIONS, None),
        services.releases.page(study, ROWS, cursor, heads=True),
    )
    releases = await run(lambda: [published(release.body) for release in released.items])
    of_all = [one for one in releases if _is_of_all(one)]
    means = [
        one for one in of_all if isinstance(one, ReleaseOut) and one.measure in (None, fields.get("measure"))
    ]
    shapes = [one for one in of_all if isinstance(one, HistogramReleaseOut | SharesReleaseOut)]
    shape = next((one for one in shapes if not isinstance(one, type(current))), None)
    sharpened = [] if current is None else await steps.steps_of(request, current)
    profile = await following(documents_out.epsilons(services, slug)) if request.is_admin else None
    taken = await following(services.figures.summaries((slug,))) if request.is_admin else None
    stands = None if plan is None or plan.stands is None else address_of(plan.stands.release, fields)
    saturation = None if point is None else epsilon_to_json(point)
    changed, trend = [await _of_series(request, study, one, fields) for one in SERIES]
    return render(
        request,
        "study.html",
        status=status_of(refusal or changing or inviting or publishing or scheduling),
        inviting=inviting,
        publishing=publishing,
        publications=await _publications(request, study),
        scheduling=scheduling,
        schedules=await _schedules(request, study),
        invitations=await _invitations(request, study),
        changing=changing,
        change=request.fields,
        ended=study.state in (StudyState.ARCHIVED, StudyState.RETIRED),
        warnings=await _warnings(request, study),
        study=StudyOut.model_validate(study),
        languages=list(catalogs().values()),
        names=sorted(study.definition.names),
        vectors=vectors,
        secret=study.definition.hides_people,
        fields=fields,
        plan=plan,
        stands=stands,
        refusal=refusal,
        insist=next((why for kind, why in INSIST.items() if isinstance(refusal, kind)), None),
        form=fields_of(study),
        error_of=error_of(statistic, of_coordinates=_of_coordinates(plan)),
        shape=shape,
        **shape_plots.drawn(shape),
        keys=(str(uuid4()), str(uuid4())),
        saturation=saturation,
        saturation_plot=plots.saturation(
            "Charged epsilon against offered epsilon, for one release at share 1",
            largest=_largest(study, saturation),
            point=saturation,
        ),
        sessions=[session_document(session, study) for session in running.items],
        releases=releases,
        current=current,
        newer=_newer(current, means),
        outdone=await run(outdone, releases),
        current_plots=shape_plots.drawn(current),
        mean_plot=_mean_plot(study, current),
        steps=sharpened,
        steps_plot=steps.plot(sharpened, plan if statistic == MEAN and "standardize" not in fields else None),
        changed=changed,
        trend=trend,
        series_plot=plots.estimates(
            "The means of the series with their 95 % intervals",
            [_estimate(one) for one in trend.answers] if trend else (),
            y="mean",
        ),
        has_sd=any(one.sd for one in means),
        next_cursor=released.next_cursor,
        releases_plot=plots.estimates(
            "Released means with their 95 % intervals over time",
            [_estimate(release) for release in means],
            y="mean",
        ),
        profile=profile,
        profile_plot=None if profile is None else profile_plot(profile),
        summary=None if taken is None else taken.figures.get(slug),
    )


async def _of_series(
    request: PageRequest, study: Study, statistic: str, fields: Mapping[str, str]
) -> SeriesOut | None:
    """A change or a trend of its series, where there is one."""
    if study.definition.series is None:
        return None
    ask = Ask(measure=_measure_of(study, fields))
    try:
        return await documents_out.series(request.api.services, request.principal, study, statistic, ask)
    except (InvalidRequest, NotApplicable):
        return None


def _measure_of(study: Study, fields: Mapping[str, str]) -> str:
    """The measure that was asked about, else the first one; empty in a study of one value."""
    named = study.definition.measures.named
    return fields["measure"] if fields.get("measure") in named else next(iter(named), "")


async def _current(request: PageRequest, study: Study, fields: Mapping[str, str]) -> Published | None:
    """What GET reads for nothing: the mean, or the shares of choices; None before the first answer."""
    measure = _measure_of(study, fields)
    statistic = SHARES if study.definition.of_measure(measure).choices else MEAN
    ask = Reading.of(study.definition, Ask(statistic=statistic, measure=measure)).ask
    release = await request.api.services.answering(study, ask).standing(study, ask)
    return None if release is None else await run(published, release.body)


def _newer(current: Published | None, means: list[ReleaseOut]) -> ReleaseOut | None:
    """The newest mean where it is not the one that is shown."""
    if not isinstance(current, ReleaseOut) or not means or means[0].created_at <= current.created_at:
        return None
    return means[0]


def _mean_plot(study: Study, current: Published | None) -> Markup:
    if not isinstance(current, ReleaseOut):
        return Markup("")
    of = study.definition.of_measure(current.measure or "")
    return label_plots.mean(current, float(of.lower), float(of.upper))


def profile_plot(profile: EpsilonsOut) -> Markup:
    """Who offers how much, and trusts whom."""
    private = [one for one in profile.bins if one.upper > 0]
    return plots.histogram(
        "People by personal epsilon and trust tag",
        [plots.PlotBin(one.lower, one.upper) for one in private],
        [
            plots.Series("central", "a", [one.central for one in private]),
            plots.Series("local", "b", [one.local for one in private]),
        ],
        x="personal epsilon",
        y="people",
        logarithmic=True,
        on_top=True,
    )


def _of_coordinates(plan: PlanOut | None) -> bool:
    """Whether a plan is one for each coordinate."""
    return plan is not None and any(one.estimator == COORDINATES for one in plan.estimators)


def _is_of_all(release: Published) -> bool:
    """Whether it is about the values of all people, not moved into a range."""
    return getattr(release, "where", None) is None and getattr(release, "range", None) is None


def _largest(study: Study, saturation: float | None) -> float:
    """How far the saturation curve goes: over all that may be offered, but not far beyond the bend."""
    most = epsilon_to_json(study.definition.epsilon_max)
    return most if saturation is None else min(most, max(3 * saturation, most / 1000))


def _estimate(release: ReleaseOut | WaveOut) -> plots.Estimate:
    interval = release.interval
    return plots.Estimate(
        at=release.created_at,
        value=release.estimate,
        lower=interval.lower,
        upper=interval.upper,
        title="{}, 95 %: {} to {}".format(*headline(release.estimate, interval.lower, interval.upper)),
    )


ROUTES = (
    PageRoute("/dashboard/studies", list_studies, roles=BOTH),
    PageRoute("/dashboard/studies/{study}", show, roles=BOTH),
    PageRoute("/dashboard/studies/{study}/releases", ask, roles=ANALYST, post=True),
    PageRoute("/dashboard/studies/{study}/edit", edit, roles=ADMIN, post=True),
    PageRoute("/dashboard/studies/{study}/texts", translate, roles=ADMIN, post=True),
    PageRoute("/dashboard/studies/{study}/close", close, roles=ADMIN, post=True),
    PageRoute("/dashboard/studies/{study}/archive", archive, roles=ADMIN, post=True),
)
