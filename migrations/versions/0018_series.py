"""Studies have a description, and may belong to a series.

Revision ID: 0018
Revises: 0017
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Studies that exist have neither."""
    op.add_column("study", sa.Column("description", sa.Text(), nullable=False, server_default=""))
    op.add_column("study", sa.Column("series", sa.Text(), comment="slug; NULL: none"))


def downgrade() -> None:
    """Forget them."""
    op.drop_column("study", "series")
    op.drop_column("study", "description")
