"""The operations of both clients about sessions, without I/O."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from dither._calls import JSON, Calls, check_progress, session_path
from dither._documents import Session
from dither._errors import DirectoryRequired, ProblemError
from dither._flow import Flow, Request, Retry, Sleep, exchange, work
from dither._models import Participation
from dither._participants import Participants, Standing
from dither._session_ledger import AnswerState
from dither._sessions import Person, Question, RoundReply, Terms, make_person, read_question, read_terms
from dither._stores import Remembering
from dither._wire import Document, Parameter, build, decode, encode
from dither.device.numbers import Value, epsilon_decimal

T = TypeVar("T")

POLL_SECONDS = 25
"""How long the service is asked to wait for the next round before it answers."""

_LONGEST_PAUSE = 3
"""Failures in a row that the wait between polls without news grows with."""

Progress = Callable[[Participation], None]


class SessionOperations:
    """What a client can do with sessions. Every public method is a flow.

    Args:
        retry: How often and how patiently requests are tried again.
        calls: Requests that are done with one answer.
        device: The device's decisions, where the client has a directory or a store.
    """

    def __init__(self, *, retry: Retry, calls: Calls, device: Remembering | None) -> None:
        self._retry = retry
        self._calls = calls
        self._device = device
        self._described: dict[str, tuple[Session, Terms]] = {}

    def session(self, session: str) -> Flow[Session]:
        """GET a session, and hold it to what this device saw first."""
        reply = yield from self._calls.get(session_path(session), shared=True)
        found = build(Session, decode(reply.body))
        device = self._device
        if device is not None:
            terms = read_terms(found, session)
            yield from work(lambda: device.see_session(terms))
            self._described[session] = (found, terms)
        return found

    # -- taking part

    def participate(
        self, wanted: str | Session, subject: str, value: Value, on_progress: Progress | None
    ) -> Flow[Participation]:
        """Answer every round in which a person is asked, each answer written down before it is sent."""
        device = self._device
        if device is None:
            raise DirectoryRequired("to take part, make the client with a directory or a store")
        check_progress(on_progress)
        name = wanted.id if isinstance(wanted, Session) else wanted
        session, terms = yield from self._description(name)
        person = make_person(session, terms, subject, value)
        if session.state == "finished":
            return (yield from self._end(device, person))
        standing = yield from _decide(device, person, lambda one: one.enrol(person))
        last = 0 if person.asked_in is None else person.asked_in - 1
        while not standing.over:
            question = yield from self._next(terms, after=last)
            if question is None:
                return (yield from self._end(device, person))
            last = question.round
            if person.asked_in is not None and last > person.asked_in:
                break
            standing, news = yield from self._answer(device, person, question)
            if news and on_progress is not None:
                on_progress(_participation(person, standing, None))
            if last == terms.rounds or last == person.asked_in:
                break
        if not standing.over:
            standing = yield from _decide(device, person, lambda one: one.finish(person))
        return _participation(person, standing, None)

    def _description(self, session: str) -> Flow[tuple[Session, Terms]]:
        """The description that this client goes by; fetched once, and again after a finished one."""
        session_path(session)  # refuses what is no id, and cannot be looked up
        if session not in self._described:
            yield from self.session(session)
        return self._described[session]

    def _end(self, device: Remembering, person: Person) -> Flow[Participation]:
        """What a person gave to a session that is finished, and what came out of it."""
        name = person.terms.session
        if self._described[name][0].state != "finished":
            yield from self.session(name)
        standing = yield from _decide(device, person, lambda one: one.finish(person))
        return _participation(person, standing, self._described[name][0])

    def _next(self, terms: Terms, *, after: int) -> Flow[Question | None]:
        """Wait for a round after this one; None where the session is finished."""
        query: dict[str, Parameter] = {"after": after, "wait": POLL_SECONDS}
        failures = 0
        while True:
            reply = yield from self._calls.get(
                f"{session_path(terms.session)}/round", query, patience=POLL_SECONDS, shared=True
            )
            question = _question(terms, reply.body)
            if question is None or question.round > after:
                return question
            failures = min(failures + 1, _LONGEST_PAUSE)
            yield Sleep(self._retry.wait(failures))

    def _answer(self, device: Remembering, person: Person, question: Question) -> Flow[tuple[Standing, bool]]:
        """Answer a round; whether there is news: an answer was sent and settled."""
        number = question.round
        standing = yield from _decide(device, person, lambda one: one.answer(person, question))
        answer = standing.to(number)
        if answer is None or answer.state in ("accepted", "late"):
            return standing, False
        last = number in (person.terms.rounds, person.asked_in)
        body: dict[str, Document] = {"subject": person.subject, "round": number, "answer": answer.answer}
        if standing.report is not None and not standing.enrolled:
            body["report"] = standing.report
        request = Request(
            method="POST",
            path=f"{session_path(person.terms.session)}/answers",
            body=encode(body).encode(),
            headers=JSON,
        )
        became: AnswerState = "accepted"
        try:
            yield from exchange(request, self._retry)
        except ProblemError as problem:
            if problem.code != "round_closed":
                if problem._refuses:
                    yield from _decide(device, person, lambda one: one.refuse(person, number))
                raise
            became = "late"
        standing = yield from _decide(
            device, person, lambda one: one.settle(person, number, became, last=last)
        )
        return standing, True


def _decide(device: Remembering, person: Person, decision: Callable[[Participants], T]) -> Flow[T]:
    """What a decision about a person in a session returns, once it is written down."""
    return work(lambda: device.decide(person.subject, lambda one: decision(one.participants)))


@lru_cache(maxsize=256)
def _question(terms: Terms, body: bytes) -> Question | None:
    """What an answer about a round asks; many who share a client get the same one."""
    return read_question(terms, build(RoundReply, decode(body)))


def _participation(person: Person, standing: Standing, session: Session | None) -> Participation:
    """What a person gave; with the result where the session is finished."""
    return Participation(
        session=person.terms.session,
        subject=person.subject,
        rounds=tuple(answer.round for answer in standing.answers if answer.state == "accepted"),
        late=tuple(answer.round for answer in standing.answers if answer.state == "late"),
        epsilon=epsilon_decimal(standing.given),
        finished=session is not None,
        estimate=None if session is None else session.estimate,
        centres=None if session is None else session.centres,
    )
