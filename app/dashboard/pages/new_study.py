"""Making a study, from nothing or like another one."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal

from dither.device.table import two_readings
from starlette.responses import Response

from app.core.errors import FieldError, InvalidRequest, ServiceError
from app.core.numbers import JsonNumber
from app.core.study import LocalMechanism, StudyDefinition, Trust
from app.dashboard import forms, terms
from app.dashboard.rendering import epsilon, reasons, render, status_of
from app.dashboard.requests import PageRequest
from app.dashboard.routing import ADMIN, PageRoute, redirect
from app.web.documents.fields import read
from app.web.documents.study import (
    DEFAULT_EPSILON_MAX,
    DEFAULT_EPSILON_MIN,
    DEFAULT_SHARE,
    DEFAULT_TILT,
    StudyIn,
)
from app.web.documents.study_out import StudyOut

COARSE = "coarse"
"""The box that takes a range whose step is coarse."""

COARSEST = 1.0
"""From this step on whole numbers are not kept apart."""

RANGE_ENDS = ("lower", "upper")

KINDS = {
    "number": ("a number", (*RANGE_ENDS, "dimension")),
    "choice": ("a choice", ("choices",)),
    "several": ("several things", ("measures",)),
}
"""What a study asks for: in words, and the fields that say more of it."""

OWN = "own"
"""The steps of privacy are what the fields for experts say."""

EPSILONS = ("epsilons", "epsilon_min", "epsilon_max")
EXPERTS = (
    *EPSILONS,
    "series",
    "relation",
    "attributes",
    "default_share",
    "tilt",
    "dimension",
    "local_mechanism",
    "noise",
    "delta",
)
"""Fields that are folded."""

_MIXED = re.compile(r"[^,|]+(,\S[^,|]*,\s[^,|]+|,\s[^,|]+,\S[^,|]*)")
"""Ends of a range in which one comma has a space behind it and one has none: `1, 5,5`."""

_WHICH = (
    "may have a comma before decimals: write them with a point, and a space after each comma or after none"
)

MOST_OF_AN_ADDRESS = 63
"""Characters."""


async def show(request: PageRequest) -> Response:
    """The form; with `?like=` it has everything of that study but its address."""
    like = request.query_params.get("like")
    if not like:
        return _form(request, _defaults())
    found = await request.study(like)
    study, definition = StudyOut.model_validate(found), found.definition
    return _form(
        request,
        {
            "title": study.title,
            "description": study.description,
            "series": study.series or "",
            "kind": _kind(definition),
            "steps": OWN,
            "lower": "" if definition.choices or definition.measures else _end(definition.lower),
            "upper": "" if definition.choices or definition.measures else _end(definition.upper),
            "choices": "" if definition.measures else ", ".join(definition.choices),
            "measures": "\n".join(
                f"{name}: {' | '.join(one.choices) or f'{_end(one.lower)}, {_end(one.upper)}'}"
                + (f", {one.dimension}" if one.dimension > 1 else "")
                for name, one in definition.measures.named.items()
            ),
            "relation": study.relation.value,
            "epsilon_min": "" if study.epsilons else _plain(study.epsilon.min),
            "epsilon_max": "" if study.epsilons else _plain(study.epsilon.max),
            "epsilons": ", ".join(map(_plain, study.epsilons)),
            "default_share": _plain(study.default_share),
            "tilt": _plain(study.tilt) if not definition.hides_people or study.tilt else "",
            "noise": study.noise.value,
            "delta": f"{study.delta:g}" if study.delta else "",
            "dimension": "1" if definition.measures else str(study.dimension),
            "local_mechanism": "" if definition.choices else definition.local_mechanism.value,
            "attributes": "\n".join(f"{name}: {', '.join(own)}" for name, own in study.attributes.items()),
            **{f"trust_{tag.value}": "on" for tag in study.trust},
        },
        like=study.slug,
    )


async def agree(request: PageRequest) -> Response:
    """What people will agree to, before the study is made; the form can still be changed."""
    try:
        definition = _definition(request)
    except ServiceError as refusal:
        return _form(request, dict(request.fields), refusal=refusal)
    form = {**request.fields, "slug": definition.slug}
    return _form(request, form, agreed=terms.agreed(definition))


async def make(request: PageRequest) -> Response:
    """Make the study; sending the same form again changes nothing."""
    try:
        study, _ = await request.api.services.studies.create(_definition(request), request.principal)
    except ServiceError as refusal:
        return _form(request, dict(request.fields), refusal=refusal)
    return redirect(request, f"/studies/{study.definition.slug}")


def _definition(request: PageRequest) -> StudyDefinition:
    """The study that a form describes.

    Raises:
        InvalidRequest: names every field that is wrong.
    """
    given = _chosen(request.fields)
    title = given.get("title", "")
    given["slug"] = given.get("slug") or _address(title)
    if title and not given["slug"]:
        raise InvalidRequest.field("slug", "cannot be made of this question: give one, such as commute")
    fields: dict[str, object] = {
        "description": forms.prose(given.get("description", "")),
        "trust": [tag.value for tag in Trust if given.get(f"trust_{tag.value}")],
        "epsilon": {
            name: JsonNumber(given[f"epsilon_{name}"])
            for name in ("min", "max")
            if given.get(f"epsilon_{name}")
        },
    }
    if given.get("epsilons"):
        fields["epsilons"] = [JsonNumber(text.strip()) for text in given["epsilons"].split(",")]
    if given.get("choices"):
        fields["choices"] = [label.strip() for label in given["choices"].split(",")]
    wrong: list[FieldError] = []
    for name in RANGE_ENDS:
        with _noted(wrong):
            forms.check_meant(given.get(name, ""), name)
    with _noted(wrong):
        attributes = _lines(given.get("attributes", ""), "attributes", "region: north, south")
        fields["attributes"] = {name: _words(labels) for name, labels in attributes.items()}
    if given.get("measures"):
        with _noted(wrong):
            fields["measures"] = _measures(given["measures"])
    with _noted(wrong):
        definition = read(StudyIn, given, **fields).definition()
    if wrong:
        raise InvalidRequest.naming(wrong)
    if not given.get(COARSE):
        _warn_of_steps(definition)
    return definition


@contextmanager
def _noted(wrong: list[FieldError]) -> Iterator[None]:
    """Add what is refused to what is wrong; the first that is said of a field counts."""
    try:
        yield
    except InvalidRequest as refusal:
        known = {one.field for one in wrong}
        wrong.extend(one for one in refusal.fields if one.field not in known)


def _chosen(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields of a form without those of another kind of study, with the steps that were chosen.

    Raises:
        InvalidRequest: it has another kind or other steps than there are, or steps twice.
    """
    given, kind, steps = dict(fields), fields.get("kind"), fields.get("steps", OWN)
    if kind is not None:
        if kind not in KINDS:
            raise InvalidRequest.field("kind", f"must be one of {', '.join(KINDS)}")
        for _, others in (known for name, known in KINDS.items() if name != kind):
            for name in others:
                given.pop(name, None)
        if not any(given.get(name) for name in KINDS[kind][1] if name != "dimension"):
            raise InvalidRequest.field(KINDS[kind][1][0], "is required")
    if steps != OWN:
        if steps not in terms.STEPS:
            raise InvalidRequest.field("steps", f"must be one of {', '.join((*terms.STEPS, OWN))}")
        if forms.given(given, *EPSILONS):
            raise InvalidRequest.field("steps", "are chosen here, and others are set for experts: choose one")
        given["epsilons"] = ",".join(terms.STEPS[steps])
    return given


def _address(title: str) -> str:
    """An address made of the question; empty where none of its letters would stay.

    >>> _address("Wie weit ist's zur Universit\u00e4t?"), _address("?")
    ('wie-weit-ist-s-zur-universitat', '')
    """
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return "-".join(re.findall(r"[a-z0-9]+", plain))[:MOST_OF_AN_ADDRESS].strip("-")


def _kind(definition: StudyDefinition) -> str:
    if definition.measures:
        return "several"
    return "choice" if definition.choices else "number"


def _measures(text: str) -> dict[str, dict[str, object]]:
    """What lines such as `income: 0, 9000`, `place: 0, 1, 2` and `party: red | green` declare."""
    example = "income: 0, 9000, or place: 0, 1, 2 with two coordinates, or party: red | green"
    found: dict[str, dict[str, object]] = {}
    for name, said in _lines(text, "measures", example).items():
        if _MIXED.fullmatch(said):
            raise InvalidRequest.field("measures", f"{name}: {said} {_WHICH}")
        words = _words(said)
        if len(words) == 1 and "|" in words[0]:
            found[name] = {"choices": [label.strip() for label in words[0].split("|")]}
        elif len(words) in (2, 3):
            for end in words[: len(RANGE_ENDS)]:
                forms.check_meant(end, "measures")
            fields = zip((*RANGE_ENDS, "dimension"), words, strict=False)
            found[name] = {field: JsonNumber(word) for field, word in fields}
        else:
            raise InvalidRequest.field("measures", f"needs lines such as {example}; a name once")
    return found


def _warn_of_steps(definition: StudyDefinition) -> None:
    """Refuse a range so wide that whole numbers are not kept apart, once: the form has a box for it then."""
    named = definition.measures.named
    for step in [one.step for one in named.values()] or [definition.step]:
        if step is not None and step >= COARSEST:
            reason = (
                f"values of a range this wide are kept to {step:,.3g}: take a narrower one, or tick the box"
            )
            raise InvalidRequest.field("measures" if named else "upper", reason)


def _end(bound: Decimal) -> str:
    """An end of a range so that it means one number."""
    readings = two_readings(f"{bound:f}")
    return f"{bound:f}" if readings is None else readings[0]


def _lines(text: str, field: str, example: str) -> dict[str, str]:
    """What lines such as `region: north, south` say of each name."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, labels = line.partition(":")
        if not colon or name.strip() in found:
            raise InvalidRequest.field(field, f"needs lines such as {example}; a name once")
        found[name.strip()] = labels.strip()
    return found


def _words(labels: str) -> list[str]:
    return [label.strip() for label in labels.split(",")]


def _defaults() -> dict[str, str]:
    return {
        "kind": "number",
        "steps": "usual",
        "relation": "replace_one",
        "default_share": _plain(DEFAULT_SHARE / 1e6),
        "dimension": "1",
        "trust_central": "on",
    }


def _plain(value: float) -> str:
    return epsilon(value).replace(",", "")


def _form(
    request: PageRequest,
    form: dict[str, str],
    *,
    like: str | None = None,
    refusal: ServiceError | None = None,
    agreed: str = "",
) -> Response:
    return render(
        request,
        "new_study.html",
        status=status_of(refusal),
        form=form,
        agreed=agreed,
        kinds=[(name, text) for name, (text, _) in KINDS.items()],
        step_sets=terms.step_sets(),
        own=OWN,
        experts=form.get("steps") == OWN or any(reasons(refusal, name) for name in EXPERTS),
        like=like,
        refusal=refusal,
        least=_plain(DEFAULT_EPSILON_MIN / 1e6),
        most=_plain(DEFAULT_EPSILON_MAX / 1e6),
        tilt=_plain(DEFAULT_TILT / 1e6),
        mechanisms=[one.value for one in LocalMechanism],
    )


ROUTES = (
    PageRoute("/dashboard/new-study", show, roles=ADMIN),
    PageRoute("/dashboard/new-study", make, roles=ADMIN, post=True),
    PageRoute("/dashboard/new-study/terms", agree, roles=ADMIN, post=True),
)
