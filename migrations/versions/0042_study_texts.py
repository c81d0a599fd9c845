"""What a study says to people in other languages.

Revision ID: 0042
Revises: 0041
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Studies so far have their own texts alone."""
    column = sa.Column(
        "texts",
        JSONB(),
        nullable=False,
        server_default="{}",
        comment="title, description and labels in other languages, by language",
    )
    op.add_column("study", column)


def downgrade() -> None:
    """Forget them."""
    op.drop_column("study", "texts")
