"""Lifetime budgets for Gaussian noise can be raised for all people at once, too.

Revision ID: 0024
Revises: 0023
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

COMMENT = "on top of the setting, for people who are new: mu^2 [1e-6]"
CHECK = "ck_allowance_gaussian_not_negative"


def upgrade() -> None:
    """None was raised yet."""
    op.add_column(
        "allowance",
        sa.Column("gaussian_raised", sa.BigInteger(), nullable=False, server_default="0", comment=COMMENT),
    )
    op.alter_column("allowance", "gaussian_raised", server_default=None)
    op.create_check_constraint(op.f(CHECK), "allowance", "gaussian_raised >= 0")


def downgrade() -> None:
    """Forget it for people who are new; budgets that were raised stay."""
    op.drop_constraint(op.f(CHECK), "allowance")
    op.drop_column("allowance", "gaussian_raised")
