"""What this device gave away: a small database in the client's directory.

- An entry is on the disk (fsync) before its report is sent, so a crash never leads to a second draw.
- Decisions are made inside `BEGIN IMMEDIATE`, so two processes on one directory see each other's.
- Values are not stored. To recognize the same value again, an entry holds its HMAC under a key that lies
  beside the database (mode 0600).
"""

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dither._documents import Trust
from dither._errors import LedgerError
from dither._models import DeviceLedger, EntryState, LedgerEntry
from dither._session_ledger import SCHEMA as SESSION_SCHEMA
from dither._session_ledger import SessionRows
from dither.device.numbers import epsilon_decimal

SCHEMA_VERSION = 2
DATABASE = "ledger.sqlite3"
KEY = "device.key"
BUSY_SECONDS = 30.0
"""How long one process waits for another one's transaction."""

_SCHEMA = (
    "CREATE TABLE device (key_fingerprint TEXT NOT NULL)",
    "CREATE TABLE study (slug TEXT PRIMARY KEY, terms TEXT NOT NULL, seen_at TEXT NOT NULL)",
    """CREATE TABLE entry (
        id INTEGER PRIMARY KEY,
        made_at TEXT NOT NULL,
        study TEXT NOT NULL,
        subject TEXT NOT NULL,
        trust TEXT NOT NULL CHECK (trust IN ('central', 'local', 'public')),
        epsilon INTEGER CHECK ((epsilon IS NULL) = (trust = 'public')),
        noise_epsilon INTEGER CHECK ((noise_epsilon IS NULL) = (trust <> 'local')),
        counted INTEGER NOT NULL CHECK (counted >= 0),
        digest BLOB NOT NULL,
        report INTEGER CHECK ((report IS NULL) = (trust <> 'local')),
        state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'refused', 'replaced', 'withdrawn'))
    )""",
    "CREATE INDEX entry_by_subject ON entry (subject, study)",
)
_ADDED = {1: _SCHEMA, 2: SESSION_SCHEMA}
"""What each version of the schema added."""

_COLUMNS = "id, made_at, study, subject, trust, epsilon, noise_epsilon, counted, digest, report, state"


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: epsilons in micro-epsilon, None where they make no sense.

    `counted` is what the entry brings the total of its subject in its study up to: its whole epsilon,
    until it is known to be less. Of several measures, and inside a reporting range, `report` is JSON.
    """

    id: int
    made_at: str
    study: str
    subject: str
    trust: Trust
    epsilon: int | None
    noise_epsilon: int | None
    counted: int
    digest: bytes
    report: int | str | None
    state: EntryState

    @property
    def live(self) -> bool:
        """Whether the service holds it, or may."""
        return self.state in ("pending", "accepted")


class Transaction:
    """Statements inside one transaction.

    Attributes:
        sessions: Those about sessions.
    """

    def __init__(self, connection: sqlite3.Connection, key: bytes) -> None:
        self._connection = connection
        self._key = key
        self._now = datetime.now(UTC).isoformat(timespec="seconds")
        self.sessions = SessionRows(connection, key, self._now)

    def digest(
        self,
        study: str,
        subject: str,
        position: int | tuple[int, ...],
        attributes: Sequence[tuple[str, str]] = (),
    ) -> bytes:
        """What stands for a value, with its labels where the study has any."""
        labels = [attributes] if attributes else []
        text = json.dumps(["dither/value/1", study, subject, position, *labels]).encode()
        return hmac.digest(self._key, text, "sha256")

    def pin(self, slug: str, terms: str) -> str:
        """The terms that this device saw first for a study; these, where it sees it for the first time."""
        self._connection.execute(
            "INSERT INTO study VALUES (?, ?, ?) ON CONFLICT (slug) DO NOTHING", (slug, terms, self._now)
        )
        row = self._connection.execute("SELECT terms FROM study WHERE slug = ?", (slug,)).fetchone()
        return str(row[0])

    def history(self, study: str, subjects: Sequence[str]) -> dict[str, list[Entry]]:
        """Entries of subjects in a study, oldest first."""
        found: dict[str, list[Entry]] = {subject: [] for subject in subjects}
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM entry"  # noqa: S608 - constants
            " WHERE study = ? AND subject IN (SELECT value FROM json_each(?)) ORDER BY id",
            (study, json.dumps(list(found))),
        )
        for row in rows:
            entry = Entry(*row)
            found[entry.subject].append(entry)
        return found

    def given_elsewhere(self, study: str, subject: str) -> int:
        """What the subject gave away in all other studies, and in sessions [micro-epsilon]."""
        return self.contributed(subject, but=study) + self.sessions.counted(subject)

    def contributed(self, subject: str, *, but: str | None = None) -> int:
        """What the subject's contributions to all studies, but one, count together [micro-epsilon]."""
        row = self._connection.execute(
            "SELECT coalesce(sum(most), 0) FROM (SELECT max(counted) AS most FROM entry"
            " WHERE subject = ? AND study IS NOT ? GROUP BY study)",
            (subject, but),
        ).fetchone()
        return int(row[0])

    def add(
        self,
        *,
        study: str,
        subject: str,
        trust: Trust,
        epsilon: int | None,
        noise_epsilon: int | None,
        counted: int,
        digest: bytes,
        report: int | str | None,
    ) -> Entry:
        """Write down a new entry, pending."""
        row = (self._now, study, subject, trust, epsilon, noise_epsilon, counted, digest, report)
        cursor = self._connection.execute(
            "INSERT INTO entry VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')", row
        )
        return Entry(cursor.lastrowid or 0, *row, "pending")

    def update(self, changes: Sequence[tuple[EntryState, int, int]]) -> None:
        """Set state and counted of entries: (state, counted, id)."""
        self._connection.executemany("UPDATE entry SET state = ?, counted = ? WHERE id = ?", changes)

    def entries(self, subject: str | None) -> list[Entry]:
        """All entries, or a subject's, oldest first."""
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM entry WHERE ?1 IS NULL OR subject = ?1 ORDER BY id",  # noqa: S608 - constants
            (subject,),
        )
        return [Entry(*row) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a task returned, or raised."""

    result: object = None
    fault: Exception | None = None


def _attempt(task: Callable[[], object]) -> Outcome:
    try:
        return Outcome(result=task())
    except Exception as fault:
        return Outcome(fault=fault)


class Ledger:
    """The ledger of one directory. Safe to use from several threads and several processes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._key = b""
        self._relaxed = "FULL"
        self._grouping = False

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Transaction]:
        """A transaction that is on the disk when the block ends. An exception rolls it back.

        Args:
            durable: False where losing it in a power failure does no harm; it survives a crash anyhow.

        Raises:
            LedgerError: the ledger cannot be read or written.
        """
        with self._lock, self._faults():
            connection = self._connected()
            if self._grouping:
                begin, commit, rollback = "SAVEPOINT one", "RELEASE one", "ROLLBACK TO one"
            else:
                begin, commit, rollback = "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"
                connection.execute(f"PRAGMA synchronous = {'FULL' if durable else self._relaxed}")
            connection.execute(begin)
            try:
                yield Transaction(connection, self._key)
                connection.execute(commit)
            except BaseException:
                if connection.in_transaction:
                    connection.execute(rollback)
                raise

    def run(self, tasks: Sequence[Callable[[], object]]) -> list[Outcome]:
        """Do pieces of work whose transactions reach the disk together: one fsync for all of them.

        Each stands and falls by itself, unless the ledger cannot be written: then all have failed.

        Returns:
            One outcome a task, in their order.
        """
        outcomes: list[Outcome] = []
        try:
            with self._lock, self._faults():
                connection = self._connected()
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("BEGIN IMMEDIATE")
                self._grouping = True
                try:
                    for task in tasks:
                        outcomes.append(_attempt(task))
                        if not connection.in_transaction:
                            raise sqlite3.OperationalError("the transaction was rolled back")
                    connection.execute("COMMIT")
                finally:
                    self._grouping = False
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except LedgerError as fault:
            return [Outcome(fault=fault)] * len(tasks)
        return outcomes

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as fault:
            raise LedgerError(f"the ledger in {self._directory} cannot be used: {fault}") from fault

    def read(self, subject: str | None = None) -> DeviceLedger:
        """Everything that was given away."""
        with self.transaction(durable=False) as transaction:
            entries, sessions = transaction.entries(subject), transaction.sessions.entries(subject)
        most: dict[str, dict[str, int]] = {}
        for entry in entries:
            studies = most.setdefault(entry.subject, {})
            studies[entry.study] = max(studies.get(entry.study, 0), entry.counted)
        counted = {name: sum(studies.values()) for name, studies in most.items()}
        for session, micro in sessions:
            counted[session.subject] = counted.get(session.subject, 0) + micro
        return DeviceLedger(
            entries=tuple(map(_public, entries)),
            sessions=tuple(session for session, _ in sessions),
            totals={name: epsilon_decimal(micro) for name, micro in counted.items()},
        )

    def close(self) -> None:
        """Close the database; the next transaction opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / DATABASE
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # With a write-ahead log a relaxed commit cannot damage the database; without one it could.
            self._relaxed = "NORMAL" if _use_write_ahead_log(connection) else "FULL"
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            self._key = self._prepare(connection)
            connection.execute("COMMIT")
            _sync_directory(self._directory)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> bytes:
        """Create the tables where there are none, and return the device's key."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise LedgerError(f"the ledger in {self._directory} was written by a newer version of this SDK")
        for added in range(version + 1, SCHEMA_VERSION + 1):
            for statement in _ADDED[added]:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        if version == 0:
            key = secrets.token_bytes(32)
            self._keep_key(key)
            connection.execute("INSERT INTO device VALUES (?)", (_fingerprint(key),))
            return key
        key = self._read_key()
        if connection.execute("SELECT key_fingerprint FROM device").fetchone() != (_fingerprint(key),):
            path = self._directory / KEY
            raise LedgerError(f"{path} is missing, or is not the key that the ledger beside it was made with")
        return key

    def _read_key(self) -> bytes:
        path = self._directory / KEY
        return path.read_bytes() if path.exists() else b""

    def _keep_key(self, key: bytes) -> None:
        """Bring a new key to the disk. No other process is here: the database is locked."""
        handle, name = tempfile.mkstemp(dir=self._directory, prefix=f".{KEY}.")  # mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, self._directory / KEY)
        _sync_directory(self._directory)


def _use_write_ahead_log(connection: sqlite3.Connection) -> bool:
    """Switch the journal mode, where the file system can; unlike a transaction this does not wait."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            return bool(mode == "wal")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _sync_directory(directory: Path) -> None:
    """Make new files in a directory survive a power failure. Only POSIX can."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(b"dither/key/1" + key).hexdigest()


def _public(entry: Entry) -> LedgerEntry:
    return LedgerEntry(
        study=entry.study,
        subject=entry.subject,
        trust=entry.trust,
        epsilon=None if entry.epsilon is None else epsilon_decimal(entry.epsilon),
        noise_epsilon=None if entry.noise_epsilon is None else epsilon_decimal(entry.noise_epsilon),
        counted=epsilon_decimal(entry.counted),
        state=entry.state,
        made_at=datetime.fromisoformat(entry.made_at),
    )
