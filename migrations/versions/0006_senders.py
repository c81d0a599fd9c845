"""Who sent a contribution, an answer, a report: only that token is told that it sends the same again.

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = (
    ("contribution", "sender", "the token that sent the value; NULL: withdrawn, or before it was kept"),
    ("enrolment", "report_sender", "the token that sent the report"),
    ("answer", "sender", "the token that sent it; NULL: before it was kept"),
)


def upgrade() -> None:
    """Add the columns; nobody is known to have sent what is there."""
    for table, column, comment in COLUMNS:
        op.add_column(table, sa.Column(column, sa.Uuid(), nullable=True, comment=comment))


def downgrade() -> None:
    """Remove them."""
    for table, column, _ in reversed(COLUMNS):
        op.drop_column(table, column)
