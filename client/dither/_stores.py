"""Ledgers in a store that the application gives, one for each person: for a backend without a disk.

A ledger is the same small database as in a directory, packed into bytes together with its key. A decision
reads them, and holds only if they are still the same when it is written down; if not, it is made again.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from dither._device import Device, Prepared, Purpose, Spending
from dither._documents import Study
from dither._errors import DeviceRefusal, DirectoryRequired, InvalidRequest, LedgerError
from dither._ledger import Entry, Ledger, Transaction
from dither._models import DeviceLedger
from dither._orders import Order
from dither._sessions import Terms

T = TypeVar("T")

KEY_BYTES = 32
ATTEMPTS = 20
"""How often a decision is made again because another process decided about the same person."""


class Store(Protocol):
    """Where an application keeps what was given away for each person.

    Raise whatever your driver raises: nothing is sent then. The methods are called in any thread.
    """

    def load(self, subject: str) -> bytes | None:
        """What was saved last for this subject; None if nothing was."""

    def save(self, subject: str, before: bytes | None, after: bytes) -> bool:
        """Put `after` in the place of `before`, durably and in one step, or do nothing.

        Returns:
            Whether it was done: False where something else than `before` is stored.
        """


class _Overtaken(Exception):
    """Another process wrote the ledger in between."""


class PersonLedger(Ledger):
    """The ledger of one person, in a store."""

    def __init__(self, store: Store, subject: str) -> None:
        super().__init__(Path("the store"))
        self._store = store
        self._subject = subject

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        """A transaction that is in the store when the block ends. An exception leaves the store as it is."""
        before = self._of_store(lambda: self._store.load(self._subject))
        with self._faults(), closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            if before is not None:
                self._key = before[:KEY_BYTES]
                try:
                    connection.deserialize(zlib.decompress(before[KEY_BYTES:]))
                except zlib.error as fault:
                    raise LedgerError("what the store holds is no ledger") from fault
            connection.execute("BEGIN IMMEDIATE")
            self._key = self._prepare(connection)
            unchanged = connection.total_changes
            yield Transaction(connection, self._key)
            connection.execute("COMMIT")
            if connection.total_changes == unchanged:
                return
            after = self._key + zlib.compress(connection.serialize())
        if not self._of_store(lambda: self._store.save(self._subject, before, after)):
            raise _Overtaken

    def _of_store(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as fault:
            raise LedgerError(f"the store failed: {type(fault).__name__}: {fault}") from fault

    def _read_key(self) -> bytes:
        return self._key

    def _keep_key(self, key: bytes) -> None:
        self._key = key


class StoreDevice:
    """The decisions of a device about many people, each on a ledger of their own in a store."""

    def __init__(self, store: Store, max_epsilon: int | None) -> None:
        self._store = store
        self._max_epsilon = max_epsilon

    def decide(self, subject: str, decision: Callable[[Device], T]) -> T:
        """What a decision about a person returns, once it is in the store."""
        for _ in range(ATTEMPTS):
            try:
                return decision(Device(PersonLedger(self._store, subject), self._max_epsilon))
            except _Overtaken:
                continue
        raise LedgerError("another process changes this ledger faster than it can be written")

    def see(self, study: Study) -> None:
        """Nothing: terms are remembered by person, with their first contribution."""

    def see_session(self, terms: Terms) -> None:
        """Nothing: a session's description is remembered by person, when they enrol."""

    def read(self, subject: str | None) -> DeviceLedger:
        """What was given away for one subject."""
        if subject is None:
            raise InvalidRequest("subject", "is needed: a store keeps a ledger for each person")
        return self.decide(subject, lambda device: device.read(subject))

    def to_ask(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, check_spent: bool
    ) -> list[str]:
        """See `Device.to_ask`."""
        asked: list[str] = []
        for subject, places in _by_subject(order.subject for order in orders).items():
            own = [orders[place] for place in places]
            ask = partial(Device.to_ask, study=study, orders=own, purpose=purpose, check_spent=check_spent)
            asked += self.decide(subject, ask)
        return asked

    def prepare(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, spent: Mapping[str, Spending | None]
    ) -> list[Prepared | DeviceRefusal]:
        """See `Device.prepare`: every person's decisions are in the store before the next person's."""
        decisions: dict[int, Prepared | DeviceRefusal] = {}
        for subject, places in _by_subject(order.subject for order in orders).items():
            own = [orders[place] for place in places]
            prepare = partial(Device.prepare, study=study, orders=own, purpose=purpose, spent=spent)
            made = self.decide(subject, prepare)
            decisions.update(zip(places, made, strict=True))
        return [decisions[place] for place in range(len(orders))]

    def accept(self, prepared: Sequence[Prepared]) -> None:
        """See `Device.accept`."""
        for item in prepared:
            self.decide(item.order.subject, partial(Device.accept, prepared=[item]))

    def refuse(self, refusals: Sequence[tuple[Prepared, str]]) -> None:
        """See `Device.refuse`."""
        for item, code in refusals:
            self.decide(item.order.subject, partial(Device.refuse, refusals=[(item, code)]))


class NoLedger:
    """A client that remembers nothing: it sends central and public values, which need no memory."""

    def decide(self, subject: str, decision: Callable[[Device], T]) -> None:
        """Nothing was remembered, so there is nothing to decide."""

    def see(self, study: Study) -> None:
        """Nothing is remembered."""

    def read(self, subject: str | None) -> DeviceLedger:
        """Nothing was remembered."""
        raise DirectoryRequired("to keep a ledger, make the client with a directory or a store")

    def to_ask(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, check_spent: bool
    ) -> list[str]:
        """No one: no report is drawn."""
        return []

    def prepare(
        self, study: Study, orders: Sequence[Order], *, purpose: Purpose, spent: Mapping[str, Spending | None]
    ) -> list[Prepared | DeviceRefusal]:
        """What is sent as it is; local contributions are refused."""
        return [
            DirectoryRequired("to contribute a local report, make the client with a directory or a store")
            if order.trust == "local"
            else Prepared(order=order, entry=_unkept(study, order), counted=0, new=True, older=())
            for order in orders
        ]

    def accept(self, prepared: Sequence[Prepared]) -> None:
        """Nothing is remembered."""

    def refuse(self, refusals: Sequence[tuple[Prepared, str]]) -> None:
        """Nothing is remembered."""


Remembering = Device | StoreDevice
AnyDevice = Remembering | NoLedger


def _by_subject(subjects: Iterable[str]) -> dict[str, list[int]]:
    """Places of each subject, in their order."""
    places: dict[str, list[int]] = {}
    for place, subject in enumerate(subjects):
        places.setdefault(subject, []).append(place)
    return places


def _unkept(study: Study, order: Order) -> Entry:
    return Entry(
        id=0,
        made_at="",
        study=study.slug,
        subject=order.subject,
        trust=order.trust,
        epsilon=order.epsilon,
        noise_epsilon=None,
        counted=0,
        digest=b"",
        report=None,
        state="pending",
    )
