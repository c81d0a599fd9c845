"""A piece has any number of noisy sums: two of a mean, one for each bin of a histogram.

Revision ID: 0032
Revises: 0031
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

BINS = """SELECT EXISTS (SELECT FROM release WHERE share_before IS NOT NULL
                         AND estimator IN ('histogram', 'shares'))"""


def upgrade() -> None:
    """What a release says of a piece stays true: the same numbers in the same order."""
    op.add_column("piece", sa.Column("sums", ARRAY(sa.Numeric)))
    op.execute("UPDATE piece SET sums = ARRAY[first, second]")
    op.alter_column("piece", "sums", nullable=False, comment="noisy; of values and of squares, or by bin")
    op.create_check_constraint("sums", "piece", "1 < cardinality(sums)")
    op.drop_column("piece", "first")
    op.drop_column("piece", "second")
    op.alter_column("piece", "scale", comment="of the noise in all sums")


def downgrade() -> None:
    """Go back while all pieces are of two sums, and none is counted by bin."""
    if op.get_bind().execute(sa.text(BINS)).scalar():
        raise RuntimeError("shares by bin have noisy sums, which the version before cannot keep")
    op.add_column("piece", sa.Column("first", sa.Numeric, comment="noisy sum of values"))
    op.add_column("piece", sa.Column("second", sa.Numeric, comment="noisy sum of squares"))
    op.execute("UPDATE piece SET first = sums[1], second = sums[2]")
    op.alter_column("piece", "first", nullable=False)
    op.alter_column("piece", "second", nullable=False)
    op.drop_constraint(op.f("ck_piece_sums"), "piece")
    op.drop_column("piece", "sums")
    op.alter_column("piece", "scale", comment="of the noise in both sums")
