"""Invitations: links by which people answer a study on a page of the service.

Revision ID: 0036
Revises: 0035
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

ANSWERED = "SELECT EXISTS (SELECT FROM ticket WHERE receipt IS NOT NULL)"


def upgrade() -> None:
    """There are no invitations at first."""
    op.create_table(
        "invitation",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False, comment="open or single"),
        sa.Column("name", sa.Text(), nullable=False, comment="for admins"),
        sa.Column("code", sa.LargeBinary(), nullable=True, comment="open: HMAC of its code"),
        sa.Column("most", sa.Integer(), nullable=False, comment="answers that it takes"),
        sa.Column("token_id", sa.Uuid(), nullable=False, comment="who made it"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(kind = 'open') = (code IS NOT NULL)", name=op.f("ck_invitation_open_has_code")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_invitation_study_id_study")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_invitation_token_id_token")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invitation")),
        sa.UniqueConstraint("code", name=op.f("uq_invitation_code")),
    )
    op.create_index("ix_invitation_study_id", "invitation", ["study_id"], unique=False)
    op.create_table(
        "ticket",
        sa.Column("subject_id", sa.LargeBinary(), nullable=False),
        sa.Column("invitation_id", sa.Uuid(), nullable=False),
        sa.Column("code", sa.LargeBinary(), nullable=True, comment="single: HMAC of its code"),
        sa.Column(
            "receipt", sa.LargeBinary(), nullable=True, comment="SHA-256 of its receipt; NULL: not used"
        ),
        sa.Column(
            "anonymous",
            sa.Boolean(),
            nullable=False,
            comment="the subject was made for it and has no external id",
        ),
        sa.ForeignKeyConstraint(
            ["invitation_id"], ["invitation.id"], name=op.f("fk_ticket_invitation_id_invitation")
        ),
        sa.PrimaryKeyConstraint("subject_id", "invitation_id", name=op.f("pk_ticket")),
        sa.UniqueConstraint("code", name=op.f("uq_ticket_code")),
        sa.UniqueConstraint("receipt", name=op.f("uq_ticket_receipt")),
    )
    op.create_index("ix_ticket_invitation_id", "ticket", ["invitation_id"], unique=False)


def downgrade() -> None:
    """Go back while no one has a receipt, which would open nothing any more."""
    if op.get_bind().execute(sa.text(ANSWERED)).scalar():
        raise RuntimeError("people answered by links, whose receipts the version before cannot open")
    op.drop_table("ticket")
    op.drop_table("invitation")
