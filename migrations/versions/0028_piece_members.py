"""The cohorts of a piece are arrays in its row: a release over years of epochs writes one row for all.

Revision ID: 0028
Revises: 0027
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

COMMENTS = {
    "cohorts": "ids, ascending",
    "weights": "of each member; never change",
    "counts": "members at the first draw",
    "charged": "micro-epsilon, per member",
}

FILL = """
    UPDATE piece SET cohorts = member.cohorts, weights = member.weights, counts = member.counts,
                     charged = member.charged
    FROM (
        SELECT study_id, family, number, array_agg(cohort_id ORDER BY cohort_id) AS cohorts,
               array_agg(weight ORDER BY cohort_id) AS weights, array_agg(count ORDER BY cohort_id) AS counts,
               array_agg(charged ORDER BY cohort_id) AS charged
        FROM piece_cohort GROUP BY study_id, family, number
    ) member
    WHERE (piece.study_id, piece.family, piece.number) = (member.study_id, member.family, member.number)
"""

FILL_BACK = """
    INSERT INTO piece_cohort (study_id, family, number, cohort_id, weight, count, charged)
    SELECT study_id, family, number, member.cohort_id, member.weight, member.count, member.charged
    FROM piece CROSS JOIN unnest(cohorts, weights, counts, charged)
        AS member (cohort_id, weight, count, charged)
"""


def upgrade() -> None:
    """Move them."""
    for name, comment in COMMENTS.items():
        op.add_column("piece", sa.Column(name, postgresql.ARRAY(sa.BigInteger()), comment=comment))
    op.execute(FILL)
    for name in COMMENTS:
        op.alter_column("piece", name, nullable=False)
    op.create_check_constraint(
        "members",
        "piece",
        "0 < cardinality(cohorts) AND cardinality(weights) = cardinality(cohorts)"
        " AND cardinality(counts) = cardinality(cohorts) AND cardinality(charged) = cardinality(cohorts)"
        " AND 0 < ALL (weights) AND 0 < ALL (counts) AND 0 < ALL (charged)",
    )
    op.drop_table("piece_cohort")


def downgrade() -> None:
    """Make them rows again."""
    op.create_table(
        "piece_cohort",
        sa.Column("study_id", sa.Integer(), primary_key=True),
        sa.Column("family", sa.LargeBinary(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True),
        sa.Column("cohort_id", sa.BigInteger(), sa.ForeignKey("cohort.id"), primary_key=True),
        sa.Column("weight", sa.BigInteger(), nullable=False, comment="of each member; never changes"),
        sa.Column("count", sa.BigInteger(), nullable=False, comment="members at the first draw"),
        sa.Column("charged", sa.BigInteger(), nullable=False, comment="micro-epsilon, per member"),
        sa.ForeignKeyConstraint(
            ["study_id", "family", "number"], ["piece.study_id", "piece.family", "piece.number"]
        ),
        sa.CheckConstraint("weight > 0 AND count > 0 AND charged > 0", name="positive"),
    )
    op.create_index("ix_piece_cohort_cohort_id", "piece_cohort", ["cohort_id"])
    op.execute(FILL_BACK)
    for name in COMMENTS:
        op.drop_column("piece", name)
