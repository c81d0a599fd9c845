"""Which protocols there are: how a protocol is started and how it is restored. A new one is added here."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from app.core.errors import FieldError, InvalidRequest
from app.core.session import SessionProtocol
from app.core.study import StudyDefinition, Trust
from app.sessions.documents import from_document
from app.sessions.kmeans import MAX_ROUNDS, MIN_CLUSTERS, ClusterRules
from app.sessions.kmeans_protocol import RunningKMeans
from app.sessions.points import GridPoint
from app.sessions.protocol import RunningProtocol
from app.sessions.search import (
    DEFAULT_ALPHA,
    DEFAULT_DEPTH,
    Depth,
    Mode,
    Search,
    Target,
    Threshold,
    check_participants,
    make_rules,
)
from app.sessions.search_protocol import RunningSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """What an admin asks a session for.

    Attributes:
        protocol: What is looked for.
        epsilon: What taking part costs a person in all, at most [micro-epsilon].
        rounds: Their number; for a search it may be derived.
        participants: People who are expected to answer.
        mode, threshold, alpha, quantile: Of a search, see `make_rules`.
        centers: Of K-means: the public ones to start from, in the data's unit.
    """

    protocol: SessionProtocol
    epsilon: int
    mode: Mode = Mode.USER_SPLIT
    threshold: Threshold = Threshold.EXACT_BINOMIAL
    rounds: int | Depth = DEFAULT_DEPTH
    alpha: float = DEFAULT_ALPHA
    quantile: float | None = None
    participants: int | None = None
    centers: tuple[tuple[Decimal, ...], ...] = ()


def start_protocol(spec: SessionSpec, study: StudyDefinition) -> RunningProtocol:
    """The protocol that a spec stands for.

    Raises:
        InvalidRequest: it is not admissible, or not for this study.
    """
    if study.choices:
        raise InvalidRequest.field("protocol", "is for studies of numbers, and this one asks for a choice")
    if study.measures.several:
        raise InvalidRequest.field(
            "protocol", "is for studies of one value, and this one asks for several measures"
        )
    return _STARTERS[spec.protocol](spec, study)


def protocol_document(running: RunningProtocol) -> str:
    """What is stored of a protocol: a JSON object."""
    return json.dumps(running.document(), allow_nan=False, separators=(",", ":"))


def restore_protocol(protocol: SessionProtocol, document: str) -> RunningProtocol:
    """The protocol that a stored document was made from.

    Raises:
        InternalFault: it is none.
    """
    return _RESTORERS[protocol](json.loads(document))


def _start_search(spec: SessionSpec, study: StudyDefinition) -> RunningProtocol:
    if study.hides_people:
        reason = "answers would show who is there, which an add_remove_one study keeps secret"
        raise InvalidRequest.field("protocol", reason)
    if study.dimension != 1:
        raise InvalidRequest.field("protocol", "is for studies of single numbers")
    if spec.participants is None:
        raise InvalidRequest.field("participants", "is required")
    rules = make_rules(
        target=Target(spec.protocol.value),
        epsilon=spec.epsilon,
        participants=spec.participants,
        mode=spec.mode,
        threshold=spec.threshold,
        rounds=spec.rounds,
        alpha=spec.alpha,
        quantile=spec.quantile,
    )
    return RunningSearch(Search(rules=rules))


def _start_kmeans(spec: SessionSpec, study: StudyDefinition) -> RunningProtocol:
    if not isinstance(spec.rounds, int):
        raise InvalidRequest.field("rounds", f"is required, as a number from 1 to {MAX_ROUNDS}")
    if not spec.centers:
        raise InvalidRequest.field("centres", "is required")
    if len(spec.centers) < MIN_CLUSTERS:
        raise InvalidRequest.field("centres", f"must be at least {MIN_CLUSTERS} points, one for each cluster")
    if spec.participants is not None:
        # Rounds close by this number of answers: with none, all of them would at once, and charge for each.
        check_participants(spec.participants)
    rules = ClusterRules(
        dimension=study.dimension,
        clusters=len(spec.centers),
        rounds=spec.rounds,
        epsilon=spec.epsilon,
        relation=study.relation,
        delta=study.delta,
    )
    return RunningKMeans(
        rules=rules,
        first=_on_grid(spec.centers, study),
        participants=spec.participants,
        takes_answers=Trust.LOCAL in study.trust,
    )


def _on_grid(centers: Sequence[Sequence[Decimal]], study: StudyDefinition) -> tuple[GridPoint, ...]:
    """The grid points of centers in the data's unit.

    Raises:
        InvalidRequest: names every one that is no point of the study's range, or that another one is, too:
            all people nearest to both go to the first, so the second would only ever be noise.
    """
    grid, errors = study.grid, list[FieldError]()
    found: dict[GridPoint, int] = {}
    for number, center in enumerate(centers):
        points = []
        if len(center) != study.dimension:
            errors.append(FieldError(f"centres.{number}", f"must have {study.dimension} coordinates"))
            continue
        for axis, coordinate in enumerate(center):
            sign, digits, exponent = coordinate.as_tuple()
            assert isinstance(exponent, int)
            mantissa = int("".join(map(str, digits)))
            point = grid.point(-mantissa if sign else mantissa, exponent)
            if point is None:
                errors.append(FieldError(f"centres.{number}.{axis}", study.outside_range))
            else:
                points.append(point)
        if len(points) == study.dimension and (first := found.setdefault(tuple(points), number)) != number:
            errors.append(FieldError(f"centres.{number}", f"is the same point as centres.{first}"))
    if errors:
        raise InvalidRequest.naming(errors)
    return tuple(found)


_SEARCHES = (SessionProtocol.MINIMUM, SessionProtocol.MAXIMUM, SessionProtocol.QUANTILE)

_STARTERS: Mapping[SessionProtocol, Callable[[SessionSpec, StudyDefinition], RunningProtocol]] = {
    **dict.fromkeys(_SEARCHES, _start_search),
    SessionProtocol.KMEANS: _start_kmeans,
}

_RESTORERS: Mapping[SessionProtocol, Callable[[Mapping[str, Any]], RunningProtocol]] = {
    **dict.fromkeys(_SEARCHES, RunningSearch.restore),
    SessionProtocol.KMEANS: partial(from_document, RunningKMeans),
}
