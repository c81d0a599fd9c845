"""What a release says of itself in columns, so that no list reads its document again.

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

FILL = """
    UPDATE release SET
        estimate = CAST(said.body->>'estimate' AS float8),
        standard_error = CAST(said.body->>'standard_error' AS float8),
        noisy_count = CAST(said.body->>'noisy_count' AS float8),
        epsilon_max = round(CAST(said.body->>'epsilon_max' AS numeric) * 1000000)
    FROM (SELECT id, CAST(convert_from(body, 'UTF8') AS jsonb) AS body FROM release) said
    WHERE said.id = release.id
"""


def upgrade() -> None:
    """Add the columns and read them off the documents."""
    for name in ("estimate", "standard_error"):
        op.add_column(
            "release",
            sa.Column(name, sa.Float(), nullable=True, comment="as in the body; NULL: not one number"),
        )
    op.add_column(
        "release",
        sa.Column(
            "noisy_count",
            sa.Float(),
            nullable=True,
            comment="as in the body; NULL: the number of people is public",
        ),
    )
    op.add_column(
        "release",
        sa.Column("epsilon_max", sa.BigInteger(), nullable=True, comment="micro-epsilon; as in the body"),
    )
    # Releases are append-only, and only these new columns are filled.
    op.execute("ALTER TABLE release DISABLE TRIGGER USER")
    op.execute(FILL)
    op.execute("ALTER TABLE release ENABLE TRIGGER USER")
    op.alter_column("release", "epsilon_max", nullable=False)


def downgrade() -> None:
    """Drop them."""
    for name in ("epsilon_max", "noisy_count", "standard_error", "estimate"):
        op.drop_column("release", name)
