"""Operations: quotas, what tokens used of studies, rotated secrets, identities of a provider, key fence.

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# A process that still runs with another subject key would take everybody for new. Its connections say in
# their name which key it has (app/store/database.py); others (psql, a restore) know what they do.
FENCE = """
CREATE FUNCTION refuse_other_subject_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('application_name') LIKE 'dither %' AND current_setting('application_name') <>
       (SELECT 'dither ' || left(encode(value, 'hex'), 16) FROM installation WHERE key = 'subject_key') THEN
        RAISE EXCEPTION 'this process has another subject key than the database';
    END IF;
    RETURN NULL;
END $$
"""


def upgrade() -> None:
    """Add what is new; nothing of the ledger changes."""
    op.alter_column("token", "hash", existing_type=sa.LargeBinary(), nullable=True)
    op.add_column(
        "token",
        sa.Column("old_hash", sa.LargeBinary(), comment="SHA-256 of the secret before the last rotation"),
    )
    op.add_column("token", sa.Column("old_expires_at", sa.DateTime(timezone=True)))
    op.add_column(
        "token", sa.Column("identity", sa.LargeBinary(), comment="SHA-256 of an OIDC issuer and subject")
    )
    op.add_column("token", sa.Column("last_used_on", sa.Date()))
    op.add_column("token", sa.Column("quota_share", sa.Integer(), comment="parts per million"))
    op.add_column("token", sa.Column("quota_period", sa.Integer(), comment="seconds"))
    op.create_unique_constraint(op.f("uq_token_old_hash"), "token", ["old_hash"])
    op.create_unique_constraint(op.f("uq_token_identity"), "token", ["identity"])
    op.create_check_constraint(
        op.f("ck_token_secret_or_identity"), "token", "(hash IS NULL) <> (identity IS NULL)"
    )
    op.create_check_constraint(
        op.f("ck_token_quota_complete"), "token", "(quota_share IS NULL) = (quota_period IS NULL)"
    )
    op.create_table(
        "usage",
        sa.Column("release_id", sa.Uuid(), nullable=False),
        sa.Column("token_id", sa.Uuid(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column(
            "share", sa.Integer(), nullable=False, comment="of anybody's epsilon, at most [parts per million]"
        ),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False, comment="by the database's clock"),
        sa.ForeignKeyConstraint(["release_id"], ["release.id"], name=op.f("fk_usage_release_id_release")),
        sa.ForeignKeyConstraint(["token_id"], ["token.id"], name=op.f("fk_usage_token_id_token")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_usage_study_id_study")),
        sa.PrimaryKeyConstraint("release_id", name=op.f("pk_usage")),
    )
    op.create_index("ix_usage_token_id_study_id_at", "usage", ["token_id", "study_id", "at"], unique=False)
    op.execute(FENCE)
    op.execute(
        "CREATE TRIGGER subject_key BEFORE INSERT ON subject "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_other_subject_key()"
    )


def downgrade() -> None:
    """Take it away; identities of a provider have no place in the older schema."""
    op.execute("DROP TRIGGER subject_key ON subject")
    op.execute("DROP FUNCTION refuse_other_subject_key")
    op.drop_index("ix_usage_token_id_study_id_at", table_name="usage")
    op.drop_table("usage")
    op.drop_constraint(op.f("ck_token_quota_complete"), "token")
    op.drop_constraint(op.f("ck_token_secret_or_identity"), "token")
    op.execute(
        "UPDATE token SET hash = identity, revoked_at = coalesce(revoked_at, now()) WHERE hash IS NULL"
    )
    for column in (
        "quota_period",
        "quota_share",
        "last_used_on",
        "identity",
        "old_expires_at",
        "old_hash",
    ):
        op.drop_column("token", column)
    op.alter_column("token", "hash", existing_type=sa.LargeBinary(), nullable=False)
