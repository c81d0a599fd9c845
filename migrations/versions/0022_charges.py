"""Charges are written by the statement that charges the cohorts, without foreign keys of their own.

Revision ID: 0022
Revises: 0021
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

FOREIGN_KEYS = {"fk_charge_release_id_release": "release", "fk_charge_cohort_id_cohort": "cohort"}


def upgrade() -> None:
    """Drop them, since each looks a row up for every charge; leave room for cohorts as they change."""
    for name in FOREIGN_KEYS:
        op.drop_constraint(op.f(name), "charge")
    op.execute("ALTER TABLE cohort SET (fillfactor = 50)")


def downgrade() -> None:
    """Put them back."""
    op.execute("ALTER TABLE cohort RESET (fillfactor)")
    for name, table in FOREIGN_KEYS.items():
        op.create_foreign_key(op.f(name), "charge", table, [f"{table}_id"], ["id"])
