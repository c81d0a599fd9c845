"""Who asks: the bearer of one of our tokens, or of a provider's JWT."""

from app.core.errors import Unauthenticated
from app.core.principal import Principal
from app.web.oidc import BearerIdentity
from app.web.request import ApiRequest
from app.web.state import Api


async def identify(request: ApiRequest) -> Principal:
    """Who bears the token of a request.

    Raises:
        Unauthenticated: no token, or one that is not valid.
        Forbidden: a valid JWT from which no role follows.
        Unavailable: it cannot be checked now.
    """
    principal, _ = await authenticate(request.api, bearer(request))
    return principal


async def authenticate(api: Api, secret: str) -> tuple[Principal, float | None]:
    """Who bears a token, and for a JWT when it ends [seconds since 1970].

    A JWT has two dots and ours have none, so neither is ever taken for the other.

    Raises:
        Unauthenticated: the token is not valid.
        Forbidden: a valid JWT from which no role follows.
        Unavailable: it cannot be checked now.
    """
    tokens = api.services.tokens
    if api.oidc is None or secret.count(".") != 2:
        return await tokens.authenticate(secret), None
    identity = await api.oidc.verify(secret)
    return await bearer_of(api, identity), identity.expires_at


async def bearer_of(api: Api, identity: BearerIdentity) -> Principal:
    """Who bears a good JWT.

    Raises:
        Unauthenticated: an admin revoked the identity.
    """
    grant = identity.grant
    return await api.services.tokens.identify(
        identity.digest, name=identity.name, roles=grant.roles, studies=grant.studies
    )


def bearer(request: ApiRequest) -> str:
    """The bearer token of a request.

    Raises:
        Unauthenticated: there is none.
    """
    header = request.header(b"authorization")
    if header is None:
        raise Unauthenticated("This takes a bearer token.")
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret or not secret.isascii():
        raise Unauthenticated("The Authorization header must be: Bearer TOKEN")
    return secret
