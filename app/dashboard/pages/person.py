"""A person's own page, opened with a one-time link: what was given, what it cost, what is left, withdraw."""

import asyncio
from contextlib import suppress

from starlette.responses import Response

from app.core.errors import Forbidden, NotFound, Unauthenticated
from app.core.principal import Role
from app.dashboard.pages.login import GUEST_SECONDS, set_cookie
from app.dashboard.rendering import language_of, render, spoken
from app.dashboard.requests import GUEST_COOKIE, PERSON_COOKIE, PageRequest
from app.dashboard.routing import PageRoute, redirect
from app.services.admin.logins import PERSON_SECONDS
from app.services.admin.tokens import new_secret
from app.web import documents_out
from app.web.documents.budget import BudgetOut

CHARGES = 50


async def show_entrance(request: PageRequest) -> Response:
    """Ask before the link is used up: mail scanners and previews follow links too."""
    cookie = request.cookies.get(GUEST_COOKIE) or new_secret()
    response = render(
        request, "person_entrance.html", cookie=cookie, link=request.path_params["link"], **spoken(request)
    )
    set_cookie(request, response, GUEST_COOKIE, cookie, GUEST_SECONDS)
    return response


async def open_link(request: PageRequest) -> Response:
    """Use the link up."""
    await _refuse_staff(request)
    try:
        secret = await request.api.services.logins.open_link(request.path_params["link"])
    except NotFound:
        return render(request, "person_left.html", status=404, used=True, **spoken(request))
    response = redirect(request, "/person")
    set_cookie(request, response, PERSON_COOKIE, secret, PERSON_SECONDS, path="/person")
    return response


async def withdraw(request: PageRequest) -> Response:
    """Delete a value; what it has cost stays."""
    if not _acts_for_person(request):
        raise Forbidden("An admin made this link: it shows this page, and deletes nothing.")
    study = request.fields.get("study", "")
    found = await request.study(study)
    request.refuse_other_studies(found.definition.slug)
    await request.api.services.contributions.withdraw(found, _subject(request))
    return await show(request, withdrawn=found.said_in(language_of(request).code).title)


async def leave(request: PageRequest) -> Response:
    """Close the page; the link does not open it again."""
    await request.api.services.logins.log_out(request.cookies[PERSON_COOKIE])
    response = render(request, "person_left.html", used=False, **spoken(request))
    response.delete_cookie(PERSON_COOKIE, path=f"{request.cookie_path}/person")
    return response


async def show(request: PageRequest, withdrawn: str | None = None) -> Response:
    """What was given, what it cost, what is left."""
    services = request.api.services
    statement, charges = await asyncio.gather(
        services.budgets.statement(_subject(request), request.principal.studies),
        documents_out.personal_charges(services, _subject(request), CHARGES, None, request.principal),
    )
    slugs = {line.study for line in statement.studies} | {line.study for line in statement.sessions}
    language = language_of(request).code
    said = {slug: (await services.studies.read(slug)).said_in(language) for slug in slugs}
    return render(
        request,
        "person.html",
        budget=BudgetOut.of("", statement),
        studies=said,
        charges=charges,
        withdrawn=withdrawn,
        may_withdraw=_acts_for_person(request),
        expires_at=request.login.expires_at,
        **spoken(request),
    )


async def _refuse_staff(request: PageRequest) -> None:
    """Refuse a browser in which an admin or an analyst is logged in: a link is for the person alone.

    Raises:
        Forbidden: one is.
    """
    with suppress(Unauthenticated):
        await request.find_login(person=False)
        raise Forbidden("An admin or an analyst is logged in here. Log out first; the link still works.")


def _acts_for_person(request: PageRequest) -> bool:
    """Whether the application of the person made the link; an admin may not withdraw what people gave."""
    return Role.CONTRIBUTE in request.principal.roles


def _subject(request: PageRequest) -> bytes:
    if request.login.subject is None:
        raise Forbidden("This page is for people with a link.")
    return request.login.subject


ROUTES = (
    PageRoute("/dashboard/person/open/{link}", show_entrance),
    PageRoute("/dashboard/person/open/{link}", open_link, post=True),
    PageRoute("/dashboard/person", show, person=True),
    PageRoute("/dashboard/person/withdraw", withdraw, person=True, post=True),
    PageRoute("/dashboard/person/leave", leave, person=True, post=True),
)
