"""Releases, charges and the hash chain over them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.core.columns import Columns
from app.core.piece import Piece, Taken

GENESIS = bytes(32)
"""What the first release of an installation is chained to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one release cost each member of one cohort.

    Attributes:
        cohort_id: The cohort.
        epsilon: Cost for each member, in the study's currency: micro-epsilon, or 1e-6 of mu^2.
    """

    cohort_id: int
    epsilon: int


class Charges(Columns[Charge]):
    """Charges by columns."""

    kind = Charge
    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A cohort whose sums are in an answer, as it was when they were read.

    Attributes:
        cohort_id: The cohort.
        count: Its live members.
        offer: What each of them must have left to take part; 0 unless central [the study's currency].
    """

    cohort_id: int
    count: int
    offer: int


class AllUsed(Columns[Used]):
    """Cohorts whose sums are in an answer by columns."""

    kind = Used
    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What lists show of a release and the service reads again; the body says the same.

    Attributes:
        estimate, standard_error: None for an answer that is not one number.
        noisy_count: People, with noise; None where their number is public.
        variance: Upper end of the interval for the population's; None without a second moment.
        epsilon_max: The most that it charged anyone [the study's currency].
        people, people_left_out: Live contributions, and those of them that could not pay or did not report
            the measure; None where their number is secret.
        silent: Those who did not report it.
        width: Of the interval, as the plan predicted it [data's unit]; None where answers are not compared.
    """

    estimate: float | None = None
    standard_error: float | None = None
    noisy_count: float | None = None
    variance: float | None = None
    epsilon_max: int
    people: int | None = None
    people_left_out: int | None = None
    silent: int = 0
    width: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question of a release apart from how much it may take of each person.

    Attributes:
        family: SHA-256 of the question without share and cap.
        share: Part of each personal epsilon [ppm].
        cap: The most that any person may be charged [micro-epsilon]; None for no such cap.
    """

    family: bytes
    share: int
    cap: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A release before it has its place in the chain.

    Attributes:
        id: Random id.
        study_id: The study.
        question: SHA-256 of the question.
        asked: The question by its parts; None for a round of K-means.
        epoch: The last epoch that took part.
        estimator, estimator_version: What answered.
        noise: JSON of the noise, to recompute the cost.
        body: The answer, byte for byte.
        kept_ends: Those of its intervals at other levels, which are kept beside it; None: it has none.
        facts: What the body says, for lists.
        charges: In the order of the cohorts' ids.
        used: Every cohort whose sums are in the answer.
        created_at: When.
        taken: What it does to the pieces of its question; None: it is no step of its shares.
        apart: The sums of an answer with noise of its own, which are kept to be combined and never refined.
        newest: Of an answer that combines others: number of the newest release whose sums it reads.
    """

    id: UUID
    study_id: int
    question: bytes
    epoch: int
    estimator: str
    estimator_version: int
    noise: str
    body: bytes
    facts: Facts
    charges: Sequence[Charge]
    used: Sequence[Used]
    created_at: datetime
    asked: Asked | None = None
    taken: Taken | None = None
    apart: Piece | None = None
    newest: int | None = None
    kept_ends: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelease:
    """A committed release.

    Attributes:
        id: Random id.
        study_id, study: Number and slug of the study.
        epoch: The last epoch that took part.
        body: The answer, byte for byte.
        noisy_count: People, with noise; None where their number is public.
        variance: Upper end of the interval for the population's; None without a second moment.
        created_at: When.
        replayed: True where a retry or a repeated question got the answer of an earlier request.
        stands: True where a request for a share got what had been given already.
    """

    id: UUID
    study_id: int
    study: str
    epoch: int
    body: bytes
    noisy_count: float | None
    variance: float | None
    created_at: datetime
    replayed: bool = False
    stands: bool = False


def chain_hash(
    previous: bytes,
    *,
    number: int,
    release_id: UUID,
    study_id: int,
    question: bytes,
    sequence: int,
    epoch: int,
    estimator: str,
    estimator_version: int,
    noise: str,
    body: bytes,
    charges: Sequence[Charge],
) -> bytes:
    """The link of one release: SHA-256 over the previous link and everything that was published and charged.

    Args:
        previous: The previous link, 32 bytes.
        number: Place in the chain, from 1.
        release_id, study_id, question, sequence, epoch, estimator, estimator_version, noise, body: The
            release's columns; `noise` as JSON.
        charges: In the order of the cohorts' ids.
    """
    document = json.dumps(
        [
            number,
            str(release_id),
            study_id,
            question.hex(),
            sequence,
            epoch,
            estimator,
            estimator_version,
            # Every number is a double, since jsonb gives 2e16 back as an integer.
            json.loads(noise, parse_int=float),
            hashlib.sha256(body).hexdigest(),
        ],
        sort_keys=True,
        separators=(",", ":"),
    )
    # The 0 stands where charges had a delta: links of before keep their hashes.
    each = map("[{},{},0]".format, *map(Charges.of(charges).column, ("cohort_id", "epsilon")))
    return hashlib.sha256(previous + f"{document[:-1]},[{','.join(each)}]]".encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCount:
    """A published noisy number of people.

    Attributes:
        least, most: Of whom: what they offered at least, and what more counts as; None where its release does
            not say so [epsilon].
        count: The number, each counted as what they weigh over the most.
        of_all: Whether it is of all people, not of some labels.
        share, cap: Of its release; None where it was not measured to choose by [ppm; micro-epsilon].
        number: Place in the hash chain.
    """

    least: float | None
    most: float | None
    count: float
    of_all: bool
    share: int | None
    cap: int | None
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLabels:
    """The published noisy numbers of people of all labels of an attribute.

    Attributes:
        least, most: See `NoisyCount`.
        whole: The number of all people.
        groups: What the release says of each label.
    """

    least: float | None
    most: float | None
    whole: float
    groups: Sequence[Mapping[str, Any]]
