"""The charges of a release are two arrays in one row; the view `charge` has a row for each of them.

Revision ID: 0047
Revises: 0046
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

BLOCKS = """
    INSERT INTO charge_block (release_id, cohorts, amounts)
    SELECT release_id, array_agg(cohort_id ORDER BY cohort_id), array_agg(epsilon ORDER BY cohort_id)
    FROM charge GROUP BY release_id
"""

VIEW = """
    CREATE VIEW charge AS
    SELECT release_id, paid.cohort_id, paid.epsilon
    FROM charge_block CROSS JOIN LATERAL unnest(cohorts, amounts) AS paid (cohort_id, epsilon)
"""


def upgrade() -> None:
    """Write the charges of each release into one row; amounts do not change."""
    op.create_table(
        "charge_block",
        sa.Column("release_id", sa.Uuid(), nullable=False),
        sa.Column("cohorts", postgresql.ARRAY(sa.BigInteger()), nullable=False, comment="ids, ascending"),
        sa.Column(
            "amounts",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=False,
            comment="what each was charged [micro-epsilon or 1e-6 of mu^2, per member]",
        ),
        sa.CheckConstraint(
            "0 < cardinality(cohorts) AND cardinality(amounts) = cardinality(cohorts)"
            " AND array_position(cohorts, NULL) IS NULL AND array_position(amounts, NULL) IS NULL"
            " AND 0 <= ALL (amounts)",
            name=op.f("ck_charge_block_charges"),
        ),
        sa.PrimaryKeyConstraint("release_id", name=op.f("pk_charge_block")),
    )
    for column in ("cohorts", "amounts"):
        op.execute(f"ALTER TABLE charge_block ALTER COLUMN {column} SET STORAGE EXTERNAL")
    op.execute(BLOCKS)
    _guard("charge_block")
    op.drop_table("charge")
    op.execute(VIEW)


def downgrade() -> None:
    """Write a row for each charge again."""
    op.execute("DROP VIEW charge")
    op.create_table(
        "charge",
        sa.Column("release_id", sa.Uuid(), nullable=False),
        sa.Column("cohort_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "epsilon", sa.BigInteger(), nullable=False, comment="micro-epsilon or 1e-6 of mu^2, per member"
        ),
        sa.CheckConstraint("epsilon >= 0", name=op.f("ck_charge_not_negative")),
        sa.PrimaryKeyConstraint("release_id", "cohort_id", name=op.f("pk_charge")),
    )
    op.execute("INSERT INTO charge SELECT release_id, unnest(cohorts), unnest(amounts) FROM charge_block")
    _guard("charge")
    op.drop_table("charge_block")


def _guard(table: str) -> None:
    op.execute(
        f"CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    )
