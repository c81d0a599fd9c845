"""The Idempotency-Key header."""

import re

from app.core.errors import InvalidRequest
from app.services.replies import Idempotency
from app.web.request import ApiRequest

KEY = re.compile(r"[\x21-\x7e]{1,200}")

PARAMETER = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A retry with the same key gets the first response again; another request with it is "
    "refused.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
}
"""How OpenAPI declares it."""


async def idempotency(request: ApiRequest, subject: bytes | None = None) -> Idempotency | None:
    """The client's key for this request; None where it sends none. Call after the body was read.

    Args:
        request: The request.
        subject: Whom it is about (HMAC digest); None: no person.

    Raises:
        InvalidRequest: not a key.
    """
    key = request.header(b"idempotency-key")
    if key is None:
        return None
    if KEY.fullmatch(key) is None:
        raise InvalidRequest.field("Idempotency-Key", "must have 1 to 200 printable ASCII characters")
    content = (
        request.method.encode(),
        request.url.path.encode(),
        request.scope["query_string"],
        await request.body(),
    )
    token_id = request.principal.token_id
    if subject is None:
        return Idempotency.about_nobody(token_id, key, *content)
    return Idempotency.about(subject, request.api.services.subject_key, token_id, key, *content)
