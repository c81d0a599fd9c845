"""Making a study, from nothing or like another one."""

from decimal import Decimal

from dither.device.table import NotOneNumber, check_meant, two_readings
from starlette.responses import Response

from app.core.errors import InvalidRequest, ServiceError
from app.core.numbers import JsonNumber
from app.core.study import LocalMechanism, Relation, StudyDefinition, Trust
from app.dashboard import forms
from app.dashboard.rendering import epsilon, render, status_of
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
            "tilt": _plain(study.tilt) if study.relation is Relation.REPLACE_ONE or study.tilt else "",
            "noise": study.noise.value,
            "delta": f"{study.delta:g}" if study.delta else "",
            "dimension": "1" if definition.measures else str(study.dimension),
            "local_mechanism": "" if definition.choices else definition.local_mechanism.value,
            "attributes": "\n".join(f"{name}: {', '.join(own)}" for name, own in study.attributes.items()),
            **{f"trust_{tag.value}": "on" for tag in study.trust},
        },
        like=study.slug,
    )


async def make(request: PageRequest) -> Response:
    """Make the study; sending the same form again changes nothing."""
    given = request.fields
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
    try:
        for name in RANGE_ENDS:
            _check_meant(given.get(name, ""), name)
        fields["attributes"] = _lines(given.get("attributes", ""), "attributes", "region: north, south")
        if given.get("measures"):
            fields["measures"] = _measures(given["measures"])
        document = read(StudyIn, given, **fields)
        definition = document.definition()
        if not given.get(COARSE):
            _warn_of_steps(definition)
        study, _ = await request.api.services.studies.create(definition, request.principal)
    except ServiceError as refusal:
        return _form(request, dict(given), refusal=refusal)
    return redirect(request, f"/studies/{study.definition.slug}")


def _measures(text: str) -> dict[str, dict[str, object]]:
    """What lines such as `income: 0, 9000`, `place: 0, 1, 2` and `party: red | green` declare."""
    example = "income: 0, 9000, or place: 0, 1, 2 with two coordinates, or party: red | green"
    found: dict[str, dict[str, object]] = {}
    for name, words in _lines(text, "measures", example).items():
        if len(words) == 1 and "|" in words[0]:
            found[name] = {"choices": [label.strip() for label in words[0].split("|")]}
        elif len(words) in (2, 3):
            for end in words[: len(RANGE_ENDS)]:
                _check_meant(end, "measures")
            fields = zip((*RANGE_ENDS, "dimension"), words, strict=False)
            found[name] = {field: JsonNumber(word) for field, word in fields}
        else:
            raise InvalidRequest.field("measures", f"needs lines such as {example}; a name once")
    return found


def _check_meant(text: str, field: str) -> None:
    """Ask back where an end of a range, which stays for good, may mean two numbers."""
    try:
        check_meant(text)
    except NotOneNumber as question:
        raise InvalidRequest.field(field, f"{text.strip()} {question}") from None


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


def _lines(text: str, field: str, example: str) -> dict[str, list[str]]:
    """What lines such as `region: north, south` declare."""
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, labels = line.partition(":")
        if not colon or name.strip() in found:
            raise InvalidRequest.field(field, f"needs lines such as {example}; a name once")
        found[name.strip()] = [label.strip() for label in labels.split(",")]
    return found


def _defaults() -> dict[str, str]:
    return {
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
) -> Response:
    return render(
        request,
        "new_study.html",
        status=status_of(refusal),
        form=form,
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
)
