"""Signing in with the identity provider: there, and back."""

from starlette.responses import RedirectResponse, Response

from app.core.errors import Forbidden, NotFound, Unauthenticated
from app.dashboard.pages.login import enter, home_of, set_cookie
from app.dashboard.rendering import render
from app.dashboard.requests import PageRequest
from app.dashboard.routing import PageRoute
from app.web.authentication import bearer_of
from app.web.sign_in import Pending, SignIn

SIGN_IN_COOKIE = "dither_sign_in"
"""Between leaving for the provider and coming back."""

SIGN_IN_SECONDS = 10 * 60


async def leave(request: PageRequest) -> Response:
    """Send the browser to the provider."""
    url, pending = await _sign_in(request).begin(_back(request))
    response = RedirectResponse(url, status_code=303)
    # Lax: the provider's page leads back here, which a strict cookie would not survive.
    set_cookie(
        request,
        response,
        SIGN_IN_COOKIE,
        pending.to_text(),
        SIGN_IN_SECONDS,
        path="/sign-in",
        same_site="lax",
    )
    return response


async def come_back(request: PageRequest) -> Response:
    """Check what the provider says, and remember who it is."""
    pending = Pending.from_text(request.cookies.get(SIGN_IN_COOKIE, ""))
    try:
        identity = await _sign_in(request).finish(pending, request.query_params, _back(request))
    except Unauthenticated as refusal:
        raise Forbidden(f"The identity provider's answer is refused: {refusal.detail}") from None
    principal = await bearer_of(request.api, identity)
    # Not a redirect: the browser came from another site, and would not send a strict cookie on.
    home = f"{request.cookie_path}{home_of(principal)}"
    response = await enter(request, principal, None, render(request, "signed_in.html", home=home))
    response.delete_cookie(SIGN_IN_COOKIE, path=f"{request.cookie_path}/sign-in")
    return response


def _sign_in(request: PageRequest) -> SignIn:
    if request.api.sign_in is None:
        raise NotFound("This installation has no identity provider to sign in with.")
    return request.api.sign_in


def _back(request: PageRequest) -> str:
    """The address that the provider sends browsers back to; it is registered there."""
    return f"{request.public_url}{request.cookie_path}/sign-in/back"


ROUTES = (
    PageRoute("/dashboard/sign-in", leave),
    PageRoute("/dashboard/sign-in/back", come_back),
)
