"""Asking what schedules ask: once at each of their times, by whichever process is first."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import structlog

from app.core.errors import InternalFault, InvalidRequest, ServiceError, Unavailable
from app.core.principal import Principal
from app.core.schedule import Due, Schedule
from app.core.study import Study
from app.services import Services
from app.services.admin.schedules import Times
from app.services.background import for_ever, running
from app.services.replies import Idempotency
from app.services.statistics.reading import Reading
from app.services.work import Work
from app.web import question_params

WATCH_SECONDS = 1.0

PATIENCE_SECONDS = 540.0
"""Less than `CLAIMED_SECONDS` of the store: no other process asks before this one has given up."""


async def make(
    services: Services, study: Study, principal: Principal, question: Mapping[str, object], times: Times
) -> Schedule:
    """Have a question asked from now on.

    Raises:
        InvalidRequest: the question is not admissible, or its times are not.
        StudyArchived, StudyRetired: the study answers nothing any more.
    """
    for name in (*question_params.FLAGS, "until"):
        if name in question:
            raise InvalidRequest.field(
                f"question.{name}", "is not for a schedule: it asks for a share each time"
            )
    try:
        ask = Reading.of(study.definition, question_params.read_question(question)).ask
        request = services.answering(study, ask).request_of(study, ask)
    except InvalidRequest as refusal:
        raise refusal.within("question") from None
    return await services.schedules.create(study, principal, json.dumps(dict(question)), request, times)


class Asker:
    """Asks in every process; the key of a time is the same in all of them, so that it has one answer.

    Args:
        services: Who answers.
        work: Where plans are made.
    """

    def __init__(self, services: Services, work: Work) -> None:
        self._services = services
        self._work = work
        self._log = structlog.get_logger("dither.schedules")

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """While this is open, what is due is asked."""
        async with running(for_ever(self.ask_next, WATCH_SECONDS, self._log, failed="schedule_not_asked")):
            yield

    async def ask_next(self) -> bool:
        """Ask what has been due longest; False where nothing is.

        What fails on the way stays claimed, and is asked again once that is over.
        """
        due = await self._services.schedules.claim()
        if due is None:
            return False
        outcome: UUID | ServiceError
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                outcome = await self._answer(due)
        except (InternalFault, Unavailable):
            raise
        except ServiceError as refusal:
            outcome = refusal
        await self._services.schedules.settle(due, outcome)
        return True

    async def _answer(self, due: Due) -> UUID:
        """The answer of this time: a new one, one that another process made, or one that stands.

        Raises:
            ServiceError: there is none; no one was charged.
        """
        schedule = due.schedule
        study = await self._services.studies.read(schedule.study)
        question: dict[str, Any] = json.loads(schedule.question)
        ask = Reading.of(study.definition, question_params.read_question(question)).ask
        answering = self._services.answering(study, ask)
        share = schedule.next_share
        if not answering.request_of(study, ask).by_steps and schedule.until is not None:
            # Each answer is paid by itself: the last one takes what is left.
            share -= schedule.answered * schedule.share
        key = f"{schedule.id} {schedule.due_at}"
        once = Idempotency.about_nobody(schedule.token_id, key, schedule.question.encode())
        async with self._work.turn(schedule.token_id):
            release = await answering.release(study, replace(ask, share=share), once, asker=schedule.token_id)
        return release.id
