"""Studies can be retired: they give stored answers only.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the state; no study has it yet."""
    op.execute("ALTER TYPE study_state ADD VALUE 'retired'")


def downgrade() -> None:
    """Keep what retired studies promise as far as the older version can: they are closed."""
    op.execute("ALTER TYPE study_state RENAME TO study_state_with_retired")
    op.execute("CREATE TYPE study_state AS ENUM ('open', 'closed')")
    op.execute("ALTER TABLE study ALTER COLUMN state DROP DEFAULT")
    op.execute("""
        ALTER TABLE study ALTER COLUMN state TYPE study_state
        USING (CASE WHEN state = 'open' THEN 'open' ELSE 'closed' END)::study_state
    """)
    op.execute("ALTER TABLE study ALTER COLUMN state SET DEFAULT 'open'")
    op.execute("DROP TYPE study_state_with_retired")
