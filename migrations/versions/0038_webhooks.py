"""Webhooks, and the events that they have not taken yet.

Revision ID: 0038
Revises: 0037
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """There are no webhooks at first."""
    op.create_table(
        "webhook",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("token_id", sa.Uuid(), nullable=False, comment="who made it"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_webhook_token_id_token")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
    )
    op.create_table(
        "event",
        sa.Column("id", sa.Uuid(), nullable=False, comment="the same in every attempt"),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False, comment="JSON, as it is sent"),
        sa.Column("attempts", sa.Integer(), nullable=False, server_default="0", comment="that were begun"),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True, comment="NULL: given up"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name=op.f("fk_event_webhook_id_webhook"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index("ix_event_due_at", "event", ["due_at"], unique=False)
    op.create_index("ix_event_webhook_id", "event", ["webhook_id"], unique=False)


def downgrade() -> None:
    """Forget webhooks, and what they were not told yet."""
    op.drop_table("event")
    op.drop_table("webhook")
