"""Studies may ask for several numbers.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Studies that exist ask for one value."""
    op.add_column(
        "study",
        sa.Column(
            "measures",
            sa.ARRAY(sa.Text()),
            nullable=False,
            server_default="{}",
            comment="name:lower:upper, in order: the coordinates of a value; none: a study of one value",
        ),
    )


def downgrade() -> None:
    """Forget them, where there are none."""
    if op.get_bind().execute(sa.text("SELECT EXISTS (SELECT FROM study WHERE measures <> '{}')")).scalar():
        raise RuntimeError("a study asks for measures, which the version before cannot hold")
    op.drop_column("study", "measures")
