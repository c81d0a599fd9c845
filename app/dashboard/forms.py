"""Fields of forms and of addresses, checked like parameters; `app.web.documents.fields` reads documents."""

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from dither.device import table

from app.core.errors import InvalidRequest
from app.core.records import Wanted
from app.dashboard.requests import PageRequest
from app.web.validation_messages import InvalidValue


def prose(text: str) -> str:
    """What was written into a field of several lines, with line ends as we keep them."""
    return text.replace("\r\n", "\n")


def given(fields: Mapping[str, str], *names: str) -> dict[str, str]:
    """The fields with these names that are not empty."""
    return {name: fields[name] for name in names if fields.get(name)}


def check_meant(text: str, field: str) -> None:
    """Ask back where a number that stays for good may mean two.

    Raises:
        InvalidRequest: with both.
    """
    try:
        table.check_meant(text)
    except table.NotOneNumber as question:
        raise InvalidRequest.field(field, f"{text.strip()} {question}") from None


def chosen(request: PageRequest, name: str, options: Iterable[str]) -> str | None:
    """What was chosen of a list in the address; None for nothing.

    Raises:
        InvalidRequest: it is not in the list.
    """
    text, known = request.query_params.get(name) or None, list(options)
    if text is not None and text not in known:
        raise InvalidRequest.field(name, f"must be one of {', '.join(known)}")
    return text


def wanted(request: PageRequest, states: Iterable[str], sorts: Iterable[str]) -> Wanted:
    """What the address says that is looked for in a list.

    Raises:
        InvalidRequest: a state or an order that the list does not have.
    """
    return Wanted(
        search=request.query_params.get("search") or "",
        state=chosen(request, "state", states),
        series=request.query_params.get("series") or None,
        sort=chosen(request, "sort", sorts) or "",
    )


def key(request: PageRequest) -> UUID:
    """What makes one act of two clicks on a form's button.

    Raises:
        InvalidRequest: the form gave none.
    """
    try:
        return UUID(request.fields.get("key", ""))
    except ValueError:
        raise InvalidRequest.field("key", "is not one of this form's") from None


def cursor(request: PageRequest, check: Callable[[str], str], name: str = "cursor") -> str | None:
    """Where a list on the page starts.

    Raises:
        InvalidRequest: not a cursor of this list.
    """
    text = request.query_params.get(name)
    if not text:
        return None
    try:
        return check(text)
    except InvalidValue as refusal:
        raise InvalidRequest.field(name, str(refusal)) from None
