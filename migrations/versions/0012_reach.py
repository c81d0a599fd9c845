"""Cohorts know how far outside the grid their reports count.

Revision ID: 0012
Revises: 0011
"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

COMMENT = "steps outside the grid that a report counts; NULL: all"


def upgrade() -> None:
    """Reports of cohorts that are folded already go on counting as they are."""
    op.add_column("cohort", sa.Column("reach", sa.BigInteger(), comment=COMMENT))


def downgrade() -> None:
    """Count all of them as they are again."""
    op.execute("""
        UPDATE cohort SET total = folded.total, total_squares = folded.squares
        FROM (
            SELECT study_id, epoch, epsilon, carried, delta, delta_carried, sum(value) AS total,
                   sum(CAST(value AS numeric) * value) AS squares
            FROM contribution WHERE trust = 'local' AND value IS NOT NULL
            GROUP BY 1, 2, 3, 4, 5, 6
        ) folded
        WHERE cohort.trust = 'local' AND cohort.reach IS NOT NULL
          AND (cohort.study_id, cohort.epoch, cohort.epsilon, cohort.carried, cohort.delta,
               cohort.delta_carried)
            = (folded.study_id, folded.epoch, folded.epsilon, folded.carried, folded.delta,
               folded.delta_carried)
    """)
    op.drop_column("cohort", "reach")
