"""Cohorts know the squares of central and public values.

Revision ID: 0011
Revises: 0010
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BEFORE = "local: sum of squared reports; else 0"
AFTER = "of reports, or of steps from the middle / 2^15"

FILL = """
    UPDATE cohort SET total_squares = folded.squares
    FROM (
        SELECT study_id, epoch, trust,
               CASE WHEN trust = 'public' THEN 0 ELSE epsilon END AS epsilon,
               CASE WHEN trust = 'public' THEN 0 ELSE carried END AS carried,
               CASE WHEN trust = 'public' THEN 0 ELSE delta END AS delta,
               CASE WHEN trust = 'public' THEN 0 ELSE delta_carried END AS delta_carried,
               sum(((value - 536870912) * (value - 536870912)) >> 30) AS squares
        FROM contribution
        WHERE trust <> 'local' AND value IS NOT NULL
        GROUP BY 1, 2, 3, 4, 5, 6, 7
    ) folded
    WHERE (cohort.study_id, cohort.epoch, cohort.trust, cohort.epsilon, cohort.carried, cohort.delta,
           cohort.delta_carried)
        = (folded.study_id, folded.epoch, folded.trust, folded.epsilon, folded.carried, folded.delta,
           folded.delta_carried)
"""


def upgrade() -> None:
    """Sum up the squares of what is folded already."""
    op.execute(FILL)
    op.alter_column("cohort", "total_squares", existing_type=sa.Numeric(), comment=AFTER)


def downgrade() -> None:
    """Forget them."""
    op.alter_column("cohort", "total_squares", existing_type=sa.Numeric(), comment=BEFORE)
    op.execute("UPDATE cohort SET total_squares = 0 WHERE trust <> 'local'")
