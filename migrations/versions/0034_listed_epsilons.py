"""A study may list the epsilons that people choose from, and its one measure may have a name.

Revision ID: 0034
Revises: 0033
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

LISTED = "SELECT EXISTS (SELECT FROM study WHERE epsilons <> '{}')"
NAMED = "SELECT EXISTS (SELECT FROM study WHERE cardinality(measures) = 1)"
COMMENT = "the only admissible ones, in order [micro-epsilon]; none: all in the range"


def upgrade() -> None:
    """Studies that exist admit their whole range."""
    kind = ARRAY(sa.BigInteger)
    op.add_column("study", sa.Column("epsilons", kind, nullable=False, server_default="{}", comment=COMMENT))


def downgrade() -> None:
    """Go back while no study has what the version before would take for a whole range, or for a vector."""
    if op.get_bind().execute(sa.text(LISTED)).scalar():
        raise RuntimeError("a study lists its epsilons, which the version before cannot hold")
    if op.get_bind().execute(sa.text(NAMED)).scalar():
        raise RuntimeError("a study has a name for its one measure, which the version before cannot hold")
    op.drop_column("study", "epsilons")
