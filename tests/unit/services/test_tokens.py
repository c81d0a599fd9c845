"""Until when a token is one."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from app.core.errors import Unauthenticated
from app.core.principal import Role
from app.services.admin.tokens import principal_of
from app.store.tokens import TokenRecord

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


def record(*, expires_at: datetime | None = None, revoked_at: datetime | None = None) -> TokenRecord:
    return TokenRecord(
        id=UUID(int=1),
        name="desk",
        roles=frozenset({Role.ANALYSE}),
        studies=None,
        subject=None,
        expires_at=expires_at,
        revoked_at=revoked_at,
        created_at=NOW - timedelta(days=1),
    )


def test_a_token_is_refused_from_the_moment_on_at_which_it_expires():
    later = NOW + timedelta(microseconds=1)
    assert principal_of(record(), NOW).roles == {Role.ANALYSE}
    assert principal_of(record(expires_at=later), NOW).name == "desk"
    for moment in (NOW, NOW - timedelta(days=1)):
        with pytest.raises(Unauthenticated, match="expired"):
            principal_of(record(expires_at=moment), NOW)


def test_a_revoked_token_is_refused_whenever_it_would_expire():
    for expires_at in (None, NOW - timedelta(days=1), NOW + timedelta(days=1)):
        with pytest.raises(Unauthenticated, match="revoked"):
            principal_of(record(expires_at=expires_at, revoked_at=NOW), NOW)
