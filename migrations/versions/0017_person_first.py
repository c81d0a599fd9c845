"""Tables with a row or more a person can be distributed by person: keys start with the person, there is no
trigger on them, and what was acknowledged is counted apart from them.

Revision ID: 0017
Revises: 0016
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# A process that still runs with another subject key would take everybody for new. Its connections say in
# their name which key it has (app/store/database.py); others (psql, a restore) know what they do. Every
# statement that makes subjects calls this: a distributed table has no triggers.
HOLDS = """
CREATE FUNCTION subject_key_holds() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('application_name') LIKE 'dither %' AND current_setting('application_name') <>
       (SELECT 'dither ' || left(encode(value, 'hex'), 16) FROM installation WHERE key = 'subject_key') THEN
        RAISE EXCEPTION 'this process has another subject key than the database';
    END IF;
    RETURN true;
END $$
"""

FENCE = HOLDS.replace("subject_key_holds() RETURNS boolean", "refuse_other_subject_key() RETURNS trigger")

KEYS = (
    ("contribution", ["study_id", "subject_id"], ["subject_id", "study_id"]),
    ("enrolment", ["session_id", "subject_id"], ["subject_id", "session_id"]),
    ("answer", ["session_id", "round", "subject_id"], ["subject_id", "session_id", "round"]),
)

FILL = """
    INSERT INTO tally (study_id, epoch, writer, count)
    SELECT c.study_id, c.epoch, 0, count(*) FROM contribution c JOIN study ON study.id = c.study_id
    WHERE c.value IS NOT NULL AND c.epoch > study.folded_epoch GROUP BY c.study_id, c.epoch
"""


def upgrade() -> None:
    """Replace the trigger, turn the keys round, count what is not folded."""
    op.execute("DROP TRIGGER subject_key ON subject")
    op.execute("DROP FUNCTION refuse_other_subject_key")
    op.execute(HOLDS)
    for table, _, key in KEYS:
        op.drop_constraint(op.f(f"pk_{table}"), table)
        op.create_primary_key(op.f(f"pk_{table}"), table, key)
    op.create_index("ix_enrolment_session_id", "enrolment", ["session_id"])
    op.create_index("ix_answer_session_id_round", "answer", ["session_id", "round"])
    op.create_table(
        "tally",
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column(
            "writer",
            sa.Integer(),
            nullable=False,
            comment="process of the server: none waits for another",
        ),
        sa.Column(
            "count", sa.BigInteger(), nullable=False, comment="live values that came, less those that went"
        ),
        sa.PrimaryKeyConstraint("study_id", "epoch", "writer", name=op.f("pk_tally")),
    )
    op.execute(FILL)


def downgrade() -> None:
    """Put the trigger and the keys back."""
    op.drop_table("tally")
    op.drop_index("ix_answer_session_id_round", "answer")
    op.drop_index("ix_enrolment_session_id", "enrolment")
    for table, key, _ in KEYS:
        op.drop_constraint(op.f(f"pk_{table}"), table)
        op.create_primary_key(op.f(f"pk_{table}"), table, key)
    op.execute("DROP FUNCTION subject_key_holds")
    op.execute(FENCE.replace("RETURN true", "RETURN NULL"))
    op.execute(
        "CREATE TRIGGER subject_key BEFORE INSERT ON subject "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_other_subject_key()"
    )
