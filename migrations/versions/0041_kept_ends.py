"""Ends of intervals at other levels, beside answers.

Revision ID: 0041
Revises: 0040
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Answers of before have none: they are read at their own level."""
    op.add_column(
        "release",
        sa.Column(
            "kept_ends",
            sa.LargeBinary(),
            nullable=True,
            comment="of intervals at other levels; NULL: not kept",
        ),
    )


def downgrade() -> None:
    """Answers themselves stay as they are."""
    op.drop_column("release", "kept_ends")
