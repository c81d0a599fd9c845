"""Studies can be archived: they give stored answers only, and free what was not spent.

Revision ID: 0016
Revises: 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

RESERVED = "sum over contribution and enrolment"

# What the older version knows as withdrawn: nothing but what was spent is held, and nothing is asked.
WITHDRAW = """
    UPDATE contribution c
    SET value = NULL, vector = NULL, sender = NULL, epsilon = held.epsilon, carried = held.epsilon,
        delta = held.delta, delta_carried = held.delta
    FROM (
        SELECT c.study_id, c.subject_id,
               CASE c.trust WHEN 'local' THEN c.epsilon WHEN 'public' THEN c.carried
                    ELSE coalesce(g.spent, c.carried) END AS epsilon,
               CASE c.trust WHEN 'local' THEN c.delta WHEN 'public' THEN c.delta_carried
                    ELSE coalesce(g.delta_spent, c.delta_carried) END AS delta
        FROM contribution c JOIN study ON study.id = c.study_id AND study.state = 'archived'
        LEFT JOIN cohort g ON (g.study_id, g.epoch, g.trust, g.epsilon, g.carried, g.delta, g.delta_carried)
                            = (c.study_id, c.epoch, c.trust, c.epsilon, c.carried, c.delta, c.delta_carried)
        WHERE c.value IS NOT NULL
    ) held
    WHERE (c.study_id, c.subject_id) = (held.study_id, held.subject_id)
"""

EMPTY = """
    UPDATE cohort SET count = 0, total = 0, total_squares = 0
    WHERE study_id IN (SELECT id FROM study WHERE state = 'archived')
"""


def upgrade() -> None:
    """Add the state; no study has it yet."""
    op.execute("ALTER TYPE study_state ADD VALUE 'archived' BEFORE 'retired'")
    op.execute(f"COMMENT ON COLUMN subject.reserved IS '{RESERVED}, less what archived studies free'")


def downgrade() -> None:
    """Keep what archived studies promise: people count as withdrawn there, and the studies as retired."""
    op.execute(WITHDRAW)
    op.execute(EMPTY)
    op.execute("ALTER TYPE study_state RENAME TO study_state_with_archived")
    op.execute("CREATE TYPE study_state AS ENUM ('open', 'closed', 'retired')")
    op.execute("ALTER TABLE study ALTER COLUMN state DROP DEFAULT")
    op.execute("""
        ALTER TABLE study ALTER COLUMN state TYPE study_state
        USING (CASE state WHEN 'archived' THEN 'retired' ELSE CAST(state AS text) END)::study_state
    """)
    op.execute("ALTER TABLE study ALTER COLUMN state SET DEFAULT 'open'")
    op.execute("DROP TYPE study_state_with_archived")
    op.execute(f"COMMENT ON COLUMN subject.reserved IS '{RESERVED}'")
