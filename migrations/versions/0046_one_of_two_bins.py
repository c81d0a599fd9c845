"""A piece of two bins has one noisy sum: the count of the other bin is the rest of the public total.

Revision ID: 0046
Revises: 0045
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

ALONE = "SELECT EXISTS (SELECT FROM piece WHERE cardinality(sums) = 1)"


def upgrade() -> None:
    """Questions that were begun with two sums go on with both."""
    op.drop_constraint(op.f("ck_piece_sums"), "piece")
    op.create_check_constraint("sums", "piece", "0 < cardinality(sums)")


def downgrade() -> None:
    """Go back while no piece has one sum: the version before cannot read it."""
    if op.get_bind().execute(sa.text(ALONE)).scalar():
        raise RuntimeError("pieces of two bins have one sum, which the version before cannot read")
    op.drop_constraint(op.f("ck_piece_sums"), "piece")
    op.create_check_constraint("sums", "piece", "1 < cardinality(sums)")
