"""The central part of a K-means round: sums over central and public people, with noise, as a release.

Like a release of a mean it is drafted outside of the transaction that publishes it. Nothing of a draft leaves
the process before its charges are committed; one that cannot be paid for any more is thrown away unseen.
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import numpy as np

from app.accounting.clusters import ClusterNoise, clusters_cost, clusters_noise, gaussian_clusters_noise
from app.core.clock import Clock
from app.core.cohort import Cohort
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import as_document
from app.core.release import Charge, Draft, Facts, Used
from app.core.session import SessionDefinition
from app.core.study import Study, Trust
from app.mechanisms.draw import draw
from app.services.observer import Observer
from app.services.statistics.drafts import in_units
from app.sessions.kmeans import ClusterRules
from app.sessions.kmeans_protocol import RunningKMeans
from app.sessions.points import ClusterSums
from app.sessions.protocol import CentralSums, RunningProtocol
from app.store import cohorts, releases, studies
from app.store import points as store
from app.store.database import Connection, Database, Run

ESTIMATOR = "kmeans"
VERSION = 1
"""Grows whenever the distribution of the noisy sums changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CentralPart:
    """What central people say in one round, not published yet.

    Attributes:
        draft: The release; commits with the round that it closes.
        sums: What it says.
    """

    draft: Draft
    sums: CentralSums


@dataclass(frozen=True, slots=True)
class Prepared:
    """The central part of one round; None where it has no people."""

    part: CentralPart | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Participants:
    """Who takes part in a round, and the exact sums over them. Raw: never leaves the services.

    Attributes:
        epoch: The last one that takes part in the session.
        used: Their cohorts.
        sums: Of their values.
    """

    epoch: int
    used: tuple[Used, ...]
    sums: ClusterSums


class Central:
    """Drafts the central parts of K-means rounds."""

    def __init__(self, database: Database, clock: Clock, observer: Observer) -> None:
        self._database = database
        self._observer = observer
        self._clock = clock

    async def fold(self, definition: SessionDefinition, running: RunningProtocol) -> None:
        """Before the first round, take in all people who contributed so far."""
        if running.round == 1:
            study_id = definition.study_id
            with self._observer.step("seal"):
                epochs = await self._database.run_tx("session.seal", lambda c: cohorts.seal(c, study_id))
            if epochs.folded < epochs.sealed:
                with self._observer.step("fold"):
                    await self._database.run_tx("session.fold", lambda c: cohorts.fold(c, study_id))

    async def prepare(self, run: Run, definition: SessionDefinition, running: RunningProtocol) -> Prepared:
        """The central part of the open round, after `fold`.

        In its first round a session takes all people with a live central or public contribution whose
        cohort can pay for all rounds; in a later one those who paid for the round before and can pay for this
        one.

        Returns:
            Without a part where the number of people is public and no person takes part. In add_remove_one
            studies always with one, whether people take part or not.

        Raises:
            InternalFault: the price is not what was announced, or there is no noise.

        Privacy: costs each member of each cohort `ClusterRules.cost_per_round`, once it is published.
        """
        if not isinstance(running, RunningKMeans) or running.round is None:
            raise InternalFault("there is no central part to prepare")
        study = await run("session.study", lambda c: studies.read_study(c, definition.study))
        if study is None:
            raise InternalFault("a session's study has vanished")
        noise, cost = _priced(running.rules)
        crowd = await run("session.points", lambda c: _participants(c, study, running, cost))
        if crowd is None:
            return Prepared(None)
        with self._observer.step("draw"):
            noisy = await asyncio.to_thread(_noisy, crowd.sums, noise)
        release_id, now = uuid4(), self._clock.now()
        sums = _read(noisy, running.rules, str(release_id))
        charges = tuple(Charge(cohort_id=used.cohort_id, epsilon=cost) for used in crowd.used if used.offer)
        draft = Draft(
            id=release_id,
            study_id=study.id,
            question=question_digest(definition.id, running.round),
            epoch=crowd.epoch,
            estimator=ESTIMATOR,
            estimator_version=VERSION,
            noise=json.dumps(as_document(noise), allow_nan=False),
            body=_body(study, definition, running, sums, cost, now.isoformat()),
            facts=Facts(noisy_count=sum(count / GRID_SIZE for count in sums.counts), epsilon_max=cost),
            charges=charges,
            used=crowd.used,
            created_at=now,
        )
        return Prepared(CentralPart(draft=draft, sums=sums))


async def publish(connection: Connection, part: CentralPart) -> None:
    """Charge every cohort and store the release; call last, with the session locked.

    Raises:
        CohortsChanged: a person withdrew, or cannot pay any more; the draft is void.
        InternalFault: the round was published before.
    """
    head = await releases.lock_chain(connection, part.draft.study_id)
    if await releases.latest(connection, part.draft.study_id, part.draft.question) is not None:
        raise InternalFault("a round of a session cannot be published twice")
    await releases.publish(connection, part.draft, head=head)


def question_digest(session_id: UUID, round_number: int) -> bytes:
    """SHA-256 of what a round asks; no two rounds ask the same."""
    document = {"statistic": ESTIMATOR, "session": str(session_id), "round": round_number}
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()


def _priced(rules: ClusterRules) -> tuple[ClusterNoise, int]:
    """The noise of a round and what it costs, as accounting has it."""
    shape = {"clusters": rules.clusters, "dimension": rules.dimension}
    make = gaussian_clusters_noise if rules.delta else clusters_noise
    noise: ClusterNoise = make(rules.cost_per_round, rules.sensitivity, **shape)
    cost = clusters_cost(noise, rules.relation, **shape)
    if cost > rules.cost_per_round:
        raise InternalFault("A round costs more than was announced.")
    return noise, cost


async def _participants(
    connection: Connection, study: Study, running: RunningKMeans, cost: int
) -> Participants | None:
    """All people who take part; None where no person does and that is no secret."""
    secret = running.rules.relation.hides_people
    rows: Sequence[Cohort] = ()
    epoch, rounds = 0, 1
    if running.round == 1:
        epoch = (await cohorts.read_epochs(connection, study.id)).folded
        rows = await cohorts.read_cohorts(connection, study.id)
        rounds = running.rules.rounds
    elif running.steps[-1].release is not None:
        epoch, rows = await store.read_participants(connection, UUID(running.steps[-1].release))
    used = tuple(
        Used(cohort_id=row.id, count=row.count, offer=rounds * cost if row.trust is Trust.CENTRAL else 0)
        for row in rows
        if row.trust is Trust.PUBLIC
        or (row.trust is Trust.CENTRAL and row.spent + rounds * cost <= row.epsilon)
    )
    if not used and not secret:
        return None
    sums = ClusterSums(running.centers)
    ids = [row.cohort_id for row in used]
    async for packed in store.read_points(connection, study.id, ids):
        await asyncio.to_thread(_add, sums, packed, running.rules.dimension)
    return Participants(epoch=epoch, used=used, sums=sums)


def _add(sums: ClusterSums, packed: bytes, dimension: int) -> None:
    """Add people as `read_points` has them."""
    layout = np.dtype([("shape", ">i4", 5), ("items", [("length", ">i4"), ("point", ">i8")], dimension)])
    points = np.frombuffer(packed, dtype=layout)["items"]["point"].reshape(-1, dimension)
    sums.add(points.astype(np.int64))


def _noisy(sums: ClusterSums, noise: ClusterNoise) -> list[int]:
    """The queries with their noise. Integers all the way; draws entropy."""
    exact = sums.queries()
    return [value + error for value, error in zip(exact, draw(noise, queries=len(exact)), strict=True)]


def _read(noisy: Sequence[int], rules: ClusterRules, release: str) -> CentralSums:
    width = 1 + rules.dimension
    rows = [noisy[start : start + width] for start in range(0, len(noisy), width)]
    return CentralSums(
        release=release,
        counts=tuple(row[0] for row in rows),
        sums=tuple(tuple(row[1:]) for row in rows),
    )


def _body(
    study: Study,
    definition: SessionDefinition,
    running: RunningKMeans,
    sums: CentralSums,
    cost: int,
    created_at: str,
) -> bytes:
    """The release as JSON: nothing in it but noisy numbers depends on who is there."""
    grid, width = study.definition.grid, float(study.definition.grid.width)
    error = running.rules.central_variance**0.5
    counts = [count / GRID_SIZE for count in sums.counts]
    document: dict[str, object] = {
        "id": sums.release,
        "study": study.definition.slug,
        "estimator_version": VERSION,
        "statistic": ESTIMATOR,
        "estimator": ESTIMATOR,
        "parameters": {
            "session": str(definition.id),
            "round": running.round,
            "rounds": running.rules.rounds,
            "centres": running.progress(grid)["centres"],
        },
        "counts": counts,
        "sums": [[total / GRID_SIZE * width for total in row] for row in sums.sums],
        "count_error": error,
        "sum_error": error * width,
        "noisy_count": sum(counts),
        "relation": study.definition.relation.value,
        **in_units(study.definition, "epsilon_max", cost),
        "created_at": created_at,
    }
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
