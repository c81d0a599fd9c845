"""The audit: clean on an honest ledger of every kind of event, and a finding for every kind of tampering."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from app.core.epsilon import MICRO
from app.core.session import SessionProtocol
from app.core.study import LocalMechanism, Relation, Study, Trust
from app.services.admin.ledger import (
    CHAIN_RULE,
    HEAD_RULE,
    PIECE_RULE,
    PRICE_RULE,
    RANGE_RULE,
    ROUND_RULE,
)
from app.services.statistics.questions import Ask
from app.sessions.search import Mode
from app.store.ledger import CHECKS, head, links
from app.store.ledger import violations as store_violations
from app.store.sql import Connection, driver
from tests.store.session_kit import Stage
from tests.store.workbench import ADMIN, KEY, Workbench, batch, in_mu2, offer, workbench
from tests.support.databases import Server, run_apart
from tests.support.forgery import MOVE_HEAD, UNLOCK, audited, forge, reseal, tampered

OVER_BUDGET = "a subject reserves more than the lifetime budget"
RESERVED = "reserved is not the sum of a subject's reservations"
ORPHAN = "a contribution belongs to no subject or no study"
VECTOR = "a vector does not have its study's dimension, or outlived its value"
LABELS = "a contribution has labels that its study does not have, or that outlived its value"
INSIDE = "a contribution was made inside a reporting range that its study does not have"
CONTRIBUTION_OVERSPENT = "a contribution has spent more than its epsilon"
COHORT_OVERSPENT = "a cohort has spent more than its epsilon"
SPENT = "spent is not the sum of a cohort's charges"
CHARGE_ORPHAN = "a charge belongs to no release or no cohort"
PIECES = "a question's pieces were not charged what its releases charged"
HIDDEN = "it is kept who is in a sum where that is secret"
JOINED = "a cohort of a piece has people who were not there when it was drawn"
FOLDED = "a cohort does not hold what was folded into it"
BROUGHT = "what people brought into a cohort is not what their former ones were charged"
SHARED = "a cohort has people of another key, or who joined after it was charged"
UNSEEN = "an epoch that is not folded does not hold what was acknowledged"
FUTURE = "a contribution carries an epoch that has not begun"
GAP = "a question has a gap in its releases"
SAID = "the columns of a release are not what its document says"
ENROLMENT_ORPHAN = "an enrolment belongs to no subject or no session"
ENROLMENT_OVERSPENT = "an enrolment has spent more than it reserves"
ENROLMENT_RESERVED = "an enrolment does not reserve what its session costs"
ENDED_OPEN = "a study that has ended has an open session"
ENROLMENT_SPENT = "spent is not what a person's answers in a session cost"
ANSWERED_TWICE = "a person answered a session in more rounds than they are asked"
OPEN_ANSWERS = "a session does not count the answers of its open round"
ROUND_AHEAD = "an answer belongs to a round that has not begun"
CLOSED_ROUND = "a closed round does not hold the answers it was closed with"


LAST = "(SELECT id FROM release ORDER BY number DESC LIMIT 1)"
FIRST = "(SELECT id FROM release ORDER BY number LIMIT 1)"
SUBJECT = """(SELECT subject_id FROM contribution WHERE value IS NOT NULL AND trust = 'central'
    AND subject_id NOT IN (SELECT subject_id FROM enrolment) LIMIT 1)"""
CENTRAL = "(SELECT min(id) FROM cohort WHERE trust = 'central' AND count > 0 AND spent > carried)"
LOCAL = "(SELECT min(id) FROM cohort WHERE trust = 'local' AND count > 0)"
SPARE = "(SELECT min(id) FROM cohort WHERE trust = 'central' AND spent < epsilon)"
IN_COHORT = """(SELECT c.ctid FROM contribution c
    JOIN lineage g USING (study_id, epoch, trust, segment, epsilon, carried)
    WHERE c.trust = 'central' AND c.value IS NOT NULL LIMIT 1)"""
OPEN_SESSION = """(SELECT id FROM session
    WHERE state = 'open' AND assignment_key IS NULL AND protocol = 'minimum')"""
ASKED_ONCE = "(SELECT id FROM session WHERE assignment_key IS NOT NULL)"
FINISHED_SESSION = "(SELECT id FROM session WHERE state = 'finished')"
PARTICIPANT = f"""(SELECT subject_id FROM answer WHERE session_id = {OPEN_SESSION} AND round = 2
    ORDER BY subject_id LIMIT 1)"""
IN_PIECE = "(SELECT min(cohort) FROM piece, unnest(cohorts) AS cohort)"
LAST_LINK = "SELECT number, hash FROM release ORDER BY number DESC LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampering:
    """What somebody with the database did to it, and which rules must be found broken by it, at least."""

    name: str
    statements: Sequence[str]
    rules: frozenset[str]


def tampering(name: str, rules: str | Sequence[str], *statements: str) -> Tampering:
    broken = frozenset([rules] if isinstance(rules, str) else rules)
    return Tampering(name=name, statements=statements, rules=broken)


TAMPERINGS = (
    tampering(
        "people who were in a charged cohort before",
        BROUGHT,
        f"UPDATE lineage SET former = ARRAY[{CENTRAL}] WHERE cohort_id <> {CENTRAL}",
    ),
    tampering(
        "a coordinate lost",
        VECTOR,
        "UPDATE contribution SET vector = vector[1:1] WHERE vector IS NOT NULL",
    ),
    tampering(
        "a vector made of a number",
        VECTOR,
        f"UPDATE contribution SET vector = '{{1}}' WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a vector kept after a withdrawal",
        VECTOR,
        "ALTER TABLE contribution DROP CONSTRAINT ck_contribution_vector_withdrawn_with_value",
        "UPDATE contribution SET value = NULL WHERE vector IS NOT NULL",
    ),
    tampering(
        "labels that were never declared",
        (LABELS, FOLDED),
        f"UPDATE contribution SET segment = 1 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a report inside a range that there is not",
        (INSIDE, FOLDED),
        f"UPDATE contribution SET segment = segment + 1024 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a reporting range that no search found",
        RANGE_RULE,
        """UPDATE study SET reporting_range =
           '{"start": 0, "zoom": 10, "outside": 0.1, "searches": ["none", "none"]}'
           WHERE id = (SELECT min(id) FROM study)""",
    ),
    tampering(
        "less noise in a K-means round",
        (ROUND_RULE, CHAIN_RULE),
        *UNLOCK,
        "UPDATE release SET noise = jsonb_set(noise, '{scales,0}', '1000000') WHERE estimator = 'kmeans'",
    ),
    tampering(
        "a K-means round that is forgotten",
        ROUND_RULE,
        """UPDATE session SET document = jsonb_set(document, '{steps,0,release}', 'null')
           WHERE protocol = 'kmeans'""",
    ),
    tampering(
        "a budget below the reservations",
        OVER_BUDGET,
        "ALTER TABLE subject DROP CONSTRAINT ck_subject_reserved_within_budget",
        "UPDATE subject SET budget = reserved - 1 WHERE reserved > 0",
    ),
    tampering(
        "a negative reservation of mu^2",
        (OVER_BUDGET, RESERVED),
        "ALTER TABLE subject DROP CONSTRAINT ck_subject_gaussian_within_budget",
        "UPDATE subject SET gaussian_reserved = -1",
    ),
    tampering("a reservation taken back", RESERVED, f"UPDATE subject SET reserved = 0 WHERE id = {SUBJECT}"),
    tampering(
        "a reservation too many", RESERVED, f"UPDATE subject SET reserved = reserved + 1 WHERE id = {SUBJECT}"
    ),
    tampering(
        "a reservation of mu^2 too many",
        RESERVED,
        f"UPDATE subject SET gaussian_reserved = gaussian_reserved + 1 WHERE id = {SUBJECT}",
    ),
    tampering(
        "mu^2 reserved as epsilon",
        RESERVED,
        """UPDATE subject SET reserved = reserved + gaussian_reserved, gaussian_reserved = 0
           WHERE gaussian_reserved > 0""",
    ),
    tampering(
        "a subject deleted",
        ORPHAN,
        "ALTER TABLE contribution DROP CONSTRAINT fk_contribution_subject_id_subject",
        f"DELETE FROM subject WHERE id = {SUBJECT}",
    ),
    tampering(
        "a contribution moved to no study",
        ORPHAN,
        f"UPDATE contribution SET study_id = 0 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a contribution that spent too much",
        CONTRIBUTION_OVERSPENT,
        "ALTER TABLE contribution DROP CONSTRAINT ck_contribution_carried_within_epsilon",
        f"UPDATE contribution SET carried = epsilon + 1 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a past forgotten",
        CONTRIBUTION_OVERSPENT,
        "UPDATE contribution SET carried = 0 WHERE value IS NULL AND carried > 0",
    ),
    tampering(
        "a past forgotten with its reservation",
        RESERVED,
        "UPDATE contribution SET carried = 0, epsilon = 0 WHERE value IS NULL AND carried > 0",
    ),
    tampering(
        "a cohort that spent too much",
        (COHORT_OVERSPENT, SPENT),
        "ALTER TABLE cohort DROP CONSTRAINT ck_cohort_spent_within_epsilon",
        f"UPDATE cohort SET spent = epsilon + 1 WHERE id = {CENTRAL}",
    ),
    tampering("spent taken back", SPENT, f"UPDATE cohort SET spent = carried WHERE id = {CENTRAL}"),
    tampering("spent too much", SPENT, f"UPDATE cohort SET spent = spent + 1 WHERE id = {SPARE}"),
    tampering(
        "a local cohort with something left",
        SPENT,
        f"UPDATE cohort SET spent = carried WHERE id = {LOCAL}",
    ),
    tampering(
        "a charge lowered",
        (SPENT, CHAIN_RULE),
        *UNLOCK,
        f"UPDATE charge SET epsilon = epsilon - 1 WHERE release_id = {FIRST}",
    ),
    tampering(
        "a charge lowered in step with spent",
        CHAIN_RULE,
        *UNLOCK,
        f"UPDATE charge SET epsilon = epsilon - 1 WHERE release_id = {FIRST}",
        f"""UPDATE cohort SET spent = spent - 1
            WHERE id IN (SELECT cohort_id FROM charge WHERE release_id = {FIRST})""",
    ),
    tampering(
        "a charge deleted", (SPENT, CHAIN_RULE), *UNLOCK, f"DELETE FROM charge WHERE release_id = {FIRST}"
    ),
    tampering(
        "a charge added",
        (SPENT, CHAIN_RULE),
        *UNLOCK,
        f"INSERT INTO charge SELECT {FIRST}, {LOCAL}, 1",
    ),
    tampering(
        "a charge of no cohort",
        (CHARGE_ORPHAN, CHAIN_RULE),
        *UNLOCK,
        f"INSERT INTO charge SELECT {FIRST}, 1000000, 1",
    ),
    tampering(
        "a charge of no release",
        (CHARGE_ORPHAN, SPENT),
        f"INSERT INTO charge_block SELECT gen_random_uuid(), ARRAY[{CENTRAL}], ARRAY[1]",
    ),
    tampering("a person too few", FOLDED, f"UPDATE cohort SET count = count - 1 WHERE id = {CENTRAL}"),
    tampering("a sum changed", FOLDED, f"UPDATE cohort SET total = total + 1 WHERE id = {CENTRAL}"),
    tampering("a reach changed", FOLDED, f"UPDATE lineage SET reach = -1073741824 WHERE cohort_id = {LOCAL}"),
    tampering(
        "people moved to another cohort",
        (FOLDED, SHARED),
        f"UPDATE lineage SET cohort_id = {LOCAL} WHERE cohort_id = {CENTRAL}",
    ),
    tampering(
        "people let into a cohort that had been charged",
        (CHAIN_RULE, SHARED),
        *UNLOCK,
        "UPDATE release SET epoch = 0",
    ),
    tampering("an epoch of a cohort forgotten", SHARED, f"UPDATE cohort SET epoch = 0 WHERE id = {CENTRAL}"),
    tampering(
        "a sum of squares changed",
        FOLDED,
        f"UPDATE cohort SET total_squares = total_squares + 1 WHERE id = {LOCAL}",
    ),
    tampering(
        "a sum of squared values changed",
        FOLDED,
        f"UPDATE cohort SET total_squares = total_squares + 1 WHERE id = {CENTRAL}",
    ),
    tampering(
        "a folded value changed",
        FOLDED,
        f"UPDATE contribution SET value = value + 1 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a folded epsilon changed",
        (FOLDED, RESERVED),
        f"UPDATE contribution SET epsilon = epsilon + 1 WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a fresh epsilon changed",
        RESERVED,
        "UPDATE contribution c SET epsilon = epsilon + 1 FROM study WHERE study.id = c.study_id "
        "AND c.epoch = study.epoch AND c.value IS NOT NULL",
    ),
    tampering(
        "a folded trust tag changed",
        FOLDED,
        f"UPDATE contribution SET trust = 'local' WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "a folded contribution deleted",
        (FOLDED, RESERVED),
        f"DELETE FROM contribution WHERE ctid = {IN_COHORT}",
    ),
    tampering(
        "somebody smuggled into a folded epoch",
        FOLDED,
        "UPDATE contribution c SET epoch = 1 FROM study WHERE study.id = c.study_id "
        "AND c.epoch = study.epoch AND c.value IS NOT NULL",
    ),
    tampering(
        "a cohort deleted",
        FOLDED,
        "DELETE FROM lineage WHERE trust = 'public'",
        "DELETE FROM cohort WHERE trust = 'public'",
    ),
    tampering("a fold undone", FOLDED, "UPDATE study SET folded_epoch = 0"),
    tampering("a tally changed", UNSEEN, "UPDATE tally SET count = count + 1"),
    tampering(
        "a contribution that is not folded gone",
        UNSEEN,
        "DELETE FROM contribution c USING study WHERE study.id = c.study_id AND c.epoch > folded_epoch",
    ),
    tampering(
        "an epoch ahead of its time", FUTURE, "UPDATE contribution SET epoch = 1000 WHERE value IS NULL"
    ),
    tampering(
        "an answer changed",
        CHAIN_RULE,
        *UNLOCK,
        f"UPDATE release SET body = replace(encode(body, 'escape'), '0', '1')::bytea WHERE id = {FIRST}",
    ),
    tampering(
        "a noise changed",
        CHAIN_RULE,
        *UNLOCK,
        f"UPDATE release SET noise = jsonb_set(noise, '{{scales}}', '[1.0]') WHERE id = {FIRST}",
    ),
    tampering(
        "an estimator renamed",
        CHAIN_RULE,
        *UNLOCK,
        f"UPDATE release SET estimator = 'other' WHERE id = {LAST}",
    ),
    tampering(
        "an estimate changed in its column only",
        SAID,
        *UNLOCK,
        f"UPDATE release SET estimate = estimate + 1 WHERE id = {FIRST}",
    ),
    tampering(
        "a price lowered in its column only",
        SAID,
        *UNLOCK,
        f"UPDATE release SET epsilon_max = 0 WHERE id = {FIRST}",
    ),
    tampering(
        "an answer moved to another question",
        (CHAIN_RULE, GAP),
        *UNLOCK,
        f"UPDATE release SET question = sha256('other'), sequence = 2 WHERE id = {LAST}",
    ),
    tampering(
        "a link forged without those after it",
        CHAIN_RULE,
        *UNLOCK,
        f"UPDATE release SET hash = sha256(hash) WHERE id = {FIRST}",
    ),
    *(
        tampering(
            f"a piece's {column} changed",
            PIECE_RULE,
            f"UPDATE piece SET {column} = {changed} WHERE cardinality(cohorts) > 0",
        )
        for column, changed in {
            "unit": "unit * (1 - 1e-15)",
            "share": "1000000",
            "scale": "scale * (1 + 1e-15)",
            "sums": "ARRAY[sums[1] + 1, sums[2]]",
            "refinable": "NOT refinable",
            "release_id": f"{LAST}",
        }.items()
    ),
    *(
        tampering(
            f"{column} in a piece changed",
            PIECE_RULE,
            f"UPDATE piece SET {column}[1] = {column}[1] + 1 WHERE cardinality(cohorts) > 0",
        )
        for column in ("weights", "counts")
    ),
    tampering(
        "a piece of other people, who gave as much",
        (PIECE_RULE, PIECES),
        f"UPDATE piece SET cohorts = array_replace(cohorts, {IN_PIECE}, {LOCAL})",
    ),
    tampering(
        "a person let into a cohort of a piece",
        (JOINED, FOLDED),
        f"""UPDATE cohort SET count = 1 + (SELECT max(count) FROM piece, unnest(counts) AS count)
            WHERE id = {IN_PIECE}""",
    ),
    tampering(
        "a piece deleted",
        (PIECE_RULE, PIECES),
        "DELETE FROM piece",
    ),
    tampering(
        "a piece of no release",
        PIECE_RULE,
        """INSERT INTO piece (study_id, family, number, unit, share, scale, sums, refinable, release_id,
                              cohorts, weights, counts, charged)
           SELECT study_id, family, number + 100, unit, share, scale, sums, refinable, release_id, cohorts,
                  weights, counts, charged FROM piece""",
    ),
    tampering(
        "a piece put back to an earlier draw, as its release remembers it",
        (PIECE_RULE, CHAIN_RULE),
        *UNLOCK,
        "UPDATE piece SET sums[1] = sums[1] + 1",
        """UPDATE release SET noise = jsonb_set(noise, '{pieces,0,digest}', to_jsonb(repeat('0', 64)))
           WHERE share_before IS NOT NULL""",
    ),
    tampering(
        "a piece that charged less than its releases",
        (PIECES, PIECE_RULE),
        "UPDATE piece SET charged[1] = charged[1] - 1 WHERE cardinality(cohorts) > 0",
    ),
    tampering(
        "a sum of secret people changed",
        PIECE_RULE,
        "UPDATE piece SET sums[1] = sums[1] + 1 WHERE cohorts = '{}'",
    ),
    tampering(
        "cohorts kept of a sum of secret people",
        (HIDDEN, PIECES, PIECE_RULE),
        f"""UPDATE piece SET cohorts = ARRAY[{IN_PIECE}], weights = '{{1}}', counts = '{{9}}',
            charged = '{{1}}' WHERE cohorts = '{{}}'""",
    ),
    tampering(
        "a release cut out of the middle",
        (CHAIN_RULE, SPENT, PIECES),
        *UNLOCK,
        "DELETE FROM piece",
        f"DELETE FROM charge WHERE release_id = {FIRST}",
        f"DELETE FROM release WHERE id = {FIRST}",
    ),
    tampering(
        "the last release deleted",
        (HEAD_RULE, SPENT),
        *UNLOCK,
        f"DELETE FROM charge WHERE release_id = {LAST}",
        f"DELETE FROM release WHERE id = {LAST}",
    ),
    tampering(
        "the last release deleted and the chain's head moved back",
        SPENT,
        *UNLOCK,
        f"DELETE FROM charge WHERE release_id = {LAST}",
        f"DELETE FROM release WHERE id = {LAST}",
        f"UPDATE chain SET (number, hash) = ({LAST_LINK})",
    ),
    tampering(
        "every release deleted",
        (HEAD_RULE, SPENT),
        *UNLOCK,
        "DELETE FROM piece",
        "DELETE FROM charge",
        "DELETE FROM release",
    ),
    tampering(
        "an enrolment of nobody",
        ENROLMENT_ORPHAN,
        "ALTER TABLE enrolment DROP CONSTRAINT fk_enrolment_subject_id_subject",
        "INSERT INTO enrolment (session_id, subject_id, reserved, spent)"
        f" SELECT {OPEN_SESSION}, 'nobody', 6000000, 0",
    ),
    tampering(
        "an enrolment in no session",
        ENROLMENT_ORPHAN,
        f"UPDATE enrolment SET session_id = gen_random_uuid() WHERE session_id = {ASKED_ONCE}",
    ),
    tampering(
        "an enrolment that spent too much",
        (ENROLMENT_OVERSPENT, ENROLMENT_SPENT),
        "ALTER TABLE enrolment DROP CONSTRAINT ck_enrolment_spent_within_reserved",
        f"UPDATE enrolment SET spent = reserved + 1 WHERE session_id = {OPEN_SESSION}",
    ),
    tampering(
        "an enrolment's reservation lowered",
        (ENROLMENT_RESERVED, RESERVED),
        f"UPDATE enrolment SET reserved = reserved - 1 WHERE session_id = {OPEN_SESSION}",
    ),
    tampering(
        "a reservation kept after the end",
        (ENROLMENT_RESERVED, RESERVED),
        f"UPDATE enrolment SET reserved = reserved + 1 WHERE session_id = {FINISHED_SESSION}",
    ),
    tampering(
        "a study retired under an open session",
        ENDED_OPEN,
        f"""UPDATE study SET state = 'retired'
            WHERE id = (SELECT study_id FROM session WHERE id = {OPEN_SESSION})""",
    ),
    tampering(
        "an enrolment deleted",
        (ENROLMENT_SPENT, RESERVED),
        f"DELETE FROM enrolment WHERE session_id = {OPEN_SESSION} AND subject_id = {PARTICIPANT}",
    ),
    tampering(
        "what answers cost forgotten",
        ENROLMENT_SPENT,
        f"UPDATE enrolment SET spent = 0 WHERE session_id = {OPEN_SESSION}",
    ),
    tampering(
        "an answer deleted",
        (ENROLMENT_SPENT, OPEN_ANSWERS),
        f"""DELETE FROM answer WHERE session_id = {OPEN_SESSION}
            AND round = 2 AND subject_id = {PARTICIPANT}""",
    ),
    tampering(
        "an answer added",
        (ENROLMENT_SPENT, OPEN_ANSWERS),
        f"INSERT INTO answer (session_id, round, subject_id, answer) SELECT {OPEN_SESSION}, 2, 'stranger', 1",
    ),
    tampering(
        "an answer of somebody who is asked once, in a second round",
        (ENROLMENT_SPENT, ANSWERED_TWICE),
        f"""INSERT INTO answer (session_id, round, subject_id, answer)
            SELECT session_id, 3 - round, subject_id, 1 FROM answer
            WHERE session_id = {ASKED_ONCE}""",
    ),
    tampering(
        "an answer to a round that is yet to come",
        ROUND_AHEAD,
        f"UPDATE answer SET round = 3 WHERE session_id = {OPEN_SESSION} AND round = 2",
    ),
    tampering(
        "a count of answers changed",
        OPEN_ANSWERS,
        f"UPDATE session SET answers = answers + 1 WHERE id = {OPEN_SESSION}",
    ),
    tampering(
        "an answer of a closed round turned round",
        CLOSED_ROUND,
        f"""UPDATE answer SET answer = 1 - answer WHERE session_id = {OPEN_SESSION}
            AND round = 1 AND subject_id = {PARTICIPANT}""",
    ),
    tampering(
        "a tally changed",
        CLOSED_ROUND,
        f"""UPDATE session SET document = jsonb_set(document, '{{steps,0,positives}}', '0')
            WHERE id = {OPEN_SESSION}""",
    ),
    tampering("a head that is ahead", HEAD_RULE, "UPDATE chain SET number = number + 1"),
    tampering("a head of another chain", HEAD_RULE, "UPDATE chain SET hash = sha256(hash)"),
)


async def fill(bench: Workbench) -> None:
    """Every kind of event: trust, relations, currencies, releases, replacements, leaving and coming back."""
    contributions = bench.services.contributions

    async def release(study: Study, ask: Ask) -> None:
        """Few people are asked, so what they answer says nothing."""
        await bench.services.releases.release(study, ask, None, allow_worse=True)

    study = await bench.study()
    for number in range(6):
        await contributions.contribute(study, offer(f"p{number}", epsilon=1 + number % 2, value=number / 6))
    for number, value in enumerate((-1.5, 0.25)):
        await contributions.contribute(
            study, offer(f"local-{number}", epsilon=0.5, value=value, trust=Trust.LOCAL)
        )
    await contributions.contribute(study, offer("known", trust=Trust.PUBLIC))
    await release(study, Ask(estimator="uniform", share=MICRO // 4))
    await release(study, Ask(share=MICRO // 10))
    await contributions.withdraw(study, KEY.digest("p0"))
    await contributions.withdraw(study, KEY.digest("local-0"))
    await contributions.withdraw(study, KEY.digest("p1"))
    await contributions.contribute(study, offer("p1", epsilon=3))
    await contributions.replace(study, offer("p2", epsilon=2, value=1))
    await release(study, Ask(estimator="adpm", share=MICRO // 10))
    noisy = await bench.study(delta=1_000, local_mechanism=LocalMechanism.GAUSSIAN)
    for number in range(6):
        await contributions.contribute(noisy, in_mu2(offer(f"p{number}", epsilon=1 + number % 2), noisy))
    await contributions.contribute(noisy, in_mu2(offer("local-0", trust=Trust.LOCAL), noisy))
    await release(noisy, Ask(estimator="optimal", share=MICRO // 4))
    await contributions.withdraw(noisy, KEY.digest("p3"))
    await contributions.replace(noisy, in_mu2(offer("p4", epsilon=3), noisy))
    secret = await bench.study(relation=Relation.ADD_REMOVE_ONE, trust=frozenset({Trust.CENTRAL}))
    for number in range(4):
        await contributions.contribute(secret, offer(f"p{number}", epsilon=1 + number))
    await release(secret, Ask(share=MICRO // 2))
    await release(secret, Ask(share=MICRO // 2))
    await contributions.contribute(secret, offer("fresh", epsilon=2))
    await contributions.contribute(study, offer("fresh", epsilon=2))
    await bench.services.budgets.set_lifetime(
        KEY.digest("fresh"), epsilon=7 * MICRO, gaussian=None, reason="test", principal=ADMIN
    )
    await search(bench, study)
    await bench.services.studies.close(secret.definition.slug, ADMIN)
    await contributions.withdraw(secret, KEY.digest("p3"))


async def search(bench: Workbench, study: Study) -> None:
    """A session in its second round, one that ended early, and one that asks each person once."""
    names = ["p0", "p1", "newcomer", "other newcomer"]
    stage = await Stage.set(bench, study, epsilon=3 * MICRO)
    await stage.everybody(names, 1)
    await stage.close(1)
    await stage.everybody(names[:2], 2)
    ended = await Stage.set(bench, study, epsilon=3 * MICRO)
    await ended.everybody(names[2:], 1)
    await ended.finish()
    once = await Stage.set(bench, study, epsilon=MICRO, mode=Mode.USER_SPLIT, rounds=2)
    asked = next(name for name in map(str, range(100)) if once.made(name, 1).assigned == 1)
    await once.answer(asked, 1)


async def cluster(bench: Workbench) -> None:
    """A K-means session over vectors, in its second round."""
    study = await bench.study(dimension=2)
    points = [replace(offer(f"v{number}"), value=0, vector=(number, 5)) for number in range(3)]
    await bench.services.contributions.apply_batch(study, batch(points, dimension=2))
    stage = await Stage.set(
        bench,
        study,
        protocol=SessionProtocol.KMEANS,
        epsilon=MICRO,
        rounds=2,
        participants=None,
        centers=((Decimal(0), Decimal(0)), (Decimal(1), Decimal(1))),
    )
    await stage.close(1)


async def filled(url: str) -> None:
    async with workbench(url) as bench:
        await fill(bench)
        await cluster(bench)
        await bench.assert_clean()


@pytest.fixture(scope="module")
def honest_url(postgres_server: Server) -> Iterator[str]:
    """A database with an honest ledger. Tests undo what they do to it."""
    with postgres_server.database() as url:
        run_apart(filled(url))
        yield url


async def test_an_honest_ledger_is_clean(honest_url: str):
    report = await audited(honest_url, ())
    assert report.clean
    assert set(report.checked) == {
        *CHECKS,
        ROUND_RULE,
        RANGE_RULE,
        PIECE_RULE,
        PRICE_RULE,
        CHAIN_RULE,
        HEAD_RULE,
    }
    assert report.counts["releases"] == 7
    assert report.counts["charges"] > 5
    assert report.counts["subjects"] == 16


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda tampering: tampering.name)
async def test_the_audit_finds(honest_url: str, tampering: Tampering):
    report = await audited(honest_url, tampering.statements)
    assert not report.clean
    found = {finding.rule: finding for finding in report.findings}
    assert tampering.rules <= found.keys()
    for finding in found.values():
        assert 1 <= len(finding.examples) <= 5
        for example in finding.examples:
            assert example, "an example says where to look"
            assert not example.keys() & {"value", "total", "total_squares", "body"}, "and shows nobody's data"


# ------------------------------------------------------------------------------- with fitting hashes

MIDDLE = 3
LAST_NUMBER = 7
REWRITES = {
    "an answer": (
        [
            f"""UPDATE release SET estimate = estimate + 1, body = convert_to(CAST(
                jsonb_set(CAST(convert_from(body, 'UTF8') AS jsonb), '{{estimate}}', to_jsonb(estimate + 1))
            AS text), 'UTF8') WHERE number = {MIDDLE} AND estimate IS NOT NULL"""
        ],
        [],
    ),
    "its price": (
        [
            f"""UPDATE charge SET epsilon = epsilon - 1
            WHERE release_id = (SELECT id FROM release WHERE number = {MIDDLE}) AND epsilon > 0""",
            f"""UPDATE cohort SET spent = spent - 1 WHERE id IN
            (SELECT cohort_id FROM charge JOIN release ON release.id = release_id WHERE number = {MIDDLE})""",
            f"""UPDATE piece SET charged = ARRAY(
                SELECT paid - CAST(cohort_id IN (
                    SELECT charge.cohort_id FROM release JOIN charge ON charge.release_id = release.id
                    WHERE release.number = {MIDDLE}
                      AND (release.study_id, release.family) = (piece.study_id, piece.family)) AS int)
                FROM unnest(cohorts, charged) WITH ORDINALITY AS member (cohort_id, paid, place)
                ORDER BY place)""",
        ],
        [PRICE_RULE],
    ),
}
"""What changes in the middle of the chain; every balance agrees with it."""


@pytest.mark.parametrize(("statements", "rules"), REWRITES.values(), ids=REWRITES)
async def test_a_middle_release_rewritten_with_its_own_hash_is_found_at_its_successor(
    honest_url: str, statements: Sequence[str], rules: Sequence[str]
):
    async with tampered(honest_url, [*UNLOCK, *statements]) as (connection, audit):
        await reseal(connection)
        await forge(connection, [MIDDLE])
        found = {finding.rule: finding for finding in (await audit()).findings}
    assert found.keys() == {CHAIN_RULE, *rules}
    assert [example["number"] for example in found[CHAIN_RULE].examples] == [MIDDLE + 1]


@pytest.mark.parametrize(("statements", "rules"), REWRITES.values(), ids=REWRITES)
async def test_a_rewritten_tail_is_found_at_the_head(
    honest_url: str, statements: Sequence[str], rules: Sequence[str]
):
    async with tampered(honest_url, [*UNLOCK, *statements]) as (connection, audit):
        await reseal(connection)
        await forge(connection, range(MIDDLE, LAST_NUMBER + 1))
        findings = (await audit()).findings
    assert {finding.rule for finding in findings} == {HEAD_RULE, *rules}


@pytest.mark.parametrize(("statements", "rules"), REWRITES.values(), ids=REWRITES)
async def test_a_tail_rewritten_with_its_head_is_found_by_a_head_that_was_kept_elsewhere(
    honest_url: str, statements: Sequence[str], rules: Sequence[str]
):
    """Of an answer nothing in the database contradicts it: the kept hash is all that does."""
    async with tampered(honest_url, UNLOCK) as (connection, audit):
        number, kept = await head(connection)
        for statement in statements:
            await driver(connection).execute(statement)
        await reseal(connection)
        await forge(connection, range(MIDDLE, LAST_NUMBER + 1))
        await MOVE_HEAD.run(connection, number=LAST_NUMBER)
        assert {finding.rule for finding in (await audit()).findings} == set(rules)
        stored = {link.number: link.hash async for link in links(connection)}
    assert number == LAST_NUMBER
    assert stored[number] != kept


async def test_a_release_before_the_first_is_missed(honest_url: str):
    """The first link is bound to the genesis, and numbers have no gap, whatever the hashes say."""
    drop = (
        "DELETE FROM piece",
        "DELETE FROM charge WHERE release_id = (SELECT id FROM release WHERE number = 1)",
        "DELETE FROM release WHERE number = 1",
    )
    async with tampered(honest_url, [*UNLOCK, *drop]) as (_, audit):
        found = {finding.rule: finding for finding in (await audit()).findings}
    assert [example["number"] for example in found[CHAIN_RULE].examples] == [2]
    renumber = "UPDATE release SET number = number + 1 WHERE number = 7"
    async with tampered(honest_url, [*UNLOCK, renumber]) as (connection, audit):
        await forge(connection, [8])
        await MOVE_HEAD.run(connection, number=8)
        (finding,) = (await audit()).findings
    assert finding.rule == CHAIN_RULE
    assert [example["number"] for example in finding.examples] == [8]


def test_every_rule_of_the_audit_catches_something():
    """Of prices `tests/api/test_charges_audited.py` says so, for every statistic."""
    assert frozenset().union(*(one.rules for one in TAMPERINGS)) == {
        *CHECKS,
        ROUND_RULE,
        RANGE_RULE,
        PIECE_RULE,
        CHAIN_RULE,
        HEAD_RULE,
    }


async def test_tampering_was_undone(honest_url: str):
    assert (await audited(honest_url, ())).clean


@pytest.mark.long
async def test_the_audit_reads_one_instant_of_a_busy_ledger(bench: Workbench):
    study = await bench.study()
    # One person stays: where all the others are gone at once, a release is refused.
    await bench.services.contributions.contribute(study, offer("stays", epsilon=5))
    done = asyncio.Event()

    async def busy(worker: int) -> None:
        number = 0
        while not done.is_set():
            name = f"p{worker}-{number % 5}"
            if number % 10 < 5:
                await bench.services.contributions.contribute(study, offer(name, epsilon=5))
            else:
                await bench.services.contributions.withdraw(study, KEY.digest(name))
            if worker == 0:
                ask = Ask(estimator="uniform", share=MICRO // 10_000)
                await bench.services.releases.release(study, ask, None)
            number += 1

    workers = asyncio.gather(*(busy(worker) for worker in range(4)))
    try:
        for _ in range(15):
            assert (await bench.services.ledger.look()).clean
    finally:
        done.set()
        await workers


@pytest.mark.parametrize("looks", [1, 2])
async def test_what_is_gone_at_a_second_look_is_not_reported(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, looks: int
):
    """As where the nodes of a distributed database show two moments of one commit."""
    torn = [RESERVED] * looks

    async def violations(connection: Connection, check: str, limit: int) -> Sequence[Mapping[str, object]]:
        if torn and check == torn[-1]:
            torn.pop()
            return [{"subject": "00", "reserved": 1, "reservations": 2}]
        return await store_violations(connection, check, limit)

    monkeypatch.setattr("app.store.ledger.violations", violations)
    report = await bench.services.ledger.audit()
    assert not torn
    assert [finding.rule for finding in report.findings] == [RESERVED] * (looks - 1)


async def test_findings_can_be_read(honest_url: str):
    report = await audited(honest_url, (f"UPDATE cohort SET spent = carried WHERE id = {CENTRAL}",))
    (finding,) = report.findings
    assert re.fullmatch(r"[a-z' ]+", finding.rule)
    (example,) = finding.examples
    assert set(example) == {"cohort", "spent", "before", "charged"}
    assert example["charged"] > 0
