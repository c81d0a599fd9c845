"""A new token, of a document or a form."""

from app.core.principal import Principal
from app.services import Services
from app.web.documents.token import NewTokenOut, TokenIn


async def new_token(services: Services, document: TokenIn, maker: Principal) -> NewTokenOut:
    """Make it; its secret is in what is returned, this once.

    Raises:
        InvalidRequest: its fields contradict each other, or it would have expired.
    """
    record, secret = await services.tokens.create(
        name=document.name,
        roles=document.all_roles,
        studies=None if document.studies is None else frozenset(document.studies),
        subject=None if document.subject is None else services.subject_key.digest(document.subject),
        expires_at=document.expires_at,
        actor=str(maker.token_id),
    )
    return NewTokenOut.made_of(record, token=secret)
