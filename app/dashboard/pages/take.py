"""The page on which a person answers by a link, and that of its receipt: what was given and what it cost.

There is no login and no cookie. The code of a link is in the address, that of a receipt in the body of a
form, and neither is in a log, which has the route. Nothing that is shown of a link to a study with a secret
number of people depends on whether it was used.
"""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import (
    BudgetExhausted,
    Conflict,
    ContributionExists,
    EpsilonBelowSpent,
    FieldError,
    Forbidden,
    InvalidRequest,
    NotFound,
    ServiceError,
    StudyClosed,
)
from app.core.invitation import InvitationKind, Link
from app.core.ledger import Holding
from app.core.study import Study, StudyState, Trust
from app.dashboard import answer_form
from app.dashboard.languages import N_
from app.dashboard.pages.assets import device_script
from app.dashboard.rendering import PageResponse, language_of, render, spoken
from app.dashboard.requests import PageRequest
from app.dashboard.routing import NO_FRAMES, PageRoute
from app.services.admin.invitations import FULL
from app.services.admin.tokens import new_secret
from app.web.documents.invitation import RECEIPT_PATH
from app.web.documents.study_out import StudyOut
from app.web.problems import kind_of
from app.web.rate import RateLimited

MOST_FIELDS = 500
"""Of a form: more than a study can ask for."""

SAYS: Mapping[type[ServiceError], tuple[str, str]] = {
    NotFound: (
        N_("There is nothing here"),
        N_(
            "This link or receipt is not complete, or the link has expired or was revoked. Check that you "
            "have all of it. For a new link, ask those who gave you this one."
        ),
    ),
    ContributionExists: (
        N_("There is an answer already"),
        N_(
            "This link takes one answer, and it has come; or you answered this study in another way. Nothing "
            "was stored now. With the receipt of that answer you can look at it, change it and withdraw it."
        ),
    ),
    StudyClosed: (
        N_("This study takes no more answers"),
        N_(
            "It has ended. There is nothing that you have to do. If you answered, your receipt still shows "
            "what it cost, and you can withdraw with it."
        ),
    ),
    Conflict: (
        N_("This link has all the answers that it takes"),
        N_("Nothing was stored. If you want to take part, ask those who gave you this link for another one."),
    ),
    RateLimited: (
        N_("Too many answers at once"),
        N_("Nothing was stored. Wait a minute, go back, and send yours again."),
    ),
    Forbidden: (
        N_("The form was sent from another site"),
        N_("Nothing was stored. Open the link itself, and answer there."),
    ),
}
"""What a refusal is called on these pages, and what to do."""

ON_THE_FORM = {
    BudgetExhausted: N_(
        "Nothing was stored: your privacy budget has too little left for this step. "
        "Choose a stronger one. If none fits, your budget is used up, and you cannot answer here."
    ),
    EpsilonBelowSpent: N_(
        "Nothing was stored: published answers have spent more than this step already. Choose a lighter one."
    ),
}
"""Refusals after which another choice on the same form may do."""

OTHERWISE = (N_("This did not work"), N_("Nothing was stored. Open the link again, and send your answer."))

WRONG = N_("Nothing was stored. Look at what is marked below, and send it again.")


class TakeRoute(PageRoute):
    """A page for people without a login: no cookie, and no more forms a minute than people send.

    Only these pages may be framed, by origins that are named: there is no login that a frame could abuse.
    """

    async def _handle(self, request: Request) -> Response:
        response = await super()._handle(request)
        response.headers["X-Robots-Tag"] = "noindex, nofollow"
        if origins := PageRequest(request.scope, request.receive).api.embed_origins:
            policy = self.policy.replace(NO_FRAMES, f"frame-ancestors {' '.join(origins)}")
            response.headers["Content-Security-Policy"] = policy
        return response

    async def _admit(self, call: PageRequest) -> None:
        call.refuse_malformed_address()
        call.single_query()
        if self._post:
            call.refuse_other_sites()
            call.api.visitors.take_address(call.client.host if call.client else "")
            call.fields = await call.read_fields(MOST_FIELDS)

    def _refusal(self, call: PageRequest, error: ServiceError) -> Response:
        title, advice = next((SAYS[kind] for kind in type(error).__mro__ if kind in SAYS), OTHERWISE)
        response = _page(call, "take_refused.html", status=kind_of(error).status, title=title, advice=advice)
        if isinstance(error, RateLimited):
            response.headers["Retry-After"] = str(error.retry_after)
        return response


async def show(request: PageRequest) -> Response:
    """The question and its form."""
    link, study = await _linked(request)
    if study.state is not StudyState.OPEN:
        raise StudyClosed("the study takes no more answers")
    if not study.definition.hides_people:
        if link.receipt is not None:
            raise ContributionExists("the link was used")
        if link.subject is None and (link.invitation.used or 0) >= link.invitation.most:
            raise Conflict(FULL)
    return _form(request, link, study)


async def answer(request: PageRequest) -> Response:
    """Store an answer once, however often its form is sent, and show its receipt."""
    link, study = await _linked(request)
    request.api.visitors.take_link(link.invitation.id)
    code, invitations = request.path_params["code"], request.api.services.invitations
    receipt = invitations.receipt(code, request.fields.get("key") or new_secret())
    try:
        record = answer_form.record_of(study.definition, request.fields, language_of(request).mark)
        # Of whom it is, the link says; a subject in its place has the shape of one.
        offer = request.api.intake(study).offer(record, link.invitation.id, "link")
        new = await invitations.answer(study, link, code, receipt, offer)
    except (InvalidRequest, *ON_THE_FORM) as refusal:
        return _form(request, link, study, refusal)
    return await _receipt(request, receipt, "sent" if new else "again")


async def show_entrance(request: PageRequest) -> Response:
    """Ask for a receipt: the script of the page fills in what stands behind # in the address."""
    return _page(request, "take_receipt_entrance.html")


async def show_receipt(request: PageRequest) -> Response:
    """What a receipt is for; its link will do as well as its code."""
    return await _receipt(request, request.fields.get("receipt", "").rpartition("#")[2])


async def change(request: PageRequest) -> Response:
    """Put another answer in the place of the one that a receipt is for."""
    receipt, services = request.fields.get("receipt", ""), request.api.services
    ticket = await services.invitations.given(receipt)
    study = await request.study(ticket.study, fresh=True)
    try:
        record = answer_form.record_of(study.definition, request.fields, language_of(request).mark)
        offer = request.api.intake(study).offer(record, ticket.invitation_id, "receipt")
        await services.invitations.change(study, ticket, offer)
    except NotFound as refusal:
        # It was withdrawn in another tab, or before a step back.
        return await _receipt(request, receipt, "gone", refusal=refusal)
    except (InvalidRequest, *ON_THE_FORM) as refusal:
        return await _receipt(request, receipt, refusal=refusal)
    return await _receipt(request, receipt, "changed")


async def withdraw(request: PageRequest) -> Response:
    """Delete the answer that a receipt is for; what it has cost stays."""
    receipt, services = request.fields.get("receipt", ""), request.api.services
    ticket = await services.invitations.given(receipt)
    await services.contributions.withdraw(await request.study(ticket.study), ticket.subject)
    return await _receipt(request, receipt, "withdrawn")


def _page(request: PageRequest, template: str, **values: Any) -> PageResponse:
    return render(request, template, device=device_script(), **spoken(request), **values)


async def _linked(request: PageRequest) -> tuple[Link, Study]:
    link = await request.api.services.invitations.find(request.path_params["code"])
    return link, await request.study(link.invitation.study, fresh=True)


def _form(
    request: PageRequest, link: Link, study: Study, refusal: ServiceError | None = None
) -> PageResponse:
    """The form, with what was written and why it was refused."""
    secret = study.definition.hides_people
    # Where presence is secret, equal bytes for every link: there the script of the page makes the key.
    key = request.fields.get("key") or ("" if secret else new_secret())
    reports = answer_form.takes_reports(study.definition)
    return _page(
        request,
        "take.html",
        status=200 if refusal is None else kind_of(refusal).status,
        is_open=link.invitation.kind is InvitationKind.OPEN,
        key=key,
        reports=reports,
        document=StudyOut.model_validate(study).model_dump_json() if reports else "",
        first=True,
        **_asked(request, study, request.fields, refusal),
    )


async def _receipt(
    request: PageRequest, receipt: str, done: str = "", *, refusal: ServiceError | None = None
) -> PageResponse:
    """What was given, what it cost so far, and the forms to change and to withdraw it."""
    services = request.api.services
    ticket = await services.invitations.given(receipt)
    study = await request.study(ticket.study, fresh=True)
    held = await services.invitations.held(study, ticket)
    statement = await services.budgets.statement(ticket.subject, frozenset({ticket.study}))
    given = answer_form.given(study.definition, held)
    fields = request.fields
    if refusal is None:
        numbers = {one.name for one in answer_form.asked(study.definition) if not one.options}
        typed = language_of(request).typed
        fields = {name: typed(text) if name in numbers else text for name, text in given.items()}
        fields |= {"trust": held.trust.value}
    root = request.scope.get("root_path", "")
    base = request.known_url if request.known_url is not None else root
    return _page(
        request,
        "take_receipt.html",
        status=200 if refusal is None else kind_of(refusal).status,
        receipt=receipt,
        address=f"{base}{RECEIPT_PATH}#{receipt}",
        done=done,
        # Where this page answers a form of a link, its script learns that the form has arrived.
        held_key=request.fields.get("key", ""),
        reports=False,
        first=False,
        held=held,
        given=given,
        line=next(iter(statement.studies), None),
        takes=held.live and study.state is StudyState.OPEN,
        **_asked(request, study, fields, refusal, held),
    )


def _asked(
    request: PageRequest,
    study: Study,
    fields: Mapping[str, str],
    refusal: ServiceError | None,
    held: Holding | None = None,
) -> dict[str, Any]:
    """What the form shows: the study, its fields and steps, and which of them are chosen."""
    definition = study.definition
    steps, tags = answer_form.steps(definition), answer_form.trusted(definition)
    if held is not None and held.trust is Trust.LOCAL:
        # Its report has spent all of its epsilon: a value with no more would count in nothing.
        steps = [one for one in steps if one.amount > held.epsilon]
        tags = [tag for tag in tags if steps or tag is Trust.PUBLIC]
    chosen = fields.get("epsilon")
    if chosen not in [one.epsilon for one in steps]:
        alike = [one for one in steps if held is not None and one.amount == held.epsilon]
        chosen = next((one.epsilon for one in [*alike, *steps]), "")
    tag = fields.get("trust")
    named = () if refusal is None else refusal.fields
    return {
        "study": definition,
        "said": study.said_in(language_of(request).code),
        "secret": definition.hides_people,
        "asked": answer_form.asked(definition),
        "trusted": [one.value for one in tags],
        "steps": steps,
        "chosen": chosen,
        "tag": tag
        if tag in [*(one.value for one in tags), Trust.LOCAL.value]
        else next((one.value for one in tags), ""),
        "fields": fields,
        "refused": "" if refusal is None else _why(refusal),
        "wrong": _reasons(named),
    }


def _why(refusal: ServiceError) -> str:
    said = next((ON_THE_FORM[kind] for kind in type(refusal).__mro__ if kind in ON_THE_FORM), None)
    return said or WRONG


def _reasons(named: tuple[FieldError, ...]) -> dict[str, bool]:
    """What is wrong, by field: the page says what a field takes, and whether a number was not clear."""
    found: dict[str, bool] = {}
    for one in named:
        found[one.field] = found.get(one.field, False) or one.reason == answer_form.UNCLEAR
    return found


ROUTES = (
    TakeRoute(RECEIPT_PATH, show_entrance),
    TakeRoute(RECEIPT_PATH, show_receipt, post=True),
    TakeRoute(f"{RECEIPT_PATH}/change", change, post=True),
    TakeRoute(f"{RECEIPT_PATH}/withdraw", withdraw, post=True),
    TakeRoute("/take/{code}", show),
    TakeRoute("/take/{code}", answer, post=True),
)
