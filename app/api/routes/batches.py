"""Contributions in bulk: the document is read while it arrives, the results are written in chunks."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Annotated

from dither.device.table import Decimals
from fastapi import APIRouter, Query
from pydantic import AfterValidator
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse

from app.api.access import allow
from app.api.routing import CONFLICTS, StrictRoute
from app.core.errors import Forbidden, UnsupportedMediaType
from app.core.principal import Role
from app.core.study import Trust
from app.formats.compression import CODINGS
from app.services.contributing.batches import Batch, BatchReader, BatchResult, Format
from app.services.work import run
from app.web.authentication import identify
from app.web.documents.contribution import EXAMPLES, BatchOut
from app.web.documents.paths import StudyPath
from app.web.documents.types import parse_epsilon
from app.web.request import JSON, ApiRequest

RESULTS = 20_000
"""Results in one chunk of the response."""

FORMATS = {
    JSON: Format.JSON,
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "text/csv": Format.CSV,
}

_RECORD = {
    "title": "Record",
    "description": "A contribution as for a single request. One that is not admissible is refused by itself.",
}


def _epsilon_text(text: str) -> str:
    """An admissible epsilon, as it stands: records hold it as theirs."""
    parse_epsilon(text)
    return text


router = APIRouter(
    prefix="/v1/studies/{study}/contributions", tags=["contributions"], route_class=StrictRoute
)


@router.post(
    "/batch",
    responses={200: {"model": BatchOut, "description": "What became of each record, in their order"}},
    openapi_extra={
        CONFLICTS: True,
        "parameters": [
            {
                "name": "Content-Encoding",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "enum": ["identity", "gzip"]},
            }
        ],
        "requestBody": {
            "required": True,
            "content": {
                JSON: {
                    "schema": {"type": "array", "items": _RECORD},
                    "example": [EXAMPLES["central"]["value"]],
                },
            },
        },
    },
)
@allow(Role.CONTRIBUTE)
async def contribute_batch(
    request: ApiRequest,
    study: StudyPath,
    epsilon: Annotated[
        Annotated[str, AfterValidator(_epsilon_text)] | None,
        Query(max_length=60, description="Personal epsilon of records that give none; not of public ones."),
    ] = None,
    trust: Annotated[Trust | None, Query(description="Trust tag of records that give none.")] = None,
    decimals: Annotated[
        Decimals | None,
        Query(
            description="What a CSV has before decimals, the other mark may stand between thousands; by "
            "default its numbers tell, and one that may mean two is refused."
        ),
    ] = None,
    missing: Annotated[
        str,
        Query(
            max_length=200,
            description="Words for a missing cell of a CSV, with commas between, as `k. A.,n/a`; in any "
            "case, where they are no label, no choice and no id.",
        ),
    ] = "",
) -> Response:
    """Contribute many values. A refused record does not sink the others; a malformed document stores none.

    A JSON array, NDJSON (`application/x-ndjson` or `application/ndjson`, one record a line) or CSV
    (`text/csv`) with a header line such as `subject,value,epsilon,trust`, where an empty cell is a missing
    field; each also in gzip. A CSV may have commas, semicolons or tabs, be in UTF-8 or UTF-16, and write
    decimals with a comma. The case of column names and trust tags does not count, nor do spaces around cells;
    subjects, labels and choices are taken as they are written.
    """
    found = await request.study(study, fresh=True)
    if request.principal.subject is not None:
        raise Forbidden("A token for one person contributes with single requests.")
    async with request.work(batch=True):
        key, sender = request.api.services.subject_key, request.principal.token_id
        reader = BatchReader(
            found.definition,
            key,
            sender,
            _form(request),
            epsilon=epsilon,
            trust=trust,
            decimals=decimals,
            missing=missing.split(","),
        )
        batch = await _read(request, reader)

        async def proceed() -> None:
            """The work ends with the request; what is stored by then stays stored."""
            if await request.is_disconnected():
                raise ClientDisconnect
            await identify(request)  # or with its token

        result = await request.api.services.contributions.apply_batch(found, batch, proceed)
    return StreamingResponse(_written(result), media_type=JSON)


def _form(request: ApiRequest) -> Format:
    form = FORMATS.get(request.media_type or "")
    if form is None:
        raise UnsupportedMediaType(f"The content type must be {', '.join(FORMATS)}.")
    return form


async def _read(request: ApiRequest, reader: BatchReader) -> Batch:
    """The whole document as packed records, read in a thread of its own while it arrives."""
    coding = CODINGS[request.refuse_other_encodings(*CODINGS)]
    limits = request.api.limits
    request.refuse_announced_excess(limits.batch)
    content = coding(reader.feed, limits.batch_content)
    waiting, total = bytearray(), 0
    async for chunk in request.stream():
        waiting += chunk
        total += len(chunk)
        request.refuse_excess(total, limits.batch)
        while len(waiting) >= coding.piece:
            piece = bytes(waiting[: coding.piece])
            del waiting[: coding.piece]
            await identify(request)
            await run(partial(content.feed, piece))

    def finish() -> Batch:
        content.feed(bytes(waiting))
        content.finish()
        return reader.finish()

    return await run(finish)


def _written(result: BatchResult) -> Iterator[bytes]:
    kinds = [json.dumps(kind, separators=(",", ":")).encode() for kind in result.kinds]
    refused = [kind["status"] == "refused" for kind in result.kinds]
    codes = result.codes

    def written(row: int) -> bytes:
        """A result; one that refuses says its row, the number of the record from 1."""
        code = codes[row - 1]
        return kinds[code][:-1] + b',"row":%d}' % row if refused[code] else kinds[code]

    yield b'{"results":['
    for start in range(0, len(codes), RESULTS):
        separator = b"," if start else b""
        rows = range(start + 1, min(start + RESULTS, len(codes)) + 1)
        yield separator + b",".join(map(written, rows))
    counts = {"created": result.created, "unchanged": result.unchanged, "refused": result.refused}
    yield b"]," + json.dumps(counts, separators=(",", ":")).encode()[1:]
