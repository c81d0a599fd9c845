"""Logging in and out."""

from typing import Literal

from starlette.responses import RedirectResponse, Response

from app.core.errors import Forbidden, InvalidRequest, Unauthenticated
from app.core.principal import Principal, Role
from app.dashboard.rendering import render
from app.dashboard.requests import GUEST_COOKIE, LOGIN_COOKIE, PageRequest
from app.dashboard.routing import BOTH, PageRoute, redirect
from app.services.admin.tokens import new_secret
from app.web.authentication import authenticate

GUEST_SECONDS = 60 * 60


def set_cookie(
    request: PageRequest,
    response: Response,
    name: str,
    secret: str,
    seconds: int,
    *,
    path: str = "",
    same_site: Literal["strict", "lax"] = "strict",
) -> None:
    """Hand a secret to the browser: not to scripts, and not on requests that other sites cause."""
    response.set_cookie(
        name,
        secret,
        max_age=seconds,
        path=f"{request.cookie_path}{path}",
        secure=request.secure,
        httponly=True,
        samesite=same_site,
    )


def home_of(principal: Principal) -> str:
    """The first page after a login."""
    return "" if Role.ADMIN in principal.roles and principal.studies is None else "/studies"


async def show_login(request: PageRequest) -> Response:
    """The form."""
    return _form(request)


async def log_in(request: PageRequest) -> Response:
    """Check the token, and remember who it is."""
    token = request.fields.get("token", "")
    try:
        if not token or not token.isascii():
            raise Unauthenticated("This is not a token.")
        principal, until = await authenticate(request.api, token)
        return await enter(request, principal, until, redirect(request, home_of(principal)))
    except Unauthenticated:
        return _form(request, "This token is unknown, revoked or has expired.", 401)
    except Forbidden as refusal:
        return _form(request, refusal.detail, 403)


async def enter(
    request: PageRequest, principal: Principal, until: float | None, response: Response
) -> Response:
    """Log the bearer in, with the cookie on this response.

    Args:
        request: Theirs.
        principal: Who it is.
        until: When a JWT ends, and the login with it [seconds since 1970].
        response: What they see.

    Raises:
        Unauthenticated: the JWT ends now.
        Forbidden: a contributor.
    """
    secret, seconds = await request.api.services.logins.log_in(principal, until)
    set_cookie(request, response, LOGIN_COOKIE, secret, seconds)
    response.delete_cookie(GUEST_COOKIE, path=request.cookie_path)
    return response


async def log_out(request: PageRequest) -> Response:
    """Forget who it was, here and in the database."""
    await request.api.services.logins.log_out(request.cookies[LOGIN_COOKIE])
    response = redirect(request, "/login")
    response.delete_cookie(LOGIN_COOKIE, path=request.cookie_path)
    return response


async def at_root(request: PageRequest) -> Response:
    """With a slash at the end it is the same page."""
    if request.query_params:
        raise InvalidRequest("This page takes no parameters.")
    return RedirectResponse(request.cookie_path, status_code=308)


def _form(request: PageRequest, refusal: str | None = None, status: int = 200) -> Response:
    cookie = request.cookies.get(GUEST_COOKIE) or new_secret()
    response = render(
        request,
        "login.html",
        status=status,
        cookie=cookie,
        refusal=refusal,
        has_provider=request.api.oidc is not None,
        has_sign_in=request.api.sign_in is not None,
    )
    set_cookie(request, response, GUEST_COOKIE, cookie, GUEST_SECONDS)
    return response


ROUTES = (
    PageRoute("/dashboard/", at_root),
    PageRoute("/dashboard/login", show_login),
    PageRoute("/dashboard/login", log_in, post=True),
    PageRoute("/dashboard/logout", log_out, roles=BOTH, post=True),
)
