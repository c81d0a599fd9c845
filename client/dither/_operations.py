"""The operations of both clients, without I/O: what is sent, in which order, and what it means."""

import gzip
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, SupportsIndex, cast

from dither import _parse as parse
from dither._calls import JSON, Calls, check_progress, quoted, study_path
from dither._device import Prepared, Purpose, Spending
from dither._documents import Budget, Contribution, Study, Trust
from dither._errors import (
    DeviceRefusal,
    DitherError,
    Faults,
    FieldProblem,
    InvalidRequest,
    ProblemError,
)
from dither._flow import Flow, Reply, Request, Retry, exchange, work
from dither._models import BatchProgress, BatchResult, DeviceLedger, Record, RecordResult
from dither._orders import Order, check_study, make_order, subject_text
from dither._participation import SessionOperations
from dither._rows import Named, Row, read_rows
from dither._stores import AnyDevice, NoLedger
from dither._wire import encode
from dither.device.numbers import Numeric, Value, epsilon_cost
from dither.device.table import Decimals

_NDJSON = (("content-type", "application/x-ndjson"), ("content-encoding", "gzip"))
_COMPRESSION = 3
"""Batches are repetitive: more effort costs more time than it saves bytes."""

_CANNOT_TELL = frozenset({403, 404})
"""Answers to a question for a budget that mean that this token may not know, or that is unknown."""


class Operations:
    """What a client can do. Every public method is a flow.

    Attributes:
        retry: How often and how patiently requests are tried again.
        device: The device's decisions, on its ledger if the client has one.
        calls: Requests that are done with one answer.
        sessions: What it can do with sessions.
    """

    def __init__(self, *, retry: Retry, device: AnyDevice) -> None:
        self.retry = retry
        self.device = device
        self.calls = Calls(retry)
        remembering = None if isinstance(device, NoLedger) else device
        self.sessions = SessionOperations(retry=retry, calls=self.calls, device=remembering)
        self._studies: dict[str, Study] = {}

    # -- studies and budgets

    def study(self, slug: str) -> Flow[Study]:
        """GET a study, remember its terms."""
        study = yield from self.calls.read(Study, study_path(slug))
        device = self.device
        check_study(study, slug)
        yield from work(lambda: device.see(study))
        self._studies[slug] = study
        return study

    def budget(self, subject: str | int) -> Flow[Budget]:
        """GET a subject's budget."""
        path = f"/v1/subjects/{quoted(subject_text(subject))}/budget"
        return (yield from self.calls.read(Budget, path))

    def ledger(self, subject: str | int | None) -> Flow[DeviceLedger]:
        """Read the device's ledger."""
        who = None if subject is None else subject_text(subject)
        return (yield from work(lambda: self.device.read(who)))

    # -- contributions

    def contribute(
        self,
        purpose: Purpose,
        slug: str,
        subject: str | int,
        value: Value | Mapping[str, Value],
        epsilon: Numeric | None,
        trust: str,
        check_spent: bool,
        attributes: Mapping[str, str] | None,
    ) -> Flow[Contribution]:
        """POST or PUT one contribution, written down before it is sent."""
        device, subject = self.device, subject_text(subject)
        study = yield from self._described(slug)
        order = make_order(
            study, subject=subject, value=value, epsilon=epsilon, trust=trust, attributes=attributes
        )
        spent = yield from self._spent(device, study, [order], purpose=purpose, check_spent=check_spent)
        [decision] = yield from work(lambda: device.prepare(study, [order], purpose=purpose, spent=spent))
        if isinstance(decision, DeviceRefusal):
            raise decision
        prepared = decision
        try:
            reply = yield from exchange(_contribution_request(slug, prepared, purpose), self.retry)
        except ProblemError as problem:
            if problem._refuses:
                code = problem.code
                yield from work(lambda: device.refuse([(prepared, code)]))
                if purpose == "replace" and problem.status == 404:
                    yield from work(lambda: device.decide(subject, lambda one: one.absent(slug, subject)))
            raise
        yield from work(lambda: device.accept([prepared]))
        return parse.contribution(reply.body, _status(reply, prepared, purpose), order.epsilon)

    def contribute_many(
        self,
        slug: str,
        records: Iterable[Any],
        epsilon: Numeric | None,
        trust: Trust | None,
        chunk: int,
        check_spent: bool,
        on_progress: Callable[[BatchProgress], None] | None,
        ignore: Iterable[str] = (),
        decimals: Decimals | None = None,
    ) -> Flow[BatchResult]:
        """POST batches; what is refused does not sink the rest."""
        if not isinstance(chunk, SupportsIndex) or isinstance(chunk, bool) or chunk.__index__() < 1:
            raise InvalidRequest("chunk", "must be a whole number of at least 1")
        check_progress(on_progress)
        device = self.device
        study = yield from self._described(slug)
        results: list[RecordResult] = []
        counts = {"created": 0, "unchanged": 0, "refused": 0}
        iterator = read_rows(records, Named.of(study, ignore, decimals))
        while batch := list(islice(iterator, min(chunk, sys.maxsize))):
            orders = [_order_or_refusal(study, record, epsilon=epsilon, trust=trust) for record in batch]
            done = yield from self._batch(device, study, orders, check_spent=check_spent)
            results += done
            for result in done:
                counts[result.status] += 1
            if on_progress is not None:
                on_progress(BatchProgress(records=len(results), **counts))
        return BatchResult(results=tuple(results), **counts)

    def _batch(
        self,
        device: AnyDevice,
        study: Study,
        orders: Sequence[Order | DeviceRefusal],
        *,
        check_spent: bool,
    ) -> Flow[list[RecordResult]]:
        """One batch: decide, send what was not refused here, and put the results in order."""
        good = [order for order in orders if isinstance(order, Order)]
        spent = yield from self._spent(device, study, good, purpose="contribute", check_spent=check_spent)
        decisions = iter(
            (yield from work(lambda: device.prepare(study, good, purpose="contribute", spent=spent)))
        )
        decided = [next(decisions) if isinstance(order, Order) else order for order in orders]
        prepared = [item for item in decided if isinstance(item, Prepared)]
        answers = iter((yield from self._send_batch(device, study.slug, prepared)) if prepared else ())
        return [next(answers) if isinstance(item, Prepared) else _refused(item) for item in decided]

    def _send_batch(
        self, device: AnyDevice, slug: str, prepared: Sequence[Prepared]
    ) -> Flow[list[RecordResult]]:
        body = yield from work(lambda: _ndjson(prepared))
        request = Request(
            method="POST", path=f"{study_path(slug)}/contributions/batch", body=body, headers=_NDJSON
        )
        try:
            reply = yield from exchange(request, self.retry)
        except ProblemError as problem:
            if problem._refuses:
                code = problem.code
                yield from work(lambda: device.refuse([(item, code) for item in prepared]))
            raise
        results = parse.batch(reply.body, len(prepared))
        yield from work(lambda: _write_results(device, prepared, results, certain=reply.certain))
        return results

    def withdraw(self, slug: str, subject: str | int) -> Flow[None]:
        """DELETE a contribution, and learn how much of it was spent."""
        subject = subject_text(subject)
        path, device = f"{study_path(slug)}/contributions/{quoted(subject)}", self.device
        try:
            yield from exchange(Request(method="DELETE", path=path), self.retry)
        except ProblemError as problem:
            if problem.status == 404:
                yield from work(lambda: device.decide(subject, lambda one: one.absent(slug, subject)))
            raise
        if not (yield from work(lambda: device.decide(subject, lambda one: one.withdraw(slug, subject)))):
            return
        try:
            said = yield from self._ask_spent(slug, subject)
        except DitherError:
            return  # it is withdrawn all the same, and counts in full
        if said is not None:
            known = said.spent
            yield from work(lambda: device.decide(subject, lambda one: one.settle(slug, subject, known)))

    def _described(self, slug: str) -> Flow[Study]:
        """The description that this client goes by; fetched once."""
        study_path(slug)  # refuses what is no slug, and cannot be looked up
        study = self._studies.get(slug)
        return (yield from self.study(slug)) if study is None else study

    def _spent(
        self, device: AnyDevice, study: Study, orders: Sequence[Order], *, purpose: Purpose, check_spent: bool
    ) -> Flow[Mapping[str, Spending | None]]:
        """What the service says of subjects in a study, where a report depends on it."""
        if all(order.trust != "local" for order in orders):
            return {}
        asked = yield from work(
            lambda: device.to_ask(study, orders, purpose=purpose, check_spent=check_spent)
        )
        spent: dict[str, Spending | None] = {}
        for subject in asked:
            spent[subject] = yield from self._ask_spent(study.slug, subject)
        return spent

    def _ask_spent(self, slug: str, subject: str) -> Flow[Spending | None]:
        """What the service says of a subject in a study; None where it does not say."""
        try:
            budget = yield from self.budget(subject)
        except ProblemError as problem:
            if problem.status not in _CANNOT_TELL:
                raise
            return None
        lines = [line for line in budget.studies if line.study == slug]
        return Spending(
            spent=sum(epsilon_cost(line.spent) for line in lines), live=any(line.live for line in lines)
        )


def _contribution_request(slug: str, prepared: Prepared, purpose: Purpose) -> Request:
    path = f"{study_path(slug)}/contributions"
    if purpose == "replace":
        body = encode(prepared.body(with_subject=False)).encode()
        path += f"/{quoted(prepared.order.subject)}"
        return Request(method="PUT", path=path, body=body, headers=JSON)
    return Request(
        method="POST", path=path, body=encode(prepared.body(with_subject=True)).encode(), headers=JSON
    )


def _status(
    reply: Reply, prepared: Prepared, purpose: Purpose
) -> Literal["created", "unchanged", "replaced"]:
    if purpose == "contribute":
        return "created" if reply.status == 201 else "unchanged"
    return "replaced" if prepared.new else "unchanged"


def check_records(
    study: Study, records: Iterable[Any], *, epsilon: Numeric | None = None, trust: Trust | None = None
) -> Iterator[tuple[Row, DeviceRefusal | None]]:
    """Each row as `contribute_many` reads it, and why it would be refused here. Sends nothing."""
    for row in read_rows(records, Named.of(study)):
        order = _order_or_refusal(study, row, epsilon=epsilon, trust=trust)
        yield row, None if isinstance(order, Order) else order


def _order_or_refusal(
    study: Study, record: Row, *, epsilon: Numeric | None, trust: Trust | None
) -> Order | DeviceRefusal:
    faults = Faults()
    if isinstance(record, InvalidRequest):
        if record.record is None:
            return record
        faults += (record, *record.also)
        record = cast(Record, record.record)
    tag = record.trust or trust or ""
    own = record.epsilon if record.epsilon is not None or tag == "public" else epsilon
    try:
        with faults:
            order = make_order(
                study,
                subject=record.subject,
                value=record.value,
                epsilon=own,
                trust=tag,
                attributes=record.attributes,
            )
        faults.check()
    except DeviceRefusal as refusal:
        return refusal
    return order


def _refused(refusal: DeviceRefusal) -> RecordResult:
    errors = tuple(FieldProblem(one.field, one.reason) for one in (refusal, *refusal.also))
    return RecordResult("refused", refusal.code, errors, detail=str(refusal))


def _ndjson(prepared: Sequence[Prepared]) -> bytes:
    lines = "\n".join(encode(item.body(with_subject=True)) for item in prepared) + "\n"
    return gzip.compress(lines.encode(), compresslevel=_COMPRESSION, mtime=0)


def _write_results(
    device: AnyDevice, prepared: Sequence[Prepared], results: Sequence[RecordResult], *, certain: bool
) -> None:
    """Write down what became of a batch. After an unseen earlier try a refusal settles nothing."""
    pairs = list(zip(prepared, results, strict=True))
    device.accept([item for item, result in pairs if result.status != "refused"])
    if certain:
        device.refuse([(item, result.code or "") for item, result in pairs if result.status == "refused"])
