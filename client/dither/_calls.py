"""One request, and a typed object from its answer."""

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from inspect import iscoroutinefunction
from typing import TypeVar, cast
from urllib.parse import quote

from dither._errors import InvalidRequest, ResponseError
from dither._flow import Flow, Pairs, Reply, Request, Retry, exchange
from dither._wire import Document, Parameter, build, decode, join, json_text, query_text
from dither.device.numbers import NotANumber, Number, Numeric

T = TypeVar("T")

JSON = (("content-type", "application/json"),)


class Calls:
    """Requests that are done with one answer. Every public method is a flow.

    Args:
        retry: How often and how patiently requests are tried again.
    """

    def __init__(self, retry: Retry) -> None:
        self._retry = retry

    def get(
        self,
        path: str,
        query: Mapping[str, Document] | None = None,
        *,
        patience: float = 0.0,
        shared: bool = False,
    ) -> Flow[Reply]:
        """GET something."""
        pairs = tuple(_written(query or {}, query_text).items())
        request = Request(method="GET", path=path, query=pairs, patience=patience, shared=shared)
        return (yield from exchange(request, self._retry))

    def read(self, kind: Callable[..., T], path: str, query: Mapping[str, Document] | None = None) -> Flow[T]:
        """GET a document."""
        reply = yield from self.get(path, query)
        return build(kind, decode(reply.body))

    def page(
        self, kind: Callable[..., T], path: str, limit: int, cursor: str | None, **filters: str | None
    ) -> Flow[tuple[list[T], str | None]]:
        """GET one page of a list, and where the next one begins."""
        query = {name: value for name, value in {**filters, "cursor": cursor}.items() if value is not None}
        reply = yield from self.get(path, {"limit": limit, **query})
        page = decode(reply.body)
        items = page.get("items") if isinstance(page, dict) else None
        following = page.get("next_cursor") if isinstance(page, dict) else None
        if not isinstance(items, list) or not isinstance(following, str | None):
            raise ResponseError("the service's answer is no page of a list")
        return [build(kind, item) for item in items], following

    def send(
        self,
        method: str,
        path: str,
        document: Mapping[str, Document] | None = None,
        *,
        key: str | None = None,
        repeatable: bool = True,
    ) -> Flow[Reply]:
        """Send a document, if there is one.

        Args:
            method, path: Where to.
            document: What is None in it is sent as null.
            key: The Idempotency-Key.
            repeatable: Whether the same request twice does no more than once.

        Raises:
            InvalidRequest: a number is not finite, or a field is nothing that JSON has.
        """
        body = None if document is None else join(_written(document, json_text)).encode()
        headers: Pairs = () if body is None else JSON
        if key is not None:
            headers += (("idempotency-key", key),)
        request = Request(method=method, path=path, body=body, headers=headers, repeatable=repeatable)
        return (yield from exchange(request, self._retry))

    def call(
        self,
        kind: Callable[..., T],
        method: str,
        path: str,
        document: Mapping[str, Document] | None = None,
        *,
        key: str | None = None,
        repeatable: bool = True,
    ) -> Flow[T]:
        """Send a document, and read the one that comes back. Args and Raises: see `send`."""
        reply = yield from self.send(method, path, document, key=key, repeatable=repeatable)
        return build(kind, decode(reply.body))


def _written(fields: Mapping[str, T], write: Callable[[T], str]) -> dict[str, str]:
    """Each field of a request as text.

    Raises:
        InvalidRequest: one cannot be; it is named.
    """
    written = {}
    for name, value in fields.items():
        try:
            written[name] = write(value)
        except NotANumber:
            also = "" if isinstance(value, float) else "text, a list or "
            raise InvalidRequest(name, f"must be {also}a finite decimal number") from None
        except TypeError:
            raise InvalidRequest(name, "is, or holds, what is no text, number, list or mapping") from None
    return written


def given(**fields: Document) -> dict[str, Document]:
    """The fields of a request that were given; the service has its own defaults for the others."""
    return {name: value for name, value in fields.items() if value is not None}


def exact(name: str, value: Numeric | None) -> Number | None:
    """A number, with every digit that it was written with.

    Raises:
        InvalidRequest: it is not finite.
    """
    try:
        return None if value is None else Number.parse(value)
    except NotANumber:
        raise InvalidRequest(name, "must be a finite decimal number") from None


def exact_list(name: str, values: Iterable[Numeric] | None) -> list[Number | None] | None:
    """Numbers with every digit.

    Raises:
        InvalidRequest: this is no list of finite numbers.
    """
    if values is None:
        return None
    if not _is_list(values):
        raise InvalidRequest(name, "must be a list of numbers, as [0.5, 1, 2]")
    return [exact(name, one) for one in values]


def moment_text(name: str, moment: datetime | None) -> str | None:
    """A moment as the service reads it.

    Raises:
        InvalidRequest: it is something else, such as text.
    """
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidRequest(name, f"must be a datetime with a time zone, not {type(moment).__name__}")
    return moment.isoformat()


def exact_points(name: str, points: Sequence[Sequence[Numeric]] | None) -> list[list[Number | None]] | None:
    """Points with every digit of their coordinates.

    Raises:
        InvalidRequest: one is no sequence of finite numbers.
    """
    if points is None:
        return None
    if not _is_list(points) or not all(map(_is_list, points)):
        raise InvalidRequest(name, "must be a list of points, each a list of numbers, as [[20], [40]]")
    return [[exact(name, part) for part in point] for point in points]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def asked_for(measures: Mapping[str, Mapping[str, Numeric | Sequence[str]]] | None) -> Document:
    """Measures as a study declares them, ends of ranges with every digit.

    Raises:
        InvalidRequest: an end is not finite.
    """
    if measures is None:
        return None
    return {
        name: {
            field: list(value)
            if isinstance(value, Sequence) and not isinstance(value, str)
            else exact(f"measures.{name}.{field}", value)
            for field, value in mapped(f"measures.{name}", own, '{"lower": 0, "upper": 10}').items()
        }
        for name, own in mapped("measures", measures, '{"age": {"lower": 0, "upper": 120}}').items()
    }


def exact_text(name: str, value: Numeric) -> str:
    """A number as decimal text, with every digit that it was written with.

    Raises:
        InvalidRequest: it is not finite.
    """
    try:
        return Number.parse(value).text
    except NotANumber:
        raise InvalidRequest(name, "must be a finite decimal number") from None


def by_bins(edges: str | Sequence[Numeric] | None, bins: int | None) -> dict[str, Document]:
    """The bins of a question: text is sent as it is."""
    return given(edges=edges if isinstance(edges, str) else exact_list("edges", edges), bins=bins)


Where = str | Mapping[str, str]
"""Of whom: {"region": "north"}, or region:north."""


def asked(parameters: Mapping[str, object]) -> dict[str, Document]:
    """The parameters of a question that are not None; `for_` is `for`, which Python has itself."""
    question = given(**{name.removesuffix("_"): cast(Document, one) for name, one in parameters.items()})
    where = cast(Where, question.get("where", ""))
    if isinstance(where, str):
        return question
    labels = mapped("where", where, '{"region": "north"}')
    return question | {"where": ",".join(f"{name}:{label}" for name, label in labels.items())}


Labels = str | Mapping[str, Sequence[str]]
"""Two labels of an attribute: {"region": ["north", "south"]}, or region:north,south."""

Shares = str | Mapping[str, Mapping[str, Numeric]]
"""The share of each label: {"region": {"north": .4, "south": .6}}, or region:north=.4,south=.6."""


def between_labels(between: Labels) -> dict[str, Parameter]:
    """The parameter of a difference that names its labels."""
    if isinstance(between, str):
        return {"between": between}
    pairs = mapped("between", between, '{"region": ["north", "south"]}')
    for name, labels in pairs.items():
        if not _is_list(labels):
            raise InvalidRequest(f"between.{name}", "must be a list of two labels")
    return {"between": ";".join(f"{name}:{','.join(map(str, labels))}" for name, labels in pairs.items())}


def by_shares(standardize: Shares | None) -> dict[str, Parameter]:
    """The parameter of a mean that says what labels weigh; none for a mean of all people alike."""
    if standardize is None:
        return {}
    if isinstance(standardize, str):
        return {"standardize": standardize}
    example = '{"region": {"north": 0.4, "south": 0.6}}'
    texts = []
    for name, shares in mapped("standardize", standardize, example).items():
        own = mapped("standardize", shares, example)
        texts.append(f"{name}:" + ",".join(f"{label}={exact_text(label, one)}" for label, one in own.items()))
    return {"standardize": ";".join(texts)}


def mapped(name: str, value: Mapping[str, T], example: str) -> Mapping[str, T]:
    """An argument that is a mapping.

    Raises:
        InvalidRequest: it is none, with what one looks like.
    """
    if not isinstance(value, Mapping):
        raise InvalidRequest(name, f"must be a mapping, such as {example}")
    return value


def key_or_new(name: str, key: str | None) -> str:
    """The caller's Idempotency-Key, or one of this call's own where there is none.

    An empty one is refused, not replaced: with a random key in its place a retry would be done again.

    Raises:
        InvalidRequest: it is no text that the service takes as a key.
    """
    if key is None:
        return secrets.token_hex(16)
    if not isinstance(key, str) or not 1 <= len(key) <= 200 or not (key.isascii() and key.isprintable()):
        raise InvalidRequest(name, "must be a text of 1 to 200 printable ASCII characters")
    if key != key.strip():
        raise InvalidRequest(name, "may not begin or end with a space")
    return key


def check_progress(on_progress: object) -> None:
    """Refuse what cannot be called while records are sent, before the first one is.

    Raises:
        InvalidRequest: it is no function, or one that would have to be awaited.
    """
    if on_progress is not None and not callable(on_progress):
        raise InvalidRequest("on_progress", "must be a function of one argument")
    if iscoroutinefunction(on_progress):
        raise InvalidRequest("on_progress", "must be a function that is not async: it is called, not awaited")


def study_path(slug: str) -> str:
    """Address of a study."""
    return f"/v1/studies/{_segment('study', slug)}"


def invitation_path(study: str, invitation: str) -> str:
    """Address of an invitation."""
    return f"{study_path(study)}/invitations/{_segment('invitation', invitation)}"


def publication_path(study: str, publication: str) -> str:
    """Address of a publication, for those who manage it."""
    return f"{study_path(study)}/publications/{_segment('publication', publication)}"


def session_path(session: str) -> str:
    """Address of a session."""
    return f"/v1/sessions/{_segment('session', session)}"


def release_path(release: str) -> str:
    """Address of a release."""
    return f"/v1/releases/{_segment('release', release)}"


def schedule_path(study: str, schedule: str) -> str:
    """Address of a schedule."""
    return f"{study_path(study)}/schedules/{_segment('schedule', schedule)}"


def webhook_path(webhook: str) -> str:
    """Address of a webhook."""
    return f"/v1/admin/webhooks/{_segment('webhook', webhook)}"


def token_path(token: str) -> str:
    """Address of a token."""
    return f"/v1/admin/tokens/{_segment('token', token)}"


def quoted(subject: str) -> str:
    """A subject, whatever it is, as a piece of a path.

    Clients take a plain dot or two for the way within a path; what was stored by such a name is reached all
    the same.
    """
    return subject.replace(".", "%2E") if subject in (".", "..") else quote(subject, safe="")


def _segment(name: str, text: str) -> str:
    if not isinstance(text, str) or text in ("", ".", ".."):
        raise InvalidRequest(name, "must be a name or an id, as text")
    return _kept(text)


@lru_cache(maxsize=256)
def _kept(text: str) -> str:
    """Names of things, which come again and again; people's ids are not kept."""
    return quote(text, safe="")
