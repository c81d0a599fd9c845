"""The one class of routes: access first, then the query, then a strict document, then the endpoint."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.access import access_of
from app.api.openapi import problem_responses
from app.web.request import ApiRequest

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

CONFLICTS = "x-conflicts"
"""Key of `openapi_extra`: the route can answer 409. It does not reach the document."""

OPEN_QUERY = "x-open-query"
"""Key of `openapi_extra`: the endpoint itself refuses unknown query parameters."""


class Anything(Convertor[str]):
    """A part of a path that may be any text: Starlette's own `path` stops at the end of a line."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """The text."""
        return value

    def to_string(self, value: str) -> str:
        """The text."""
        return value


register_url_convertor("anything", Anything())


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"}


class StrictRoute(APIRoute):
    """A route whose requests are checked before FastAPI looks at them.

    FastAPI would read a document before it asks for the token and parse it leniently; here the service
    reads nothing from requests without a token. An endpoint that reads the document itself declares it as
    `requestBody` in `openapi_extra`.

    Attributes:
        access: Who may call it.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        extra: dict[str, Any] = dict(options.pop("openapi_extra", None) or {})
        conflicts = bool(extra.pop(CONFLICTS, False))
        self.access = access_of(endpoint)
        self._open_query = bool(extra.pop(OPEN_QUERY, False))
        if self.access.roles:
            extra.setdefault("security", [{"bearer": []}])
        # Clients that are made from the OpenAPI document call a method what the endpoint is called.
        options["operation_id"] = endpoint.__name__
        super().__init__(path, endpoint, openapi_extra=extra, **options)
        self.responses = {
            **problem_responses(
                token=bool(self.access.roles),
                path_parameters=bool(self.param_convertors),
                body=self.body_field is not None or "requestBody" in extra,
                conflicts=conflicts,
            ),
            **self.responses,
        }
        direct = self._direct_endpoint()
        self.app = (
            AsyncExitStackMiddleware(self.app) if direct is None else _answering(self._admitted(direct))
        )

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As FastAPI does it; HEAD works where GET does."""
        return super().matches(_as_get(scope) if self._answers_head(scope) else scope)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As FastAPI does it; HEAD has what GET has, without its body."""
        if scope["method"] in (self.methods or ()):
            await self.app(scope, receive, send)
            return
        if not self._answers_head(scope):
            await super().handle(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        asked = _as_get(scope)
        try:
            await super().handle(asked, receive, send_head)
        finally:
            # What was noted on the way is for the log; the server has to know that it was HEAD.
            scope.update({**asked, "method": scope["method"]})

    def _answers_head(self, scope: Scope) -> bool:
        return scope.get("method") == "HEAD" and "GET" in (self.methods or ())

    def get_route_handler(self) -> Handler:
        """The handler that FastAPI runs for each request."""
        return self._admitted(super().get_route_handler())

    def _admitted(self, inner: Handler) -> Handler:
        """A handler behind the checks of every request."""
        admit = self.access.admit
        known = frozenset(parameter.alias for parameter in self.dependant.query_params)
        open_query = self._open_query
        reads_document = self.body_field is not None

        async def handle(request: Request) -> Response:
            call = request if isinstance(request, ApiRequest) else ApiRequest(request.scope, request.receive)
            await admit(call)
            call.refuse_malformed_address()
            if not open_query:
                call.refuse_unknown_query(known)
            if reads_document:
                call.keep_json(await call.read_json())
            return await inner(call)

        return handle

    def _direct_endpoint(self) -> Handler | None:
        """The endpoint itself where it takes nothing but the request and the path: nothing to solve."""
        dependant = self.dependant
        others = (
            dependant.query_params,
            dependant.header_params,
            dependant.cookie_params,
            dependant.body_params,
            dependant.dependencies,
        )
        if any(others) or dependant.request_param_name is None or dependant.response_param_name is not None:
            return None
        if any(parameter.field_info.annotation is not str for parameter in dependant.path_params):
            return None
        if self.response_field is not None:
            return None
        name, endpoint = dependant.request_param_name, self.endpoint

        async def call_endpoint(request: Request) -> Response:
            response: Response = await endpoint(**{name: request}, **request.path_params)
            return response

        return call_endpoint


def _answering(handler: Handler) -> ASGIApp:
    """An application of a handler that leaves nothing to close: FastAPI's own keeps two stacks for that."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        response = await handler(ApiRequest(scope, receive))
        await response(scope, receive, send)

    return answer
