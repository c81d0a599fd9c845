"""What became of a bulk load."""

from dataclasses import dataclass, field
from typing import Literal

from dither._errors import FieldProblem


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

    @property
    def refusals(self) -> tuple[tuple[int, RecordResult], ...]:
        """What was refused, each with its row: 1 is the first record."""
        rows = enumerate(self.results, start=1)
        return tuple((row, result) for row, result in rows if result.status == "refused")
