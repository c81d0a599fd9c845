"""Studies declare a tilt.

Revision ID: 0014
Revises: 0013
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

COMMENT = "parts per million of the range"


def upgrade() -> None:
    """Studies that exist keep the answers that they have: without a tilt."""
    op.add_column(
        "study", sa.Column("tilt", sa.Integer(), nullable=False, server_default="0", comment=COMMENT)
    )


def downgrade() -> None:
    """Forget it; answers that were given stay."""
    op.drop_column("study", "tilt")
