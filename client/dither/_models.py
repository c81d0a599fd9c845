"""What the SDK takes, and what it says of itself: records, what became of them, and the device's ledger."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

from dither._documents import Trust
from dither._errors import FieldProblem
from dither.device.numbers import Numeric, Value

EntryState = Literal["pending", "accepted", "refused", "replaced", "withdrawn"]
"""Life of an entry in the device's ledger. Pending: about to be sent, or sent and not answered yet."""

EnrolmentState = Literal["open", "finished", "refused"]
"""Life of a session in the device's ledger. Finished: nothing more will be drawn, the rest is free again."""


@dataclass(frozen=True, slots=True)
class Record:
    """One contribution of a bulk load. Epsilon and trust may be left to the call.

    Attributes:
        value: In a study of measures all of them by name, as {"income": 1200, "party": "red"}.
        attributes: Labels of the subject, in a study that has attributes.
    """

    subject: str
    value: Value | Mapping[str, Value]
    epsilon: Numeric | None = None
    trust: Trust | None = None
    attributes: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RecordResult:
    """What became of one record.

    Attributes:
        status: What happened.
        code: Of the refusal, the service's or that of a `DeviceRefusal`.
        errors: The fields that are to blame, and why.
        detail: One sentence for a person, where this device refused; may be empty.
    """

    status: Literal["created", "unchanged", "refused"]
    code: str | None = None
    errors: tuple[FieldProblem, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """How many records of a bulk load are done, and what became of them."""

    records: int
    created: int
    unchanged: int
    refused: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What became of a bulk load: one result a record, in their order, and how many of each."""

    results: tuple[RecordResult, ...] = field(repr=False)
    created: int
    unchanged: int
    refused: int

    def __iter__(self) -> Iterator[RecordResult]:
        return iter(self.results)

    @property
    def refusals(self) -> tuple[tuple[int, RecordResult], ...]:
        """What was refused, each with its row: 1 is the first record."""
        rows = enumerate(self.results, start=1)
        return tuple((row, result) for row, result in rows if result.status == "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """What a person gave to a session, and what came out of it.

    Attributes:
        session, subject: Which session, and who.
        rounds: Rounds whose answers the service took.
        late: Rounds whose answers came when the round was closed already. They count as given.
        epsilon: What this device gave away in this session.
        finished: Whether the session is finished.
        estimate: Of a finished search, in the data's unit.
        centres: Of a finished kmeans session, in the data's unit.
    """

    session: str
    subject: str
    rounds: tuple[int, ...]
    late: tuple[int, ...]
    epsilon: Decimal
    finished: bool
    estimate: float | None = None
    centres: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEntry:
    """A session in which this device takes part for a person.

    Attributes:
        session, study, subject: Which session, of which study, and for whom.
        epsilon: The most that taking part costs.
        given: What was given away so far: every answer that was drawn, whatever became of it.
        counted: What it brings to the subject's total: `epsilon` until nothing more will be drawn.
        answers: How many answers were drawn.
        state: Whether more may follow.
        made_at: When the device enrolled.
    """

    session: str
    study: str
    subject: str
    epsilon: Decimal
    given: Decimal
    counted: Decimal
    answers: int
    state: EnrolmentState
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One thing that this device gave away.

    Attributes:
        study, subject, trust: Where, for whom, and as what.
        epsilon: What it may cost altogether, what was spent in the study before included; None for public.
        noise_epsilon: What a local report was randomized with.
        counted: What it brings the subject's total in this study up to.
        state: What became of it.
        made_at: When.
    """

    study: str
    subject: str
    trust: str
    epsilon: Decimal | None
    noise_epsilon: Decimal | None
    counted: Decimal
    state: EntryState
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLedger:
    """Everything that this device gave away.

    Attributes:
        entries: Contributions, in the order they were made.
        sessions: Sessions, in the order of enrolment.
        totals: By subject: at most this much epsilon in all studies and sessions, without public values.
    """

    entries: tuple[LedgerEntry, ...]
    sessions: tuple[SessionEntry, ...]
    totals: Mapping[str, Decimal]
