"""K-means as a protocol: what is stored comes back, and what is wrong is refused."""

import json
from dataclasses import replace

import pytest

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.session import SessionProtocol
from app.core.study import Relation
from app.sessions.kmeans import ClusterRules
from app.sessions.kmeans_protocol import RunningKMeans
from app.sessions.points import MIDDLE
from app.sessions.protocol import CentralSums, RoundAnswers
from app.sessions.protocols import restore_protocol

KMEANS = RunningKMeans(
    rules=ClusterRules(
        dimension=2, clusters=2, rounds=2, epsilon=3_000_001, relation=Relation.ADD_REMOVE_ONE
    ),
    first=((0, GRID_SIZE), (MIDDLE, 3)),
    participants=7,
    takes_answers=False,
)
CENTRAL = CentralSums(
    release="r",
    counts=(1000 * GRID_SIZE + 1, 5),
    sums=((100 * GRID_SIZE, -200 * GRID_SIZE), (7, 7)),
)


def stored(running: RunningKMeans) -> RunningKMeans:
    restored = restore_protocol(SessionProtocol.KMEANS, json.dumps(running.document()))
    assert isinstance(restored, RunningKMeans)
    return restored


def test_a_protocol_is_restored_as_it_was_in_every_state() -> None:
    assert stored(KMEANS) == KMEANS
    once = KMEANS.close(RoundAnswers(counts={}, central=CENTRAL))
    assert stored(once) == once
    twice = once.close(RoundAnswers(counts={0: 3, 1: 90}, sums={0: (9, 9), 1: (2**80, 1)}))
    assert stored(twice) == twice
    assert twice.round is None
    ended = once.stop(RoundAnswers(counts={}))
    assert stored(ended) == ended
    assert (ended.round, ended.centers) == (None, once.centers)


def test_central_sums_move_the_centers_they_know_something_about() -> None:
    once = KMEANS.close(RoundAnswers(counts={}, central=CENTRAL))
    # It was at a corner of the range, and its place has the precision 12 * 2.
    heard = 1000**2 / (2 * (2 / 1.5) ** 2)
    part = heard / (heard + 24)
    moved = [start + part * (found - start) for start, found in zip((-0.5, 0.5), (0.1, -0.2), strict=True)]
    assert once.centers[0] == pytest.approx([MIDDLE + one * GRID_SIZE for one in moved], abs=2)
    assert once.centers[1] == KMEANS.first[1]
    [step] = once.steps
    assert step.central == pytest.approx(1000)
    assert step.errors[0] == pytest.approx(2**0.5 * 2 / 1.5 / 1000, rel=0.01)
    assert step.errors[1] is None


def test_a_person_pays_no_more_than_the_whole_epsilon_either_way() -> None:
    terms = KMEANS.terms
    assert terms.epsilon_total == 3 * 1_000_000 <= KMEANS.rules.epsilon
    assert KMEANS.rules.rounds * KMEANS.rules.cost_per_round == 3_000_000
    assert (terms.cost(first=True), terms.cost(first=False)) == (2_000_000, 1_000_000)


def test_a_finished_protocol_takes_no_round() -> None:
    with pytest.raises(InternalFault):
        replace(KMEANS, stopped=True).close(RoundAnswers(counts={}))


@pytest.mark.parametrize(
    "document",
    [
        {},
        {**KMEANS.document(), "format": 2},
        {**KMEANS.document(), "rules": {}},
        {**KMEANS.document(), "first": 5},
        {**KMEANS.document(), "steps": [{}]},
    ],
)
def test_what_no_protocol_wrote_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InternalFault):
        restore_protocol(SessionProtocol.KMEANS, json.dumps(document))
