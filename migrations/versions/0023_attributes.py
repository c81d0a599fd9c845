"""Studies declare attributes; a contribution has the number of its combination of labels.

Revision ID: 0023
Revises: 0022
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

KEY = "study_id, epoch, trust, epsilon, carried"


def upgrade() -> None:
    """Studies that exist have none: every contribution and cohort is in the one segment that there is."""
    op.add_column(
        "study",
        sa.Column(
            "attributes",
            sa.ARRAY(sa.Text()),
            nullable=False,
            server_default="{}",
            comment="name:label, in order",
        ),
    )
    op.add_column(
        "contribution",
        sa.Column(
            "segment",
            sa.SmallInteger(),
            nullable=False,
            server_default="0",
            comment="which combination of the study's labels; 0: none, or withdrawn",
        ),
    )
    op.add_column(
        "cohort",
        sa.Column("segment", sa.SmallInteger(), nullable=False, server_default="0", comment="of its members"),
    )
    op.execute("ALTER TABLE cohort DROP CONSTRAINT uq_cohort_key")
    op.execute(f"ALTER TABLE cohort ADD CONSTRAINT uq_cohort_key UNIQUE ({KEY}, segment)")


def downgrade() -> None:
    """Forget them, where there are none."""
    if op.get_bind().execute(sa.text("SELECT EXISTS (SELECT FROM study WHERE attributes <> '{}')")).scalar():
        raise RuntimeError("a study has attributes, which the version before cannot hold")
    op.execute("ALTER TABLE cohort DROP CONSTRAINT uq_cohort_key")
    op.execute(f"ALTER TABLE cohort ADD CONSTRAINT uq_cohort_key UNIQUE ({KEY})")
    op.drop_column("cohort", "segment")
    op.drop_column("contribution", "segment")
    op.drop_column("study", "attributes")
