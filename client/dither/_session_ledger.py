"""The part of the device's ledger that remembers sessions: who takes part, what was asked, what was drawn."""

import hmac
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from dither._models import EnrolmentState, SessionEntry
from dither.device.numbers import epsilon_decimal

AnswerState = Literal["pending", "accepted", "late", "refused"]

SCHEMA = (
    "CREATE TABLE session (id TEXT PRIMARY KEY, terms TEXT NOT NULL, seen_at TEXT NOT NULL)",
    """CREATE TABLE question (
        session TEXT NOT NULL,
        round INTEGER NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (session, round)
    ) WITHOUT ROWID""",
    """CREATE TABLE enrolment (
        id INTEGER PRIMARY KEY,
        made_at TEXT NOT NULL,
        session TEXT NOT NULL,
        study TEXT NOT NULL,
        subject TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (epsilon > 0),
        counted INTEGER NOT NULL CHECK (counted BETWEEN 0 AND epsilon),
        digest BLOB NOT NULL,
        report TEXT,
        report_epsilon INTEGER CHECK ((report IS NULL) = (report_epsilon IS NULL)),
        state TEXT NOT NULL CHECK (state IN ('open', 'finished', 'refused')),
        UNIQUE (subject, session)
    )""",
    """CREATE TABLE answer (
        enrolment INTEGER NOT NULL REFERENCES enrolment,
        round INTEGER NOT NULL,
        answer INTEGER NOT NULL,
        epsilon INTEGER NOT NULL CHECK (epsilon > 0),
        state TEXT NOT NULL CHECK (state IN ('pending', 'accepted', 'late', 'refused')),
        PRIMARY KEY (enrolment, round)
    ) WITHOUT ROWID""",
)
_COLUMNS = "id, made_at, session, study, subject, epsilon, counted, digest, report, report_epsilon, state"


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A person who takes part in a session; epsilons in micro-epsilon.

    `counted` is the whole price of the session until nothing more will be drawn.
    """

    id: int
    made_at: str
    session: str
    study: str
    subject: str
    epsilon: int
    counted: int
    digest: bytes
    report: str | None
    report_epsilon: int | None
    state: EnrolmentState

    @property
    def report_points(self) -> tuple[int, ...] | None:
        """The one noisy report, where one was drawn."""
        return None if self.report is None else tuple(int(part) for part in json.loads(self.report))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was drawn, and what became of it; epsilon in micro-epsilon."""

    round: int
    answer: int
    epsilon: int
    state: AnswerState


class SessionRows:
    """Statements about sessions inside one transaction."""

    def __init__(self, connection: sqlite3.Connection, key: bytes, now: str) -> None:
        self._connection = connection
        self._key = key
        self._now = now

    def digest(self, session: str, subject: str, points: Sequence[int]) -> bytes:
        """What stands for a value."""
        text = json.dumps(["dither/session/1", session, subject, *points]).encode()
        return hmac.digest(self._key, text, "sha256")

    def pin(self, session: str, terms: str) -> str:
        """The terms that this device saw first; these, where it sees the session for the first time."""
        row = self._connection.execute("SELECT terms FROM session WHERE id = ?", (session,)).fetchone()
        if row is None:
            self._connection.execute("INSERT INTO session VALUES (?, ?, ?)", (session, terms, self._now))
            return terms
        return str(row[0])

    def pin_question(self, session: str, number: int, text: str) -> str:
        """The question of a round that this device saw first; this one, where it is the first."""
        key = (session, number)
        row = self._connection.execute(
            "SELECT text FROM question WHERE session = ? AND round = ?", key
        ).fetchone()
        if row is None:
            self._connection.execute("INSERT INTO question VALUES (?, ?, ?)", (*key, text))
            return text
        return str(row[0])

    def enrolment(self, session: str, subject: str) -> Enrolment | None:
        """A person's part in a session."""
        row = self._connection.execute(
            f"SELECT {_COLUMNS} FROM enrolment WHERE subject = ? AND session = ?",  # noqa: S608 - constants
            (subject, session),
        ).fetchone()
        return None if row is None else Enrolment(*row)

    def enrol(self, session: str, study: str, subject: str, epsilon: int, digest: bytes) -> None:
        """Write down that a person takes part; the whole price counts."""
        row = (self._now, session, study, subject, epsilon, epsilon, digest)
        self._connection.execute(
            "INSERT INTO enrolment VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, 'open')", row
        )

    def set_state(self, enrolment: int, state: EnrolmentState, counted: int) -> None:
        """Set state and counted [micro-epsilon] of an enrolment."""
        self._connection.execute(
            "UPDATE enrolment SET state = ?, counted = ? WHERE id = ?", (state, counted, enrolment)
        )

    def add_report(self, enrolment: int, report: Sequence[int], epsilon: int) -> None:
        """Write down the one report of an enrolment."""
        self._connection.execute(
            "UPDATE enrolment SET report = ?, report_epsilon = ? WHERE id = ? AND report IS NULL",
            (json.dumps(list(report)), epsilon, enrolment),
        )

    def answers(self, enrolment: int) -> list[Answer]:
        """What was drawn, by round."""
        rows = self._connection.execute(
            "SELECT round, answer, epsilon, state FROM answer WHERE enrolment = ? ORDER BY round",
            (enrolment,),
        )
        return [Answer(*row) for row in rows]

    def add_answer(self, enrolment: int, number: int, answer: int, epsilon: int) -> Answer:
        """Write down a new answer, pending."""
        self._connection.execute(
            "INSERT INTO answer VALUES (?, ?, ?, ?, 'pending')", (enrolment, number, answer, epsilon)
        )
        return Answer(number, answer, epsilon, "pending")

    def set_answer(self, enrolment: int, number: int, state: AnswerState) -> None:
        """Set what became of an answer."""
        self._connection.execute(
            "UPDATE answer SET state = ? WHERE enrolment = ? AND round = ?", (state, enrolment, number)
        )

    def counted(self, subject: str, *, but: str | None = None) -> int:
        """What all sessions of a subject, but one, count together [micro-epsilon]."""
        row = self._connection.execute(
            "SELECT coalesce(sum(counted), 0) FROM enrolment WHERE subject = ? AND session IS NOT ?",
            (subject, but),
        ).fetchone()
        return int(row[0])

    def entries(self, subject: str | None) -> list[tuple[SessionEntry, int]]:
        """All enrolments, or a subject's, oldest first, with what each counts [micro-epsilon]."""
        rows = self._connection.execute(
            f"SELECT {', '.join('e.' + name for name in _COLUMNS.split(', '))},"  # noqa: S608 - constants
            " count(a.round), coalesce(sum(a.epsilon), 0)"
            " FROM enrolment e LEFT JOIN answer a ON a.enrolment = e.id"
            " WHERE ?1 IS NULL OR e.subject = ?1 GROUP BY e.id ORDER BY e.id",
            (subject,),
        )
        return [(_public(Enrolment(*row[:-2]), row[-2], row[-1]), row[6]) for row in rows]


def _public(enrolment: Enrolment, answers: int, epsilons: int) -> SessionEntry:
    return SessionEntry(
        session=enrolment.session,
        study=enrolment.study,
        subject=enrolment.subject,
        epsilon=epsilon_decimal(enrolment.epsilon),
        given=epsilon_decimal(epsilons + (enrolment.report_epsilon or 0)),
        counted=epsilon_decimal(enrolment.counted),
        answers=answers,
        state=enrolment.state,
        made_at=datetime.fromisoformat(enrolment.made_at),
    )
