"""From documents to HTML."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup
from starlette.responses import HTMLResponse

from app.core.attributes import label_of, listed
from app.core.errors import ServiceError, Unavailable
from app.core.numbers import counted, headline, margin, percent
from app.core.principal import Role, in_order
from app.core.texts import StudyText
from app.dashboard.languages import ENGLISH, Language, catalogs, choose
from app.dashboard.requests import GUEST_COOKIE, LOGIN_COOKIE, PERSON_COOKIE, TOKEN_FIELD, PageRequest
from app.services.admin.logins import Login, form_token
from app.services.work import checkpoint
from app.web.documents.release import ABOUT, about
from app.web.problems import kind_of
from app.web.request_log import current_request_id

HERE = Path(__file__).parent

NAVIGATION = (
    ("", "Overview", True),
    ("/studies", "Studies", False),
    ("/size", "Sizing", False),
    ("/budgets", "Budgets", True),
    ("/ledger", "Ledger", True),
    ("/tokens", "Tokens", True),
    ("/audit", "Audit trail", True),
)
"""Path below /dashboard, title, and whether only an admin of the whole installation has it."""


def epsilon(value: float | None) -> str:
    """An amount of epsilon, without digits that say nothing.

    >>> epsilon(1.5), epsilon(12_345.678), epsilon(0.000001)
    ('1.5', '12,345.678', '0.000001')
    """
    if value is None:
        return "-"
    text = f"{value:,.6f}".rstrip("0").rstrip(".")
    return text or "0"


def total(value: float) -> str:
    """The epsilon of many people together, as exactly as is readable.

    >>> total(949.268972), total(0.25)
    ('949.3', '0.25')
    """
    return epsilon(round(value, 1 if value >= 100 else 3))


def number(value: float | None) -> str:
    """A number without an interval: three significant digits, and all of its integer part.

    >>> number(1234.5678), number(0.00012345), number(50.0)
    ('1,235', '0.000123', '50')
    """
    return _with_digits(value, 3)


def place(value: float | None) -> str:
    """A place in the range of a study, such as the end of a bin.

    >>> place(1234.5678), place(10 / 3), place(-20.0)
    ('1,234.57', '3.33333', '-20')
    """
    return _with_digits(value, 6)


def declared(value: float | None) -> str:
    """A number that someone declared, with all of its digits.

    >>> declared(1234.5678), declared(0.05), declared(9000.0)
    ('1,234.5678', '0.05', '9,000')
    """
    return _with_digits(value, 15)


def _with_digits(value: float | None, digits: int) -> str:
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int) -> str:
    """A number of people or things."""
    return f"{value:,}"


def moment(value: datetime | str | None) -> Markup:
    """A moment in UTC."""
    if value is None:
        return Markup("never")
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%Y-%m-%d %H:%M:%S")
    )


def date_of(value: datetime | None) -> Markup:
    """The day of a moment in UTC; its title has the time."""
    if value is None:
        return Markup("never")
    at = value.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), at.strftime("%H:%M:%S"), at.date()
    )


def day(value: date) -> str:
    """A day."""
    return value.isoformat()


def plain(value: Any) -> str:
    """The parameters of a question that have a value, as people read them."""
    given = ((name, one) for name, one in value.items() if one is not None)
    return ", ".join(f"{name} {json.dumps(one).strip(chr(34))}" for name, one in given)


def changes(detail: Mapping[str, Any]) -> str:
    """What an entry of the audit trail says beside its reason, as people read it.

    >>> changes({"epsilon": 20.0, "delta": None, "reason": "asked for it"})
    'epsilon 20'
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {epsilon(value) if isinstance(value, float) else _words(value)}"
        for name, value in detail.items()
        if name != "reason" and value is not None
    )


_BECAUSE = {
    "budget_exhausted": "their budget in this study is exhausted",
    "in_no_answer": "they are in none of the answers that it combines",
    "label_too_small": "too few people have their label",
    "local_reports_not_used": "it does not use local reports",
    "measure_not_reported": "their devices reported other measures",
}


def because(codes: str | None) -> str:
    """Why people are left out of an answer, from the codes of its document.

    >>> because("budget_exhausted measure_not_reported")
    'their budget in this study is exhausted, or their devices reported other measures'
    """
    return ", or ".join(_BECAUSE.get(code, code.replace("_", " ")) for code in (codes or "").split())


def reasons(refusal: ServiceError | None, name: str) -> list[str]:
    """Why a field of a form was refused: `epsilon_min` is what documents call `epsilon.min`."""
    found = () if refusal is None else refusal.fields
    return [one.reason for one in found if f"{one.field.replace('.', '_')}_".startswith(f"{name}_")]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name} {_words(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(map(_words, value)) or "none"
    return count(value) if type(value) is int else str(value)


def _language(context: Context) -> Language:
    """Of a page; pages of staff are in English."""
    language = context.get("language", None)
    return language if isinstance(language, Language) else catalogs()[ENGLISH]


@pass_context
def _text(context: Context, message: str) -> str:
    return _language(context).text(message)


@pass_context
def _texts(context: Context, one: str, several: str, number: int) -> str:
    return _language(context).text(one if number == 1 else several)


@pass_context
def _quantity(context: Context, value: str | float) -> str:
    """A number with all its digits, as people write it in the language of the page."""
    return _language(context).number(value)


@pass_context
def _amount(context: Context, value: float) -> str:
    """An amount of epsilon, as people write it in the language of the page."""
    return _language(context).number(round(value, 6))


@pass_context
def _at_moment(context: Context, value: datetime | str) -> Markup:
    """A moment in UTC; as people write it on pages for them."""
    if "language" not in context:
        return moment(value)
    at = (datetime.fromisoformat(value) if isinstance(value, str) else value).astimezone(UTC)
    written = _language(context).moment(at)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(timespec="seconds"), written)


@pass_context
def _on_day(context: Context, value: date) -> str:
    """A day; as people write it on pages for them."""
    return _language(context).day(value) if "language" in context else day(value)


@pass_context
def _named(context: Context, name: str) -> str:
    """What a measure, a choice, an attribute or a label is called in the language of the page."""
    said: StudyText = context["said"]
    return said.labels.get(name, name)


@pass_context
def _listed(context: Context, names: Sequence[str]) -> str:
    """Names in a row, as people write them in the language of the page."""
    return _language(context).list(names)


TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    extensions=["jinja2.ext.i18n"],
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.policies["ext.i18n.trimmed"] = True
TEMPLATES.install_gettext_callables(_text, _texts, newstyle=True)  # type: ignore[attr-defined] # the extension's
TEMPLATES.filters |= {
    "quantity": _quantity,
    "listed": _listed,
    "named": _named,
    "amount": _amount,
    "at_moment": _at_moment,
    "on_day": _on_day,
    "epsilon": epsilon,
    "total": total,
    "number": number,
    "place": place,
    "declared": declared,
    "beside": lambda value, error: (
        number(value) if not error else headline(value, value - 2 * error, value + 2 * error).estimate
    ),
    "count": count,
    "counted": counted,
    "moment": moment,
    "date": date_of,
    "day": day,
    "plain": plain,
    "changes": changes,
    "about": lambda release: about(release.model_dump(include=ABOUT)),
    "within": lambda value, interval, statistic="": headline(
        value, interval.lower, interval.upper, statistic
    ),
    "label_of": label_of,
    "percent": percent,
    "level": lambda interval: percent(interval.level),
    "each": listed,
    "margin": margin,
    "because": because,
    "reasons": reasons,
}


def language_of(request: PageRequest) -> Language:
    """The one that a person chose on the page, or that the browser asks for."""
    return choose(
        catalogs(), request.query_params.get("language"), request.headers.get("accept-language", "")
    )


def spoken(request: PageRequest) -> dict[str, Any]:
    """What the templates of pages for people show of languages."""
    named = request.query_params.get("language")
    return {
        "language": language_of(request),
        "languages": list(catalogs().values()),
        "in_language": f"?language={named}" if named in catalogs() else "",
    }


class Regions:
    """Names of the regions of one page: one that is there already gets a number."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        """The name of the next region.

        >>> named = Regions()
        >>> named("Bins"), named("Bins")
        ('Bins', 'Bins (2)')
        """
        self._times[name] += 1
        return name if self._times[name] == 1 else f"{name} ({self._times[name]})"


class PageResponse(HTMLResponse):
    """A page that is still to be drawn: its route does so in a thread.

    Args:
        pieces: Yields the page.
        status: HTTP status.
    """

    def __init__(self, pieces: Callable[[], Iterator[str]], status: int) -> None:
        super().__init__(status_code=status)
        self._pieces = pieces

    def draw(self) -> None:
        """Make the body."""
        drawn = []
        for piece in self._pieces():
            checkpoint()
            drawn.append(piece)
        self.body = "".join(drawn).encode()
        self.headers["Content-Length"] = str(len(self.body))


def render(
    request: PageRequest,
    template: str,
    *,
    status: int = 200,
    cookie: str | None = None,
    drawn: Callable[[], Mapping[str, Any]] = dict,
    **values: Any,
) -> PageResponse:
    """A page.

    Args:
        request: Whose page it is.
        template: File under templates.
        status: HTTP status.
        cookie: A guest's cookie that is about to be set; the forms are made for it.
        drawn: Makes more of what the template shows, with the page itself: plots.
        values: What the template shows.
    """
    login = getattr(request, "login", None)
    names = (PERSON_COOKIE,) if login is not None and login.subject is not None else (LOGIN_COOKIE,)
    secret = cookie or request.cookies.get(names[0] if login is not None else GUEST_COOKIE, "")
    shown = dict(
        base=request.cookie_path,
        region=Regions(),
        version=request.app.version,
        root=request.scope.get("root_path", ""),
        public_url=request.known_url or "DITHER_PUBLIC_URL",
        openapi=request.app.openapi_url,
        form_field=TOKEN_FIELD,
        form_token=form_token(secret) if secret else "",
        navigation=_navigation(request),
        principal=None if login is None else login.principal,
        roles=[] if login is None else in_order(login.principal.roles),
        whole=_sees_all(login),
        is_admin=login is not None and login.subject is None and request.is_admin,
        is_analyst=login is not None and login.subject is None and request.is_analyst,
        **values,
    )
    return PageResponse(lambda: TEMPLATES.get_template(template).generate(**shown, **drawn()), status)


def status_of(refusal: ServiceError | None) -> int:
    """HTTP status of a page that shows its form again, with what was refused or without."""
    return 200 if refusal is None else kind_of(refusal).status


def error_page(request: PageRequest, status: int, title: str, error: ServiceError) -> PageResponse:
    """A page that says what is wrong. It names fields and reasons, never values."""
    response = render(
        request,
        "error.html",
        status=status,
        title=title,
        detail=error.detail,
        errors=[one for one in error.fields if f"{one.field}: {one.reason}" != error.detail],
        again=isinstance(error, Unavailable),
        request_id=current_request_id(),
    )
    if status == 503:
        response.headers["Retry-After"] = "1"
    return response


def _sees_all(login: Login | None) -> bool:
    """Whether an admin of the whole installation is logged in."""
    if login is None or login.subject is not None:
        return False
    return Role.ADMIN in login.principal.roles and login.principal.studies is None


def _navigation(request: PageRequest) -> Sequence[dict[str, object]]:
    """The pages that this login may look at."""
    login = getattr(request, "login", None)
    if login is None or login.subject is not None:
        return []
    here = request.scope["path"].removeprefix(request.cookie_path).rstrip("/")
    return [
        {
            "href": f"{request.cookie_path}{path}",
            "title": title,
            "current": here == path or (path != "" and here.startswith(f"{path}/")),
        }
        for path, title, for_admins in NAVIGATION
        if _sees_all(login) or not for_admins
    ]
