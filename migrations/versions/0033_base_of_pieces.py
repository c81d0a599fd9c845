"""A piece of people whose former piece is closed goes on where that one ended.

Revision ID: 0033
Revises: 0032
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

BASES = "SELECT EXISTS (SELECT FROM piece WHERE base > 0)"
COMMENT = "that its people had given in closed pieces before [parts per million]"


def upgrade() -> None:
    """Pieces of before go on as they began: without a base."""
    op.add_column("piece", sa.Column("base", sa.Integer, nullable=False, server_default="0", comment=COMMENT))
    op.create_check_constraint("base_of_share", "piece", "0 <= base AND base + share <= 1000000")


def downgrade() -> None:
    """Go back while no piece has a base, which the version before would take for a share to be charged."""
    if op.get_bind().execute(sa.text(BASES)).scalar():
        raise RuntimeError("a piece has a base, which the version before cannot keep")
    op.drop_constraint(op.f("ck_piece_base_of_share"), "piece")
    op.drop_column("piece", "base")
