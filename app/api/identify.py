"""Who asks: the bearer of one of our tokens, or of a provider's JWT."""

from app.api.requests import ApiRequest
from app.core.errors import Unauthenticated
from app.core.principal import Principal


async def identify(request: ApiRequest) -> Principal:
    """Who bears the token of a request.

    A JWT has two dots and ours have none, so neither is ever taken for the other.

    Raises:
        Unauthenticated: no token, or one that is not valid.
        Forbidden: a valid JWT from which no role follows.
        Unavailable: it cannot be checked now.
    """
    secret = bearer(request)
    oidc, tokens = request.api.oidc, request.api.services.tokens
    if oidc is None or secret.count(".") != 2:
        return await tokens.authenticate(secret)
    identity = await oidc.verify(secret)
    return await tokens.identify(identity.digest, role=identity.grant.role, studies=identity.grant.studies)


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
