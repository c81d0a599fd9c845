"""What a release says of the variance in a column, for the next plan.

Revision ID: 0015
Revises: 0014
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; no release of before has a variance."""
    op.add_column(
        "release",
        sa.Column(
            "variance", sa.Float(), nullable=True, comment="upper end for the population, as in the body"
        ),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_column("release", "variance")
