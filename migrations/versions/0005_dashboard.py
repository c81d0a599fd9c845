"""The dashboard: logins, one-time links, figures, the day of a contribution, and indexes for its lists.

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

INDEXES = (
    ("release", ["study_id", "number"]),
    ("cohort", ["study_id", "id"]),
    ("audit", ["action", "id"]),
)


def upgrade() -> None:
    """Add everything; what was contributed before stays without a day."""
    op.create_table(
        "login",
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the cookie"),
        sa.Column("token_id", sa.Uuid(), nullable=False),
        sa.Column(
            "subject_id", sa.LargeBinary(), nullable=True, comment="the person of a link; NULL: the token's"
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_login_token_id_token")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_login")),
    )
    op.create_index("ix_login_expires_at", "login", ["expires_at"], unique=False)
    op.create_table(
        "link",
        sa.Column("hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the secret"),
        sa.Column("token_id", sa.Uuid(), nullable=False, comment="who made it"),
        sa.Column("subject_id", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_link_token_id_token")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_link")),
    )
    op.create_index("ix_link_expires_at", "link", ["expires_at"], unique=False)
    op.create_table(
        "figure",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False, comment="how long it took"),
        sa.Column("document", postgresql.JSONB(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_figure")),
    )
    op.add_column(
        "contribution",
        sa.Column("contributed_on", sa.Date(), nullable=True, comment="UTC; NULL: before days were kept"),
    )
    op.alter_column(
        "contribution",
        "contributed_on",
        server_default=sa.text("(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')::date"),
    )
    for table, columns in INDEXES:
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, columns, unique=False)


def downgrade() -> None:
    """Remove everything."""
    for table, columns in reversed(INDEXES):
        op.drop_index(f"ix_{table}_{'_'.join(columns)}", table_name=table)
    op.drop_column("contribution", "contributed_on")
    op.drop_table("figure")
    op.drop_index("ix_link_expires_at", table_name="link")
    op.drop_table("link")
    op.drop_index("ix_login_expires_at", table_name="login")
    op.drop_table("login")
