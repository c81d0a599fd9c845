"""Interactive sessions: their state, who takes part, and the answers.

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

SESSION_STATE = postgresql.ENUM("open", "finished", name="session_state", create_type=False)

RESERVED_BEFORE = "sum of contribution.epsilon"
RESERVED = "sum over contribution and enrolment"


def upgrade() -> None:
    """Add sessions."""
    SESSION_STATE.create(op.get_bind())
    op.create_table(
        "session",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("state", SESSION_STATE, server_default="open", nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=True, comment="that is open; NULL: finished"),
        sa.Column(
            "answers", sa.BigInteger(), server_default="0", nullable=False, comment="in the open round"
        ),
        sa.Column("epsilon", sa.BigInteger(), nullable=False, comment="that enrolling reserves"),
        sa.Column("epsilon_per_answer", sa.BigInteger(), nullable=False),
        sa.Column(
            "epsilon_report", sa.BigInteger(), nullable=False, comment="beside a person's first answer"
        ),
        sa.Column("assignment_key", sa.LargeBinary(), nullable=True, comment="NULL: everybody, every round"),
        sa.Column(
            "answers_per_round", sa.BigInteger(), nullable=True, comment="that close it; NULL: none do"
        ),
        sa.Column("round_seconds", sa.Double(), nullable=True, comment="that close it; NULL: no time does"),
        sa.Column("round_closes_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False, comment="ends it"),
        sa.Column("document", postgresql.JSONB(), nullable=False, comment="rules and progress"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'open') = (round IS NOT NULL) AND (state = 'finished') = (finished_at IS NOT NULL)",
            name=op.f("ck_session_open_has_round"),
        ),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_session_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_session")),
        sa.UniqueConstraint("number", name=op.f("uq_session_number")),
    )
    op.create_index("ix_session_study_id", "session", ["study_id"], unique=False)
    op.create_table(
        "enrolment",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("subject_id", sa.LargeBinary(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False, comment="finished: what was spent"),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("report", sa.ARRAY(sa.BigInteger()), nullable=True, comment="grid steps; NULL: none"),
        sa.CheckConstraint(
            "0 <= spent AND spent <= reserved", name=op.f("ck_enrolment_spent_within_reserved")
        ),
        sa.ForeignKeyConstraint(["subject_id"], ["subject.id"], name=op.f("fk_enrolment_subject_id_subject")),
        sa.PrimaryKeyConstraint("session_id", "subject_id", name=op.f("pk_enrolment")),
    )
    op.create_table(
        "answer",
        sa.Column("session_id", sa.Uuid(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("subject_id", sa.LargeBinary(), nullable=False),
        sa.Column("answer", sa.Integer(), nullable=False, comment="the randomized category"),
        sa.PrimaryKeyConstraint("session_id", "round", "subject_id", name=op.f("pk_answer")),
    )
    op.alter_column("subject", "reserved", comment=RESERVED, existing_comment=RESERVED_BEFORE)


def downgrade() -> None:
    """Drop them."""
    op.alter_column("subject", "reserved", comment=RESERVED_BEFORE, existing_comment=RESERVED)
    op.drop_table("answer")
    op.drop_table("enrolment")
    op.drop_index("ix_session_study_id", table_name="session")
    op.drop_table("session")
    SESSION_STATE.drop(op.get_bind())
