"""A measure may be a choice: what the column holds then, in words; and one comment in plainer ones.

Revision ID: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

BEFORE = "name:lower:upper, in order: the coordinates of a value; none: a study of one value"
AFTER = 'name:lower:upper or name:["label",...], in order: coordinates of a value; none: one value'
CHOSEN = "SELECT EXISTS (SELECT FROM study, unnest(measures) AS one WHERE one LIKE '%:[%')"


def upgrade() -> None:
    """Studies that exist have numbers alone."""
    op.alter_column("study", "measures", comment=AFTER)
    op.alter_column("session", "assignment_key", comment="NULL: all people, every round")


def downgrade() -> None:
    """Say it as before, where no measure is a choice."""
    if op.get_bind().execute(sa.text(CHOSEN)).scalar():
        raise RuntimeError(
            "a study asks for a choice among its measures, which the version before cannot hold"
        )
    op.alter_column("session", "assignment_key", comment="NULL: everybody, every round")
    op.alter_column("study", "measures", comment=BEFORE)
