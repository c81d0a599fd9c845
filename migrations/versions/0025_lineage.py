"""Epochs whose people have paid for nothing since share cohorts: which cohort the people of an epoch are in.

Revision ID: 0025
Revises: 0024
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

TRUST = postgresql.ENUM("central", "local", "public", name="trust", create_type=False)

FILL = """
    INSERT INTO lineage (study_id, epoch, trust, segment, epsilon, carried, cohort_id, reach)
    SELECT study_id, epoch, trust, segment, epsilon, carried, id, reach FROM cohort
"""

SHARED = "SELECT count(*) FROM (SELECT cohort_id FROM lineage GROUP BY cohort_id HAVING count(*) > 1) shared"


def upgrade() -> None:
    """Add it; so far each cohort has the people of one epoch."""
    op.create_table(
        "lineage",
        sa.Column("study_id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("trust", TRUST, primary_key=True),
        sa.Column(
            "segment", sa.SmallInteger(), primary_key=True, autoincrement=False, comment="as in the cohort"
        ),
        sa.Column(
            "epsilon", sa.BigInteger(), primary_key=True, autoincrement=False, comment="as in the cohort"
        ),
        sa.Column(
            "carried", sa.BigInteger(), primary_key=True, autoincrement=False, comment="as in the cohort"
        ),
        sa.Column("cohort_id", sa.BigInteger(), sa.ForeignKey("cohort.id"), nullable=False),
        sa.Column("reach", sa.BigInteger(), comment="steps outside the grid that a report counts; NULL: all"),
    )
    op.create_index("ix_lineage_cohort_id", "lineage", ["cohort_id"])
    op.alter_column("cohort", "epoch", comment="the last one whose people are in it")
    op.alter_column("cohort", "reach", comment="steps outside the grid that reports count at most; NULL: all")
    op.execute(FILL)


def downgrade() -> None:
    """Drop it, where no cohort has the people of several epochs."""
    if op.get_bind().execute(sa.text(SHARED)).scalar_one():
        raise RuntimeError("cohorts have the people of several epochs, which former versions do not know")
    op.alter_column("cohort", "reach", comment="steps outside the grid that a report counts; NULL: all")
    op.alter_column("cohort", "epoch", comment=None)
    op.drop_table("lineage")
