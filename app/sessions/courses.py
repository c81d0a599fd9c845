"""Which protocols there are: how a course is started and how it is restored. A new one is added here."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.core.errors import InvalidRequest
from app.core.session import SessionProtocol
from app.core.study import Relation, StudyDefinition
from app.sessions.course import Course
from app.sessions.search import DEFAULT_ALPHA, Depth, Mode, Search, Target, Threshold, make_rules
from app.sessions.search_course import SearchCourse


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What an admin asks a session for.

    Attributes:
        protocol: What is looked for.
        epsilon: What taking part costs a person in all, at most [micro-epsilon].
        mode, threshold, rounds, alpha, quantile, participants: Of a search, see `make_rules`.
    """

    protocol: SessionProtocol
    epsilon: int
    mode: Mode = Mode.USER_SPLIT
    threshold: Threshold = Threshold.EXACT_BINOMIAL
    rounds: int | Depth = Depth.LOWER_ALPHA
    alpha: float = DEFAULT_ALPHA
    quantile: float | None = None
    participants: int | None = None


def start_course(wish: Wish, study: StudyDefinition) -> Course:
    """The course that a wish stands for.

    Raises:
        InvalidRequest: it is not admissible, or not for this study.
    """
    if study.relation is Relation.ADD_REMOVE_ONE:
        reason = "answers would show who is there, which an add_remove_one study keeps secret"
        raise InvalidRequest.field("protocol", reason)
    return _STARTERS[wish.protocol](wish, study)


def restore_course(protocol: SessionProtocol, document: str) -> Course:
    """The course that a stored document was made from.

    Raises:
        InternalFault: it is none.
    """
    return _RESTORERS[protocol](json.loads(document))


def _start_search(wish: Wish, study: StudyDefinition) -> Course:
    if study.dimension != 1:
        raise InvalidRequest.field("protocol", "is for studies of single numbers")
    if wish.participants is None:
        raise InvalidRequest.field("participants", "is required")
    rules = make_rules(
        target=Target(wish.protocol.value),
        epsilon=wish.epsilon,
        participants=wish.participants,
        mode=wish.mode,
        threshold=wish.threshold,
        rounds=wish.rounds,
        alpha=wish.alpha,
        quantile=wish.quantile,
    )
    return SearchCourse(Search(rules=rules))


_SEARCHES = (SessionProtocol.MINIMUM, SessionProtocol.MAXIMUM, SessionProtocol.QUANTILE)

_STARTERS: Mapping[SessionProtocol, Callable[[Wish, StudyDefinition], Course]] = dict.fromkeys(
    _SEARCHES, _start_search
)

_RESTORERS: Mapping[SessionProtocol, Callable[[Mapping[str, Any]], Course]] = dict.fromkeys(
    _SEARCHES, SearchCourse.restore
)
