"""What the privacy audit sees of sessions: all that a whole run gets from one person.

Every other person is fixed. In a search they leave every decision to this person, whose answers choose what
is asked next; centers move by what is sent, too. The device's part is handed in: it can be the SDK's own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from dither.device.response import assigned_round

from app.accounting.clusters import clusters_cost, clusters_noise
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.mechanisms.draw import draw
from app.sessions.kmeans import (
    Clustering,
    ClusterRules,
    advance,
    central_clusters,
    local_clusters,
    nearest,
    start,
)
from app.sessions.points import MIDDLE, ClusterSums, to_grid, to_widths
from app.sessions.response import Tally
from app.sessions.search import Mode, Rules, Search, Target, least_positives, make_rules, truthful
from app.sessions.search import advance as advance_search
from dither_research.privacy_audit import Cells, Subject
from dither_research.seeded import Floats

ENDS = (0, GRID_SIZE)
"""Values of the person: at every threshold their true answers differ."""

NOT_ASKED = 2
SEARCH_ROUNDS = 3
PARTICIPANTS = 2**12

CLUSTER_EPSILON = 2 * MICRO
LOCAL_RULES = ClusterRules(dimension=2, clusters=3, rounds=2, epsilon=3 * MICRO // 2)
CENTRAL_RULES = ClusterRules(dimension=1, clusters=2, rounds=2, epsilon=CLUSTER_EPSILON)
RATIO_STEPS = np.linspace(-CLUSTER_EPSILON / MICRO, CLUSTER_EPSILON / MICRO, 41)
"""Cells of a log-likelihood ratio, which never exceeds the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """How a device randomizes.

    Attributes:
        respond: An answer, from the true category, the number of categories and epsilon [micro-epsilon].
        report: A report of a point, coordinate by coordinate, from its grid points and the epsilon of the
            whole report [micro-epsilon].
    """

    respond: Callable[[int, int, int], int]
    report: Callable[[Sequence[int], int], Sequence[int]]


def protocol_subjects(device: Device) -> Iterator[Subject]:
    """A whole run of each protocol, for one person."""
    for target in Target:
        for mode in Mode:
            rules = make_rules(
                target=target,
                epsilon=MICRO,
                participants=PARTICIPANTS,
                mode=mode,
                rounds=SEARCH_ROUNDS,
                quantile=0.5 if target is Target.QUANTILE else None,
            )
            yield Subject(
                name=f"whole {target.value}, {mode.value}",
                claimed=rules.epsilon / MICRO,
                outputs=_answers(rules, device),
            )
    yield Subject(
        name="whole K-means, local person",
        claimed=LOCAL_RULES.epsilon / MICRO,
        outputs=_report_and_answers(LOCAL_RULES, device),
    )
    yield central_subject()


# ------------------------------------------------------------------------------------------- searches


def _answers(rules: Rules, device: Device) -> Callable[[int], tuple[Cells, Cells]]:
    """All answers of a person, in order, through the product's own search."""
    courses: dict[tuple[int, ...], Search] = {(): Search(rules=rules)}

    def course(answers: tuple[int, ...]) -> Search:
        """Where a search stands after this person's answers."""
        if answers not in courses:
            courses[answers] = _close(course(answers[:-1]), answers[-1])
        return courses[answers]

    def run(point: int, person: str) -> int:
        answers: tuple[int, ...] = ()
        assigned = assigned_round(bytes(16), person, rules.rounds)
        while not (search := course(answers)).finished:
            answer = NOT_ASKED
            if rules.mode is Mode.BUDGET_SPLIT or assigned == search.round:
                truth = int(truthful(rules.target, point, search.threshold))
                answer = device.respond(truth, 2, rules.epsilon_per_answer)
            answers = (*answers, answer)
        return sum(answer * 3**place for place, answer in enumerate(answers))

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (
            np.array([run(point, f"person {number}") for number in range(draws)], dtype=np.int64)
            for point in ENDS
        )
        return first, second

    return outputs


def _close(search: Search, answer: int) -> Search:
    """Close a round in which every other person has left the decision to one answer."""
    people = search.rules.people_per_round
    others = least_positives(search.rules, people) - 1
    if answer == NOT_ASKED:
        return advance_search(search, Tally(answers=people, positives=others))
    return advance_search(search, Tally(answers=people, positives=others + answer))


# -------------------------------------------------------------------------------------- K-means, local


def _report_and_answers(rules: ClusterRules, device: Device) -> Callable[[int], tuple[Cells, Cells]]:
    """A person's report and the named center of each round; the centers move by what she sends."""
    line = np.linspace(-0.4, 0.4, rules.clusters)
    centers = np.stack([line] * rules.dimension, axis=1)
    people = 30.0
    counts, sums = np.full(rules.clusters, people), people * centers

    def run(end: int) -> int:
        point = [end] * rules.dimension
        report = device.report(point, rules.epsilon_per_answer)
        label = 0
        for part in report:
            # Beyond the two ends of the range the likelihoods stand in the largest ratio.
            label = 3 * label + (part > 0) + (part > GRID_SIZE)
        offsets = (np.array(report, dtype=np.float64) - MIDDLE) / GRID_SIZE
        state, place = start(rules, centers), to_widths([tuple(point)])
        while not state.finished:
            truth = int(nearest(place, state.centers)[0])
            named = device.respond(truth, rules.clusters, rules.epsilon_per_answer)
            label = rules.clusters * label + named
            with_her, moved = counts.copy(), sums.copy()
            with_her[named] += 1
            moved[named] += offsets
            state = advance(state, (local_clusters(with_her, moved, rules),))
        return label

    def outputs(draws: int) -> tuple[Cells, Cells]:
        first, second = (np.array([run(end) for _ in range(draws)], dtype=np.int64) for end in ENDS)
        return first, second

    return outputs


# ------------------------------------------------------------------------------------ K-means, central


def central_subject(rules: ClusterRules = CENTRAL_RULES) -> Subject:
    """All noisy sums of a K-means session, of which a central person is a part.

    What is seen of them is the logarithm of the ratio of their likelihoods without noise, which is known to
    anyone who knows every other person.
    """
    noise = clusters_noise(
        rules.cost_per_round, rules.sensitivity, clusters=rules.clusters, dimension=rules.dimension
    )
    price = clusters_cost(noise, rules.relation, clusters=rules.clusters, dimension=rules.dimension)
    first = np.linspace(-0.25, 0.25, rules.clusters)[:, np.newaxis] * np.ones(rules.dimension)
    others = np.array([[MIDDLE // 2] * rules.dimension, [MIDDLE + MIDDLE // 2] * rules.dimension] * 3)
    people = {end: np.vstack([others, [[end] * rules.dimension]]) for end in ENDS}
    scales = np.array(noise.scales)

    def exact(state: Clustering, end: int) -> Floats:
        sums = ClusterSums(to_grid(state.centers))
        sums.add(people[end])
        return np.array(sums.queries(), dtype=np.float64)

    def run(end: int) -> float:
        state, ratio = start(rules, first), 0.0
        while not state.finished:
            neighbors = {other: exact(state, other) for other in ENDS}
            noisy = neighbors[end] + np.array(draw(noise, queries=scales.size), dtype=np.float64)
            low, high = (np.abs(noisy - neighbors[other]) / scales for other in ENDS)
            ratio += float((low - high).sum())
            table = noisy.reshape(rules.clusters, 1 + rules.dimension) / GRID_SIZE
            state = advance(state, (central_clusters(table[:, 0], table[:, 1:], rules),))
        return ratio

    def outputs(draws: int) -> tuple[Cells, Cells]:
        one, other = (
            np.digitize([run(end) for _ in range(draws)], RATIO_STEPS).astype(np.int64) for end in ENDS
        )
        return one, other

    return Subject(
        name="whole K-means, central person",
        claimed=rules.rounds * price / MICRO,
        outputs=outputs,
        effort=0.25,
    )
