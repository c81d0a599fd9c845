"""A session's description, its questions and the true answers. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dither._documents import Session, SessionState
from dither._errors import InvalidRequest, SessionChanged, SessionUnsound, UnsupportedMechanism
from dither._orders import grid_of, new_subject, on_grid
from dither.device.numbers import GRID_BITS, GRID_SIZE, Grid, Numeric, Value, epsilon_cost
from dither.device.numbers import epsilon_limit as limit_of
from dither.device.response import assigned_round

Direction = Literal["at_most", "at_least"]

_DIRECTIONS: Mapping[str, Direction] = {"minimum": "at_most", "maximum": "at_least", "quantile": "at_most"}
_KEY_BYTES = 16
MOST_ROUNDS = 1_000
MOST_CLUSTERS = 10_000
"""No sensible session has more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a device goes by: a session's description, in integers.

    Attributes:
        session, study: Their addresses.
        rounds: How many.
        epsilon: Of one answer [micro-epsilon].
        total: All that taking part costs, at most [micro-epsilon].
        answers: Rounds in which a person answers, at most.
        direction: What is asked about the threshold; None in kmeans.
        clusters, dimension: kmeans: centers, coordinates.
        report: kmeans: epsilon of the one report [micro-epsilon].
        key: user_split: the assignment key.
        pinned: All that may never change, as text that compares.
    """

    session: str
    study: str
    rounds: int
    epsilon: int
    total: int
    answers: int
    direction: Direction | None
    clusters: int
    dimension: int
    report: int | None
    key: bytes | None
    pinned: str

    @property
    def categories(self) -> int:
        """How many answers there are to choose from."""
        return 2 if self.direction is not None else self.clusters

    def round_of(self, subject: str) -> int | None:
        """The one round in which a subject is asked; None where every person is asked in every round."""
        return None if self.key is None else assigned_round(self.key, subject, self.rounds)


def read_terms(session: Session, wanted: str) -> Terms:
    """Check a description, and compute what taking part costs.

    Raises:
        SessionUnsound: it makes no sense, or costs more than it states.
        UnsupportedMechanism: this SDK cannot take part in such a session.
    """
    if session.id != wanted:
        raise SessionUnsound("the service described another session than the one asked for")
    kmeans = session.protocol == "kmeans"
    if not kmeans and session.protocol not in _DIRECTIONS:
        raise UnsupportedMechanism(f"sessions of protocol {session.protocol!r} are not supported")
    if session.grid_bits != GRID_BITS:
        raise UnsupportedMechanism(f"a grid of {session.grid_bits} bits is not supported, only {GRID_BITS}")
    if not session.lower < session.upper:
        raise SessionUnsound("the session's range is empty")
    if not 1 <= session.rounds <= MOST_ROUNDS or not session.dimension >= 1:
        raise SessionUnsound("the session's rounds or dimension are impossible")
    if not kmeans and session.dimension != 1:
        raise SessionUnsound("a search is about single numbers")
    if kmeans and not 2 <= (session.clusters or 0) <= MOST_CLUSTERS:
        raise SessionUnsound("the session's clusters are impossible")
    key = _key(session)
    answers = session.rounds if key is None else 1
    if session.answers_per_person != answers:
        raise SessionUnsound("the session asks more or less often than its mode says")
    epsilon = _exact(session.epsilon_per_answer)
    report = None if not kmeans else _exact(session.report_epsilon or 0)
    total = limit_of(session.epsilon_total)
    if answers * epsilon + (report or 0) > total:
        raise SessionUnsound("taking part would cost more than the session states")
    return Terms(
        session=session.id,
        study=session.study,
        rounds=session.rounds,
        epsilon=epsilon,
        total=total,
        answers=answers,
        direction=_DIRECTIONS.get(session.protocol),
        clusters=session.clusters or 0,
        dimension=session.dimension,
        report=report,
        key=key,
        pinned=_pinned(session),
    )


def _key(session: Session) -> bytes | None:
    """The assignment key, which goes with user_split, and only with it."""
    if session.mode == "user_split" and session.protocol != "kmeans":
        try:
            key = bytes.fromhex(session.assignment_key or "")
        except ValueError:
            key = b""
        if len(key) != _KEY_BYTES:
            raise SessionUnsound("the session says not properly who is asked when")
        return key
    if session.mode not in ("budget_split", None) or session.assignment_key is not None:
        raise SessionUnsound("the session's mode is unknown, or does not go with the rest")
    return None


def _exact(epsilon: Numeric) -> int:
    """An epsilon that is a whole number of micro-epsilons above 0."""
    micro = epsilon_cost(epsilon)
    if micro <= 0 or micro != limit_of(epsilon):
        raise SessionUnsound("the epsilon of an answer must be positive and have at most six decimals")
    return micro


def _pinned(session: Session) -> str:
    names = (
        *("study", "protocol", "mode", "threshold", "rounds", "answers_per_person", "participants"),
        *("answers_per_round", "grid_bits", "assignment_key", "dimension", "clusters"),
    )
    document: dict[str, object] = {name: getattr(session, name) for name in names}
    for name in ("lower", "upper", "epsilon_per_answer", "epsilon_total", "quantile", "report_epsilon"):
        value = getattr(session, name)
        document[name] = None if value is None else list(value.as_integer_ratio())
    return json.dumps(document, sort_keys=True)


def check_pinned(before: str, now: str) -> None:
    """Refuse what is not the same as before.

    Raises:
        SessionChanged: with the names of what differs.
    """
    if before != now:
        old, new = json.loads(before), json.loads(now)
        raise SessionChanged([name for name in new if old.get(name) != new[name]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who takes part.

    Attributes:
        terms: Of the session.
        subject: Who.
        points: Grid points of the value, one a coordinate.
        asked_in: The one round in which the person is asked; None where that is every round.
    """

    terms: Terms
    subject: str
    points: tuple[int, ...]
    asked_in: int | None


def make_person(session: Session, terms: Terms, subject: str, value: Value) -> Person:
    """Check who takes part with what.

    Raises:
        InvalidRequest: an argument is not admissible.
    """
    subject = new_subject(subject)
    grid = grid_of(session.lower.as_integer_ratio(), session.upper.as_integer_ratio())
    if terms.direction is not None:
        points: tuple[int, ...] = (_point(grid, value, "value"),)
    elif isinstance(value, str) or not isinstance(value, Sequence) or len(value) != terms.dimension:
        raise InvalidRequest("value", f"must be a sequence of {terms.dimension} numbers")
    else:
        points = tuple(_point(grid, part, f"value.{place}") for place, part in enumerate(value))
    return Person(terms=terms, subject=subject, points=points, asked_in=terms.round_of(subject))


def _point(grid: Grid, value: object, name: str) -> int:
    return on_grid(grid, value, name, "lies outside the session's range")[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundReply:
    """The service's answer to the question which round is open."""

    session: str
    state: SessionState
    round: int | None
    rounds: int
    threshold: int | None
    direction: str | None
    epsilon_per_answer: Decimal | None
    centres: tuple[tuple[int, ...], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an open round asks.

    Attributes:
        round: Its number.
        threshold: A search: the grid point asked about.
        centers: kmeans: points of the grid.
    """

    round: int
    threshold: int | None
    centers: tuple[tuple[int, ...], ...]

    @property
    def text(self) -> str:
        """The question, as text that compares."""
        return json.dumps([self.threshold, *self.centers])


def read_question(terms: Terms, reply: RoundReply) -> Question | None:
    """Check what a round asks; None where the session is finished.

    Raises:
        SessionUnsound: it is not a question of this session.
    """
    if reply.session != terms.session or reply.rounds != terms.rounds:
        raise SessionUnsound("a round of another session was shown")
    if reply.state == "finished":
        return None
    if reply.round is None or not 1 <= reply.round <= terms.rounds:
        raise SessionUnsound("a round was shown that the session does not have")
    if reply.epsilon_per_answer is None or epsilon_cost(reply.epsilon_per_answer) != terms.epsilon:
        raise SessionUnsound("a round asks for another epsilon than the session's description")
    if terms.direction is None:
        centers = reply.centres or ()
        if len(centers) != terms.clusters or any(not _is_point(center, terms) for center in centers):
            raise SessionUnsound("a round's centers are not the session's number of points of the range")
        return Question(round=reply.round, threshold=None, centers=centers)
    if reply.direction != terms.direction:
        raise SessionUnsound("a round asks another kind of question than the session's protocol")
    if reply.threshold is None or not 0 <= reply.threshold <= GRID_SIZE:
        raise SessionUnsound("a round asks about a threshold that is not on the grid")
    return Question(round=reply.round, threshold=reply.threshold, centers=())


def _is_point(center: tuple[int, ...], terms: Terms) -> bool:
    return len(center) == terms.dimension and all(0 <= part <= GRID_SIZE for part in center)


def true_category(person: Person, question: Question) -> int:
    """The true answer: 1 for yes, 0 for no; in kmeans the nearest center, the first of equals. Exact."""
    if question.threshold is not None:
        [point] = person.points
        at_most = person.terms.direction == "at_most"
        return int(point <= question.threshold if at_most else point >= question.threshold)
    distances = [
        sum((part - mine) ** 2 for part, mine in zip(center, person.points, strict=True))
        for center in question.centers
    ]
    return distances.index(min(distances))
