"""A token may have several roles.

Revision ID: 0044
Revises: 0043
"""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Tokens so far have the one that they had."""
    op.execute("ALTER TABLE token RENAME COLUMN role TO roles")
    op.execute("ALTER TABLE token ALTER COLUMN roles TYPE role[] USING ARRAY[roles]")
    op.create_check_constraint(op.f("ck_token_has_roles"), "token", "cardinality(roles) > 0")


def downgrade() -> None:
    """A token with several roles has none that would be the same: it is refused."""
    op.execute("UPDATE token SET revoked_at = coalesce(revoked_at, now()) WHERE cardinality(roles) > 1")
    op.drop_constraint(op.f("ck_token_has_roles"), "token")
    op.execute("ALTER TABLE token ALTER COLUMN roles TYPE role USING roles[1]")
    op.execute("ALTER TABLE token RENAME COLUMN roles TO role")
