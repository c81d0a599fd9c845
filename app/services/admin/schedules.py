"""Schedules: who asks what by itself, when, and what came of it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from app.core.clock import Clock
from app.core.errors import InvalidRequest, NotFound, ServiceError, StudyArchived, StudyRetired
from app.core.principal import Principal, Role
from app.core.quota import FOR_EVER, Quota
from app.core.schedule import Due, Every, Schedule, time_after
from app.core.study import Study, StudyState
from app.core.webhook import EventType
from app.services.admin.tokens import LOWEST_ID, hash_secret, new_secret
from app.services.paging import Page, decode_cursor, page_of
from app.services.statistics.any_request import AnyRequest
from app.store import journal, outbox, quotas
from app.store import schedules as store
from app.store import tokens as stored_tokens
from app.store.database import Connection, Database
from app.store.tokens import TokenRecord

NO_SCHEDULE = "There is no such schedule."

NO_STEPS = (
    "each answer to this question is paid by everyone, as all are where the number of people is secret: "
    "newcomers alone cannot be asked; give until"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a question is asked, and until when.

    Attributes:
        every: How often.
        starts_at: The first time; None: now.
        newcomers: Whether people are asked once each.
        until: The share in all with which it ends [ppm]; None where newcomers alone are asked.
        quota: The most that its answers may take of any person's epsilon, together [ppm].
    """

    every: Every
    starts_at: datetime | None
    newcomers: bool
    until: int | None
    quota: int


class Schedules:
    """The schedules of one installation.

    Each has a token of its own that no one can bear: the quota of that holds it as it would hold an analyst,
    in the transaction that charges people, and revoking it stops the schedule.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def create(
        self, study: Study, principal: Principal, question: str, request: AnyRequest, times: Times
    ) -> Schedule:
        """Have a question asked from now on.

        Args:
            study: Of this study.
            principal: Who says so.
            question: JSON object, as it will be read again.
            request: What was read of it, checked.
            times: When.

        Raises:
            InvalidRequest: newcomers alone cannot be asked, or it is not said whether they are.
            StudyArchived, StudyRetired: the study answers nothing any more.
        """
        if times.newcomers == (times.until is not None):
            raise InvalidRequest.field("until", "give either until, a share, or newcomers: true")
        if times.newcomers and not request.by_steps:
            raise InvalidRequest.field("newcomers", NO_STEPS)
        if study.state is StudyState.ARCHIVED:
            raise StudyArchived("the study has ended and gives only the answers that it has")
        if study.state is StudyState.RETIRED:
            raise StudyRetired("the study gives only the answers that it has")
        now = self._clock.now()
        schedule = Schedule(
            id=uuid4(),
            study=study.definition.slug,
            token_id=uuid4(),
            question=question,
            every=times.every,
            starts_at=times.starts_at or now,
            share=request.question.share,
            until=times.until,
            quota=times.quota,
            created_at=now,
            due_at=times.starts_at or now,
            answered=0,
            asked_at=None,
            release=None,
            refusal=None,
        )

        async def body(connection: Connection) -> None:
            await stored_tokens.insert_token(connection, _bearer(schedule), hash_secret(new_secret()))
            quota = Quota(share=times.quota, period_seconds=FOR_EVER)
            await quotas.set_quota(connection, schedule.token_id, quota)
            await store.insert(connection, schedule, study.id)
            await self._note(connection, str(principal.token_id), "create", schedule)

        await self._database.run_tx("schedule.create", body)
        return schedule

    async def get(self, study: Study, schedule_id: UUID) -> Schedule:
        """One schedule of a study.

        Raises:
            NotFound: it has no such schedule.
        """
        found = await self._database.run_tx("schedule.read", lambda c: store.read(c, schedule_id, study.id))
        if found is None:
            raise NotFound(NO_SCHEDULE)
        return found

    async def page(self, study: Study, limit: int, cursor: str | None) -> Page[Schedule]:
        """The schedules of a study."""
        after = decode_cursor(cursor, UUID, LOWEST_ID)
        items = await self._database.run_tx(
            "schedule.page", lambda c: store.page(c, study.id, after=after, limit=limit + 1)
        )
        return page_of(items, limit, lambda one: str(one.id))

    async def delete(self, study: Study, schedule_id: UUID, principal: Principal) -> None:
        """Ask no more by a schedule; its answers stay.

        Raises:
            NotFound: there is no such schedule.
        """
        schedule = await self.get(study, schedule_id)

        async def body(connection: Connection) -> None:
            if not await store.delete(connection, schedule_id):
                raise NotFound(NO_SCHEDULE)
            await stored_tokens.revoke_token(connection, schedule.token_id, self._clock.now())
            await self._note(connection, str(principal.token_id), "delete", schedule)

        await self._database.run_tx("schedule.delete", body)

    async def claim(self) -> Due | None:
        """A schedule whose time has come, for one process; one that is not settled is due again."""
        return await self._database.run_tx("schedule.claim", store.claim)

    async def settle(self, due: Due, outcome: UUID | ServiceError) -> None:
        """Note what came of a time, and when the next one is. Times that were missed are not made up for.

        Args:
            due: The schedule, as it was claimed.
            outcome: Its answer, or why there was none.
        """
        schedule = due.schedule
        release, refusal = (outcome, None) if isinstance(outcome, UUID) else (None, outcome.code)
        over = schedule.ends_next if refusal is None else isinstance(outcome, StudyArchived | StudyRetired)
        following = None if over else time_after(schedule.starts_at, schedule.every, due.now)

        async def body(connection: Connection) -> None:
            study_id = await store.settle(connection, due, following, release, refusal)
            if study_id is None:
                return
            came = {"release": str(release)} if refusal is None else {"refused": refusal}
            await self._note(connection, str(schedule.token_id), "ask", schedule, came)
            if refusal is not None:
                data = {"schedule": str(schedule.id), "code": refusal}
                await outbox.emit(connection, EventType.SCHEDULE_REFUSED, study_id, data)

        await self._database.run_tx("schedule.settle", body)

    async def _note(
        self,
        connection: Connection,
        actor: str,
        action: str,
        schedule: Schedule,
        came: dict[str, str] | None = None,
    ) -> None:
        said: dict[str, object] = {**(came or {})} or {
            "question": schedule.question,
            "every": schedule.every.value,
            "share": schedule.share,
            "until": schedule.until,
            "quota": schedule.quota,
        }
        await journal.record(
            connection,
            self._clock.now(),
            actor,
            f"schedule.{action}",
            schedule.id,
            study=schedule.study,
            **said,
        )


def _bearer(schedule: Schedule) -> TokenRecord:
    """The token of a schedule."""
    return TokenRecord(
        id=schedule.token_id,
        name=f"schedule {schedule.id}",
        roles=frozenset({Role.ANALYSE}),
        studies=frozenset({schedule.study}),
        subject=None,
        expires_at=None,
        revoked_at=None,
        created_at=schedule.created_at,
    )
