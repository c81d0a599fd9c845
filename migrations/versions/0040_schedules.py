"""Schedules: questions that are asked every day, week or month.

Revision ID: 0040
Revises: 0039
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """There are none at first."""
    op.create_table(
        "schedule",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("token_id", sa.Uuid(), nullable=False, comment="its own, which has its quota"),
        sa.Column("question", sa.Text(), nullable=False, comment="JSON, as it was given"),
        sa.Column("every", sa.Text(), nullable=False, comment="day, week or month"),
        sa.Column("starts_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("share", sa.Integer(), nullable=False, comment="of each time [parts per million]"),
        sa.Column("until", sa.Integer(), nullable=True, comment="share in all; NULL: newcomers only"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True, comment="the next time; NULL: ended"),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True, comment="a process asks it"),
        sa.Column("answered", sa.Integer(), nullable=False, server_default="0", comment="times"),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True, comment="the last time"),
        sa.Column("release_id", sa.Uuid(), nullable=True, comment="the last answer"),
        sa.Column("refusal", sa.Text(), nullable=True, comment="code of the last time; NULL: answered"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_schedule_study_id_study")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_schedule_token_id_token")),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_schedule_release_id_release")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedule")),
    )
    op.create_index("ix_schedule_study_id", "schedule", ["study_id"], unique=False)
    op.create_index("ix_schedule_due_at", "schedule", ["due_at"], unique=False)


def downgrade() -> None:
    """Forget them; their tokens stay, which no one bears."""
    op.drop_table("schedule")
