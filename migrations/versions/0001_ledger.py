"""The ledger: studies, subjects, contributions, cohorts, releases, charges, tokens.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

RELATION = postgresql.ENUM("replace_one", "add_remove_one", name="relation", create_type=False)
TRUST = postgresql.ENUM("central", "local", "public", name="trust", create_type=False)
STUDY_STATE = postgresql.ENUM("open", "closed", name="study_state", create_type=False)
ROLE = postgresql.ENUM("contribute", "analyse", "admin", name="role", create_type=False)
TYPES = (RELATION, TRUST, STUDY_STATE, ROLE)

APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$
"""


def upgrade() -> None:
    """Create everything."""
    for enum in TYPES:
        enum.create(op.get_bind())
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False, comment="token id or 'command line'"),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("detail", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "chain",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_chain_one_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chain")),
    )
    op.create_table(
        "installation",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_installation")),
    )
    op.create_table(
        "study",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("lower", sa.Text(), nullable=False, comment="decimal text, exactly as it was given"),
        sa.Column("upper", sa.Text(), nullable=False),
        sa.Column("relation", RELATION, nullable=False),
        sa.Column("trust", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("epsilon_min", sa.BigInteger(), nullable=False, comment="micro-epsilon"),
        sa.Column("epsilon_max", sa.BigInteger(), nullable=False, comment="micro-epsilon"),
        sa.Column("default_share", sa.Integer(), nullable=False, comment="parts per million"),
        sa.Column("delta", sa.BigInteger(), nullable=False, comment="1e-12, reserved by each contribution"),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("local_mechanism", sa.Text(), nullable=False),
        sa.Column("state", STUDY_STATE, server_default="open", nullable=False),
        sa.Column(
            "epoch", sa.Integer(), server_default="1", nullable=False, comment="that new contributions carry"
        ),
        sa.Column(
            "folded_epoch", sa.Integer(), server_default="0", nullable=False, comment="last one in cohort"
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("folded_epoch < epoch", name=op.f("ck_study_folded_before_current")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("slug", name=op.f("uq_study_slug")),
    )
    op.create_table(
        "subject",
        sa.Column("id", sa.LargeBinary(), nullable=False, comment="HMAC-SHA256(server key, external id)"),
        sa.Column("budget", sa.BigInteger(), nullable=False, comment="lifetime epsilon [micro-epsilon]"),
        sa.Column("reserved", sa.BigInteger(), nullable=False, comment="sum of contribution.epsilon"),
        sa.Column("delta_budget", sa.BigInteger(), nullable=False, comment="lifetime delta [1e-12]"),
        sa.Column("delta_reserved", sa.BigInteger(), nullable=False, comment="sum of contribution.delta"),
        sa.CheckConstraint(
            "0 <= delta_reserved AND delta_reserved <= delta_budget",
            name=op.f("ck_subject_delta_within_budget"),
        ),
        sa.CheckConstraint(
            "0 <= reserved AND reserved <= budget", name=op.f("ck_subject_reserved_within_budget")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subject")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", ROLE, nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the secret"),
        sa.Column("studies", sa.ARRAY(sa.Text()), nullable=True, comment="slugs; NULL: all"),
        sa.Column(
            "subject_id", sa.LargeBinary(), nullable=True, comment="the one subject it acts for; NULL: all"
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_token_hash")),
    )
    op.create_table(
        "cohort",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("trust", TRUST, nullable=False),
        sa.Column(
            "epsilon", sa.BigInteger(), nullable=False, comment="the most each member may spend; public: 0"
        ),
        sa.Column("carried", sa.BigInteger(), nullable=False, comment="what each had spent before"),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("delta_carried", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False, comment="live members"),
        sa.Column("total", sa.Numeric(), nullable=False, comment="sum of their values"),
        sa.Column(
            "total_squares", sa.Numeric(), nullable=False, comment="local: sum of squared reports; else 0"
        ),
        sa.Column("spent", sa.BigInteger(), nullable=False, comment="carried + its charges; local: epsilon"),
        sa.Column("delta_spent", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "carried <= spent AND spent <= epsilon", name=op.f("ck_cohort_spent_within_epsilon")
        ),
        sa.CheckConstraint("count >= 0", name=op.f("ck_cohort_count_not_negative")),
        sa.CheckConstraint(
            "delta_carried <= delta_spent AND delta_spent <= delta", name=op.f("ck_cohort_spent_within_delta")
        ),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_cohort_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cohort")),
        sa.UniqueConstraint(
            "study_id",
            "epoch",
            "trust",
            "epsilon",
            "carried",
            "delta",
            "delta_carried",
            name="uq_cohort_key",
        ),
    )
    op.create_table(
        "contribution",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("subject_id", sa.LargeBinary(), nullable=False),
        sa.Column(
            "epsilon", sa.BigInteger(), nullable=False, comment="reserved in this study; withdrawn: spent"
        ),
        sa.Column(
            "carried", sa.BigInteger(), nullable=False, comment="spent before this value, never forgotten"
        ),
        sa.Column("delta", sa.BigInteger(), nullable=False),
        sa.Column("delta_carried", sa.BigInteger(), nullable=False),
        sa.Column(
            "value", sa.BigInteger(), nullable=True, comment="grid point, local: the report, NULL: withdrawn"
        ),
        sa.Column("trust", TRUST, nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "0 <= carried AND carried <= epsilon", name=op.f("ck_contribution_carried_within_epsilon")
        ),
        sa.CheckConstraint(
            "0 <= delta_carried AND delta_carried <= delta", name=op.f("ck_contribution_carried_within_delta")
        ),
        sa.ForeignKeyConstraint(
            ["subject_id"], ["subject.id"], name=op.f("fk_contribution_subject_id_subject")
        ),
        sa.PrimaryKeyConstraint("study_id", "subject_id", name=op.f("pk_contribution")),
    )
    op.create_index("ix_contribution_study_id_epoch", "contribution", ["study_id", "epoch"], unique=False)
    op.create_table(
        "idempotency",
        sa.Column("token_id", sa.Uuid(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("request", sa.LargeBinary(), nullable=False, comment="SHA-256 of the request"),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="the first response, byte for byte"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_idempotency_token_id_token")),
        sa.PrimaryKeyConstraint("token_id", "key", name=op.f("pk_idempotency")),
    )
    op.create_table(
        "release",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, comment="place in the hash chain, from 1"),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column(
            "question",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of statistic, estimator, parameters",
        ),
        sa.Column("sequence", sa.Integer(), nullable=False, comment="1 is the first answer to the question"),
        sa.Column("epoch", sa.Integer(), nullable=False, comment="last epoch that took part"),
        sa.Column("estimator", sa.Text(), nullable=False),
        sa.Column("estimator_version", sa.Integer(), nullable=False),
        sa.Column(
            "noise",
            postgresql.JSONB(),
            nullable=False,
            comment="what was added, to recompute the cost",
        ),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="the answer, byte for byte"),
        sa.Column("previous_hash", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_release_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release")),
        sa.UniqueConstraint("number", name=op.f("uq_release_number")),
        sa.UniqueConstraint(
            "study_id", "question", "sequence", name=op.f("uq_release_study_id_question_sequence")
        ),
    )
    op.create_table(
        "charge",
        sa.Column("release_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.BigInteger(), nullable=False),
        sa.Column("epsilon", sa.BigInteger(), nullable=False, comment="micro-epsilon, per member"),
        sa.Column("delta", sa.BigInteger(), nullable=False, comment="1e-12, per member"),
        sa.CheckConstraint("epsilon >= 0 AND delta >= 0", name=op.f("ck_charge_not_negative")),
        sa.ForeignKeyConstraint(["cohort_id"], ["cohort.id"], name=op.f("fk_charge_cohort_id_cohort")),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_charge_release_id_release")),
        sa.PrimaryKeyConstraint("release_id", "cohort_id", name=op.f("pk_charge")),
    )
    op.create_index("ix_charge_cohort_id", "charge", ["cohort_id"], unique=False)
    op.execute(APPEND_ONLY)
    for table in ("release", "charge"):
        op.execute(
            f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )
    op.execute("INSERT INTO chain (id, number, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'))")


def downgrade() -> None:
    """Drop everything."""
    op.drop_index("ix_charge_cohort_id", table_name="charge")
    op.drop_table("charge")
    op.drop_table("release")
    op.drop_table("idempotency")
    op.drop_index("ix_contribution_study_id_epoch", table_name="contribution")
    op.drop_table("contribution")
    op.drop_table("cohort")
    op.drop_table("token")
    op.drop_table("subject")
    op.drop_table("study")
    op.drop_table("installation")
    op.drop_table("chain")
    op.drop_table("audit")
    op.execute("DROP FUNCTION refuse_change")
    for enum in TYPES:
        enum.drop(op.get_bind())
