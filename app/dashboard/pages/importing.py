"""Importing a file: how it would be read and all that is wrong with it first, then one confirmation.

Between the two steps the browser keeps the file: nothing of it is stored before it is confirmed.
"""

import base64
import binascii
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import dither
from dither.device.numbers import Number, Numeric
from starlette.responses import Response

from app.core.errors import InvalidRequest, ServiceError
from app.core.numbers import JsonNumber
from app.core.study import Study, StudyState, Trust
from app.dashboard.rendering import render, status_of
from app.dashboard.requests import FILE_FIELD, PageRequest
from app.dashboard.routing import ADMIN, PageRoute
from app.services.contributing.batches import Batch, BatchReader, BatchResult, Format
from app.services.work import checkpoint, run
from app.web.documents.study_out import StudyOut

if TYPE_CHECKING:
    from app.web.file_check import FileCheck

Tag = Literal["central", "public"]

KEPT_FIELD = "content"
"""The file between the two steps, in base64."""

_TRUSTS = {Trust.CENTRAL: "central: this service", Trust.PUBLIC: "public: everyone"}

SHOWN_ROWS = 5
"""Rows that are named for each reason of a refusal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file, and what was said of how it is read.

    Attributes:
        content: Of the file.
        options: Arguments of `RecordFile`.
        epsilon, trust: For rows that give none.
    """

    content: bytes
    options: Mapping[str, Any]
    epsilon: str | None
    trust: Tag | None


async def show(request: PageRequest) -> Response:
    """The form that takes a file."""
    return await _page(request, await request.study(request.path_params["study"], fresh=True))


async def take(request: PageRequest) -> Response:
    """Say how a file would be read and what is wrong with its rows; import it once that was confirmed."""
    study = await request.study(request.path_params["study"], fresh=True)
    try:
        upload = _upload(request)
        described = await run(_described, study)
        check = await run(_checked, upload, described, request.api.limits.batch_content)
        # The button of the confirmation is the one thing that stores something.
        if "confirm" not in request.fields:
            return await _page(request, study, upload=upload, check=check, described=described)
        batch, rows = await run(_batch, request, study, upload, check, described)

        async def proceed() -> None:
            """The work ends with the login."""
            await request.find_login(person=False)

        result = await request.api.services.contributions.apply_batch(study, batch, proceed)
    except ServiceError as refusal:
        return await _page(request, study, refusal=refusal)
    return await _page(request, study, result=result, refusals=_refusals(result, rows), left_out=check.faulty)


async def _page(
    request: PageRequest,
    study: Study,
    *,
    refusal: ServiceError | None = None,
    upload: Upload | None = None,
    check: "FileCheck | None" = None,
    described: "dither.Study | None" = None,
    result: BatchResult | None = None,
    refusals: Sequence[Mapping[str, str]] = (),
    left_out: int = 0,
) -> Response:
    options = {} if check is None else check.options
    definition = study.definition
    return render(
        request,
        "import.html",
        status=status_of(refusal),
        study=StudyOut.model_validate(study),
        trusts=[(tag, _TRUSTS[tag]) for tag in _TRUSTS if tag in definition.trust],
        is_open=study.state is StudyState.OPEN,
        one_value=not definition.measures.named,
        refusal=refusal,
        fields={**request.fields, **dict(_texts(options))},
        kept=None if upload is None else base64.b64encode(upload.content).decode(),
        check=check,
        reading=_reading(check, described),
        faults={}
        if check is None
        else {
            row: [(one.field, _on_page(one.reason)) for one in wrong] for row, wrong in check.faults.items()
        },
        result=result,
        refusals=refusals,
        left_out=left_out,
    )


def _upload(request: PageRequest) -> Upload:
    """What a form holds: a file, or the one that was given with the form before.

    Raises:
        InvalidRequest: it holds none.
    """
    given = request.fields
    try:
        kept = base64.b64decode(given.get(KEPT_FIELD, ""), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest.field(KEPT_FIELD, "is not one of this form's") from None
    content = kept if request.file is None else request.file
    if not content:
        raise InvalidRequest.field(FILE_FIELD, "is missing" if request.file is None else "is empty")
    trust = given.get("trust") or None
    if trust not in (None, "central", "public"):
        raise InvalidRequest.field("trust", "must be central or public")
    decimals = given.get("decimals") or None
    if decimals not in (None, ".", ","):
        raise InvalidRequest.field("decimals", "must be a point or a comma")
    options: dict[str, Any] = {
        "subject": given.get("subject") or "subject",
        "value": given.get("value") or "value",
        "decimals": decimals,
        "ignore_case": "ignore_case" in given,
        **{name: given.get(name) or None for name in ("sheet", "encoding")},
    }
    for name in ("ignore", "missing"):
        lines = (line.strip() for line in given.get(name, "").split("\n"))
        options[name] = tuple(line for line in lines if line)
    return Upload(
        content=content, options=options, epsilon=given.get("epsilon") or None, trust=cast(Tag | None, trust)
    )


def _reading(check: "FileCheck | None", described: "dither.Study | None") -> Sequence[tuple[str, str]]:
    """How a file is read, in words."""
    if check is None or described is None:
        return []
    from app.web.file_check import reading_of  # with it the SDK, which nothing else of the service needs

    return [*reading_of(check, described)]


def _texts(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Options as the form has them."""
    for name, value in options.items():
        if isinstance(value, bool):
            yield name, "on" if value else ""
        else:
            yield name, "\n".join(value) if isinstance(value, tuple) else value or ""


def _described(study: Study) -> "dither.Study":
    """A study as the SDK sees it; those who trust no one add noise before anything reaches this page."""
    from dither._wire import build, decode

    document = StudyOut.model_validate(study).model_dump_json().encode()
    found = build(dither.Study, decode(document))
    return replace(found, trust=tuple(tag for tag in found.trust if tag != Trust.LOCAL.value))


def _checked(upload: Upload, study: "dither.Study", most: int) -> "FileCheck":
    """How a file would be read.

    Raises:
        InvalidRequest: it cannot be read, or says something that no file can mean.
    """
    from app.web.file_check import check_file

    content = upload.content
    try:
        if content.startswith(b"\x1f\x8b"):
            raise dither.InvalidRequest(FILE_FIELD, "is compressed: give the file itself")
        if content.startswith(b"PK\3\4"):
            with zipfile.ZipFile(io.BytesIO(content)) as parts:
                if sum(part.file_size for part in parts.infolist()) > most:
                    raise dither.InvalidRequest(FILE_FIELD, f"unpacks to more than {most} bytes")
        return check_file(
            io.BytesIO(content),
            study,
            epsilon=upload.epsilon,
            trust=upload.trust,
            options=upload.options,
            each=checkpoint,
        )
    except dither.InvalidRequest as refusal:
        raise InvalidRequest.field(refusal.field, _on_page(refusal.reason)) from None
    except zipfile.BadZipFile:
        raise InvalidRequest.field(FILE_FIELD, "is a damaged Excel file") from None


def _batch(
    request: PageRequest, study: Study, upload: Upload, check: "FileCheck", described: "dither.Study"
) -> tuple[Batch, Sequence[int]]:
    """What is imported, the rows that are right: as records, and their numbers."""
    services, numbers = request.api.services, list[int]()
    reader = BatchReader(study.definition, services.subject_key, request.principal.token_id, Format.NDJSON)

    def records() -> Iterator[Mapping[str, object]]:
        for number, record in check.right(described, epsilon=upload.epsilon, trust=upload.trust):
            numbers.append(number)
            yield _fields(record, described, upload)

    reader.add(records())
    return reader.finish(), numbers


def _fields(record: "dither.Record", study: "dither.Study", upload: Upload) -> Mapping[str, object]:
    """A row as the fields of a contribution."""
    value: Any = record.value
    fields: dict[str, object] = {"subject": str(record.subject), "trust": record.trust or upload.trust}
    if fields["trust"] != Trust.PUBLIC.value:
        fields["epsilon"] = _number(record.epsilon if record.epsilon is not None else upload.epsilon or "")
    if isinstance(value, Mapping):
        fields["values"] = {name: _cell(one, study.measures[name].choices) for name, one in value.items()}
    else:
        fields["value"] = _cell(value, study.choices)
    return fields | ({"attributes": dict(record.attributes)} if record.attributes else {})


def _cell(value: Any, choices: Sequence[str]) -> object:
    if choices:
        return str(value)
    return [_number(one) for one in value] if isinstance(value, list) else _number(value)


def _number(value: Numeric) -> JsonNumber:
    return JsonNumber(Number.parse(value).text)


def _refusals(result: BatchResult, rows: Sequence[int]) -> Sequence[Mapping[str, str]]:
    """Why rows were refused that were right, as the budgets of people refuse them."""
    found: dict[int, list[int]] = {}
    for row, code in zip(rows, result.codes, strict=True):
        found.setdefault(code, []).append(row)
    lines = []
    for code, refused in found.items():
        kind: Mapping[str, Any] = result.kinds[code]
        if kind["status"] == "refused":
            reasons = "; ".join(f"{one['field']} {one['reason']}" for one in kind["errors"])
            first = ", ".join(map(str, refused[:SHOWN_ROWS])) + ", ..." * (len(refused) > SHOWN_ROWS)
            lines.append({"reason": reasons or str(kind["code"]), "rows": str(len(refused)), "which": first})
    return lines


def _on_page(reason: str) -> str:
    """A reason of the SDK, which names its arguments and the command's, for the form.

    >>> _on_page("say which, with decimals=',' or '.' (--decimals)")
    'say which, below'
    """
    return re.sub(r"with \w+=[^(]*\(--[^)]*\)", "below", reason)


PATH = "/dashboard/studies/{study}/import"

ROUTES = (
    PageRoute(PATH, show, roles=ADMIN),
    PageRoute(PATH, take, roles=ADMIN, post=True, upload=True),
)
