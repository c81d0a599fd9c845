"""One record has one verdict, whichever way it comes in: 2,000 records a run, good and hostile, each sent as
a single document, in a JSON array, as a line of NDJSON, as a row of CSV and through the SDK.

Where a way in cannot say what the record says, `DIFFERENCES` has what it does instead.
"""

import asyncio
import csv
import io
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from dither import AsyncClient, DeviceRefusal, ProblemError, Retry

from tests.api.service import Service, open_service
from tests.support.records import (
    CSV_COLUMNS,
    LANE,
    Generator,
    Kind,
    NumberText,
    Record,
    argument,
    as_numbers,
    csv_cells,
    parse,
    read_cells,
    write,
)

Item = TypeVar("Item")

BODIES = 2_000
AT_ONCE = 8
GROUP = 50
"""Records of one batch."""

SINGLE, ARRAY, LINES, ROWS, SDK, AS_ROW, AS_CALL = range(1, 8)
"""The lanes: the five ways in; the last two are single documents that say what a row, or a call, says."""

KINDS = (
    Kind("laplace"),
    Kind("gaussian", mechanism="gaussian", delta="0.000001"),
    Kind("duchi", mechanism="duchi"),
    Kind("piecewise", mechanism="piecewise"),
    Kind("hybrid", mechanism="hybrid"),
    Kind("optimal", mechanism="optimal"),
    Kind("vectors", dimension=3),
    Kind("secret", relation="add_remove_one", trust=("central", "public")),
    Kind("listed", epsilons=("0.5", "1", "1.23", "1.25", "2")),
    Kind("closed"),
)
HOLDERS, PAUPERS, SPENT = 30, 20, 12
"""People of each study and lane who have contributed, whose budget is gone, who withdrew after a release."""

LIFETIME = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a record; the fields are those that a refusal names."""

    status: str
    code: str = ""
    fields: frozenset[str] = frozenset()


Verdicts = dict[Record, Verdict]

MALFORMED = Verdict("refused", "malformed_document")

DIFFERENCES: Mapping[str, str] = {
    "batch: record": "An element that is no object is refused as a record: the body is all of them.",
    "line: by itself": "A line that is not JSON is refused by itself, as malformed_json.",
    "row: no object": "A row is always a record: what is no object, or no JSON, has no row.",
    "row: no such column": "A column that is unknown or named twice makes the document malformed.",
    "row: no type": "A cell has no type, and an empty one is no field: a row is judged as the record that it "
    "stands for.",
    "call: no such argument": "What is no object, or has other fields, cannot be called.",
    "call: first field": "The SDK names the first argument that is not admissible, the service all.",
    "call: no document": "What makes a document malformed makes an argument inadmissible.",
    "call: zero character": "A subject that cannot be part of every path is refused on the device.",
    "call: own report": "The SDK draws the report: the verdict is that of the document that it sent.",
    "call: text and None": "A number may be text, and None is an argument that is not given.",
    "call: by name": "A value that is a mapping is one measure by name: a document says it as values.",
    "call: sessions": "Local people of a study of vectors are told that sessions are for them.",
}
"""Every way in which a door may differ from a single document."""

CODES = {
    *("", "invalid_request", "duplicate_key", "malformed_document", "contribution_exists"),
    *("budget_exhausted", "epsilon_below_spent", "report_after_spending", "study_closed"),
}
"""What single documents are answered in a run, the empty code for success: otherwise it tried too little."""


class Recorder(httpx.AsyncBaseTransport):
    """Passes requests on and remembers the contributions among them by their subject."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner
        self.sent: dict[str, dict[str, object]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            document = parse(request.content.decode())
            self.sent[document["subject"]] = document
        return await self._inner.handle_async_request(request)


@dataclass
class Doors:
    """The ways in, and the differences that were met on them."""

    service: Service
    sdk: AsyncClient
    recorder: Recorder
    met: Counter[str] = field(default_factory=Counter)

    async def single(self, kind: Kind, content: bytes) -> Verdict:
        response = await self._post(f"/v1/studies/{kind.slug}/contributions", "application/json", content)
        if response.status_code in (200, 201):
            return Verdict("created" if response.status_code == 201 else "unchanged")
        return _of_problem(response)

    async def singles(self, kind: Kind, bodies: Mapping[Record, bytes]) -> Verdicts:
        async def send(record: Record) -> None:
            verdicts[record] = await self.single(kind, bodies[record])

        verdicts: Verdicts = {}
        await at_once(bodies, send)
        return verdicts

    async def batches(
        self,
        kind: Kind,
        form: str,
        groups: Iterable[Sequence[Record]],
        join: Callable[[Sequence[Record]], bytes],
    ) -> Verdicts:
        """The verdicts on records in groups. Each batch begins with one that the service holds already."""
        verdicts: Verdicts = {}

        async def send(group: Sequence[Record]) -> None:
            response = await self._post(f"/v1/studies/{kind.slug}/contributions/batch", form, join(group))
            if response.status_code != 200:
                found = _of_problem(response)
                assert len(group) == 1, f"{found} sank {[record.text for record in group]}"
                verdicts[group[0]] = found
                return
            first, *results = response.json()["results"]
            assert first == {"status": "unchanged"}
            verdicts.update(zip(group, map(_of_result, results), strict=True))

        await at_once(groups, send)
        return verdicts

    async def call(self, kind: Kind, arguments: Mapping[str, Any]) -> Verdict:
        try:
            done = await self.sdk.contribute(kind.slug, check_spent=False, **arguments)
        except DeviceRefusal as refusal:
            return Verdict("refused", refusal.code, frozenset([refusal.field]))
        except ProblemError as problem:
            return Verdict("refused", problem.code, frozenset(error.field for error in problem.errors))
        return Verdict(done.status)

    async def _post(self, path: str, form: str, content: bytes) -> httpx.Response:
        headers = {"Content-Type": form}
        return await self.service.call("POST", path, "contribute", content=content, headers=headers)


def _of_problem(response: httpx.Response) -> Verdict:
    assert 400 <= response.status_code < 500, f"{response.status_code}: {response.text}"
    problem = response.json()
    return Verdict("refused", problem["code"], frozenset(error["field"] for error in problem["errors"]))


def _of_result(result: Mapping[str, Any]) -> Verdict:
    fields = frozenset(error["field"] for error in result.get("errors", ()))
    return Verdict(result["status"], result.get("code", ""), fields)


async def at_once(items: Iterable[Item], work: Callable[[Item], Awaitable[None]]) -> None:
    """Work on items, a few at a time."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as workers:
        for _ in range(AT_ONCE):
            workers.create_task(worker())


# ------------------------------------------------------------------------------------ people before


def companion(kind: Kind, lane: int) -> dict[str, object]:
    """A contribution that every lane of every study holds."""
    return {
        "subject": f"companion-{lane}",
        "value": middle(kind),
        "epsilon": NumberText(1),
        "trust": "central",
    }


def middle(kind: Kind) -> object:
    return NumberText(50) if kind.dimension == 1 else [NumberText(50)] * kind.dimension


async def populate(service: Service, kind: Kind) -> list[str]:
    """Make the study with its people; returns those whom a record may be about."""
    await service.study(
        slug=kind.slug,
        trust=list(kind.trust),
        noise="gaussian" if float(kind.delta) else "laplace",
        delta=float(kind.delta),
        dimension=kind.dimension,
        local_mechanism=kind.mechanism,
        relation=kind.relation,
        **({"epsilons": list(kind.epsilons)} if kind.epsilons else {}),
    )
    lanes = range(SINGLE, AS_CALL + 1)
    holders = [f"{kind.slug}-holder-{number}-{LANE}" for number in range(HOLDERS)]
    paupers = [f"{kind.slug}-pauper-{number}-{LANE}" for number in range(PAUPERS)]
    spent = [f"{kind.slug}-spent-{number}-{LANE}" for number in range(SPENT if kind.answers else 0)]

    def of_each_lane(names: Sequence[str], epsilon: int) -> list[dict[str, object]]:
        return [
            {
                **companion(kind, lane),
                "subject": name.replace(LANE, str(lane)),
                "epsilon": NumberText(epsilon),
            }
            for name in names
            for lane in lanes
        ]

    await store(service, kind.slug, [companion(kind, lane) for lane in lanes])
    await store(service, kind.slug, of_each_lane([*holders, *spent], 1))
    elsewhere = [{**one, "value": NumberText(50)} for one in of_each_lane(paupers, LIFETIME)]
    await store(service, "elsewhere", elsewhere)
    if spent:
        released = await service.call(
            "POST",
            f"/v1/studies/{kind.slug}/releases",
            "analyse",
            json={"statistic": "mean", "estimator": "uniform", "share": 1},
        )
        assert released.status_code == 201, released.text
    for name in spent:
        for lane in lanes:
            path = f"/v1/studies/{kind.slug}/contributions/{name.replace(LANE, str(lane))}"
            assert (await service.call("DELETE", path, "contribute")).status_code == 204
    if kind.slug == "closed":
        assert (await service.call("POST", "/v1/studies/closed/close", "admin")).status_code == 200
    return [*holders, *paupers, *spent]


async def store(service: Service, slug: str, records: Sequence[Mapping[str, object]]) -> None:
    response = await service.call(
        "POST",
        f"/v1/studies/{slug}/contributions/batch",
        "contribute",
        content=write(list(records)).encode(),
        headers={"Content-Type": "application/json"},
    )
    assert response.json()["created"] == len(records), response.text


# ------------------------------------------------------------------------------------ the doors


def groups_of(records: Sequence[Record], alone: Callable[[Record], bool]) -> list[list[Record]]:
    """Records in batches; those that would sink the others in one of their own."""
    together = [record for record in records if not alone(record)]
    groups = [together[start : start + GROUP] for start in range(0, len(together), GROUP)]
    return groups + [[record] for record in records if alone(record)]


def in_batch(doors: Doors, verdict: Verdict) -> Verdict:
    """What a batch says where a single document says this."""
    if verdict.fields == {"body"}:
        doors.met["batch: record"] += 1
        return Verdict(verdict.status, verdict.code, frozenset({"record"}))
    return verdict


async def through_arrays(doors: Doors, kind: Kind, singles: Verdicts) -> None:
    first = write(companion(kind, ARRAY)).encode()

    def join(group: Sequence[Record]) -> bytes:
        return b"[" + b",".join([first, *(record.body(ARRAY) for record in group)]) + b"]"

    groups = groups_of(list(singles), lambda record: singles[record] == MALFORMED)
    found = await doors.batches(kind, "application/json", groups, join)
    for record, single in singles.items():
        assert found[record] == in_batch(doors, single), record.text


async def through_lines(doors: Doors, kind: Kind, singles: Verdicts) -> None:
    first = write(companion(kind, LINES)).encode()

    def join(group: Sequence[Record]) -> bytes:
        return b"\n".join([first, *(record.body(LINES) for record in group)])

    groups = groups_of(list(singles), lambda record: not record.is_utf8)
    found = await doors.batches(kind, "application/x-ndjson", groups, join)
    for record, single in singles.items():
        expected = in_batch(doors, single)
        if single == MALFORMED and record.is_utf8:
            expected = Verdict("refused", "malformed_json", frozenset({"record"}))
            doors.met["line: by itself"] += 1
        assert found[record] == expected, record.text


async def through_rows(doors: Doors, kind: Kind, singles: Verdicts) -> None:
    said = {record: record.plain(ROWS) for record in singles}
    cells = {record: csv_cells(fields) for record, fields in said.items() if fields is not None}
    written_twice = {record for record in singles if record.fields is not None and said[record] is None}

    def sinks(record: Record) -> bool:
        return record in written_twice or not set(cells[record]) <= set(CSV_COLUMNS)

    def join(group: Sequence[Record]) -> bytes:
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        if sinks(group[0]):
            names = [name for name, _ in group[0].fields or ()]
            rows.writerows([names, ["1"] * len(names)])
        else:
            rows.writerow(CSV_COLUMNS)
            for row in (csv_cells(companion(kind, ROWS)), *(cells[record] for record in group)):
                rows.writerow([row.get(name, "") for name in CSV_COLUMNS])
        return out.getvalue().encode("utf-8", "surrogatepass")

    def is_respelled(record: Record) -> bool:
        """A header is read in any case: there `Value` is a column, and of a document no field."""
        names = [name for name, _ in record.fields or ()]
        return any(name not in CSV_COLUMNS and name.lower() in CSV_COLUMNS for name in names)

    rows = [
        record
        for record in singles
        if (record in cells or record in written_twice) and not is_respelled(record)
    ]
    groups = groups_of(rows, lambda record: sinks(record) or not _is_utf8("".join(cells[record].values())))
    found = await doors.batches(kind, "text/csv", groups, join)

    twins: dict[Record, bytes] = {}
    for record, fields in said.items():
        if fields is not None and not sinks(record):
            text = write(read_cells(cells[record], kind.dimension))
            if text != write(fields) and _is_utf8(text):
                twins[record] = write(
                    read_cells(csv_cells(record.plain(AS_ROW) or {}), kind.dimension)
                ).encode()
    judged = await doors.singles(kind, twins)

    for record, single in singles.items():
        if record not in found:
            doors.met["row: no object"] += 1
            continue
        expected, difference = single, ""
        if sinks(record):
            expected, difference = MALFORMED, "row: no such column"
        elif record in judged:
            expected, difference = judged[record], "row: no type"
        doors.met[difference] += expected != single
        assert found[record] == in_batch(doors, expected), record.text


async def through_the_sdk(doors: Doors, kind: Kind, singles: Verdicts) -> None:
    doors.recorder.sent.clear()

    async def send(record: Record) -> None:
        fields = record.plain(SDK)
        if fields is None or not set(fields) <= set(CSV_COLUMNS):
            doors.met["call: no such argument"] += 1
            return
        fields = {name: value for name, value in fields.items() if value is not None}
        local = fields.get("trust") == "local"
        if local:
            # The value of the record, if any, is not what a report of it was drawn from.
            fields = {
                "value": NumberText(50),
                **{n: v for n, v in fields.items() if n in ("subject", "epsilon", "trust")},
            }
        elif "report" in fields:
            doors.met["call: no such argument"] += 1
            return
        arguments = {"subject": None, "value": None, "trust": None, **fields}
        found = await doors.call(kind, {name: argument(value) for name, value in arguments.items()})
        expected = await judge(record, fields, local=local, same=singles[record])
        check(record, found, expected)

    async def judge(record: Record, fields: dict[str, object], *, local: bool, same: Verdict) -> Verdict:
        """The verdict on the single document that says what the call said."""
        twin = dict(fields)
        if local:
            sent = doors.recorder.sent.get(str(fields.get("subject")))
            twin = {**fields, "report": NumberText(0)} if sent is None else dict(sent)
            if sent is None:
                del twin["value"]
        elif "value" in twin:
            twin["value"] = as_numbers(twin["value"])
        if by_name := isinstance(twin.get("value"), dict):
            twin["values"] = twin.pop("value")
        if not local and write(twin) == write(record.plain(SDK)):
            return same
        if "subject" in twin:
            twin["subject"] = (record.plain(AS_CALL) or {})["subject"]
        verdict = await doors.single(kind, write(twin).encode())
        difference = "own report" if local else "by name" if by_name else "text and None"
        doors.met[f"call: {difference}"] += verdict != same
        return verdict

    def check(record: Record, found: Verdict, expected: Verdict) -> None:
        subject = str((record.plain(SDK) or {}).get("subject"))
        if found == expected:
            return
        assert found.status == "refused", (record.text, found, expected)
        if expected == MALFORMED:
            doors.met["call: no document"] += 1
            assert found.code == "invalid_request", record.text
        elif "\0" in subject:
            doors.met["call: zero character"] += 1
            assert found == Verdict("refused", "invalid_request", frozenset({"subject"})), record.text
        elif found.code == "unsupported_mechanism":
            doors.met["call: sessions"] += 1
            assert kind.dimension > 1, record.text
            assert "trust" in expected.fields, record.text
        else:
            doors.met["call: first field"] += 1
            assert found.code == expected.code == "invalid_request", (record.text, found, expected)
            assert len(found.fields) == 1, record.text
            assert found.fields < expected.fields, (record.text, found, expected)

    await at_once(singles, send)


@pytest.fixture
async def doors(database_url: str, tmp_path: Path) -> AsyncIterator[Doors]:
    async with open_service(database_url, lifetime_epsilon=LIFETIME) as service:
        recorder = Recorder(service.transport)
        async with AsyncClient(
            "http://test",
            service.tokens["contribute"],
            directory=tmp_path / "device",
            retry=Retry(attempts=1),
            transport=recorder,
        ) as sdk:
            yield Doors(service, sdk, recorder)


@pytest.mark.long
async def test_a_record_has_one_verdict_whichever_way_it_comes_in(doors: Doors) -> None:
    seed = secrets.randbits(64) if os.environ.get("DITHER_TEST_ENTROPY") == "os" else 0
    print(f"seed {seed}")  # shown where the test fails
    await doors.service.study(slug="elsewhere")
    codes: set[str] = set()
    for place, kind in enumerate(KINDS, 1):
        known = await populate(doors.service, kind)
        generator = Generator(kind, seed, known, first=place * 10_000)
        records: dict[Record, None] = {}
        while len(records) < BODIES // len(KINDS):
            records[generator.record()] = None
        singles = await doors.singles(kind, {record: record.body(SINGLE) for record in records})
        codes |= {verdict.code for verdict in singles.values()}
        await through_arrays(doors, kind, singles)
        await through_lines(doors, kind, singles)
        await through_rows(doors, kind, singles)
        await through_the_sdk(doors, kind, singles)
    assert codes == CODES
    assert {name for name, count in doors.met.items() if count} == set(DIFFERENCES)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
