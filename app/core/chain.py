"""The hash chain over releases, and the audit that holds the ledger to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.core.study import Currency, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAudit:
    """What is kept of an audit.

    Attributes:
        at: When.
        rules: How many rules were checked.
        counts: How many rows were looked at.
        findings: The broken rules.
    """

    at: datetime
    rules: int
    counts: Mapping[str, int]
    findings: Sequence[str]

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link of the hash chain.

    Attributes:
        number: Its place, from 1.
        release: The release that it seals.
        previous: The hash before it, as it is stored.
        hash: Its hash, as it is stored.
        recomputed: Its hash, from `previous`, the release and its charges.
        relation, currency: Of its study.
        measured: What the release keeps of what it measured; empty of steps, and of releases from before
            that was kept.
        charged: What it charged each member of a cohort, by its id [the study's currency].
    """

    number: int
    release: UUID
    previous: bytes
    hash: bytes
    relation: Relation
    currency: Currency
    measured: Sequence[Mapping[str, Any]]
    charged: Mapping[int, int]
    recomputed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainHead:
    """The head of the hash chain, and the audit that was recorded last."""

    number: int
    hash: bytes
    last_audit: RecordedAudit | None
