"""Studies may ask for one of a few choices.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Studies that exist ask for numbers."""
    op.add_column(
        "study",
        sa.Column(
            "choices",
            sa.ARRAY(sa.Text()),
            nullable=False,
            server_default="{}",
            comment="labels, in order; a value is the number of one; none: values are numbers",
        ),
    )


def downgrade() -> None:
    """Forget them, where there are none."""
    if op.get_bind().execute(sa.text("SELECT EXISTS (SELECT FROM study WHERE choices <> '{}')")).scalar():
        raise RuntimeError("a study asks for choices, which the version before cannot hold")
    op.drop_column("study", "choices")
