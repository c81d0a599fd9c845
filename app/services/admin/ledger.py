"""The ledger for admins: its charges, and the audit that recomputes everything."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from app.accounting.clusters import clusters_cost
from app.accounting.measurement import Measurement
from app.core.chain import ChainHead, Link
from app.core.errors import InternalFault
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.piece import Piece
from app.core.records import LedgerLine, ReleaseLine, TrailLine
from app.core.release import GENESIS
from app.services.admin import reporting_ranges
from app.services.observer import NullObserver, Observer
from app.services.paging import Page, decode_cursor, page_of
from app.services.shapes.kinds import noise_of_pieces
from app.services.statistics.piece_ledger import priced
from app.services.statistics.piece_noise import PieceNoise
from app.store import journal, pieces
from app.store import ledger as store
from app.store.database import SNAPSHOT, Connection, Database

EXAMPLES = 5
"""Rows that a finding shows."""

NEWEST = (2**62, 2**62)

AUDIT_ACTION = "ledger.audit"
"""What an audit is called in the trail of what admins did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule with a few of the rows that break it. No data values, only ids and costs."""

    rule: str
    examples: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The result of an audit.

    Attributes:
        checked: Every rule that was checked.
        counts: How many rows were looked at.
        findings: The broken ones.
    """

    checked: Sequence[str]
    counts: Mapping[str, int]
    findings: Sequence[Finding]

    @property
    def clean(self) -> bool:
        """Whether every rule holds."""
        return not self.findings


class Ledger:
    """Reads the ledger, and notes that it was audited."""

    def __init__(self, database: Database, observer: Observer | None = None) -> None:
        self._database = database
        self._observer = observer or NullObserver()

    async def page(
        self, limit: int, cursor: str | None, study_id: int | None = None, release: UUID | None = None
    ) -> Page[LedgerLine]:
        """Charges, newest first, of one study or one release only unless None."""
        number, cohort = decode_cursor(cursor, _parse, NEWEST)
        items = await self._database.run_tx(
            "ledger.page",
            lambda c: store.page_charges(
                c, number=number, cohort=cohort, study_id=study_id, release=release, limit=limit + 1
            ),
        )
        return page_of(items, limit, lambda row: f"{row.number} {row.cohort_id}")

    async def releases(
        self, limit: int, cursor: str | None, study_id: int | None = None
    ) -> Page[ReleaseLine]:
        """Releases of all studies, newest first, of one study only unless None."""
        number = decode_cursor(cursor, int, NEWEST[0])
        items = await self._database.run_tx(
            "ledger.releases",
            lambda c: store.page_releases(c, number=number, study_id=study_id, limit=limit + 1),
        )
        return page_of(items, limit, lambda row: str(row.number))

    async def trail(
        self, limit: int, cursor: str | None, action: str | None = None, target: str | None = None
    ) -> Page[TrailLine]:
        """What admins did, newest first, of one action or on one target only unless None."""
        before = decode_cursor(cursor, int, NEWEST[0])
        items = await self._database.run_tx(
            "ledger.trail",
            lambda c: journal.page(c, before=before, action=action, target=target, limit=limit + 1),
        )
        return page_of(items, limit, lambda row: str(row.id))

    async def head(self) -> ChainHead:
        """The head of the hash chain, and the audit that was recorded last."""

        async def body(connection: Connection) -> ChainHead:
            number, link = await store.head(connection)
            audit = await store.last_audit(connection, AUDIT_ACTION)
            return ChainHead(number=number, hash=link, last_audit=audit)

        return await self._database.run_tx("ledger.head", body)

    async def record(self, report: AuditReport, *, at: datetime, actor: str) -> None:
        """Note in the trail of what admins did that an audit was made, and which rules were broken."""
        detail = {
            "rules": len(report.checked),
            "counts": dict(report.counts),
            "findings": [finding.rule for finding in report.findings],
        }
        await self._database.run_tx(
            "ledger.record",
            lambda c: journal.record(c, at, actor, AUDIT_ACTION, "ledger", **detail),
        )

    async def audit(self) -> AuditReport:
        """Recompute every balance and verify the hash chain, of a running service.

        A snapshot of a distributed database may show one node after a commit and another before it. So what
        was found is looked for again, and only what is still there is reported.
        """
        with self._observer.step("audit"):
            report = await self.look()
            if not report.findings:
                return report
            again = await self.look()
            found = {finding.rule for finding in report.findings}
            return replace(again, findings=[one for one in again.findings if one.rule in found])

    async def look(self) -> AuditReport:
        """What an audit finds on one snapshot."""

        async def body(connection: Connection) -> AuditReport:
            findings = []
            for rule in store.CHECKS:
                examples = await store.violations(connection, rule, EXAMPLES)
                if examples:
                    findings.append(Finding(rule=rule, examples=examples))
            findings += await _verify_rounds(connection)
            if wrong := await reporting_ranges.broken(connection):
                findings.append(Finding(rule=RANGE_RULE, examples=wrong[:EXAMPLES]))
            unpriced: list[dict[str, object]] = []
            findings += await _verify_pieces(connection, unpriced)
            findings += await _verify_chain(connection, unpriced)
            if unpriced:
                findings.append(Finding(rule=PRICE_RULE, examples=unpriced[:EXAMPLES]))
            return AuditReport(
                checked=[*store.CHECKS, *RULES],
                counts=await store.counts(connection),
                findings=findings,
            )

        return await self._database.run_tx("audit", body, isolation_level=SNAPSHOT)


ROUND_RULE = "a K-means round charged something else than its noise costs, or closed nothing"
RANGE_RULE = "a reporting range is not what its searches say"
PIECE_RULE = "a piece is not what the last release that changed it left"
PRICE_RULE = "a charge is not the price of its noise"
CHAIN_RULE = "a link of the hash chain does not match its release and charges"
HEAD_RULE = "the head of the hash chain is not its last link"
RULES = (ROUND_RULE, RANGE_RULE, PIECE_RULE, PRICE_RULE, CHAIN_RULE, HEAD_RULE)


async def _verify_rounds(connection: Connection) -> list[Finding]:
    broken: list[dict[str, object]] = []
    for found in await store.cluster_releases(connection):
        try:
            noise = (
                DiscreteGaussian(sigmas=found.scales) if found.delta else DiscreteLaplace(scales=found.scales)
            )
            price = clusters_cost(
                noise,
                found.relation,
                clusters=len(found.scales) // (1 + found.dimension),
                dimension=found.dimension,
            )
        except InternalFault:
            price = None
        charged: list[int | None] = [*found.costs] or [price]
        if charged != [price] or price is None or not found.closed_a_round:
            broken.append({"release": str(found.release), "charged": charged, "price": price})
    return [Finding(rule=ROUND_RULE, examples=broken[:EXAMPLES])] if broken else []


async def _verify_pieces(connection: Connection, unpriced: list[dict[str, object]]) -> list[Finding]:
    """Digests in releases are part of the hash chain, see `app.core.release.chain_hash`.

    Args:
        connection: In the audit's snapshot.
        unpriced: Takes the charges of pieces that are not the price of their noise.
    """
    broken: list[dict[str, object]] = []
    async for sealed in pieces.sealed(connection):
        if sealed.kept is None or sealed.kept != sealed.said:
            broken.append({"release": str(sealed.release), "piece": sealed.number})
        if sealed.piece is not None and not sealed.apart:
            unpriced += _off(
                sealed.release,
                sealed.piece,
                noise_of_pieces(sealed.estimator, sealed.currency, len(sealed.piece.sums)),
            )
    return [Finding(rule=PIECE_RULE, examples=broken[:EXAMPLES])] if broken else []


def _off(release: UUID, piece: Piece, noise: PieceNoise) -> Iterator[dict[str, object]]:
    """The members of a piece whose charges are not the price of its noise."""
    try:
        due: Sequence[int | None] = priced(piece, noise).column("charged")
    except InternalFault:
        due = [None] * len(piece.members)
    for member, price in zip(piece.members, due, strict=True):
        if member.charged != price:
            yield _example(release, member.cohort_id, member.charged, price)


def _unpriced(link: Link) -> Iterator[dict[str, object]]:
    """The charges of a release that are not the price of what it says that it measured."""
    due: dict[int, int | None] = dict.fromkeys(link.charged, 0)
    try:
        for part in link.measured:
            for cohort, cost in Measurement.of_document(part).costs(link.relation, link.currency).items():
                due[cohort] = (due.get(cohort) or 0) + cost
    except InternalFault:
        due = dict.fromkeys(due)
    for cohort, price in due.items():
        if link.charged.get(cohort, 0) != price:
            yield _example(link.release, cohort, link.charged.get(cohort, 0), price)


def _example(release: UUID, cohort: int, charged: int, price: int | None) -> dict[str, object]:
    return {"release": str(release), "cohort": cohort, "charged": charged, "price": price}


async def _verify_chain(connection: Connection, unpriced: list[dict[str, object]]) -> list[Finding]:
    """The hash chain, and in the same pass the price of every release that says what it measured."""
    broken: list[dict[str, object]] = []
    number, previous = 0, GENESIS
    async for link in store.links(connection):
        if link.number != number + 1 or link.previous != previous or link.hash != link.recomputed:
            broken.append({"number": link.number, "release": str(link.release)})
        if link.measured:
            unpriced += _unpriced(link)
        number, previous = link.number, link.hash
    findings = [Finding(rule=CHAIN_RULE, examples=broken[:EXAMPLES])] if broken else []
    head = await store.head(connection)
    if head != (number, previous):
        findings.append(Finding(rule=HEAD_RULE, examples=[{"head": head[0], "last": number}]))
    return findings


def _parse(text: str) -> tuple[int, int]:
    number, cohort = text.split(" ")
    return int(number), int(cohort)
