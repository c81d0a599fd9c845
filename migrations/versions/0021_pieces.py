"""Noisy sums that questions keep, so that asking for more of people sharpens an answer.

Revision ID: 0021
Revises: 0020
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them. Answers of before keep none: their questions start anew."""
    op.add_column(
        "release",
        sa.Column("share_before", sa.Integer(), comment="of the question; NULL: not a step of its shares"),
    )
    op.create_table(
        "piece",
        sa.Column("study_id", sa.Integer(), sa.ForeignKey("study.id"), primary_key=True),
        sa.Column("family", sa.LargeBinary(), primary_key=True, comment="the question, as in release"),
        sa.Column("number", sa.Integer(), primary_key=True, comment="from 1"),
        sa.Column("unit", sa.Double(), nullable=False, comment="Laplace scale at share 1"),
        sa.Column("share", sa.Integer(), nullable=False, comment="that it has used [parts per million]"),
        sa.Column("scale", sa.Double(), nullable=False, comment="of the noise in both sums"),
        sa.Column("first", sa.Numeric(), nullable=False, comment="noisy sum of values"),
        sa.Column("second", sa.Numeric(), nullable=False, comment="noisy sum of squares"),
        sa.Column("refinable", sa.Boolean(), nullable=False),
        sa.Column(
            "release_id", sa.Uuid(), sa.ForeignKey("release.id"), nullable=False, comment="last change"
        ),
        sa.CheckConstraint(
            "0 < share AND share <= 1000000 AND 0 < unit AND unit <= scale", name="scale_of_share"
        ),
    )
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


def downgrade() -> None:
    """Drop them; answers and what they cost stay."""
    op.drop_table("piece_cohort")
    op.drop_table("piece")
    op.drop_column("release", "share_before")
