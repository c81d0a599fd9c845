"""Logins of the dashboard: a random secret in a cookie stands for a token for a while.

The database keeps the secret's hash beside the token's id. Every page reads both, so that a token which is
revoked or expires ends its logins at once, in every process.
"""

import hmac
import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.core.clock import Clock
from app.core.errors import Forbidden, NotFound, Unauthenticated
from app.core.principal import Principal, Role
from app.services.admin.tokens import hash_secret, new_secret, principal_of
from app.store import journal
from app.store import logins as store
from app.store.database import Connection, Database

PERSON_SECONDS = 15 * 60
"""How long a person may look at their page once they have opened their link."""

LINK_SECONDS = 24 * 60 * 60
"""How long a link can be opened."""

PAGES_FOR = frozenset({Role.ADMIN, Role.ANALYSE})
"""Roles that can log in; contributors have a page for each person instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A person who is logged in.

    Attributes:
        principal: The bearer of the token that it stands on.
        subject: The person whose page it is (HMAC digest); None where the bearer of the token logged in.
        expires_at: From then on it is refused.
    """

    principal: Principal
    subject: bytes | None
    expires_at: datetime


class Logins:
    """The logins of one installation, for tokens and for people with a one-time link."""

    def __init__(self, database: Database, clock: Clock, *, seconds: int) -> None:
        """Args: as for the services; `seconds`: how long a login of a token lasts."""
        self._database = database
        self._clock = clock
        self.seconds = seconds

    async def log_in(self, principal: Principal, until: float | None = None) -> tuple[str, int]:
        """Log the bearer of a token in.

        Args:
            principal: Who it is.
            until: When a JWT ends, and the login with it [seconds since 1970]; a token's end is read anew
                for each page.

        Returns:
            The secret for their cookie, which is stored nowhere, and for how long it is good [s].

        Raises:
            Unauthenticated: the JWT ends now.
            Forbidden: a contributor's token.
        """
        if not principal.roles & PAGES_FOR:
            raise Forbidden("The dashboard is for admins and analysts.")
        secret, now, seconds = new_secret(), self._clock.now(), self.seconds
        if until is not None:
            seconds = min(seconds, math.floor(until - now.timestamp()))
        if seconds <= 0:
            raise Unauthenticated("The JWT has expired.")
        await self._database.run_tx(
            "login.begin",
            lambda c: store.insert(
                c,
                store.INSERT_LOGIN,
                secret_hash=hash_secret(secret),
                token_id=principal.token_id,
                subject=None,
                created_at=now,
                expires_at=now + timedelta(seconds=seconds),
            ),
        )
        return secret, seconds

    async def find(self, secret: str) -> Login:
        """Who is logged in with this secret. Always asks the database.

        Raises:
            Unauthenticated: no such login, or the token is revoked or has expired.
        """
        record = await store.find_login(self._database, hash_secret(secret))
        now = self._clock.now()
        if record is None or record.ends_at <= now:
            raise Unauthenticated("The login has ended.")
        principal = principal_of(record.token, now)
        return Login(principal=principal, subject=record.person, expires_at=record.ends_at)

    async def log_out(self, secret: str) -> None:
        """End a login; no error where it has ended."""
        await self._database.run_tx("login.end", lambda c: store.delete_login(c, hash_secret(secret)))

    async def make_link(self, subject: bytes, principal: Principal) -> tuple[str, datetime]:
        """A secret that opens one person's page once, and when it expires.

        Args:
            subject: HMAC digest.
            principal: Who makes it; what they may not see of the person is not on the page either.
        """
        secret, now = new_secret(), self._clock.now()
        expires_at = now + timedelta(seconds=LINK_SECONDS)

        async def body(connection: Connection) -> None:
            await store.insert(
                connection,
                store.INSERT_LINK,
                secret_hash=hash_secret(secret),
                token_id=principal.token_id,
                subject=subject,
                created_at=now,
                expires_at=expires_at,
            )
            await journal.record(connection, now, principal.token_id, "link.create", subject.hex())

        await self._database.run_tx("link.create", body)
        return secret, expires_at

    async def open_link(self, link: str) -> str:
        """Use a link up and log its person in; returns the secret for the cookie.

        Raises:
            NotFound: it was used, has expired, never was, or its token is no longer valid.
        """
        secret, now = new_secret(), self._clock.now()

        async def body(connection: Connection) -> bool:
            taken = await store.take_link(connection, hash_secret(link), now)
            if taken is None:
                return False
            token_id, subject = taken
            await store.insert(
                connection,
                store.INSERT_LOGIN,
                secret_hash=hash_secret(secret),
                token_id=token_id,
                subject=subject,
                created_at=now,
                expires_at=now + timedelta(seconds=PERSON_SECONDS),
            )
            await journal.record(connection, now, token_id, "link.open", subject.hex())
            return True

        if not await self._database.run_tx("link.open", body):
            raise NotFound("The link was used already, or it has expired.")
        try:
            await self.find(secret)
        except Unauthenticated:
            raise NotFound("The link was used already, or it has expired.") from None
        return secret


def form_token(secret: str) -> str:
    """What every form of a cookie's bearer carries: who cannot read the cookie cannot compute it."""
    return hmac.digest(secret.encode(), b"dither form", "sha256").hex()


def is_form_token(secret: str, token: str) -> bool:
    """Whether a form was made for the bearer of this cookie."""
    return hmac.compare_digest(form_token(secret).encode(), token.encode())
