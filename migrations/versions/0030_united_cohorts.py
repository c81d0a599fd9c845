"""Cohorts that were charged alike become one: which ones its people were in before.

Revision ID: 0030
Revises: 0029
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

KEY = "uq_cohort_key"
SPENT = "ck_cohort_spent_within_epsilon"
INDEX = "ix_cohort_study_id_id"

BEFORE = "carried, or spent when cohorts became this one"

UNITED = "SELECT count(*) FROM lineage WHERE former <> '{}'"


def upgrade() -> None:
    """So far none did. That an epoch is folded once is kept by the key of `lineage`."""
    op.add_column(
        "lineage",
        sa.Column(
            "former",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=False,
            server_default="{}",
            comment="cohorts of before",
        ),
    )
    op.add_column("cohort", sa.Column("before", sa.BigInteger(), comment=BEFORE))
    op.execute("UPDATE cohort SET before = carried")
    op.alter_column("cohort", "before", nullable=False)
    op.alter_column("cohort", "spent", comment="before + its charges; local: epsilon")
    op.drop_constraint(op.f(SPENT), "cohort")
    op.create_check_constraint(
        op.f(SPENT), "cohort", "carried <= before AND before <= spent AND spent <= epsilon"
    )
    op.drop_constraint(op.f(KEY), "cohort")
    op.drop_index(INDEX, "cohort")
    op.create_index(INDEX, "cohort", ["study_id", "id"], postgresql_where=sa.text("count > 0"))


def downgrade() -> None:
    """Drop it, where no cohorts became one."""
    if op.get_bind().execute(sa.text(UNITED)).scalar_one():
        raise RuntimeError("cohorts were united, which former versions do not know")
    op.drop_index(INDEX, "cohort")
    op.create_index(INDEX, "cohort", ["study_id", "id"])
    op.create_unique_constraint(
        op.f(KEY), "cohort", ["study_id", "epoch", "trust", "epsilon", "carried", "segment"]
    )
    op.drop_constraint(op.f(SPENT), "cohort")
    op.create_check_constraint(op.f(SPENT), "cohort", "carried <= spent AND spent <= epsilon")
    op.alter_column("cohort", "spent", comment="carried + its charges; local: epsilon")
    op.drop_column("cohort", "before")
    op.drop_column("lineage", "former")
