"""What the device decides before anything leaves it.

A contribution's epsilon includes what its owner has already spent in the study. So a local report is
randomized with the difference, and a subject's total in a study is the newest epsilon, not the sum.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from dither._documents import Study
from dither._errors import (
    AlreadyContributed,
    DeviceRefusal,
    EpsilonBelowSpent,
    LedgerError,
    MaxEpsilonExceeded,
    ReportAfterSpending,
    StudyChanged,
)
from dither._ledger import Entry, Ledger, Transaction
from dither._models import DeviceLedger, EntryState
from dither._orders import Order, study_terms
from dither._participants import Participants
from dither._sessions import Terms
from dither._wire import Document
from dither.device.measures import reports
from dither.device.numbers import REPORT_LIMIT, Number, epsilon_decimal, epsilon_text, inside_range

T = TypeVar("T")
Purpose = Literal["contribute", "replace"]
Change = tuple[EntryState, int, int]

_SURELY_NOT_HELD = frozenset(
    {"budget_exhausted", "epsilon_below_spent", "report_after_spending", "study_closed"}
)
"""Refusals that say that the service does not hold what was sent, also not from an earlier try.

`contribution_exists` does not: an earlier try with another token may be what exists."""

_UNSURE = ("pending", "refused")
"""States of entries that the service may not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What the service says of a subject in a study.

    Attributes:
        spent: What is gone [micro-epsilon].
        live: Whether the service holds a contribution, whichever device it came from.
    """

    spent: int
    live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An order that is written down and may be sent.

    Attributes:
        order: The order.
        entry: Its entry, as it was if it is an old one.
        counted: What the entry counts now.
        new: Whether the entry was made for this order.
        older: The subject's other entries in the study.
    """

    order: Order
    entry: Entry
    counted: int
    new: bool
    older: tuple[Entry, ...]

    def body(self, *, with_subject: bool) -> dict[str, Document]:
        """The fields of the request."""
        order = self.order
        fields: dict[str, Document] = {}
        if with_subject:
            fields["subject"] = order.subject
        if self.entry.report is None:
            fields["values" if isinstance(order.value, dict) else "value"] = order.value
        elif isinstance(self.entry.report, str):
            said = json.loads(self.entry.report)
            fields |= {"reports": said} if isinstance(order.value, dict) else said
        else:
            fields["report"] = self.entry.report
        if order.epsilon is not None:
            fields["epsilon"] = Number.parse(epsilon_text(order.epsilon))
        fields["trust"] = order.trust
        if order.attributes:
            fields["attributes"] = dict(order.attributes)
        return fields


@dataclass(frozen=True, slots=True)
class Case:
    """An order in the light of what its subject gave away in the study before."""

    transaction: Transaction
    study: str
    order: Order
    history: Sequence[Entry]
    purpose: Purpose

    @property
    def digest(self) -> bytes:
        """What stands for the value and the labels."""
        return self.transaction.digest(
            self.study, self.order.subject, self.order.position, self.order.attributes
        )

    def again(self) -> Entry | None:
        """The entry that asked for the same, so that it is sent again and nothing is drawn."""
        if not self.history:
            return None
        wanted = (self.order.trust, self.order.epsilon, self.digest)
        live = next((entry for entry in reversed(self.history) if entry.live), None)
        newest = self.history[-1] if live is None or self.purpose == "replace" else None
        for entry in (live, newest):
            if entry is not None and (entry.trust, entry.epsilon, entry.digest) == wanted:
                return entry
        return None

    def is_taken(self) -> bool:
        """Whether something else is live that the order does not mean to replace."""
        return self.purpose == "contribute" and any(entry.live for entry in self.history)

    def may_differ(self) -> bool:
        """Whether only the service knows how much of a central value it has used."""
        return any(entry.trust == "central" and entry.counted for entry in self.history)

    def price(self, server_spent: int | None) -> tuple[int | None, int]:
        """What a new report is randomized with, and what the order counts.

        Args:
            server_spent: What the service says the subject has spent in this study; None: it does not say.

        Raises:
            EpsilonBelowSpent: nothing is left of the offer.
            ReportAfterSpending: the report needs everything, and something was spent before.
        """
        offer = self.order.epsilon
        if offer is None:
            return None, 0
        drawn = sum(entry.noise_epsilon or 0 for entry in self.history)
        unseen = unseen_epsilon(self.history)
        if self.order.trust == "central":
            if offer < drawn - unseen:
                raise EpsilonBelowSpent(epsilon_decimal(drawn - unseen))
            return None, offer + unseen
        if server_spent is None:  # of a central value everything may have been used
            server_spent = max((e.counted for e in self.history if e.trust == "central"), default=0)
        spent = max(drawn, server_spent + unseen)
        if spent and any(one.is_bounded for one in self.order.randomizers):
            raise ReportAfterSpending
        if offer <= spent:
            raise EpsilonBelowSpent(epsilon_decimal(spent))
        return offer - spent, offer

    def taken_for(self, server_spent: int | None) -> int:
        """At least what the service takes a new report to be drawn with, where it takes it [micro-epsilon].

        It counts accepted reports only, so it may take a report for less noisy than it is.
        """
        held = sum(entry.noise_epsilon or 0 for entry in self.history if entry.state not in _UNSURE)
        return (self.order.epsilon or 0) - max(held, server_spent or 0)

    def check_limit(self, limit: int | None, counted: int | None) -> None:
        """Hold the person's own limit; None counts as infinite. What is given already may be sent again.

        Raises:
            MaxEpsilonExceeded: it does not fit.
        """
        here = max((entry.counted for entry in self.history), default=0)
        if limit is None or (counted is not None and counted <= here):
            return
        elsewhere = self.transaction.given_elsewhere(self.study, self.order.subject)
        if counted is None or elsewhere + counted > limit:
            raise MaxEpsilonExceeded(limit=epsilon_decimal(limit), given=epsilon_decimal(elsewhere + here))


class Device:
    """The decisions of one device, on its ledger.

    Attributes:
        ledger: What it gave away.
        max_epsilon: The person's own limit for each subject [micro-epsilon].
        participants: Its decisions about sessions.
    """

    def __init__(self, ledger: Ledger, max_epsilon: int | None) -> None:
        self.ledger = ledger
        self.max_epsilon = max_epsilon
        self.participants = Participants(ledger, max_epsilon)

    def decide(self, subject: str, decision: Callable[["Device"], T]) -> T:
        """What a decision about a person returns: all people are in one ledger here."""
        return decision(self)

    def read(self, subject: str | None) -> DeviceLedger:
        """Everything that was given away, or what was for one subject."""
        return self.ledger.read(subject)

    def see(self, study: Study) -> None:
        """Remember a study's terms, where they are new."""
        with self.ledger.transaction() as transaction:
            transaction.pin(study.slug, study_terms(study))

    def see_session(self, terms: Terms) -> None:
        """Remember a session's description, where it is new."""
        self.participants.see(terms)

    def to_ask(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, check_spent: bool
    ) -> list[str]:
        """Subjects of whom the service must say what they have spent before a report is drawn for them.

        With `check_spent` that is every person for whom a report is drawn; without, only those of whom this
        device alone cannot know.
        """
        drawing = [order for order in orders if order.trust == "local"]
        asked: dict[str, None] = {}
        with self.ledger.transaction(durable=False) as transaction:
            histories = transaction.history(study.slug, [order.subject for order in drawing])
            for order in drawing:
                case = Case(transaction, study.slug, order, histories[order.subject], purpose)
                if (check_spent or case.may_differ()) and not (case.again() or case.is_taken()):
                    asked[order.subject] = None
        return list(asked)

    def prepare(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, spent: Mapping[str, Spending | None]
    ) -> list[Prepared | DeviceRefusal]:
        """Decide on orders, draw what must be drawn, and write it all down before anything is sent.

        Args:
            study: The study's description.
            orders: What is to be contributed.
            purpose: Whether a live contribution is to be replaced.
            spent: What the service says of subjects in this study.

        Returns:
            One decision an order.

        Raises:
            StudyChanged: the description is not the one seen before.
        """
        decisions: list[Prepared | DeviceRefusal] = []
        with self.ledger.transaction() as transaction:
            _check_terms(transaction, study)
            histories = transaction.history(study.slug, [order.subject for order in orders])
            for order in orders:
                case = Case(transaction, study.slug, order, histories[order.subject], purpose)
                try:
                    prepared = self._prepare(case, spent.get(order.subject))
                except DeviceRefusal as refusal:
                    decisions.append(refusal)
                else:
                    decisions.append(prepared)
                    histories[order.subject] = [*prepared.older, prepared.entry]
        return decisions

    def _prepare(self, case: Case, said: Spending | None) -> Prepared:
        order, again = case.order, case.again()
        if again is not None:
            counted = max(again.counted, order.epsilon or 0)  # a withdrawn value counts in full again
            case.check_limit(self.max_epsilon, counted)
            if again.state != "accepted":
                case.transaction.update([("pending", counted, again.id)])
            older = tuple(entry for entry in case.history if entry is not again)
            return Prepared(order=order, entry=again, counted=counted, new=False, older=older)
        if case.is_taken():
            raise AlreadyContributed("another contribution of this subject is live; use replace")
        if case.purpose == "contribute" and said is not None and said.live:
            raise AlreadyContributed("a contribution from another device is live; use replace")
        server_spent = None if said is None else said.spent
        noise_epsilon, counted = case.price(server_spent)
        case.check_limit(self.max_epsilon, None if order.trust == "public" else counted)
        entry = case.transaction.add(
            study=case.study,
            subject=order.subject,
            trust=order.trust,
            epsilon=order.epsilon,
            noise_epsilon=noise_epsilon,
            counted=counted,
            digest=case.digest,
            report=_report(order, noise_epsilon, case.taken_for(server_spent)),
        )
        return Prepared(order=order, entry=entry, counted=counted, new=True, older=tuple(case.history))

    def accept(self, prepared: Sequence[Prepared]) -> None:
        """Write down that the service took contributions; each supersedes its subject's older ones."""
        changes: list[Change] = []
        for item in prepared:
            if item.entry.state != "accepted":
                changes.append(("accepted", item.counted, item.entry.id))
            for older in item.older:
                state: EntryState = "replaced" if older.live else older.state
                # The new epsilon bounds what the service may have used of an older central value.
                counted = 0 if older.trust == "central" else older.counted
                if (state, counted) != (older.state, older.counted):
                    changes.append((state, counted, older.id))
        self._apply(changes)

    def refuse(self, refusals: Sequence[tuple[Prepared, str]]) -> None:
        """Write down that the service refused contributions, with its codes.

        What an earlier call sent, and got no answer to, stays pending unless the code settles it.
        """
        changes: list[Change] = []
        for item, code in refusals:
            before = item.entry
            if item.new or (before.state == "pending" and code in _SURELY_NOT_HELD):
                changes.append(_lost(before))
            else:
                changes.append((before.state, before.counted, before.id))
        self._apply(changes)

    def absent(self, study: str, subject: str) -> None:
        """Write down that the service holds nothing of a subject in a study."""
        with self.ledger.transaction(durable=False) as transaction:
            transaction.update(
                [
                    _lost(entry) if entry.state == "pending" else ("withdrawn", entry.counted, entry.id)
                    for entry in transaction.history(study, [subject])[subject]
                    if entry.live
                ]
            )

    def withdraw(self, study: str, subject: str) -> bool:
        """Write down a withdrawal; return whether less than is counted may have been spent."""
        with self.ledger.transaction(durable=False) as transaction:
            history = transaction.history(study, [subject])[subject]
            transaction.update([("withdrawn", entry.counted, entry.id) for entry in history if entry.live])
        return any(entry.trust == "central" and entry.counted for entry in history)

    def settle(self, study: str, subject: str, spent: int) -> None:
        """Count no more than was spent of withdrawn central values. Local reports stay what they are."""
        with self.ledger.transaction(durable=False) as transaction:
            history = transaction.history(study, [subject])[subject]
            most = spent + unseen_epsilon(history)
            transaction.update(
                [
                    (entry.state, min(entry.counted, most), entry.id)
                    for entry in history
                    if entry.trust == "central" and entry.state == "withdrawn"
                ]
            )

    def _apply(self, changes: Sequence[Change]) -> None:
        if changes:
            with self.ledger.transaction(durable=False) as transaction:
                transaction.update(changes)


def unseen_epsilon(history: Sequence[Entry]) -> int:
    """What refused local reports gave away: the service has seen them, but does not count them."""
    return sum(entry.noise_epsilon or 0 for entry in history if entry.state == "refused")


def _check_terms(transaction: Transaction, study: Study) -> None:
    now = study_terms(study)
    before = transaction.pin(study.slug, now)
    if now != before:
        old, new = json.loads(before), json.loads(now)
        raise StudyChanged([name for name in {**old, **new} if old.get(name) != new.get(name)])


def _lost(entry: Entry) -> Change:
    """The change for what the service surely does not hold: it has not used a value, but seen a report."""
    return ("refused", entry.counted if entry.trust == "local" else 0, entry.id)


def _report(order: Order, epsilon: int | None, taken_for: int) -> int | str | None:
    """A report that the service takes: one that lies outside its range moves to the edge.

    In a study of measures those of some of them, by their names, as JSON: their ranges belong to the whole
    epsilon, so they lie in them. One inside a reporting range is JSON, too, with what it states.

    Of a report that is drawn with all that the service counts that happens with a probability below 2^-91,
    with the part r of it below 2 exp(-64 r). The report is private before it moves, and stays so.
    """
    if epsilon is None or not order.randomizers:
        return None
    if isinstance(order.position, tuple):
        if not isinstance(order.value, dict):
            return None
        names = list(order.value)
        drawn = reports(order.randomizers, order.position, order.worth(epsilon))
        return json.dumps({names[place]: report for place, report in drawn.items()})
    (randomizer,) = order.randomizers
    inside, point = order.inside, order.position
    if inside is not None:
        point = inside_range(point, inside.start, inside.zoom)
    report = randomizer.report(point, order.worth(epsilon))
    if abs(report) > REPORT_LIMIT:
        raise LedgerError("the noise is too large to be true; nothing was sent")
    report = randomizer.range(order.worth(taken_for)).nearest(report)
    if inside is None:
        return report
    return json.dumps({"report": report, "reporting_range": f"{inside.start}/{inside.zoom}"})
