"""A release writes one index less for each cohort that it charges, and does not compress what it keeps.

Revision ID: 0035
Revises: 0034
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

ARRAYS = ("cohorts", "weights", "counts", "charged")


def upgrade() -> None:
    """Charges of a cohort are found by the releases of its study; arrays stay as they are until rewritten."""
    op.drop_index("ix_charge_cohort_id", table_name="charge")
    _store_arrays("EXTERNAL")


def downgrade() -> None:
    """Find charges by cohort again."""
    _store_arrays("EXTENDED")
    op.create_index("ix_charge_cohort_id", "charge", ["cohort_id"])


def _store_arrays(how: str) -> None:
    for column in ARRAYS:
        op.execute(f"ALTER TABLE piece ALTER COLUMN {column} SET STORAGE {how}")
