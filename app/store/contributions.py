"""Contributions and reservations; `app.store.replacements` changes what one person holds.

Lock order, the same on every path: the study's fold lock (shared, only for replace and withdraw), its
epoch lock (shared), that of all accounts (shared), subjects, then cohorts. Anyone who waits for a fold thus
holds up no seal, and with it no contribution. Everything is set-based.

Several people are not locked before they are read, since a distributed database cannot do that. What is
written says what it was decided on, and where that is no longer so, the transaction is `Overtaken` and runs
again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dither.device.gaussian import micro_mu2

from app.core.contribution import Offer, Outcome
from app.core.ledger import Entry, Holding, decide, same_value
from app.core.study import Currency, StudyState
from app.store.arrays import array_literal
from app.store.database import Overtaken
from app.store.sql import Connection, Sql

EPOCH_LOCK = 1
"""Advisory lock class: shared while contributing, exclusive for the moment an epoch is sealed."""

FOLD_LOCK = 2
"""Advisory lock class: shared while a folded value changes or a release of the study is published,
exclusive while an epoch is folded, and while a release holds back those who would leave its cohorts."""

ENROL_LOCK = 3
"""Advisory lock class: shared while people enrol in a study's sessions, exclusive while it is closed."""

ACCOUNTS_LOCK = 4
"""Advisory lock class, one lock for all studies: shared while subjects are changed, exclusive for a statement
that changes very many of them."""

KEY_LOCK = 5
"""Advisory lock class, by a hash of the key: exclusive while a request with an Idempotency-Key is decided."""

# In the order in which they are given.
LOCK_SHARED = Sql(f"""
    SELECT pg_advisory_xact_lock_shared(lock, CASE lock WHEN {ACCOUNTS_LOCK} THEN 0 ELSE :study_id END)
    FROM unnest(CAST(:locks AS int[])) AS lock
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Where a study stands."""

    current: int
    folded: int
    state: StudyState
    currency: Currency


READ_EPOCH = Sql.of(Epoch)(
    "SELECT epoch AS current, folded_epoch AS folded, state,"
    " CASE WHEN delta > 0 THEN 'gaussian' ELSE 'laplace' END AS currency FROM study WHERE id = :study_id"
)

# Subjects who are new, with their first reservation and their contribution; all others are left for
# the statements below. A subject without a row has no contribution either, so nothing can be in the way.
# IS TRUE makes PostgreSQL look ids up in a hash table, whatever it takes the number of offers for.
ACCEPT_NEW = Sql("""
    WITH here AS MATERIALIZED (
        SELECT epoch, state, delta > 0 AS gaussian FROM study WHERE id = :study_id AND subject_key_holds()
    ),
    offer AS MATERIALIZED (
        SELECT subject_id, CAST(trust AS trust) AS trust, epsilon, value,
               sender, CAST(vector AS bigint[]) AS vector, coalesce(segment, 0) AS segment
        FROM unnest(CAST(:subjects AS bytea[]), CAST(:trusts AS text[]), CAST(:epsilons AS bigint[]),
                    CAST(:values AS bigint[]), CAST(:senders AS uuid[]), CAST(:vectors AS text[]),
                    CAST(:segments AS smallint[]))
            AS offer (subject_id, trust, epsilon, value, sender, vector, segment)
    ),
    fresh AS (
        INSERT INTO subject (id, budget, reserved, gaussian_budget, gaussian_reserved)
        SELECT subject_id, CAST(:budget AS bigint), CASE WHEN gaussian THEN 0 ELSE epsilon END,
               CAST(:gaussian_budget AS bigint), CASE WHEN gaussian THEN epsilon ELSE 0 END
        FROM offer, here
        WHERE state = 'open'
          AND epsilon <= CASE WHEN gaussian THEN CAST(:gaussian_budget AS bigint)
                              ELSE CAST(:budget AS bigint) END
        ORDER BY subject_id
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    ),
    written AS (
        INSERT INTO contribution
            (study_id, subject_id, trust, epsilon, carried, value, vector, epoch, sender, segment)
        SELECT :study_id, subject_id, trust, epsilon, 0, value, vector, epoch, sender, segment
        FROM offer, here
        WHERE (subject_id IN (SELECT id FROM fresh)) IS TRUE
    ),
    counted AS (
        INSERT INTO tally (study_id, epoch, writer, count)
        SELECT :study_id, epoch, pg_backend_pid(), number
        FROM here, (SELECT count(*) AS number FROM fresh) AS came WHERE number > 0
        ON CONFLICT (study_id, epoch, writer) DO UPDATE SET count = tally.count + excluded.count
    )
    SELECT epoch, state, (SELECT array_agg(id) FROM fresh) AS fresh FROM here
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    subject: bytes
    holding: Holding


# Trust tags as text: of types of its own the driver would first ask the server, on each connection.
READ_HOLDINGS = Sql.of(_Held)("""
    SELECT subject_id AS subject, value IS NOT NULL AS live, CAST(trust AS text) AS trust, epsilon, carried,
           value, vector, epoch, sender, segment
    FROM contribution
    WHERE study_id = :study_id AND subject_id = ANY(CAST(:subjects AS bytea[]))
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Person:
    subject: bytes
    room: int
    gaussian_room: int
    holding: Holding | None

    def room_in(self, currency: Currency) -> int:
        return currency.of(laplace=self.room, gaussian=self.gaussian_room)


READ_PEOPLE = Sql.of(_Person)("""
    SELECT subject.id AS subject, budget - reserved AS room,
           gaussian_budget - gaussian_reserved AS gaussian_room,
           CASE WHEN c.subject_id IS NOT NULL THEN value IS NOT NULL END AS live,
           CAST(trust AS text) AS trust, epsilon, carried, value, vector, epoch, sender, segment
    FROM subject LEFT JOIN contribution c ON c.subject_id = subject.id AND c.study_id = :study_id
    WHERE subject.id = ANY(CAST(:subjects AS bytea[]))
""")

ACCOUNTS = {
    Currency.LAPLACE: ("reserved", "budget"),
    Currency.GAUSSIAN: ("gaussian_reserved", "gaussian_budget"),
}
"""The columns of a subject's account, by the currency that is reserved from it."""

RESERVE_IN = """
    UPDATE subject SET {reserved} = {reserved} + more.amount
    FROM unnest(CAST(:subjects AS bytea[]), CAST(:amounts AS bigint[])) AS more (id, amount)
    WHERE subject.id = more.id AND {reserved} + more.amount <= {budget}
    RETURNING subject.id
"""

RESERVE = {
    currency: Sql.of(bytes)(RESERVE_IN.format(reserved=reserved, budget=budget))
    for currency, (reserved, budget) in ACCOUNTS.items()
}

# Where the person has a row already, it is the one that was decided on: withdrawn, with what was spent.
WRITE = Sql.of(bytes)("""
    INSERT INTO contribution
        (study_id, subject_id, trust, epsilon, carried, value, vector, epoch, sender, segment)
    SELECT CAST(:study_id AS int), subject_id, CAST(trust AS trust), epsilon, carried,
           value, CAST(vector AS bigint[]), CAST(:epoch AS int), sender, coalesce(segment, 0)
    FROM unnest(CAST(:subjects AS bytea[]), CAST(:trusts AS text[]), CAST(:epsilons AS bigint[]),
                CAST(:carried AS bigint[]), CAST(:values AS bigint[]), CAST(:senders AS uuid[]),
                CAST(:vectors AS text[]), CAST(:segments AS smallint[]))
        AS entry (subject_id, trust, epsilon, carried, value, sender, vector, segment)
    ORDER BY subject_id
    ON CONFLICT (subject_id, study_id) DO UPDATE SET
        trust = excluded.trust, epsilon = excluded.epsilon, carried = excluded.carried,
        value = excluded.value, vector = excluded.vector, epoch = excluded.epoch, sender = excluded.sender,
        segment = excluded.segment
    WHERE contribution.value IS NULL
      AND contribution.epsilon = excluded.carried
    RETURNING subject_id
""")

# In the transaction that wrote them. A fold that finds others does not see all of them yet, which happens
# where the database has several nodes and one of them is recovering.
COUNT = Sql("""
    INSERT INTO tally (study_id, epoch, writer, count) VALUES (:study_id, :epoch, pg_backend_pid(), :more)
    ON CONFLICT (study_id, epoch, writer) DO UPDATE SET count = tally.count + excluded.count
""")

VACUUM = Sql("VACUUM (ANALYZE) contribution, subject")


DELTA = 10_000_000
"""At which mu^2 is read where an installation does not say: 1e-5 [1e-12]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Lifetime budget of a subject that is seen for the first time.

    Attributes:
        epsilon: For studies with Laplace noise, and sessions [micro-epsilon].
        mu2: For studies with Gaussian noise [1e-6].
        delta: At which statements read mu^2 [1e-12].
    """

    epsilon: int
    mu2: int = 0
    delta: int = DELTA

    @classmethod
    def of(cls, *, epsilon: int, gaussian: tuple[int, int]) -> "Allowance":
        """From an epsilon, and an epsilon at a delta for studies with Gaussian noise."""
        return cls(epsilon=epsilon, mu2=micro_mu2(*gaussian), delta=gaussian[1])

    def room(self, currency: Currency) -> int:
        """What there is in a currency."""
        return currency.of(laplace=self.epsilon, gaussian=self.mu2)


READ_RAISED = Sql("SELECT coalesce(max(raised), 0), coalesce(max(gaussian_raised), 0) FROM allowance")


async def starting(connection: Connection, allowance: Allowance) -> Allowance:
    """What a person has who is new now: the setting, and what all budgets were raised by.

    It stays so until the transaction ends where that holds the lock of all accounts.
    """
    epsilon, mu2 = await READ_RAISED.one(connection)
    return replace(allowance, epsilon=allowance.epsilon + epsilon, mu2=allowance.mu2 + mu2)


async def enter(connection: Connection, study_id: int, *, locks: Sequence[int]) -> Epoch:
    """Hold a study's locks, shared, until this transaction ends, and read where the study stands."""
    await LOCK_SHARED.run(connection, locks=locks, study_id=study_id)
    return await READ_EPOCH.one(connection, study_id=study_id)


async def accept(
    connection: Connection, study_id: int, offers: Sequence[Offer], allowance: Allowance
) -> list[Outcome]:
    """Store offers and reserve their epsilon.

    Args:
        connection: An open transaction.
        study_id: The study.
        offers: In the order in which they were made; a subject may occur more than once.
        allowance: Budget of new subjects, before it was raised.

    Returns:
        One outcome an offer. A closed study stores nothing, but knows again what it holds.
    """
    people: dict[bytes, list[Offer]] = {}
    for offer in offers:
        people.setdefault(offer.subject, []).append(offer)
    await LOCK_SHARED.run(connection, locks=(EPOCH_LOCK, ACCOUNTS_LOCK), study_id=study_id)
    allowance = await starting(connection, allowance)
    # Of each person who may be new, the offer that would be stored.
    if_new = {
        subject: decide(theirs, None, room=allowance.room(theirs[0].currency))[0]
        for subject, theirs in people.items()
    }
    first = [
        theirs[if_new[subject].index(Outcome.CREATED)]
        for subject, theirs in people.items()
        if Outcome.CREATED in if_new[subject]
    ]
    epoch, state, fresh = await _accept_new(connection, study_id, first, allowance)
    if state is not StudyState.OPEN:
        return await _recognise(connection, study_id, offers)
    known = {subject: theirs for subject, theirs in people.items() if subject not in fresh}
    decided = {subject: if_new[subject] for subject in fresh}
    if known:
        decided |= await _accept_known(connection, study_id, epoch, known)
    given = {subject: iter(outcomes) for subject, outcomes in decided.items()}
    return [next(given[offer.subject]) for offer in offers]


async def _accept_new(
    connection: Connection, study_id: int, offers: Sequence[Offer], allowance: Allowance
) -> tuple[int, StudyState, frozenset[bytes]]:
    """Store what comes from subjects not seen before; return the epoch, the state, their ids."""
    epoch, state, fresh = await ACCEPT_NEW.one(
        connection,
        study_id=study_id,
        budget=allowance.epsilon,
        gaussian_budget=allowance.mu2,
        epsilons=[offer.epsilon for offer in offers],
        subjects=[offer.subject for offer in offers],
        trusts=[offer.trust.value for offer in offers],
        values=[offer.value for offer in offers],
        senders=[offer.sender for offer in offers],
        vectors=_vectors(offers),
        segments=_segments(offers),
    )
    return epoch, StudyState(state), frozenset(fresh or ())


async def _recognise(connection: Connection, study_id: int, offers: Sequence[Offer]) -> list[Outcome]:
    """Outcomes in a closed study. Nothing is reserved, so no subject needs to be locked."""
    holdings = await read_holdings(connection, study_id, [offer.subject for offer in offers])
    return [closed_outcome(holdings.get(offer.subject), offer) for offer in offers]


def closed_outcome(holding: Holding | None, offer: Offer) -> Outcome:
    """What becomes of an offer in a study that takes none."""
    repeated = holding is not None and same_value(holding, offer)
    return Outcome.UNCHANGED if repeated else Outcome.STUDY_CLOSED


async def _accept_known(
    connection: Connection, study_id: int, epoch: int, people: Mapping[bytes, Sequence[Offer]]
) -> dict[bytes, list[Outcome]]:
    """Compare with what subjects that exist hold, reserve and write what is new.

    Raises:
        Overtaken: that changed meanwhile.
    """
    subjects = sorted(people)
    found = await READ_PEOPLE.all(connection, study_id=study_id, subjects=subjects)
    known = {person.subject: person for person in found}
    decided: dict[bytes, list[Outcome]] = {}
    entries: dict[bytes, Entry] = {}
    more: dict[bytes, int] = {}
    currency = next(iter(people.values()))[0].currency
    for subject in subjects:
        person = known.get(subject)
        holding = person.holding if person else None
        room = person.room_in(currency) if person else -1
        decided[subject], row = decide(people[subject], holding, room=room)
        if row is not None:
            entries[subject] = row
            more[subject] = row.epsilon - (holding.epsilon if holding else 0)
    if await reserve(connection, more, currency) != more.keys():
        raise Overtaken
    await _write(connection, study_id, epoch, entries)
    return decided


async def read_holdings(
    connection: Connection, study_id: int, subjects: Sequence[bytes]
) -> dict[bytes, Holding]:
    """What the ledger holds for these subjects in this study."""
    rows = await READ_HOLDINGS.all(connection, study_id=study_id, subjects=subjects)
    return {row.subject: row.holding for row in rows}


async def reserve(connection: Connection, more: Mapping[bytes, int], currency: Currency) -> set[bytes]:
    """Reserve more (or, negative, less) of subjects' budgets in a currency, where it fits; locks them.

    Returns:
        The subjects for whom it fitted.
    """
    if not more:
        return set()
    return set(await RESERVE[currency].all(connection, subjects=list(more), amounts=list(more.values())))


async def _write(connection: Connection, study_id: int, epoch: int, entries: Mapping[bytes, Entry]) -> None:
    """Write rows of subjects who hold nothing live and whose reservation was just changed, which locked them.

    Raises:
        Overtaken: what one of them holds changed before.
    """
    if not entries:
        return
    rows = entries.values()
    await note(connection, study_id, epoch, len(rows))
    written = await WRITE.all(
        connection,
        study_id=study_id,
        epoch=epoch,
        subjects=list(entries),
        epsilons=[row.epsilon for row in rows],
        carried=[row.carried for row in rows],
        trusts=[row.trust.value for row in rows],
        values=[row.value for row in rows],
        senders=[row.sender for row in rows],
        vectors=_vectors(rows),
        segments=_segments(rows),
    )
    if set(written) != entries.keys():
        raise Overtaken


async def note(connection: Connection, study_id: int, epoch: int, more: int) -> None:
    """Note how many live values an epoch gains, or, negative, loses, until it is folded."""
    await COUNT.run(connection, study_id=study_id, epoch=epoch, more=more)


def _vectors(rows: Iterable[Offer | Entry]) -> list[str]:
    """Vectors as array literals. In a study of numbers there are none, and unnest fills up with NULL."""
    return [array_literal(row.vector) for row in rows if row.vector is not None]


def _segments(rows: Iterable[Offer | Entry]) -> list[int]:
    """Segments; none where all are 0, as they are without attributes, and unnest fills up with NULL."""
    segments = [row.segment for row in rows]
    return segments if any(segments) else []
