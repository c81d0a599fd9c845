"""Privacy for free: how much of an offered epsilon a release would really use.

The saturation point is that of `optimal`, which the default estimator `auto` takes wherever a person could
saturate: it errs less than every other one. Its weights are those of a question that is first asked at the
study's default share, see `app.services.statistics.whole_plans`. Reports and public people lower it.
"""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.core.cohort import Cohort, Group, Reports
from app.core.contribution import Offer
from app.core.epsilon import MICRO
from app.core.release import StoredRelease
from app.core.reporting_range import INSIDE, ReportingRange
from app.core.study import Study, StudyDefinition, Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.affine import AffineProblem
from app.estimators.interface import Question
from app.estimators.optimal import saturation
from app.services.statistics.whole_plans import planned_share
from app.store import cohorts, releases, studies
from app.store.database import Connection, Database

REFRESH_SECONDS = 1.0
"""Age at which a profile is read again, to learn what other processes stored."""

REFRESH_COST = 20
"""A profile that took t seconds to read is kept for at least this many times t."""

QUICK = 0.1
"""A profile that took longer to read than this is never waited for while there is a former one [s]."""

SMALL = 1_000
"""Up to this many people the saturation point is recomputed for every change, beyond when 1 % more came."""


@dataclass(slots=True)
class _Profile:
    """People by trust and offer, sums of reports and of squares by offer, the variance last published.

    Offers are in the study's currency, and so is the saturation point.
    """

    people: Counter[tuple[Trust, int, bool]] = field(default_factory=Counter)
    totals: Counter[tuple[int, bool]] = field(default_factory=Counter)
    squares: Counter[tuple[int, bool]] = field(default_factory=Counter)
    reporting_range: ReportingRange | None = None
    variance: float | None = None
    took: float = 0.0
    expires: float = 0.0
    total: int = 0
    computed_at: int = -1
    point: int | None = None

    def add(self, cohort: Cohort) -> None:
        """Count a cohort. A report says what it was randomized with: what was left of the epsilon."""
        epsilon = cohort.epsilon - (cohort.carried if cohort.trust is Trust.LOCAL else 0)
        inside = cohort.segment >= INSIDE
        self.people[cohort.trust, epsilon, inside] += cohort.count
        self.total += cohort.count
        if cohort.trust is Trust.LOCAL:
            self.totals[epsilon, inside] += cohort.total
            self.squares[epsilon, inside] += cohort.total_squares

    def groups(self, study: StudyDefinition) -> list[Group]:
        """All people, as if nothing had been spent yet."""
        return [
            Group(
                trust=trust,
                epsilon=epsilon,
                count=count,
                reports=None
                if trust is not Trust.LOCAL
                else Reports(
                    mechanism=study.local_mechanism,
                    total=self.totals[epsilon, inside],
                    total_squares=self.squares[epsilon, inside],
                    inside=self.reporting_range if inside else None,
                ),
            )
            for (trust, epsilon, inside), count in self.people.items()
            if count > 0
        ]


class Saturation:
    """The saturation point of each study, with the profile of this moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._profiles: dict[int, _Profile] = {}
        self._reading: dict[int, asyncio.Task[_Profile]] = {}

    async def point(self, study: Study) -> int | None:
        """Where more epsilon would buy nothing in steps to share 1 [the study's currency]; None: nowhere.

        None too in add_remove_one studies and in those of vectors or choices: all that is offered is used.
        """
        of = study.definition
        if of.hides_people or of.dimension > 1 or of.choices:
            return None
        profile = await self._profile(study)
        settled = profile.computed_at >= 0 and (
            profile.total == profile.computed_at
            or (profile.total > SMALL and profile.total < profile.computed_at * 1.01)
        )
        if not settled:
            profile.point = _point(study.definition, profile)
            profile.computed_at = profile.total
        return profile.point

    async def used_at_most(self, study: Study, offer: Offer) -> int:
        """What steps from the default share to 1 would charge for this offer [micro-epsilon]."""
        point = await self.point(study) if offer.trust is Trust.CENTRAL else None
        return offer.asked if point is None else min(offer.asked, study.definition.epsilon(point))

    def add(self, study: Study, offers: Iterable[Offer]) -> None:
        """Count contributions that were just stored."""
        profile = self._profiles.get(study.id)
        if profile is not None:
            for offer in offers:
                inside = offer.segment >= INSIDE
                if inside and profile.reporting_range is None:
                    self.forget(study)  # it was read before the study had one
                    return
                profile.people[offer.trust, offer.epsilon, inside] += 1
                profile.total += 1
                if offer.trust is Trust.LOCAL:
                    profile.totals[offer.epsilon, inside] += offer.value
                    profile.squares[offer.epsilon, inside] += offer.value * offer.value

    def forget(self, study: Study) -> None:
        """Read the profile again: what is in it is no longer so."""
        self._reading.pop(study.id, None)
        profile = self._profiles.get(study.id)
        if profile is not None and profile.took > QUICK:
            profile.expires = time.monotonic()
        elif profile is not None:
            del self._profiles[study.id]

    async def _profile(self, study: Study) -> _Profile:
        """The profile; read by one request for all that want it, and while that lasts, the last one."""
        profile = self._profiles.get(study.id)
        now = time.monotonic()
        if profile is not None and now < profile.expires:
            return profile
        reading = self._reading.get(study.id)
        if reading is None:
            reading = self._reading[study.id] = asyncio.create_task(self._read(study))
            reading.add_done_callback(_note_failure)
        if profile is not None and now < profile.expires + max(REFRESH_SECONDS, 3 * profile.took):
            return profile
        return await asyncio.shield(reading)

    async def _read(self, study: Study) -> _Profile:
        task = asyncio.current_task()
        try:
            started = time.monotonic()
            rows, last, found = await self._database.run_tx(
                "saturation.profile", lambda c: _profile(c, study)
            )
            took = time.monotonic() - started
            profile = _Profile(
                reporting_range=found,
                variance=None if last is None else last.variance,
                took=took,
                expires=time.monotonic() + max(REFRESH_SECONDS, REFRESH_COST * took),
            )
            for row in rows:
                profile.add(row)
            # What was forgotten meanwhile may be in these rows.
            if self._reading.get(study.id) is task:
                self._profiles[study.id] = profile
            return profile
        finally:
            if self._reading.get(study.id) is task:
                del self._reading[study.id]


async def _profile(
    connection: Connection, study: Study
) -> tuple[Sequence[Cohort], StoredRelease | None, ReportingRange | None]:
    rows = await cohorts.read_profile(connection, study.id)
    last = await releases.read_last_mean(connection, study.id, "")
    # A study that is known here may have got one since.
    found = study.definition.reporting_range
    if found is None and any(row.segment >= INSIDE for row in rows):
        now = await studies.read_study(connection, study.definition.slug)
        found = None if now is None else now.definition.reporting_range
    return rows, last, found


def _note_failure(reading: asyncio.Task[_Profile]) -> None:
    """A waiting request gets its error; a search for which no request waits may fail quietly."""
    if not reading.cancelled():
        reading.exception()


def _point(study: StudyDefinition, profile: _Profile) -> int | None:
    variance = None if profile.variance is None else profile.variance / float(study.grid.width) ** 2
    if study.delta or any(trust is Trust.LOCAL for trust, *_ in profile.people):
        question = Question(
            relation=study.relation,
            grid=study.grid,
            cap=study.amount(study.epsilon_max),
            floor=study.amount(study.epsilon_min),
            delta=study.delta,
            people=profile.total,
            tilt=study.tilt / MICRO,
            variance=variance,
            share=planned_share(study.default_share),
        )
        return saturation(profile.groups(study), question)
    # The same without a group for each cohort: this is computed for every change of a small study.
    central = [
        (epsilon, count) for (trust, epsilon, _), count in profile.people.items() if trust is Trust.CENTRAL
    ]
    table = np.array(central, dtype=np.float64).reshape(-1, 2)
    share = planned_share(study.default_share) / MICRO
    public = sum(count for (trust, *_), count in profile.people.items() if trust is Trust.PUBLIC)
    problem = AffineProblem(
        table[:, 0] / MICRO * share,
        table[:, 1],
        public=float(public),
        tilt=study.tilt / MICRO,
        people=float(profile.total),
    )
    known = WORST_VARIANCE if variance is None else variance
    tau = problem.solve(known).tau / share * MICRO
    return None if math.isinf(tau) else math.ceil(tau)
