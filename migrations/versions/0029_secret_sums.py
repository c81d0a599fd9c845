"""Noisy sums of studies where it is secret who is there: they are kept without cohorts.

Revision ID: 0029
Revises: 0028
"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

SAME_LENGTHS = (
    "cardinality(weights) = cardinality(cohorts)"
    " AND cardinality(counts) = cardinality(cohorts) AND cardinality(charged) = cardinality(cohorts)"
    " AND 0 < ALL (weights) AND 0 < ALL (counts) AND 0 < ALL (charged)"
)


def _comment(text: str) -> None:
    op.alter_column("piece", "cohorts", comment=text)


def upgrade() -> None:
    """Let them have none. Answers of before keep no sums: they are not combined."""
    op.drop_constraint(op.f("ck_piece_members"), "piece")
    op.create_check_constraint(
        "members", "piece", "(0 < cardinality(cohorts) OR NOT refinable) AND " + SAME_LENGTHS
    )
    _comment("ids, ascending; none where it is secret")


def downgrade() -> None:
    """Drop these sums; answers and what they cost stay."""
    op.execute("DELETE FROM piece WHERE cardinality(cohorts) = 0")
    op.drop_constraint(op.f("ck_piece_members"), "piece")
    op.create_check_constraint("members", "piece", "0 < cardinality(cohorts) AND " + SAME_LENGTHS)
    _comment("ids, ascending")
