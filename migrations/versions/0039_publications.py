"""Publications, the tree of all releases, and the public keys that signed.

Revision ID: 0039
Revises: 0038
"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

PUBLISHED = "SELECT EXISTS (SELECT FROM publication)"


def upgrade() -> None:
    """There are none at first; the tree grows when something is published."""
    op.create_table(
        "publication",
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column(
            "releases", sa.ARRAY(sa.Uuid()), nullable=False, comment="in the order in which they are shown"
        ),
        sa.Column("frames", sa.ARRAY(sa.Text()), nullable=False, comment="origins whose pages may frame it"),
        sa.Column(
            "file", sa.LargeBinary(), nullable=True, comment="signed, as everyone gets it; NULL: withdrawn"
        ),
        sa.Column("token_id", sa.Uuid(), nullable=False, comment="who made or changed it last"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("withdrawn_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(file IS NULL) = (withdrawn_at IS NOT NULL)", name=op.f("ck_publication_withdrawn_has_no_file")
        ),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_publication_study_id_study")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_publication_token_id_token")),
        sa.PrimaryKeyConstraint("slug", name=op.f("pk_publication")),
    )
    op.create_index("ix_publication_study_id", "publication", ["study_id"], unique=False)
    op.create_table(
        "tree_node",
        sa.Column("level", sa.SmallInteger(), nullable=False, comment="0: leaves"),
        sa.Column(
            "place",
            sa.BigInteger(),
            nullable=False,
            comment="of the complete subtree, from 0 from the left",
        ),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("level", "place", name=op.f("pk_tree_node")),
    )
    op.create_table(
        "signing_key",
        sa.Column("key", sa.LargeBinary(), nullable=False, comment="Ed25519, public"),
        sa.Column(
            "since",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="when something was first signed by it",
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_signing_key")),
    )


def downgrade() -> None:
    """Go back while nothing was published: the version before cannot show it."""
    if op.get_bind().execute(sa.text(PUBLISHED)).scalar():
        raise RuntimeError("answers were published at addresses that the version before does not have")
    op.drop_table("signing_key")
    op.drop_table("tree_node")
    op.drop_table("publication")
