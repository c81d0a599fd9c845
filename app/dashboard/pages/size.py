"""How many people, which epsilon or which share a wanted error takes: plans for people who are assumed."""

from starlette.responses import Response

from app.core.errors import ServiceError
from app.core.study import Currency, LocalMechanism, Relation
from app.dashboard import forms
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import BOTH, PageRoute
from app.services.statistics.sizing import size
from app.services.work import run
from app.web.documents.sizing import SizingIn, SizingOut, read_sizing

FIELDS = tuple(SizingIn.model_fields)


async def show(request: PageRequest) -> Response:
    """The form, and what it asks for once it is filled in."""
    fields = forms.given(request.query_params, *FIELDS)
    found, refusal = None, None
    if fields:
        try:
            for name in ("people", "lower", "upper"):
                forms.check_meant(fields.get(name, ""), name)
            sizing = read_sizing(fields)
            found = SizingOut.made_of(sizing, estimators=await run(size, sizing))
        except ServiceError as error:
            refusal = error
    return render(
        request,
        "size.html",
        status=status_of(refusal),
        fields=fields,
        refusal=refusal,
        found=found,
        relations=[one.value for one in Relation],
        noises=[one.value for one in Currency],
        mechanisms=["", *(one.value for one in LocalMechanism)],
        help={name: field.description for name, field in SizingIn.model_fields.items()},
    )


ROUTES = (PageRoute("/dashboard/size", show, roles=BOTH),)
