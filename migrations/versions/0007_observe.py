"""The role of whoever watches the service: metrics, and nothing else.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the role; nothing has it yet."""
    op.execute("ALTER TYPE role ADD VALUE 'observe'")


def downgrade() -> None:
    """Take it away, and the tokens that have it."""
    op.execute("DELETE FROM token WHERE role = 'observe'")
    op.execute("ALTER TYPE role RENAME TO role_with_observe")
    op.execute("CREATE TYPE role AS ENUM ('contribute', 'analyse', 'admin')")
    op.execute("ALTER TABLE token ALTER COLUMN role TYPE role USING role::text::role")
    op.execute("DROP TYPE role_with_observe")
