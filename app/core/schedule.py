"""Schedules: questions that the service asks by itself, every day, week or month."""

import calendar
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID


class Every(StrEnum):
    """How often a question is asked."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    """On the same day of each month, or on its last day where it has none of that number."""


_DAYS = {Every.DAY: 1, Every.WEEK: 7}


def time_after(starts_at: datetime, every: Every, now: datetime) -> datetime:
    """The first of a schedule's times that is still to come.

    Args:
        starts_at: The first of all [UTC].
        every: How far apart they are.
        now: Times up to then are past.

    >>> from datetime import UTC
    >>> end_of_month = datetime(2030, 1, 31, 9, tzinfo=UTC)
    >>> time_after(end_of_month, Every.MONTH, datetime(2030, 2, 3, tzinfo=UTC)).isoformat()
    '2030-02-28T09:00:00+00:00'
    >>> time_after(end_of_month, Every.WEEK, datetime(2030, 2, 7, 9, tzinfo=UTC)).isoformat()
    '2030-02-14T09:00:00+00:00'
    """
    if now < starts_at:
        return starts_at
    if every is Every.MONTH:
        months = (now.year - starts_at.year) * 12 + now.month - starts_at.month
        found = _months_after(starts_at, months)
        return found if found > now else _months_after(starts_at, months + 1)
    step = timedelta(days=_DAYS[every])
    return starts_at + ((now - starts_at) // step + 1) * step


def _months_after(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.month - 1 + months, 12)
    year, month = moment.year + years, month + 1
    day = min(moment.day, calendar.monthrange(year, month)[1])
    return moment.replace(year=year, month=month, day=day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A question with its times.

    Attributes:
        id: Random id.
        study: Slug.
        token_id: A token of its own, whose secret no one has: its quota is that of the schedule.
        question: JSON object, as questions are posted.
        every, starts_at: How often, and when first.
        share: What it asks of each epsilon every time [ppm]: of newcomers alone, or on top of the last time.
        until: The share in all with which it ends; None: newcomers only [ppm].
        quota: The most that its answers may take of any person's epsilon, together [ppm].
        created_at: When.
        due_at: When it is asked next; None: it has ended.
        answered: How many times it was answered.
        asked_at: When it was asked last.
        release: Its last answer.
        refusal: Code of what the last time was refused for; None where it was answered.
    """

    id: UUID
    study: str
    token_id: UUID
    question: str
    every: Every
    starts_at: datetime
    share: int
    until: int | None
    quota: int
    created_at: datetime
    due_at: datetime | None
    answered: int
    asked_at: datetime | None
    release: UUID | None
    refusal: str | None

    @property
    def next_share(self) -> int:
        """What the question is to have taken of each epsilon after the next time [ppm]."""
        return self.share if self.until is None else min(self.until, (self.answered + 1) * self.share)

    @property
    def ends_next(self) -> bool:
        """Whether the next answer is the last one."""
        return self.next_share == self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A schedule at a time that has come, and the time by the database's clock."""

    schedule: Schedule
    now: datetime
