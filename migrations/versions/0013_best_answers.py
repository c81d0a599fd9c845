"""What tells which answer to a question is the best one.

Older releases keep no family: the service finds them by their exact question, and compares none with them.

Revision ID: 0013
Revises: 0012
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

COLUMNS = (
    ("family", sa.LargeBinary(), "SHA-256 of the question without share and cap; NULL: K-means"),
    ("share", sa.Integer(), "that was asked for [parts per million]"),
    ("cap", sa.BigInteger(), "that was asked for [micro-epsilon]; NULL: none"),
    ("people", sa.BigInteger(), "as in the body; NULL: secret"),
    ("people_left_out", sa.BigInteger(), "as in the body; NULL: secret"),
    ("width", sa.Float(), "predicted, of the interval; NULL: answers are not compared"),
)

FILL = """
    UPDATE release SET
        people = CAST(said.body->>'people' AS bigint),
        people_left_out = CAST(said.body->>'people_left_out' AS bigint)
    FROM (SELECT id, CAST(convert_from(body, 'UTF8') AS jsonb) AS body FROM release) said
    WHERE said.id = release.id
"""


def upgrade() -> None:
    """Add the columns and read the numbers of people off the documents."""
    for name, kind, comment in COLUMNS:
        op.add_column("release", sa.Column(name, kind, nullable=True, comment=comment))
    # Releases are append-only, and only these new columns are filled.
    op.execute("ALTER TABLE release DISABLE TRIGGER USER")
    op.execute(FILL)
    op.execute("ALTER TABLE release ENABLE TRIGGER USER")
    op.create_index("ix_release_study_id_family_number", "release", ["study_id", "family", "number"])


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_release_study_id_family_number", "release")
    for name, _, _ in reversed(COLUMNS):
        op.drop_column("release", name)
