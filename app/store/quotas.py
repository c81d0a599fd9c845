"""Quotas: what each token has used of each study, by the database's own clock."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from app.core.quota import Quota, QuotaExhausted
from app.store.sql import Connection, Sql

SET = Sql("UPDATE token SET quota_share = :share, quota_period = :period WHERE id = :id")

# The clock of the database, not that of a process: processes may disagree about the time. Read after the lock
# of the chain was had, so a row that is not seen here is written later than this.
READ = Sql("""
    SELECT token.quota_share, token.quota_period, coalesce(sum(usage.share), 0) AS used
    FROM token LEFT JOIN usage ON usage.token_id = token.id AND usage.study_id = :study
        AND usage.at > clock_timestamp() - make_interval(secs => token.quota_period)
    WHERE token.id = :token GROUP BY token.id
""")

# When enough of the usage will have left the window.
FREED = Sql.of(float)("""
    SELECT CAST(extract(epoch FROM at + make_interval(secs => :period) - clock_timestamp()) AS float8)
    FROM (SELECT at, sum(share) OVER (ORDER BY at, release_id) AS freed FROM usage
          WHERE token_id = :token AND study_id = :study
            AND at > clock_timestamp() - make_interval(secs => :period)) older
    WHERE freed >= :needed ORDER BY at LIMIT 1
""")

NOTE = Sql("""
    INSERT INTO usage (release_id, token_id, study_id, share, at)
    VALUES (:release, :token, :study, :share, clock_timestamp())
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyUsage:
    """What a token used of one study, in its quota's period or, without a quota, ever.

    Attributes:
        study: Slug.
        releases: How many it made.
        used: The most that they took of a person's epsilon, together [ppm].
    """

    study: str
    releases: int
    used: int


PAGE = Sql.of(StudyUsage)("""
    SELECT study.slug AS study, count(*) AS releases, sum(usage.share) AS used
    FROM usage JOIN study ON study.id = usage.study_id LEFT JOIN token ON token.id = usage.token_id
    WHERE usage.token_id = :token AND study.slug > :after
      AND (token.quota_period IS NULL
           OR usage.at > clock_timestamp() - make_interval(secs => token.quota_period))
    GROUP BY study.slug ORDER BY study.slug LIMIT :limit
""")


async def set_quota(connection: Connection, token_id: UUID, quota: Quota | None) -> None:
    """Limit a token, or lift its limit."""
    values = (None, None) if quota is None else (quota.share, quota.period_seconds)
    await SET.run(connection, id=token_id, share=values[0], period=values[1])


async def room(connection: Connection, token_id: UUID, study_id: int) -> float:
    """What a token's quota has left of a study [ppm]; infinity without one."""
    limit, _, used = await READ.one(connection, token=token_id, study=study_id)
    return math.inf if limit is None else limit - used


async def check(connection: Connection, token_id: UUID, study_id: int, share: int) -> None:
    """Refuse a release that does not fit the token's quota. Exact if the chain is locked.

    Args:
        connection: In a transaction.
        token_id: Who asks.
        study_id: The study.
        share: The most that the release takes of a person's epsilon [ppm].

    Raises:
        QuotaExhausted: it does not fit.
    """
    limit, period, used = await READ.one(connection, token=token_id, study=study_id)
    if limit is None or used + share <= limit:
        return
    if share > limit:
        raise QuotaExhausted(
            "the question takes more than this token's whole quota; ask with a smaller share",
            retry_after=None,  # waiting cannot help
        )
    seconds = await FREED.maybe(
        connection, token=token_id, study=study_id, period=period, needed=used + share - limit
    )
    raise QuotaExhausted(
        "this token has used its quota of this study",
        retry_after=min(period, max(1, math.ceil(seconds or 0))),
    )


async def note(connection: Connection, release_id: UUID, token_id: UUID, study_id: int, share: int) -> None:
    """Remember who asked for a release, and what it takes [ppm]; in the transaction that publishes it."""
    await NOTE.run(connection, release=release_id, token=token_id, study=study_id, share=share)


async def page_usage(
    connection: Connection, token_id: UUID, *, after: str, limit: int
) -> Sequence[StudyUsage]:
    """What a token used of each study, by slug."""
    return await PAGE.all(connection, token=token_id, after=after, limit=limit)
