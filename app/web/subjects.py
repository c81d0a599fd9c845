"""External ids of people: digested at once, and kept nowhere."""

from app.core.errors import InvalidRequest
from app.services.contributing.intake import MAX_SUBJECT_LENGTH
from app.web.request import ApiRequest

LINK_PATH = "/dashboard/person/open/"
"""Where a one-time link leads; its secret follows."""


def subject_digest(request: ApiRequest, subject: str) -> bytes:
    """What the database knows of the person in the path.

    Raises:
        InvalidRequest: not an id.
        Forbidden: the token is for another person.
    """
    if not 1 <= len(subject) <= MAX_SUBJECT_LENGTH:
        raise InvalidRequest.field("subject", f"must have 1 to {MAX_SUBJECT_LENGTH} characters")
    digest = request.api.services.subject_key.digest(subject)
    request.refuse_other_subjects(digest)
    return digest
