"""What the SDK gives back to admins: tokens, quotas and accounts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from dither._models import Amounts, GaussianAmounts, Promise
from dither._tables import Shown

Role = Literal["contribute", "analyse", "admin", "observe"]
Relation = Literal["replace_one", "add_remove_one"]
InvitationKind = Literal["open", "single"]
EventType = Literal["released", "budget_low", "session_closed", "study_closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a token may use of each study: a share of everyone's epsilon within any period of this length."""

    share: Decimal
    period_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A bearer token, without its secret.

    Attributes:
        id, name, role: Which one it is, and what it may do.
        studies: Slugs it is limited to; None: all.
        subject: Digest of the one person it acts for.
        expires_at, revoked_at, created_at: When. None: never.
        last_used_on: The last day (UTC) on which it was used.
        quota: What it may use of each study; None without a limit.
        by_provider: Whether it stands for an identity of the OIDC provider.
    """

    id: str
    name: str
    role: Role
    studies: tuple[str, ...] | None
    subject: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    created_at: datetime
    last_used_on: date | None
    quota: Quota | None
    by_provider: bool = False
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(Token):
    """A token with its secret, which is shown this once."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """What a token used of one study.

    Attributes:
        study, releases: Which one, and how many releases it made.
        used: The most that these took of anyone's epsilon, together.
    """

    study: str
    releases: int
    used: Decimal
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """Links by which people answer a study on a page of the service, without the links.

    Attributes:
        id, study, name: Which one it is, and of which study.
        kind: "open": one link for all; "single": one for each person.
        limit: Answers that it takes; of single links how many there are.
        used: Answers that came; None where the number of people is secret.
        state: "valid", "expired" or "revoked".
        created_at, expires_at, revoked_at: When. None: never.
    """

    id: str
    study: str
    name: str
    kind: InvitationKind
    limit: int
    used: int | None
    state: Literal["valid", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewInvitation:
    """A new invitation with its links, which are shown this once; single ones in the order of `subjects`."""

    id: str
    urls: tuple[str, ...] = field(repr=False)
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address that learns what happens, without its secret.

    Attributes:
        id, url: Which one it is, and where events are sent.
        events: What it learns: "released", "budget_low", "session_closed", "study_closed".
        created_at: When it was made.
        waiting: Events that it has not taken yet; they are tried again.
        given_up: Events that it did not take in four days.
    """

    id: str
    url: str
    events: tuple[EventType, ...]
    created_at: datetime
    waiting: int
    given_up: int
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook(Webhook):
    """A webhook with the secret that its events are signed with, which is shown this once."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Answers that everyone may read at `url`."""

    slug: str
    url: str | None
    study: str
    title: str
    releases: tuple[str, ...]
    frames: tuple[str, ...]
    state: Literal["shown", "expired", "withdrawn"]
    created_at: datetime
    changed_at: datetime
    expires_at: datetime | None
    withdrawn_at: datetime | None
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raise:
    """What was added to every lifetime budget.

    Attributes:
        epsilon: To each.
        at_most: Up to which budget; None without a bound.
        new_people: Lifetime budget of a person who is new from then on.
        delta: Above 0 these are budgets for Gaussian noise, at this delta.
    """

    epsilon: Decimal
    at_most: Decimal | None
    new_people: Decimal
    delta: Decimal = Decimal(0)
    raw: Mapping[str, object] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(Shown):
    """A lifetime budget in a list; `subject` is a digest of the external id."""

    subject: str
    epsilon: Amounts
    gaussian: GaussianAmounts | None
    in_all: Promise
    raw: Mapping[str, object] = field(repr=False, compare=False)
