"""Use cases: they own the transactions and their order, and know neither HTTP nor settings."""

import asyncio
from dataclasses import dataclass
from functools import partial

from app.core.clock import Clock
from app.core.errors import InternalFault, Unavailable
from app.core.study import Study
from app.services.admin.budgets import Budgets
from app.services.admin.figures import Figures
from app.services.admin.invitations import Invitations
from app.services.admin.ledger import Ledger
from app.services.admin.logins import Logins
from app.services.admin.publications import Publications
from app.services.admin.schedules import Schedules
from app.services.admin.studies import Studies
from app.services.admin.tokens import Tokens
from app.services.admin.webhooks import Webhooks
from app.services.contributing.contributions import Contributions
from app.services.observer import NullObserver, Observer
from app.services.replies import Replies
from app.services.sessions.answers import Answers
from app.services.sessions.round_closer import RoundCloser
from app.services.sessions.session_cache import SessionCache
from app.services.sessions.session_watch import SessionWatch
from app.services.sessions.sessions import Sessions
from app.services.sessions.waiting import Waiting
from app.services.shapes.kinds import MANY_NUMBERS
from app.services.shapes.questions import of_shape
from app.services.shapes.shapes import Shapes
from app.services.statistics.questions import Ask
from app.services.statistics.releases import Releases
from app.services.statistics.saturation import Saturation
from app.services.subjects import SubjectKey
from app.store import journal
from app.store import sessions as stored_sessions
from app.store.contributions import DELTA, Allowance
from app.store.database import Database

KEY_ATTEMPTS = 50
"""How often the key is looked for, 0.2 seconds apart, while the database restarts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Every use case of one installation."""

    database: Database
    clock: Clock
    subject_key: SubjectKey
    tokens: Tokens
    studies: Studies
    contributions: Contributions
    budgets: Budgets
    releases: Releases
    shapes: Shapes
    ledger: Ledger
    sessions: Sessions
    answers: Answers
    session_watch: SessionWatch
    logins: Logins
    invitations: Invitations
    webhooks: Webhooks
    publications: Publications
    schedules: Schedules
    figures: Figures
    replies: Replies

    def answering(self, study: Study, ask: Ask) -> Releases | Shapes:
        """Who answers this question."""
        return self.shapes if of_shape(study.definition, ask) else self.releases

    @classmethod
    def build(
        cls,
        database: Database,
        clock: Clock,
        subject_key: SubjectKey,
        *,
        lifetime_epsilon: int,
        lifetime_gaussian: tuple[int, int] = (0, DELTA),
        observer: Observer | None = None,
        login_seconds: int = 8 * 60 * 60,
        idempotency_days: int = 30,
    ) -> "Services":
        """Wire the use cases together.

        Args:
            database: An open pool.
            clock: Where the time comes from.
            subject_key: For the digests of external ids.
            lifetime_epsilon: Budget of a new subject [micro-epsilon].
            lifetime_gaussian: The same for studies with Gaussian noise: an epsilon at a delta
                [micro-epsilon, 1e-12].
            observer: Who keeps count of what is done.
            login_seconds: How long a login of the dashboard lasts.
            idempotency_days: How long a response to an idempotency key is kept.
        """
        allowance = Allowance.of(epsilon=lifetime_epsilon, gaussian=lifetime_gaussian)
        saturation = Saturation(database)
        tokens = Tokens(database, clock)
        watching = observer or NullObserver()
        replies = Replies(database, clock, days=idempotency_days)
        cache = SessionCache(database)
        waiting = Waiting(partial(stored_sessions.read_heads, database))
        contributions = Contributions(database, clock, allowance, saturation, watching, replies)
        closer = RoundCloser(database, clock, cache, waiting, watching)
        return cls(
            database=database,
            clock=clock,
            subject_key=subject_key,
            tokens=tokens,
            studies=Studies(database, clock),
            contributions=contributions,
            budgets=Budgets(database, clock, allowance, replies),
            releases=Releases(database, clock, saturation, watching, replies, MANY_NUMBERS),
            shapes=Shapes(database, clock, watching, replies),
            ledger=Ledger(database, watching),
            sessions=Sessions(database, clock, cache, closer, waiting, replies),
            answers=Answers(database, subject_key, allowance, closer, waiting),
            session_watch=SessionWatch(database, clock, cache, closer),
            logins=Logins(database, clock, seconds=login_seconds),
            invitations=Invitations(database, clock, subject_key, contributions),
            webhooks=Webhooks(database, clock, subject_key),
            publications=Publications(database, clock, subject_key),
            schedules=Schedules(database, clock),
            figures=Figures(database, clock, allowance.delta),
            replies=replies,
        )

    async def require_subject_key(self) -> None:
        """Find out whether the database still has this process's subject key; reads only.

        Raises:
            Unavailable: people were moved to another key while this process ran.
        """
        kept = await self.database.run_tx("installation.read", lambda c: journal.read_fact(c, "subject_key"))
        if kept != self.subject_key.fingerprint():
            raise Unavailable("The database has another subject key than this process.")

    async def check_subject_key(self) -> None:
        """Refuse a database that was filled under another subject key.

        Under another key every subject would look new and get a second budget.

        Raises:
            InternalFault: the key is not this database's.
            Unavailable: the database does not come back.
        """
        fingerprint = self.subject_key.fingerprint()
        for attempt in range(KEY_ATTEMPTS):
            try:
                kept = await self.database.run_tx(
                    "installation.key", lambda c: journal.claim_fact(c, "subject_key", fingerprint)
                )
            except Unavailable:
                if attempt == KEY_ATTEMPTS - 1:
                    raise
                await asyncio.sleep(0.2)
            else:
                break
        if kept != fingerprint:
            raise InternalFault("the database was filled under another subject key")
