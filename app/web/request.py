"""The request as routes see it: who asks, and strict documents."""

import re
from collections.abc import AsyncIterator, Container, Mapping, Set
from contextlib import asynccontextmanager, suppress
from typing import cast
from uuid import UUID

from dither.device.texts import MAX_SUBJECT_LENGTH
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from app.core.errors import (
    DocumentTooLarge,
    Forbidden,
    InvalidRequest,
    MalformedDocument,
    NotFound,
    RequestTimeout,
    UnsupportedMediaType,
)
from app.core.principal import Principal, Role
from app.core.reporting_range import FIELD
from app.core.study import Study
from app.formats.strict_json import decode_json, decode_utf8
from app.services.work import Ended
from app.web.patterns import SLUG_PATTERN, is_encoded_utf8, refuse_nul
from app.web.request_log import PRINCIPAL, WORKED
from app.web.state import Api

JSON = "application/json"

STREAMED = 256 * 1024
"""Bytes that a document is sent in; a smaller one goes out at once."""

LINK_PATH = "/dashboard/person/open/"
"""Where a person's one-time link leads; its secret follows."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of the machine itself: a link with one of them leads to no other."""

DEFAULT_PORTS = {"http": 80, "https": 443}

RESPONSE_HEADERS = "dither.response_headers"
"""Key of the ASGI scope: what `note_headers` noted, for the outermost layer."""

SLUG = re.compile(SLUG_PATTERN, re.ASCII)


class ApiRequest(Request):
    """A request that was let in."""

    @property
    def principal(self) -> Principal:
        """Who asks; unset on routes that take no token."""
        return cast(Principal, self.scope[PRINCIPAL])

    @principal.setter
    def principal(self, principal: Principal) -> None:
        self.scope[PRINCIPAL] = principal

    @property
    def api(self) -> Api:
        """What the lifespan made."""
        return cast(Api, self.scope["state"]["api"])

    def header(self, name: bytes) -> str | None:
        """The header of this name (lower case), without building a mapping of all of them.

        Raises:
            InvalidRequest: there are several, and they differ: who forwards the request may see another one.
        """
        found: bytes | None = None
        for key, value in self.scope["headers"]:
            if key == name and value != found:
                if found is not None:
                    raise InvalidRequest.field(name.decode().title(), "is given twice, with different values")
                found = value
        return None if found is None else found.decode("latin-1")

    def note_headers(self, headers: Mapping[str, str]) -> None:
        """Headers that the response gets, whatever it will be."""
        if headers:
            self.scope[RESPONSE_HEADERS] = headers

    @property
    def known_url(self) -> str | None:
        """Where people reach the service, without a slash at the end; None where only a client says it.

        Without a setting that is where this request went: a name of this very machine, or the address of the
        connection. Another name in the Host header is the client's word, and may be any site.
        """
        if self.api.public_url is not None:
            return self.api.public_url
        url, reached = self.base_url, self.scope.get("server") or (None, None)
        try:
            host, port = url.hostname, url.port or DEFAULT_PORTS[url.scheme]
        except ValueError:
            return None
        here = host in LOOPBACK or (host == reached[0] and reached[1] in (None, port))
        return str(url).rstrip("/") if here else None

    @property
    def public_url(self) -> str:
        """`known_url`, for what leads people somewhere.

        Raises:
            InvalidRequest: it is not known.
        """
        if self.known_url is None:
            raise InvalidRequest.field(
                "Host",
                "names another address than the one that was reached, and no link leads where a client says: "
                "set DITHER_PUBLIC_URL to where people reach the service",
            )
        return self.known_url

    @property
    def media_type(self) -> str | None:
        """The announced media type, lower case, without parameters.

        Raises:
            UnsupportedMediaType: another character set than UTF-8.
        """
        announced = self.header(b"content-type")
        if announced is None:
            return None
        media_type, _, parameters = announced.partition(";")
        if parameters and not _is_utf8(parameters):
            raise UnsupportedMediaType("The character set must be utf-8.")
        return media_type.strip().lower()

    def wanted(self, *kinds: str) -> str | None:
        """The first of these media types that the client names; None where it names none of them."""
        named = (part.partition(";")[0].strip().lower() for part in (self.header(b"accept") or "").split(","))
        return next((name for name in named if name in kinds), None)

    def refuse_other_encodings(self, *accepted: str) -> str:
        """The content encoding, where it is one of those accepted.

        Raises:
            UnsupportedMediaType: any other.
        """
        encoding = (self.header(b"content-encoding") or "identity").strip().lower()
        if encoding not in accepted:
            raise UnsupportedMediaType(f"The content encoding must be {' or '.join(accepted)}.")
        return encoding

    def refuse_announced_excess(self, limit: int) -> None:
        """Refuse a body whose announced length is over the limit, before reading any of it.

        Raises:
            DocumentTooLarge: it is.
        """
        length = self.header(b"content-length")
        if length is None:
            return
        if not length.isdecimal():
            raise MalformedDocument("The Content-Length is not a number.")
        if len(length) > 18 or int(length) > limit:
            raise DocumentTooLarge.over(limit)

    @asynccontextmanager
    async def work(self, *, batch: bool = False) -> AsyncIterator[None]:
        """A place among the requests with heavy work, see `app.services.work`; after the document was read.

        The work ends at its next checkpoint once the client leaves; a batch, whose document arrives
        meanwhile, looks for that itself.

        Raises:
            Unavailable: too many such requests are under way, for too long.
            ClientDisconnect: the client has left.
        """
        left = None if batch else self._left
        token = self.scope[WORKED] = self.principal.token_id
        async with self.api.work.turn(token, left, batch=batch):
            try:
                yield
            except Ended:
                raise ClientDisconnect from None

    async def _left(self) -> None:
        """Wait until the client leaves."""
        with suppress(RequestTimeout):
            while (await self.receive())["type"] != "http.disconnect":
                pass

    @staticmethod
    def refuse_excess(length: int, limit: int) -> None:
        """Refuse a body of which more than the limit has arrived.

        Raises:
            DocumentTooLarge: it has.
        """
        if length > limit:
            raise DocumentTooLarge.over(limit)

    async def read_body(self, limit: int) -> bytes:
        """The whole body, never holding more than the limit and one chunk.

        Raises:
            DocumentTooLarge: it is longer.
            ClientDisconnect: the client left before its end.
        """
        self.refuse_announced_excess(limit)
        return await self._read_announced(limit)

    async def _read_announced(self, limit: int) -> bytes:
        """`read_body`, of a body whose announced length was looked at."""
        body, more = bytearray(), True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            more = message.get("more_body", False)
            self.refuse_excess(len(body), limit)
        self._body = bytes(body)
        return self._body

    async def read_json(self, *, absent: object = None) -> object:
        """The strict value of a JSON document.

        Args:
            absent: What stands for no document at all; None where there must be one.

        Raises:
            DocumentTooLarge: over the limit.
            UnsupportedMediaType: not announced as JSON in UTF-8, or compressed.
            MalformedDocument: not JSON.
        """
        limit = self.api.limits.document
        self.refuse_announced_excess(limit)
        media_type = self.media_type
        if media_type != JSON and (absent is None or media_type is not None):
            raise UnsupportedMediaType(f"The content type must be {JSON}.")
        self.refuse_other_encodings("identity")
        body = await self._read_announced(limit)
        if not body and absent is not None:
            return absent
        if media_type is None:
            raise UnsupportedMediaType(f"The content type must be {JSON}.")
        return decode_json(decode_utf8(body))

    def keep_json(self, document: object) -> None:
        """Hand a document that was read strictly to FastAPI, which would read it again otherwise."""
        self._json = document

    async def read_object(self, *, required: bool = True) -> dict[str, object]:
        """The fields of a JSON object; none where there is no document and none is required.

        Raises:
            InvalidRequest: the document is not an object.
        """
        document = await self.read_json(absent=None if required else {})
        if not isinstance(document, dict):
            raise InvalidRequest.field("body", "must be an object")
        return document

    async def study(self, slug: str, *, fresh: bool = False) -> Study:
        """The study of a slug in the path.

        Args:
            slug: As in the path.
            fresh: Whether its state and reporting range must be those of this moment.

        Raises:
            NotFound: there is none.
        """
        if SLUG.fullmatch(slug) is None:
            raise NotFound("There is no such study.")
        studies = self.api.services.studies
        return await (studies.read(slug) if fresh else studies.get(slug))

    async def reported_to(self, study: Study, record: Mapping[str, object]) -> Study:
        """The study of a record: as it is now where that states a reporting range that is not known here."""
        unknown = FIELD in record and study.definition.reporting_range is None
        return await self.study(study.definition.slug, fresh=True) if unknown else study

    def single_query(self, repeatable: Container[str] = ()) -> dict[str, str]:
        """The query parameters; of those that are repeatable all values, with commas between.

        Args:
            repeatable: Names that may be given more than once.

        Raises:
            InvalidRequest: another one is given twice.
        """
        if not self.scope["query_string"]:
            return {}
        values: dict[str, str] = {}
        for name, value in self.query_params.multi_items():
            if name in values and name not in repeatable:
                raise InvalidRequest.field(name, "is given twice: it takes one value")
            values[name] = f"{values[name]},{value}" if name in values else value
        return values

    def refuse_unknown_query(self, known: frozenset[str]) -> None:
        """Refuse query parameters that the route does not have, or that are given twice.

        Raises:
            InvalidRequest: there is one.
        """
        for name in self.single_query():
            if name not in known:
                those = f"there are {', '.join(sorted(known))}" if known else "there are none"
                raise InvalidRequest.field(name, f"is not a parameter of this address; {those}")

    def refuse_malformed_address(self) -> None:
        """Refuse an address that is not UTF-8, or a query with the character NUL.

        Servers decode what is not UTF-8 with replacement characters, and no text in the database holds NUL.

        Raises:
            MalformedDocument: the path is not UTF-8.
            InvalidRequest: the query is not, or a parameter holds NUL.
        """
        if "\ufffd" in self.scope["path"] and not is_encoded_utf8(self.scope.get("raw_path") or b"\xff"):
            raise MalformedDocument("The path is not UTF-8.")
        query: bytes = self.scope["query_string"]
        if query:
            if not is_encoded_utf8(query):
                raise InvalidRequest.field("query", "must be UTF-8")
            refuse_nul(self.query_params.multi_items())

    def refuse_others(self, roles: Set[Role], what: str, *, of_a_study: bool = False) -> None:
        """Refuse a requester without the right to what the path names.

        A token that is limited to studies is refused at the path of any other one, whether that exists
        or not, and where an admin sees all studies.

        Args:
            roles: Roles that have it.
            what: Is said to others before the roles.
            of_a_study: Whether what the path names belongs to a study, which the endpoint itself checks.

        Raises:
            Forbidden: another role or study.
        """
        if not self.principal.roles & roles:
            wanted, own = (" or ".join(sorted(one)) for one in (roles, self.principal.roles))
            raise Forbidden(f"{what} the role {wanted}, not {own}.")
        study = self.path_params.get("study")
        if study is not None:
            self.refuse_other_studies(study)
        elif roles == {Role.ADMIN} and not of_a_study and self.principal.studies is not None:
            raise Forbidden("This takes an admin's token that is not limited to studies.")

    def refuse_other_studies(self, study: str) -> None:
        """Refuse a study that the token is not for.

        Raises:
            Forbidden: it is another one.
        """
        allowed = self.principal.studies
        if allowed is not None and study not in allowed:
            raise Forbidden("The token is limited to other studies.")

    def subject_digest(self, subject: str) -> bytes:
        """What the database knows of the person in the path: ids of people are kept nowhere.

        Raises:
            InvalidRequest: not an id.
            Forbidden: the token is for another person.
        """
        if not 1 <= len(subject) <= MAX_SUBJECT_LENGTH:
            raise InvalidRequest.field("subject", f"must have 1 to {MAX_SUBJECT_LENGTH} characters")
        digest = self.api.services.subject_key.digest(subject)
        self.refuse_other_subjects(digest)
        return digest

    def refuse_other_subjects(self, subject: bytes) -> None:
        """Refuse a subject that the token is not for.

        Raises:
            Forbidden: it is another one.
        """
        allowed = self.principal.subject
        if allowed is not None and subject != allowed:
            raise Forbidden("The token is limited to another subject.")


def uuid_of(text: str, what: str) -> UUID:
    """The id that a path names.

    Args:
        text: Of the path.
        what: What it is the id of, such as "release".

    Raises:
        NotFound: it is no id.
    """
    try:
        return UUID(text)
    except ValueError:
        raise NotFound(f"There is no such {what}.") from None


def stored(body: bytes, status: int = 200) -> Response:
    """A JSON document that is there; a large one goes out no faster than its client reads it."""
    if len(body) <= STREAMED:
        return Response(body, status_code=status, media_type=JSON)

    async def pieces() -> AsyncIterator[memoryview]:
        for start in range(0, len(body), STREAMED):
            yield memoryview(body)[start : start + STREAMED]

    headers = {"Content-Length": str(len(body))}
    return StreamingResponse(pieces(), status_code=status, media_type=JSON, headers=headers)


def _is_utf8(parameters: str) -> bool:
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower() in ("utf-8", "utf8")
    return True
