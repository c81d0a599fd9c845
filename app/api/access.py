"""Who may call a route. Every route says so; one that does not cannot be made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from app.core.principal import Role
from app.web.authentication import identify
from app.web.request import ApiRequest

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

STUDY_ROLES = (Role.CONTRIBUTE, Role.ANALYSE, Role.ADMIN)
"""Who may read what studies and sessions are: everyone but who only watches the service."""

_ATTRIBUTE = "__dither_access__"


@dataclass(frozen=True, slots=True)
class Access:
    """Who may call a route.

    Attributes:
        roles: Roles that may; empty where no token is needed.
        of_a_study: Whether what the path names belongs to a study, so that the endpoint itself refuses other
            studies before it does anything.
    """

    roles: frozenset[Role]
    of_a_study: bool = False

    async def admit(self, request: ApiRequest) -> None:
        """Identify the requester; refuse a requester without the right.

        Raises:
            Unauthenticated: no valid token.
            Forbidden: another role or study.
            Unavailable: a JWT cannot be checked now.
            RateLimited: the token has asked too often.
        """
        if not self.roles:
            return
        principal = request.principal = await identify(request)
        request.note_headers(request.api.rate.take(principal.token_id))
        request.refuse_others(self.roles, "This takes a token with", of_a_study=self.of_a_study)


def allow(*roles: Role, of_a_study: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Declare who may call an endpoint, as in `Access`; place it below the router's decorator."""

    def declare(endpoint: Endpoint) -> Endpoint:
        setattr(endpoint, _ATTRIBUTE, Access(frozenset(roles), of_a_study=of_a_study))
        return endpoint

    return declare


def public(endpoint: Endpoint) -> Endpoint:
    """Declare that an endpoint takes no token."""
    setattr(endpoint, _ATTRIBUTE, Access(frozenset()))
    return endpoint


def access_of(endpoint: Callable[..., Any]) -> Access:
    """What an endpoint declares.

    Raises:
        TypeError: it declares nothing.
    """
    access = getattr(endpoint, _ATTRIBUTE, None)
    if not isinstance(access, Access):
        raise TypeError(f"{endpoint.__qualname__} does not say who may call it")
    return access
