"""Budgets of all people, and of one person."""

import asyncio
import json
import re
from uuid import uuid4

from markupsafe import Markup
from starlette.responses import Response

from app.core.errors import BudgetBelowReserved, InvalidRequest, ServiceError
from app.core.numbers import JsonNumber
from app.dashboard import canvas, forms, plots
from app.dashboard.pages.overview import budget_plot, following
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute
from app.services.replies import Idempotency
from app.web import documents_out
from app.web.documents.budget import BudgetOut, LifetimeIn, RaiseIn, RaiseOut
from app.web.documents.fields import read
from app.web.documents.figures import EpsilonsOut
from app.web.request import LINK_PATH

CHARGES = 50
MOST_STUDIES = 200


async def raise_all(request: PageRequest) -> Response:
    """Add to every lifetime budget, with a reason. The form's key makes one raise of two clicks."""
    given = forms.given(request.fields, *RaiseIn.model_fields)
    key = f"dashboard-{forms.key(request)}"
    try:
        document = read(RaiseIn, given)
        made = await request.api.services.budgets.raise_all(
            **dict(document),
            principal=request.principal,
            idempotency=Idempotency.about_nobody(
                request.principal.token_id, key, json.dumps(given, sort_keys=True).encode()
            ),
        )
    except ServiceError as refusal:
        return await show(request, refusal=refusal)
    return await show(request, raised=RaiseOut.model_validate(made))


async def show(
    request: PageRequest, *, refusal: ServiceError | None = None, raised: RaiseOut | None = None
) -> Response:
    """Histograms and percentiles, over all subjects, per study and per epsilon; and what a raise came to."""
    services = request.api.services
    study = request.query_params.get("study") or None
    if study is not None:
        study = (await request.study(study)).definition.slug
    histogram, epsilons, slugs = await asyncio.gather(
        following(documents_out.histogram(services, study)),
        following(documents_out.epsilons(services, study)),
        services.studies.page(MOST_STUDIES, None, request.principal),
    )
    return render(
        request,
        "budgets.html",
        status=status_of(refusal),
        refusal=refusal,
        raised=raised,
        form={} if refusal is None else request.fields,
        key=str(uuid4()),
        histogram=histogram,
        histogram_plot=None if histogram is None else budget_plot(histogram, canvas.FULL),
        epsilons=epsilons,
        epsilons_plot=None if epsilons is None else cost_plot(epsilons),
        study=study,
        slugs=[one.definition.slug for one in slugs.items],
    )


def cost_plot(epsilons: EpsilonsOut) -> Markup:
    """What people who chose an epsilon have spent of it on average, beside what they reserved."""
    private = [one for one in epsilons.bins if one.upper > 0]
    return plots.histogram(
        "Mean epsilon reserved and spent, by the personal epsilon that people chose",
        [plots.PlotBin(one.lower or one.upper / 2, one.upper) for one in private],
        [
            plots.Series(
                "reserved", "a", [one.reserved / one.people if one.people else 0 for one in private]
            ),
            plots.Series("spent", "b", [one.spent / one.people if one.people else 0 for one in private]),
        ],
        x="personal epsilon",
        y="mean epsilon",
        logarithmic=True,
        size=canvas.FULL,
    )


DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)


async def set_lifetime(request: PageRequest) -> Response:
    """Change a lifetime budget, with a reason."""
    gaussian = {
        name: JsonNumber(text)
        for name in ("epsilon", "delta")
        if (text := request.fields.get(f"gaussian_{name}"))
    }
    try:
        document = read(LifetimeIn, request.fields, gaussian=gaussian or None)
        await request.api.services.budgets.set_lifetime(
            (await _person(request))[0],
            epsilon=document.epsilon,
            gaussian=None if document.gaussian is None else document.gaussian.pair,
            reason=document.reason,
            principal=request.principal,
        )
    except (InvalidRequest, BudgetBelowReserved) as refusal:
        return await find(request, refusal=refusal)
    return await find(request, done="The lifetime budget was changed.")


async def make_link(request: PageRequest) -> Response:
    """A one-time link to a person's own page."""
    digest, _ = await _person(request)
    try:
        start = request.public_url + LINK_PATH
    except InvalidRequest as refusal:
        return await find(request, refusal=refusal)
    secret, expires_at = await request.api.services.logins.make_link(digest, request.principal)
    return await find(request, link={"url": start + secret, "expires_at": expires_at})


async def _person(request: PageRequest) -> tuple[bytes, bool]:
    """Whom a form means, by their external id or its digest, and whether they were ever here.

    Raises:
        InvalidRequest: not an id.
    """
    subject = request.fields.get("subject", "")
    digest = request.subject_digest(subject)
    budgets = request.api.services.budgets
    if not (known := await budgets.is_known(digest)) and DIGEST.fullmatch(subject):
        as_digest = bytes.fromhex(subject)
        if await budgets.is_known(as_digest):
            return as_digest, True
    return digest, known


async def find(
    request: PageRequest,
    *,
    refusal: ServiceError | None = None,
    done: str | None = None,
    link: dict[str, object] | None = None,
) -> Response:
    """One person's statement. The external id comes in a form, so that no address ever holds it."""
    services = request.api.services
    digest, known = await _person(request)
    statement, charges = await asyncio.gather(
        services.budgets.statement(digest, request.principal.studies),
        documents_out.personal_charges(services, digest, CHARGES, None, request.principal),
    )
    return render(
        request,
        "subject.html",
        status=200 if refusal is None else 409 if isinstance(refusal, BudgetBelowReserved) else 422,
        budget=BudgetOut.of(request.fields["subject"], statement),
        digest=digest.hex(),
        known=known,
        form={} if refusal is None else request.fields,
        charges=charges,
        refusal=refusal,
        done=done,
        link=link,
    )


ROUTES = (
    PageRoute("/dashboard/budgets", show, roles=ADMIN),
    PageRoute("/dashboard/budgets/raise", raise_all, roles=ADMIN, post=True),
    PageRoute("/dashboard/budgets/find", find, roles=ADMIN, post=True),
    PageRoute("/dashboard/budgets/lifetime", set_lifetime, roles=ADMIN, post=True),
    PageRoute("/dashboard/budgets/link", make_link, roles=ADMIN, post=True),
)
