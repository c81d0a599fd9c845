"""The tables beside the ledger: who may ask, what was asked, and what is kept of the installation."""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Enum,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

role = Enum("contribute", "analyse", "admin", "observe", name="role")

token = Table(
    "token",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("roles", ARRAY(role), nullable=False),
    Column("hash", LargeBinary, unique=True, comment="SHA-256 of the secret"),
    Column("studies", ARRAY(Text), comment="slugs; NULL: all"),
    Column("subject_id", LargeBinary, comment="the one subject it acts for; NULL: all"),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("old_hash", LargeBinary, unique=True, comment="SHA-256 of the secret before the last rotation"),
    Column("old_expires_at", DateTime(timezone=True)),
    Column("identity", LargeBinary, unique=True, comment="SHA-256 of an OIDC issuer and subject"),
    Column("last_used_on", Date),
    Column("quota_share", Integer, comment="parts per million"),
    Column("quota_period", Integer, comment="seconds"),
    CheckConstraint("(hash IS NULL) <> (identity IS NULL)", name="secret_or_identity"),
    CheckConstraint("cardinality(roles) > 0", name="has_roles"),
    CheckConstraint("(quota_share IS NULL) = (quota_period IS NULL)", name="quota_complete"),
)

usage = Table(
    "usage",
    metadata,
    Column("release_id", Uuid, ForeignKey("release.id"), primary_key=True),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("share", Integer, nullable=False, comment="of anybody's epsilon, at most [parts per million]"),
    Column("at", DateTime(timezone=True), nullable=False, comment="by the database's clock"),
    Index("ix_usage_token_id_study_id_at", "token_id", "study_id", "at"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("token_id", Uuid, ForeignKey("token.id"), primary_key=True),
    Column("key", LargeBinary, primary_key=True, comment="digest of the Idempotency-Key"),
    Column("request", LargeBinary, nullable=False, comment="digest of the request"),
    Column("status", SmallInteger, nullable=False),
    Column("body", LargeBinary, nullable=False, comment="what the first response is made of again"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("study_id", Integer, comment="NULL: before it was kept"),
    Column("subject_id", LargeBinary, comment="whom the request is about; NULL: no person"),
    Index("ix_idempotency_created_at", "created_at"),
    Index("ix_idempotency_subject_id", "subject_id", postgresql_where=text("subject_id IS NOT NULL")),
)

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("at", DateTime(timezone=True), nullable=False),
    Column("actor", Text, nullable=False, comment="token id or 'command line'"),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("detail", JSONB, nullable=False),
    Index("ix_audit_action_id", "action", "id"),
)

login = Table(
    "login",
    metadata,
    Column("hash", LargeBinary, primary_key=True, comment="SHA-256 of the cookie"),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False),
    Column("subject_id", LargeBinary, comment="the person of a link; NULL: the token's"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Index("ix_login_expires_at", "expires_at"),
)

link = Table(
    "link",
    metadata,
    Column("hash", LargeBinary, primary_key=True, comment="SHA-256 of the secret"),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False, comment="who made it"),
    Column("subject_id", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    Index("ix_link_expires_at", "expires_at"),
)

invitation = Table(
    "invitation",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("kind", Text, nullable=False, comment="open or single"),
    Column("name", Text, nullable=False, comment="for admins"),
    Column("code", LargeBinary, unique=True, comment="open: HMAC of its code"),
    Column("most", Integer, nullable=False, comment="answers that it takes"),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False, comment="who made it"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("revoked_at", DateTime(timezone=True)),
    CheckConstraint("(kind = 'open') = (code IS NOT NULL)", name="open_has_code"),
    Index("ix_invitation_study_id", "study_id"),
)

ticket = Table(
    "ticket",
    metadata,
    Column("subject_id", LargeBinary, primary_key=True),
    Column("invitation_id", Uuid, ForeignKey("invitation.id"), primary_key=True),
    Column("code", LargeBinary, unique=True, comment="single: HMAC of its code"),
    Column("receipt", LargeBinary, unique=True, comment="SHA-256 of its receipt; NULL: not used"),
    Column(
        "anonymous",
        Boolean,
        nullable=False,
        comment="the subject was made for it and has no external id",
    ),
    Index("ix_ticket_invitation_id", "invitation_id"),
)

webhook = Table(
    "webhook",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("url", Text, nullable=False),
    Column("events", ARRAY(Text), nullable=False),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False, comment="who made it"),
    Column("created_at", DateTime(timezone=True), nullable=False),
)

event = Table(
    "event",
    metadata,
    Column("id", Uuid, primary_key=True, comment="the same in every attempt"),
    Column("webhook_id", Uuid, ForeignKey("webhook.id", ondelete="CASCADE"), nullable=False),
    Column("body", Text, nullable=False, comment="JSON, as it is sent"),
    Column("attempts", Integer, nullable=False, server_default="0", comment="that were begun"),
    Column("due_at", DateTime(timezone=True), comment="NULL: given up"),
    Index("ix_event_due_at", "due_at"),
    Index("ix_event_webhook_id", "webhook_id"),
)

schedule = Table(
    "schedule",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False, comment="its own, which has its quota"),
    Column("question", Text, nullable=False, comment="JSON, as it was given"),
    Column("every", Text, nullable=False, comment="day, week or month"),
    Column("starts_at", DateTime(timezone=True), nullable=False),
    Column("share", Integer, nullable=False, comment="of each time [parts per million]"),
    Column("until", Integer, comment="share in all; NULL: newcomers only"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("due_at", DateTime(timezone=True), comment="the next time; NULL: ended"),
    Column("claimed_until", DateTime(timezone=True), comment="a process asks it"),
    Column("answered", Integer, nullable=False, server_default="0", comment="times"),
    Column("asked_at", DateTime(timezone=True), comment="the last time"),
    Column("release_id", Uuid, ForeignKey("release.id"), comment="the last answer"),
    Column("refusal", Text, comment="code of the last time; NULL: answered"),
    Index("ix_schedule_study_id", "study_id"),
    Index("ix_schedule_due_at", "due_at"),
)

publication = Table(
    "publication",
    metadata,
    Column("slug", Text, primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("title", Text, nullable=False),
    Column("releases", ARRAY(Uuid), nullable=False, comment="in the order in which they are shown"),
    Column("frames", ARRAY(Text), nullable=False, comment="origins whose pages may frame it"),
    Column("file", LargeBinary, comment="signed, as everyone gets it; NULL: withdrawn"),
    Column("token_id", Uuid, ForeignKey("token.id"), nullable=False, comment="who made or changed it last"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("changed_at", DateTime(timezone=True), nullable=False),
    Column("expires_at", DateTime(timezone=True)),
    Column("withdrawn_at", DateTime(timezone=True)),
    CheckConstraint("(file IS NULL) = (withdrawn_at IS NOT NULL)", name="withdrawn_has_no_file"),
    Index("ix_publication_study_id", "study_id"),
)

tree_node = Table(
    "tree_node",
    metadata,
    Column("level", SmallInteger, primary_key=True, comment="0: leaves"),
    Column("place", BigInteger, primary_key=True, comment="of the complete subtree, from 0 from the left"),
    Column("hash", LargeBinary, nullable=False),
)

signing_key = Table(
    "signing_key",
    metadata,
    Column("key", LargeBinary, primary_key=True, comment="Ed25519, public"),
    Column("since", DateTime(timezone=True), nullable=False, comment="when something was first signed by it"),
)

figure = Table(
    "figure",
    metadata,
    Column("name", Text, primary_key=True),
    Column("taken_at", DateTime(timezone=True), nullable=False),
    Column("seconds", Float, nullable=False, comment="how long it took"),
    Column("document", JSONB, nullable=False),
)

installation = Table(
    "installation",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
