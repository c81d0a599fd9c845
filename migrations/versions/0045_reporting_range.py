"""A study may have a reporting range, which reports state.

Revision ID: 0045
Revises: 0044
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

SEGMENT = "which combination of the study's labels; 0: none, or withdrawn"
FIXED = "SELECT EXISTS (SELECT FROM study WHERE reporting_range IS NOT NULL)"


def upgrade() -> None:
    """No study has one. That a report was made inside one is in its segment: no row is written again."""
    op.add_column(
        "study",
        sa.Column(
            "reporting_range",
            JSONB,
            nullable=True,
            comment="start and zoom [grid steps], the part outside at most, and the searches; NULL: none",
        ),
    )
    _comment(f"{SEGMENT}; + 1024: reported inside the reporting range", SEGMENT)


def downgrade() -> None:
    """Go back while no study has one: the version before takes its reports for those of the whole range."""
    if op.get_bind().execute(sa.text(FIXED)).scalar():
        raise RuntimeError("a study has a reporting range, and the version before cannot read its reports")
    op.drop_column("study", "reporting_range")
    _comment(SEGMENT, f"{SEGMENT}; + 1024: reported inside the reporting range")


def _comment(comment: str, before: str) -> None:
    op.alter_column(
        "contribution",
        "segment",
        comment=comment,
        existing_comment=before,
        existing_type=sa.SmallInteger(),
        existing_nullable=False,
        existing_server_default="0",
    )
