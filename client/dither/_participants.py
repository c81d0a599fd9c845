"""What the device decides in sessions: who takes part, which answer is drawn, and what it counts.

The whole price of a session counts from the moment of enrolment. Every answer, and the one report of a kmeans
session, is drawn once and written down before it is sent; it counts as given whatever becomes of it, because
it has been seen. Once nothing more will be drawn, only what was given counts.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dither._errors import AlreadyContributed, LedgerError, MaxEpsilonExceeded, SessionChanged, SessionUnsound
from dither._ledger import Ledger, Transaction
from dither._session_ledger import Answer, AnswerState, Enrolment
from dither._sessions import Person, Question, Terms, check_pinned, true_category
from dither.device.exact import RandomBits, discrete_laplace
from dither.device.numbers import GRID_SIZE, MICRO, REPORT_LIMIT, epsilon_decimal
from dither.device.response import respond


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is written down of a person in a session.

    Attributes:
        answers: Everything drawn, by round.
        report: kmeans: the one report, where it was drawn.
        given: What that costs [micro-epsilon].
        over: Whether nothing more will be drawn.
    """

    answers: tuple[Answer, ...]
    report: tuple[int, ...] | None
    given: int
    over: bool

    def to(self, number: int) -> Answer | None:
        """The answer to a round."""
        return next((answer for answer in self.answers if answer.round == number), None)

    @property
    def enrolled(self) -> bool:
        """Whether the service took an answer."""
        return any(answer.state == "accepted" for answer in self.answers)


NOTHING = Standing(answers=(), report=None, given=0, over=False)


class Participants:
    """The decisions of one device about sessions, on its ledger."""

    def __init__(self, ledger: Ledger, max_epsilon: int | None) -> None:
        self._ledger = ledger
        self._max_epsilon = max_epsilon

    def see(self, terms: Terms) -> None:
        """Remember a session's description, where it is new.

        Raises:
            SessionChanged: it is not the one seen before.
        """
        with self._ledger.transaction() as transaction:
            check_pinned(transaction.sessions.pin(terms.session, terms.pinned), terms.pinned)

    def standing(self, person: Person) -> Standing:
        """What is written down of a person, who need not take part.

        Raises:
            AlreadyContributed: with another value.
        """
        with self._ledger.transaction(durable=False) as transaction:
            enrolment = _enrolment(transaction, person)
            return NOTHING if enrolment is None else _standing(transaction, enrolment)

    def enrol(self, person: Person) -> Standing:
        """Count the whole price of the session, where the person may give as much.

        Raises:
            SessionChanged: its description is not the one seen before.
            AlreadyContributed: the person takes part with another value.
            MaxEpsilonExceeded: the person's own limit.
        """
        terms = person.terms
        with self._ledger.transaction(durable=False) as transaction:
            rows = transaction.sessions
            check_pinned(rows.pin(terms.session, terms.pinned), terms.pinned)
            enrolment = _enrolment(transaction, person)
            if enrolment is not None and enrolment.state == "finished":
                return _standing(transaction, enrolment)
            self._check_limit(transaction, person, enrolment)
            if enrolment is None:
                digest = rows.digest(terms.session, person.subject, person.points)
                rows.enrol(terms.session, terms.study, person.subject, terms.total, digest)
                return NOTHING
            if enrolment.state == "refused":
                rows.set_state(enrolment.id, "open", enrolment.epsilon)
            return _standing(transaction, enrolment, over=False)

    def _check_limit(self, transaction: Transaction, person: Person, enrolment: Enrolment | None) -> None:
        if self._max_epsilon is None or (enrolment is not None and enrolment.counted == enrolment.epsilon):
            return
        subject, session = person.subject, person.terms.session
        given = transaction.contributed(subject) + transaction.sessions.counted(subject, but=session)
        if given + person.terms.total > self._max_epsilon:
            raise MaxEpsilonExceeded(limit=epsilon_decimal(self._max_epsilon), given=epsilon_decimal(given))

    def answer(self, person: Person, question: Question) -> Standing:
        """The answer to a round, drawn and on the disk, or remembered.

        Privacy: epsilon-differentially private for its owner against every person, with the epsilon of an
            answer; the first one of a kmeans session with that of the report on top.

        Raises:
            SessionChanged: the round was asked before, with another question.
            SessionUnsound: the person was asked as often as the session said already.
        """
        terms = person.terms
        with self._ledger.transaction() as transaction:
            rows = transaction.sessions
            if rows.pin_question(terms.session, question.round, question.text) != question.text:
                raise SessionChanged(["threshold" if question.threshold is not None else "centres"])
            enrolment = _enrolment(transaction, person)
            if enrolment is None:
                raise LedgerError("the enrolment is gone from the ledger")
            before = _standing(transaction, enrolment)
            if before.over or before.to(question.round) is not None:
                return before
            if len(before.answers) >= terms.answers:
                raise SessionUnsound("the session asks more often than it said")
            report, given = before.report, before.given + terms.epsilon
            if terms.report is not None and report is None:
                report, given = make_report(person.points, terms.report), given + terms.report
                rows.add_report(enrolment.id, report, terms.report)
            if given > enrolment.epsilon:
                raise SessionUnsound("the session asks for more than it said")
            drawn = respond(true_category(person, question), terms.categories, terms.epsilon)
            answer = rows.add_answer(enrolment.id, question.round, drawn, terms.epsilon)
            return Standing(answers=(*before.answers, answer), report=report, given=given, over=False)

    def settle(self, person: Person, number: int, state: AnswerState, *, last: bool) -> Standing:
        """Write down what became of an answer, and with the last one that nothing more will be drawn."""
        with self._ledger.transaction(durable=False) as transaction:
            enrolment = _enrolment(transaction, person)
            if enrolment is None:
                raise LedgerError("the enrolment is gone from the ledger")
            rows = transaction.sessions
            rows.set_answer(enrolment.id, number, state)
            standing = _standing(transaction, enrolment, over=last or enrolment.state == "finished")
            if last:
                rows.set_state(enrolment.id, "finished", standing.given)
            return standing

    def refuse(self, person: Person, number: int) -> None:
        """Write down that the service refused an answer: what was not given is free until the next try."""
        with self._ledger.transaction(durable=False) as transaction:
            enrolment = _enrolment(transaction, person)
            if enrolment is not None and enrolment.state == "open":
                rows = transaction.sessions
                rows.set_answer(enrolment.id, number, "refused")
                standing = _standing(transaction, enrolment)
                if not standing.enrolled:
                    rows.set_state(enrolment.id, "refused", standing.given)

    def finish(self, person: Person) -> Standing:
        """Write down that nothing more will be drawn; what was not given is free again."""
        with self._ledger.transaction(durable=False) as transaction:
            enrolment = _enrolment(transaction, person)
            if enrolment is None:
                return NOTHING
            standing = _standing(transaction, enrolment, over=True)
            if enrolment.state != "finished":
                transaction.sessions.set_state(enrolment.id, "finished", standing.given)
            return standing


def make_report(points: Sequence[int], epsilon: int, bits: RandomBits = secrets.randbits) -> tuple[int, ...]:
    """The report for the grid points of a vector: discrete Laplace noise on every coordinate.

    Two vectors of d coordinates lie at most d 2**30 apart in L1 norm, so with noise of scale
    d 2**30 / epsilon the report is epsilon-differentially private for its owner against every person.

    Args:
        points: Grid points in [0, 2**30].
        epsilon: What the report costs its owner, above 0 [micro-epsilon].
        bits: Source of random bits.
    """
    scale = len(points) * GRID_SIZE * MICRO
    report = tuple(point + discrete_laplace(scale, epsilon, bits) for point in points)
    if any(abs(part) > REPORT_LIMIT for part in report):
        raise LedgerError("the noise is too large to be true; nothing was sent")
    return report


def _enrolment(transaction: Transaction, person: Person) -> Enrolment | None:
    """A person's enrolment, which stands for one value."""
    rows, session = transaction.sessions, person.terms.session
    enrolment = rows.enrolment(session, person.subject)
    if enrolment is not None and enrolment.digest != rows.digest(session, person.subject, person.points):
        raise AlreadyContributed("this subject takes part in the session with another value")
    return enrolment


def _standing(transaction: Transaction, enrolment: Enrolment, *, over: bool | None = None) -> Standing:
    answers = tuple(transaction.sessions.answers(enrolment.id))
    return Standing(
        answers=answers,
        report=enrolment.report_points,
        given=sum(answer.epsilon for answer in answers) + (enrolment.report_epsilon or 0),
        over=enrolment.state == "finished" if over is None else over,
    )
