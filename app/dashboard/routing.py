"""The one class of page routes: who may look, where forms may come from, and what browsers may do with it."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from app.core.errors import InvalidRequest, ServiceError, Unauthenticated
from app.core.principal import Role
from app.dashboard.rendering import PageResponse, error_page, render, spoken
from app.dashboard.requests import GUEST_COOKIE, LOGIN_COOKIE, PERSON_COOKIE, PageRequest
from app.services.work import run
from app.web.problems import kind_of
from app.web.request_log import REFUSAL

Page = Callable[[PageRequest], Awaitable[Response]]

NO_FRAMES = "frame-ancestors 'none'"

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    f"form-action 'self'; base-uri 'none'; {NO_FRAMES}"
)
"""Nothing but our own style sheets, scripts and pictures, no frames, and forms go nowhere else."""

HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Not no-referrer: forms would then be sent without their origin.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}

ADMIN = frozenset({Role.ADMIN})
ANALYST = frozenset({Role.ANALYSE})
BOTH = frozenset({Role.ADMIN, Role.ANALYSE})
NO_LOGIN: frozenset[Role] = frozenset()


class PageRoute(Route):
    """A page.

    Attributes:
        roles: Who may look, once they are logged in; empty for pages without a login or with a link.
        person: Whether it is a page of people with a link.
        policy: Its content security policy.
        upload: Whether its form may hold a file.
        several: Fields of its form that may be given several times; they are then read one a line.
    """

    def __init__(
        self,
        path: str,
        page: Page,
        *,
        roles: frozenset[Role] = NO_LOGIN,
        person: bool = False,
        post: bool = False,
        policy: str = POLICY,
        upload: bool = False,
        several: frozenset[str] = frozenset(),
    ) -> None:
        self.policy = policy
        self.upload = upload
        self.several = several
        self.roles = roles
        self.person = person
        self._page = page
        self._post = post
        super().__init__(
            path, self._handle, methods=["POST"] if post else ["GET"], include_in_schema=False, name=path
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As Starlette does it, and note the route for the metrics."""
        match, child = super().matches(scope)
        if match is not Match.NONE:
            child["route"] = self
        return match, child

    async def _handle(self, request: Request) -> Response:
        call = PageRequest(request.scope, request.receive)
        call.fields = {}
        try:
            await self._admit(call)
            response = await self._answer(call)
        except ServiceError as error:
            if kind_of(error).status == 500:
                raise
            call.scope[REFUSAL] = error
            response = await _drawn(self._refusal(call, error))
        response.headers["Content-Security-Policy"] = self.policy
        response.headers.update(HEADERS)
        return response

    async def _answer(self, call: PageRequest) -> Response:
        """The page; that of a token has a place among heavy work."""
        if not self.roles:
            return await _drawn(await self._page(call))
        async with call.work():
            return await _drawn(await self._page(call))

    async def _admit(self, call: PageRequest) -> None:
        if self._post:
            call.refuse_other_sites()
        cookie = GUEST_COOKIE
        if self.person or self.roles:
            cookie = PERSON_COOKIE if self.person else LOGIN_COOKIE
            call.login = await call.find_login(person=self.person)
            principal = call.principal = call.login.principal
            call.api.rate.take(principal.token_id)
            if not self.person:
                call.refuse_others(self.roles, "This page is for")
        # Who is logged in goes on from the page that refuses it.
        call.refuse_malformed_address()
        call.single_query()
        if self._post:
            await call.read_form(cookie, upload=self.upload, several=self.several)

    def _refusal(self, call: PageRequest, error: ServiceError) -> Response:
        """Without a login, leads to the login page, and a person to another link; else says what is wrong."""
        if isinstance(error, Unauthenticated) and not self._post and not self.person:
            return RedirectResponse(f"{call.cookie_path}/login", status_code=303)
        status = kind_of(error).status
        if isinstance(error, Unauthenticated) and self.person:
            return render(call, "person_left.html", status=status, used=False, **spoken(call))
        if isinstance(error, InvalidRequest) and not self._post:
            status = 422
        return error_page(call, status, kind_of(error).title, error)


async def _drawn(response: Response) -> Response:
    if isinstance(response, PageResponse):
        await run(response.draw)
    return response


def redirect(request: PageRequest, path: str) -> Response:
    """Go on to another page after a form."""
    return RedirectResponse(f"{request.cookie_path}{path}", status_code=303)
