"""Idempotency keys without people: digests only, no response of a contribution, and whom a key is about.

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# Responses to contributions name the person, and their digests have no key: they are gone.
# The dashboard's requests were not digested.
TO_DIGESTS = (
    """DELETE FROM idempotency WHERE CASE WHEN length(body) > 36
           THEN CAST(convert_from(body, 'UTF8') AS jsonb) -> 'subject' IS NOT NULL ELSE false END""",
    "UPDATE idempotency SET request = sha256(request) WHERE length(request) <> 32",
    "ALTER TABLE idempotency ALTER COLUMN key TYPE bytea USING sha256(convert_to(key, 'UTF8'))",
)


def upgrade() -> None:
    """Forget what was kept of contributions, and turn the rest into digests."""
    for statement in TO_DIGESTS:
        op.execute(statement)
    for column, new, old in (
        ("key", "digest of the Idempotency-Key", None),
        ("request", "digest of the request", "SHA-256 of the request"),
        ("body", "what the first response is made of again", "the first response, byte for byte"),
    ):
        op.alter_column("idempotency", column, comment=new, existing_comment=old)
    op.add_column(
        "idempotency", sa.Column("study_id", sa.Integer(), nullable=True, comment="NULL: before it was kept")
    )
    op.add_column(
        "idempotency",
        sa.Column(
            "subject_id",
            sa.LargeBinary(),
            nullable=True,
            comment="whom the request is about; NULL: no person",
        ),
    )
    op.create_index("ix_idempotency_created_at", "idempotency", ["created_at"])
    op.create_index(
        "ix_idempotency_subject_id",
        "idempotency",
        ["subject_id"],
        postgresql_where=sa.text("subject_id IS NOT NULL"),
    )


def downgrade() -> None:
    """Remove the columns and every key: the former program knows none of these digests."""
    op.execute("DELETE FROM idempotency")
    op.drop_index("ix_idempotency_subject_id", table_name="idempotency")
    op.drop_index("ix_idempotency_created_at", table_name="idempotency")
    op.drop_column("idempotency", "subject_id")
    op.drop_column("idempotency", "study_id")
    op.execute("ALTER TABLE idempotency ALTER COLUMN key TYPE text USING encode(key, 'hex')")
    for column, comment in (
        ("key", None),
        ("request", "SHA-256 of the request"),
        ("body", "the first response, byte for byte"),
    ):
        op.alter_column("idempotency", column, comment=comment)
