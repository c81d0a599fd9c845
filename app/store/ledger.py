"""Reading the ledger: pages for admins and the recomputation that `dither audit` makes."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import asyncpg

from app.core.chain import Link, RecordedAudit
from app.core.noise import MEASURED
from app.core.records import ClusterRelease, LedgerLine, ReleaseLine
from app.core.release import Charge, chain_hash
from app.core.reporting_range import INSIDE
from app.core.study import Currency, Relation
from app.store.budgets import UNSPENT
from app.store.membership import IS_MEMBER, sum_of_squares, summand
from app.store.pieces import KEPT_UNDER, MEMBERS
from app.store.sql import Connection, Sql

# Bounds on the release's number alone let the index find where the page starts.
PAGE = """
    SELECT release.number, release.id AS release, study.slug AS study, release.estimator, charge.cohort_id,
           cohort.epoch, cohort.trust, cohort.epsilon AS offer, cohort.count AS people,
           charge.epsilon AS cost, study.delta, release.created_at
    FROM release JOIN charge ON charge.release_id = release.id
                 JOIN cohort ON cohort.id = charge.cohort_id JOIN study ON study.id = release.study_id
    WHERE release.number <= :number AND (release.number < :number OR charge.cohort_id < :cohort) {filters}
    ORDER BY release.number DESC, charge.cohort_id DESC LIMIT :limit
"""

PAGE_RELEASES = """
    SELECT release.number, release.id AS release, study.slug AS study, release.estimator,
           release.estimator_version, release.sequence, release.estimate, release.standard_error,
           release.epsilon_max AS most, study.delta, release.hash, release.created_at
    FROM release JOIN study ON study.id = release.study_id
    WHERE release.number < :number {filters}
    ORDER BY release.number DESC LIMIT :limit
"""

FILTERS: Mapping[str, str] = {
    "study_id": "AND release.study_id = :study_id",
    "release": "AND release.id = :release",
}
"""What a list of the ledger can be narrowed down to, each by an index."""

PAGES = {
    given: Sql.of(LedgerLine)(PAGE.format(filters=" ".join(FILTERS[name] for name in given)))
    for given in [(), ("study_id",), ("release",), ("study_id", "release")]
}
"""By the filters that are given."""

PAGES_OF_RELEASES = {
    given: Sql.of(ReleaseLine)(PAGE_RELEASES.format(filters=" ".join(FILTERS[name] for name in given)))
    for given in [(), ("study_id",)]
}

LAST_AUDIT = Sql.of(RecordedAudit)("""
    SELECT at, CAST(detail->'rules' AS int) AS rules, detail->'counts' AS counts,
           detail->'findings' AS findings
    FROM audit WHERE action = :action ORDER BY id DESC LIMIT 1
""")

CHARGES = """(SELECT release_id, unnest(cohorts) AS cohort_id, unnest(amounts) AS epsilon
                      FROM charge_block) AS charge"""
"""All rows of the view `charge`, in half of the time: that is made for those of few releases."""

# Each check is a query that returns the rows that break a rule; none may return any.
_CHECKS = {
    "a subject reserves more than the lifetime budget": """
        SELECT encode(id, 'hex') AS subject, reserved, budget, gaussian_reserved, gaussian_budget FROM subject
        WHERE reserved > budget OR gaussian_reserved > gaussian_budget
           OR reserved < 0 OR gaussian_reserved < 0
    """,
    "reserved is not the sum of a subject's reservations": f"""
        SELECT encode(s.id, 'hex') AS subject, s.reserved, coalesce(c.epsilon, 0) AS reservations,
               s.gaussian_reserved, coalesce(c.mu2, 0) AS gaussian_reservations
        FROM subject s LEFT JOIN (
            SELECT subject_id, sum(epsilon) AS epsilon, sum(mu2) AS mu2 FROM (
                SELECT subject_id, CASE WHEN study.delta = 0 THEN c.epsilon ELSE 0 END AS epsilon,
                       CASE WHEN study.delta > 0 THEN c.epsilon ELSE 0 END AS mu2
                FROM contribution c JOIN study ON study.id = c.study_id
                UNION ALL SELECT subject_id, reserved, 0 FROM enrolment
                UNION ALL SELECT subject_id, CASE WHEN delta = 0 THEN -amount ELSE 0 END,
                                 CASE WHEN delta > 0 THEN -amount ELSE 0 END
                          FROM ({UNSPENT} WHERE study.state = 'archived') freed
            ) reservation GROUP BY subject_id
        ) c ON c.subject_id = s.id
        WHERE s.reserved <> coalesce(c.epsilon, 0) OR s.gaussian_reserved <> coalesce(c.mu2, 0)
    """,
    "a contribution belongs to no subject or no study": """
        SELECT encode(c.subject_id, 'hex') AS subject, c.study_id FROM contribution c
        LEFT JOIN subject s ON s.id = c.subject_id LEFT JOIN study ON study.id = c.study_id
        WHERE s.id IS NULL OR study.id IS NULL
    """,
    "a contribution has spent more than its epsilon": """
        SELECT encode(subject_id, 'hex') AS subject, study_id, carried, epsilon
        FROM contribution
        WHERE carried > epsilon OR carried < 0 OR (value IS NULL AND carried <> epsilon)
    """,
    "a vector does not have its study's dimension, or outlived its value": """
        SELECT encode(c.subject_id, 'hex') AS subject, c.study_id FROM contribution c
        JOIN study ON study.id = c.study_id
        WHERE (study.dimension > 1 OR c.vector IS NOT NULL)
          AND coalesce(cardinality(c.vector), 0)
              <> CASE WHEN study.dimension > 1 AND c.value IS NOT NULL THEN study.dimension ELSE 0 END
    """,
    "a contribution has labels that its study does not have, or that outlived its value": f"""
        SELECT encode(c.subject_id, 'hex') AS subject, c.study_id, c.segment FROM contribution c
        JOIN study ON study.id = c.study_id
        LEFT JOIN (
            SELECT id, round(exp(sum(ln(number)))) AS number FROM (
                SELECT id, split_part(label, ':', 1) AS attribute, count(*) AS number
                FROM study, unnest(attributes) AS label GROUP BY 1, 2
            ) declared GROUP BY id
        ) combinations ON combinations.id = study.id
        WHERE c.segment < 0 OR c.segment % {INSIDE} >= coalesce(combinations.number, 1)
           OR (c.value IS NULL AND c.segment <> 0)
    """,
    "a contribution was made inside a reporting range that its study does not have": f"""
        SELECT encode(c.subject_id, 'hex') AS subject, c.study_id, c.trust, c.segment FROM contribution c
        JOIN study ON study.id = c.study_id
        WHERE c.segment >= {INSIDE} AND (study.reporting_range IS NULL OR c.trust <> 'local')
    """,
    "a cohort has spent more than its epsilon": """
        SELECT id AS cohort, spent, epsilon FROM cohort WHERE spent > epsilon OR spent < carried
    """,
    "spent is not the sum of a cohort's charges": f"""
        SELECT cohort.id AS cohort, cohort.spent, cohort.before, coalesce(c.epsilon, 0) AS charged
        FROM cohort LEFT JOIN (
            SELECT cohort_id, sum(epsilon) AS epsilon FROM {CHARGES} GROUP BY cohort_id
        ) c ON c.cohort_id = cohort.id
        WHERE CASE WHEN cohort.trust = 'local' THEN cohort.spent <> cohort.epsilon OR c.epsilon <> 0
                   ELSE cohort.spent <> cohort.before + coalesce(c.epsilon, 0) END
    """,
    "what people brought into a cohort is not what their former ones were charged": f"""
        SELECT cohort.id AS cohort, before, carried, coalesce(charged, 0) AS charged
        FROM (
            SELECT each_of.cohort_id, former, sum(epsilon) AS charged FROM (
                SELECT cohort_id, former, unnest(former || cohort_id) AS was_in
                FROM (SELECT DISTINCT cohort_id, former FROM lineage) people
            ) each_of LEFT JOIN {CHARGES} ON charge.cohort_id = was_in AND was_in <> each_of.cohort_id
            GROUP BY 1, 2
        ) brought JOIN cohort ON cohort.id = brought.cohort_id
        WHERE before <> carried + coalesce(charged, 0)
    """,
    "a charge belongs to no release or no cohort": f"""
        SELECT CAST(charge.release_id AS text) AS release, charge.cohort_id AS cohort FROM {CHARGES}
        LEFT JOIN release ON release.id = charge.release_id LEFT JOIN cohort ON cohort.id = charge.cohort_id
        WHERE release.id IS NULL OR cohort.id IS NULL OR release.study_id <> cohort.study_id
    """,
    "a cohort does not hold what was folded into it": f"""
        SELECT g.id AS cohort, g.count, coalesce(c.count, 0) AS members FROM cohort g FULL JOIN (
            SELECT lineage.cohort_id, count(*) AS count, sum({summand()}) AS total,
                   {sum_of_squares("c", summand())} AS squares
            FROM contribution c JOIN study ON study.id = c.study_id
            LEFT JOIN lineage ON {IS_MEMBER}
            WHERE c.value IS NOT NULL AND c.epoch <= study.folded_epoch GROUP BY 1
        ) c ON g.id = c.cohort_id
        WHERE g.id IS NULL AND c.count > 0
           OR g.id IS NOT NULL AND (g.count <> coalesce(c.count, 0) OR g.total <> coalesce(c.total, 0)
                                    OR g.total_squares <> coalesce(c.squares, 0))
    """,
    "a cohort has people of another key, or who joined after it was charged": """
        SELECT lineage.was_in AS cohort, lineage.epoch, paid.epoch AS charged
        FROM (SELECT *, unnest(former || cohort_id) AS was_in FROM lineage) lineage
        LEFT JOIN cohort g ON g.id = lineage.was_in
        LEFT JOIN (
            SELECT cohort_id, min(epoch) AS epoch FROM (
                SELECT unnest(cohorts) AS cohort_id, release.epoch
                FROM charge_block JOIN release ON release.id = release_id
            ) charged GROUP BY 1
        ) paid ON paid.cohort_id = lineage.was_in
        WHERE lineage.epoch > paid.epoch OR lineage.epoch > g.epoch OR lineage.reach > g.reach
           OR (lineage.study_id, lineage.trust, lineage.segment, lineage.epsilon, lineage.carried)
              IS DISTINCT FROM (g.study_id, g.trust, g.segment, g.epsilon, g.carried)
    """,
    "an epoch that is not folded does not hold what was acknowledged": """
        SELECT coalesce(c.study_id, t.study_id) AS study_id, coalesce(c.epoch, t.epoch) AS epoch,
               coalesce(c.count, 0) AS live, coalesce(t.count, 0) AS acknowledged
        FROM (
            SELECT contribution.study_id, contribution.epoch, count(*) AS count
            FROM contribution JOIN study ON study.id = contribution.study_id
            WHERE contribution.value IS NOT NULL AND contribution.epoch > study.folded_epoch GROUP BY 1, 2
        ) c FULL JOIN (
            SELECT study_id, epoch, sum(count) AS count FROM tally GROUP BY 1, 2
        ) t ON (t.study_id, t.epoch) = (c.study_id, c.epoch)
        WHERE coalesce(c.count, 0) <> coalesce(t.count, 0)
    """,
    "a contribution carries an epoch that has not begun": """
        SELECT c.study_id, c.epoch FROM contribution c JOIN study ON study.id = c.study_id
        WHERE c.epoch > study.epoch
    """,
    "an enrolment belongs to no subject or no session": """
        SELECT encode(e.subject_id, 'hex') AS subject, CAST(e.session_id AS text) AS session
        FROM enrolment e LEFT JOIN subject s ON s.id = e.subject_id
        LEFT JOIN session ON session.id = e.session_id
        WHERE s.id IS NULL OR session.id IS NULL
    """,
    "an enrolment has spent more than it reserves": """
        SELECT encode(subject_id, 'hex') AS subject, CAST(session_id AS text) AS session, spent, reserved
        FROM enrolment WHERE spent > reserved OR spent < 0
    """,
    "an enrolment does not reserve what its session costs": """
        SELECT encode(e.subject_id, 'hex') AS subject, CAST(e.session_id AS text) AS session,
               e.reserved, e.spent, session.epsilon
        FROM enrolment e JOIN session ON session.id = e.session_id JOIN study ON study.id = session.study_id
        WHERE e.reserved <> CASE WHEN session.state = 'open' THEN session.epsilon ELSE e.spent END
          AND NOT (study.state = 'retired' AND e.reserved = session.epsilon)
    """,
    "a study that has ended has an open session": """
        SELECT CAST(session.id AS text) AS session, study.slug AS study
        FROM session JOIN study ON study.id = session.study_id
        WHERE study.state IN ('archived', 'retired') AND session.state = 'open'
    """,
    "spent is not what a person's answers in a session cost": """
        SELECT encode(coalesce(e.subject_id, a.subject_id), 'hex') AS subject,
               CAST(coalesce(e.session_id, a.session_id) AS text) AS session, e.spent, a.answers
        FROM enrolment e FULL JOIN (
            SELECT session_id, subject_id, count(*) AS answers FROM answer GROUP BY session_id, subject_id
        ) a ON (a.session_id, a.subject_id) = (e.session_id, e.subject_id)
        LEFT JOIN session ON session.id = coalesce(e.session_id, a.session_id)
        WHERE e.spent IS DISTINCT FROM session.epsilon_report + a.answers * session.epsilon_per_answer
    """,
    "a person answered a session in more rounds than they are asked": """
        SELECT CAST(a.session_id AS text) AS session, encode(a.subject_id, 'hex') AS subject,
               count(*) AS answers, count(DISTINCT a.round) AS rounds
        FROM answer a JOIN session ON session.id = a.session_id
        GROUP BY a.session_id, a.subject_id, session.assignment_key, session.rounds
        HAVING count(*) > count(DISTINCT a.round)
            OR count(*) > CASE WHEN session.assignment_key IS NULL THEN session.rounds ELSE 1 END
    """,
    "a session does not count the answers of its open round": """
        SELECT CAST(session.id AS text) AS session, session.round, session.answers,
               coalesce(a.count, 0) AS given
        FROM session LEFT JOIN (
            SELECT session_id, round, count(*) AS count FROM answer GROUP BY session_id, round
        ) a ON a.session_id = session.id AND a.round = session.round
        WHERE session.answers <> coalesce(a.count, 0)
    """,
    "an answer belongs to a round that has not begun": """
        SELECT CAST(a.session_id AS text) AS session, a.round FROM answer a
        JOIN session ON session.id = a.session_id
        WHERE a.round > session.round OR a.round > session.rounds OR a.round < 1
    """,
    "a closed round does not hold the answers it was closed with": """
        SELECT CAST(session.id AS text) AS session, step.round, step.answers, coalesce(a.count, 0) AS given
        FROM session CROSS JOIN LATERAL (
            SELECT ordinality AS round, CAST(value->>'answers' AS bigint) AS answers,
                   CAST(value->>'positives' AS bigint) AS positives
            FROM jsonb_array_elements(session.document->'steps') WITH ORDINALITY
        ) step
        LEFT JOIN (
            SELECT session_id, round, count(*) AS count, count(*) FILTER (WHERE answer = 1) AS positives
            FROM answer GROUP BY session_id, round
        ) a ON a.session_id = session.id AND a.round = step.round
        WHERE step.answers <> coalesce(a.count, 0) OR step.positives <> coalesce(a.positives, 0)
    """,
    "the columns of a release are not what its document says": """
        SELECT CAST(release.id AS text) AS release, estimate, standard_error, noisy_count, variance,
               epsilon_max
        FROM release CROSS JOIN LATERAL (SELECT CAST(convert_from(body, 'UTF8') AS jsonb) AS body) said
        WHERE estimate IS DISTINCT FROM CAST(said.body->>'estimate' AS float8)
           OR standard_error IS DISTINCT FROM CAST(said.body->>'standard_error' AS float8)
           OR noisy_count IS DISTINCT FROM CAST(said.body->>'noisy_count' AS float8)
           OR variance IS DISTINCT FROM CAST(said.body#>>'{variance,population_interval,upper}' AS float8)
           OR epsilon_max <> round(CAST(coalesce(said.body->>'mu2_max', said.body->>'epsilon_max') AS numeric)
                                   * 1000000)
           OR people IS DISTINCT FROM CAST(said.body->>'people' AS bigint)
           OR people_left_out IS DISTINCT FROM CAST(said.body->>'people_left_out' AS bigint)
    """,
    "a question's pieces were not charged what its releases charged": f"""
        SELECT coalesce(kept.study_id, paid.study_id) AS study_id,
               coalesce(kept.cohort_id, paid.cohort_id) AS cohort, kept.charged, paid.epsilon
        FROM (
            SELECT study_id, family, member.cohort_id, sum(member.charged) AS charged
            FROM {MEMBERS} GROUP BY 1, 2, 3
        ) kept FULL JOIN (
            SELECT release.study_id, {KEPT_UNDER} AS family, charge.cohort_id, sum(charge.epsilon) AS epsilon
            FROM release JOIN charge ON charge.release_id = release.id
            WHERE release.share_before IS NOT NULL
               OR release.id IN (SELECT release_id FROM piece JOIN release ON release.id = release_id
                                 JOIN study ON study.id = piece.study_id
                                 WHERE share_before IS NULL AND study.relation = 'replace_one')
            GROUP BY 1, 2, 3
        ) paid ON (paid.study_id, paid.family, paid.cohort_id) = (kept.study_id, kept.family, kept.cohort_id)
        WHERE kept.charged IS DISTINCT FROM paid.epsilon
    """,
    "a cohort of a piece has people who were not there when it was drawn": f"""
        SELECT piece.study_id, member.cohort_id AS cohort, cohort.count, member.count AS drawn
        FROM {MEMBERS} JOIN cohort ON cohort.id = member.cohort_id
        WHERE cohort.count > member.count
    """,
    "it is kept who is in a sum where that is secret": """
        SELECT piece.study_id, CAST(piece.release_id AS text) AS release
        FROM piece JOIN study ON study.id = piece.study_id
        WHERE cardinality(piece.cohorts) > 0 AND study.relation <> 'replace_one'
    """,
    "a question has a gap in its releases": """
        SELECT study_id, encode(question, 'hex') AS question FROM release
        GROUP BY study_id, question HAVING max(sequence) <> count(*) OR min(sequence) <> 1
    """,
}

CHECKS: Mapping[str, Sql[Any]] = {
    rule: Sql(f"SELECT * FROM ({rows}) broken LIMIT :limit") for rule, rows in _CHECKS.items()
}

MERGED = frozenset(rule for rule, rows in _CHECKS.items() if "JOIN lineage" not in rows)
"""Checks that may join by merging: over ten million people they take half the time so. See `PLANNER`."""

ALLOW_MERGES = Sql("SELECT set_config('enable_mergejoin', :merges, true)")

COUNTS = Sql("""
    SELECT (SELECT count(*) FROM subject) AS subjects, (SELECT count(*) FROM contribution) AS contributions,
           (SELECT count(*) FROM cohort) AS cohorts, (SELECT count(*) FROM release) AS releases,
           (SELECT coalesce(sum(cardinality(cohorts)), 0) FROM charge_block) AS charges,
           (SELECT count(*) FROM session) AS sessions, (SELECT count(*) FROM enrolment) AS enrolments,
           (SELECT count(*) FROM answer) AS answers
""")

READ_LINKS = Sql("""
    SELECT number, release.id, study_id, question, sequence, release.epoch, estimator, estimator_version,
           release.noise, body, previous_hash, hash, relation, delta
    FROM release JOIN study ON study.id = study_id ORDER BY number
""")


READ_LINK_CHARGES = Sql.of(Charge)("""
    SELECT cohort_id, epsilon FROM charge WHERE release_id = :release ORDER BY cohort_id
""")

READ_ROUNDS = Sql.of(ClusterRelease)("""
    SELECT release.id AS release, coalesce(release.noise->'scales', release.noise->'sigmas', '[]') AS scales,
           study.relation, study.dimension, study.delta,
           ARRAY(SELECT DISTINCT charge.epsilon FROM charge WHERE charge.release_id = release.id
                 ORDER BY charge.epsilon) AS costs,
           EXISTS (SELECT FROM session, jsonb_array_elements(session.document->'steps') AS step
                   WHERE session.study_id = release.study_id AND session.protocol = 'kmeans'
                     AND step->>'release' = CAST(release.id AS text)) AS closed_a_round
    FROM release JOIN study ON study.id = release.study_id
    WHERE release.estimator = 'kmeans' ORDER BY release.number
""")

READ_HEAD = Sql("SELECT number, hash FROM chain WHERE id = 1")

LINKS_AT_ONCE = 500


async def page_charges(
    connection: Connection, *, number: int, cohort: int, limit: int, **filters: object
) -> list[LedgerLine]:
    """Charges before (number, cohort), newest first; those that meet all `FILTERS` that are not None."""
    given = _given(filters)
    return await PAGES[tuple(given)].all(connection, number=number, cohort=cohort, limit=limit, **given)


async def page_releases(
    connection: Connection, *, number: int, limit: int, **filters: object
) -> list[ReleaseLine]:
    """Releases before a number, newest first; those that meet all `FILTERS` that are not None."""
    given = _given(filters)
    return await PAGES_OF_RELEASES[tuple(given)].all(connection, number=number, limit=limit, **given)


def _given(filters: Mapping[str, object]) -> dict[str, object]:
    return {name: filters[name] for name in FILTERS if filters.get(name) is not None}


async def last_audit(connection: Connection, action: str) -> RecordedAudit | None:
    """The audit that was recorded last; None where there was none."""
    return await LAST_AUDIT.maybe(connection, action=action)


async def counts(connection: Connection) -> dict[str, int]:
    """Rows of each table of the ledger."""
    return dict((await COUNTS.one(connection)).items())


async def violations(connection: Connection, check: str, limit: int) -> Sequence[Mapping[str, object]]:
    """A few of the rows that break one of `CHECKS`, for people: each check names its own columns."""
    await ALLOW_MERGES.run(connection, merges="on" if check in MERGED else "off")
    return [dict(row.items()) for row in await CHECKS[check].all(connection, limit=limit)]


async def head(connection: Connection) -> tuple[int, bytes]:
    """Number and hash of the last link, as the chain remembers them."""
    number, link = await READ_HEAD.one(connection)
    return number, link


async def cluster_releases(connection: Connection) -> list[ClusterRelease]:
    """Every release of a K-means round, in the order of the chain."""
    return await READ_ROUNDS.all(connection)


async def links(connection: Connection) -> AsyncIterator[Link]:
    """Every link in order."""
    async for part in READ_LINKS.parts(connection, LINKS_AT_ONCE):
        for row in part:
            # Of one release at a time: years of daily releases have millions.
            charges = await READ_LINK_CHARGES.all(connection, release=row["id"])
            yield Link(
                number=row["number"],
                release=row["id"],
                previous=row["previous_hash"],
                hash=row["hash"],
                recomputed=_hash_of(row, charges),
                relation=Relation(row["relation"]),
                currency=Currency.at(row["delta"]),
                measured=row["noise"].get(MEASURED, []),
                charged={charge.cohort_id: charge.epsilon for charge in charges},
            )


def _hash_of(row: asyncpg.Record, charges: Sequence[Charge]) -> bytes:
    fields = dict(row.items())
    del fields["hash"], fields["relation"], fields["delta"]
    fields["noise"] = json.dumps(fields["noise"])
    return chain_hash(fields.pop("previous_hash"), release_id=fields.pop("id"), **fields, charges=charges)
