"""A page's request: who is logged in, and forms that only they could have sent."""

from collections.abc import Iterator, Mapping, Set
from email.message import Message
from email.parser import BytesHeaderParser
from urllib.parse import parse_qsl, urlsplit

from app.core.errors import Forbidden, InvalidRequest, MalformedDocument, Unauthenticated
from app.core.principal import Role
from app.services.admin.logins import Login, is_form_token
from app.web.patterns import refuse_nul
from app.web.request import ApiRequest

LOGIN_COOKIE = "dither_login"
"""Of an admin or an analyst."""

PERSON_COOKIE = "dither_person"
"""Of a person who opened their link."""

GUEST_COOKIE = "dither_guest"
"""Before a login: it only ties the form to the browser."""

TOKEN_FIELD = "form_token"  # noqa: S105 - the name of a field
MOST_FIELDS = 150
"""More than the boxes of any list on a page."""

MOST_UPLOADED = 2 * 1024 * 1024
"""Of a file, on the pages that take one [bytes]."""

FILE_FIELD = "file"
FORM, FORM_WITH_FILE = "application/x-www-form-urlencoded", "multipart/form-data"


class PageRequest(ApiRequest):
    """A request for a page.

    Attributes:
        login: Who is logged in; unset on pages without a login.
        fields: Those of a posted form, without its token; empty otherwise.
        file: The content of the file that came with it; None without one.
    """

    login: Login
    fields: Mapping[str, str]
    file: bytes | None = None

    @property
    def cookie_path(self) -> str:
        """Where the pages are mounted."""
        return f"{self.scope.get('root_path', '')}/dashboard"

    @property
    def secure(self) -> bool:
        """Whether people reach the service by https."""
        return (self.api.public_url or self.url.scheme).startswith("https")

    @property
    def is_admin(self) -> bool:
        """Whether an admin looks."""
        return Role.ADMIN in self.login.principal.roles

    @property
    def is_analyst(self) -> bool:
        """Whether one looks who may ask."""
        return Role.ANALYSE in self.login.principal.roles

    async def find_login(self, *, person: bool) -> Login:
        """Who is logged in, as an admin or an analyst, or as a person with a link.

        Raises:
            Unauthenticated: no login, an ended one, or one of the other kind.
        """
        secret = self.cookies.get(PERSON_COOKIE if person else LOGIN_COOKIE)
        if not secret:
            raise Unauthenticated("Log in first.")
        login = await self.api.services.logins.find(secret)
        if (login.subject is not None) is not person:
            raise Unauthenticated("Log in first.")
        return login

    def refuse_other_sites(self) -> None:
        """Refuse a form that another site's page sent.

        Browsers say from where a form was sent; what does not say so is refused too.

        Raises:
            Forbidden: it came from elsewhere.
        """
        origin = self.header(b"origin")
        if origin is None:
            same = self.header(b"sec-fetch-site") == "same-origin"
        elif self.api.public_url is not None:
            same = origin == self.api.public_url
        else:
            same = urlsplit(origin).netloc == (self.header(b"host") or "")
        if not same:
            raise Forbidden("The form was sent from another site.")

    async def read_form(self, cookie: str, *, upload: bool = False, several: Set[str] = frozenset()) -> None:
        """Read the fields of a form that this browser got from us.

        Args:
            cookie: Whose bearer it was made for.
            upload: Whether a file may come with it.
            several: Fields that may be given several times.

        Raises:
            MalformedDocument: not a form.
            InvalidRequest: another field is given twice, or one holds NUL.
            Forbidden: it was made for another person.
        """
        form = await self.read_fields(MOST_FIELDS, upload=upload, several=several)
        secret, token = self.cookies.get(cookie, ""), form.pop(TOKEN_FIELD, "")
        if not secret or not is_form_token(secret, token):
            raise Forbidden("The form has expired: load the page again.")
        self.fields = form

    async def read_fields(
        self, most: int, *, upload: bool = False, several: Set[str] = frozenset()
    ) -> dict[str, str]:
        """The fields of any form, at most this many.

        Args:
            most: Of them.
            upload: Whether a file may come with it, or the text of one in a field.
            several: Fields that may be given several times; they are read one a line.

        Raises:
            MalformedDocument: not a form.
            InvalidRequest: another field is given twice, or one holds NUL.
        """
        self.refuse_other_encodings("identity")
        kind, limit = self.media_type, self.api.limits.document
        if kind != FORM and not (upload and kind == FORM_WITH_FILE):
            raise MalformedDocument("This takes a form.")
        # In base64 a file is a third longer.
        body = await self.read_body(limit + 2 * MOST_UPLOADED if upload else limit)
        try:
            if kind == FORM:
                pairs = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=most)
            else:
                pairs = []
                for name, file, content in parts_of(self.header(b"content-type") or "", body, most):
                    if name != FILE_FIELD:
                        pairs.append((name, content.decode()))
                    elif file or content:
                        self.file = content
        except (UnicodeDecodeError, ValueError):
            raise MalformedDocument("The form could not be read.") from None
        refuse_nul(pairs)
        form: dict[str, str] = {}
        for name, value in pairs:
            if name in form and name not in several:
                raise InvalidRequest.field(name, "is given twice")
            form[name] = f"{form[name]}\n{value.strip()}" if name in form else value.strip()
        if len(self.file or b"") > MOST_UPLOADED:
            raise InvalidRequest.field(FILE_FIELD, f"is larger than {MOST_UPLOADED >> 20} MiB")
        return form


def parts_of(content_type: str, body: bytes, most: int) -> Iterator[tuple[str, str, bytes]]:
    r"""Name, file's name and content of each part of a form with files (RFC 7578).

    A browser sends a part without a file's name where no file was chosen.

    Raises:
        ValueError: it is none, breaks off, or has more parts.

    >>> [*parts_of("multipart/form-data; boundary=x",
    ...     b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n', 2)]
    [('a', '', b'1')]
    """
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_boundary()
    if not boundary:
        raise ValueError("no boundary")
    before, *parts, end = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("ascii"), most + 2)
    if before or not parts or not end.startswith(b"--"):
        raise ValueError("breaks off")
    for part in parts:
        head, blank, content = part.partition(b"\r\n\r\n")
        headers = BytesHeaderParser().parsebytes(head.lstrip())
        name = headers.get_param("name", header="content-disposition")
        if not blank or not isinstance(name, str):
            raise ValueError("a part without a name")
        yield name, headers.get_filename(""), content
