"""All lifetime budgets can be raised, those of people who are new included.

Revision ID: 0019
Revises: 0018
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

COMMENT = "on top of the setting, for people who are new [micro-epsilon]"


def upgrade() -> None:
    """Nothing was raised yet, which is no row."""
    op.create_table(
        "allowance",
        sa.Column("id", sa.SmallInteger(), nullable=False),
        sa.Column("raised", sa.BigInteger(), nullable=False, comment=COMMENT),
        sa.CheckConstraint("id = 1", name="ck_allowance_one_row"),
        sa.CheckConstraint("raised >= 0", name="ck_allowance_not_negative"),
        sa.PrimaryKeyConstraint("id", name="pk_allowance"),
    )


def downgrade() -> None:
    """Forget it for people who are new; budgets that were raised stay."""
    op.drop_table("allowance")
