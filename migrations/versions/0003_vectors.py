"""Vectors: values with several coordinates.

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add contribution.vector."""
    op.add_column(
        "contribution",
        sa.Column(
            "vector",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=True,
            comment="grid points, in studies of vectors",
        ),
    )
    op.alter_column(
        "contribution",
        "value",
        comment="grid point, local: the report, vectors: 0, NULL: withdrawn",
        existing_type=sa.BigInteger(),
        existing_comment="grid point, local: the report, NULL: withdrawn",
        existing_nullable=True,
    )
    op.create_check_constraint(
        op.f("ck_contribution_vector_withdrawn_with_value"),
        "contribution",
        "value IS NOT NULL OR vector IS NULL",
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_constraint(op.f("ck_contribution_vector_withdrawn_with_value"), "contribution", type_="check")
    op.alter_column(
        "contribution",
        "value",
        comment="grid point, local: the report, NULL: withdrawn",
        existing_type=sa.BigInteger(),
        existing_comment="grid point, local: the report, vectors: 0, NULL: withdrawn",
        existing_nullable=True,
    )
    op.drop_column("contribution", "vector")
