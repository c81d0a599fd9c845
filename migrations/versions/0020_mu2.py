"""A study has one currency, epsilon or mu^2, and a person a budget in each; delta leaves the ledger's rows.

Revision ID: 0020
Revises: 0019
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

SPENT_A_DELTA = """
    SELECT EXISTS (SELECT FROM charge WHERE delta > 0)
        OR EXISTS (SELECT FROM contribution WHERE delta_carried > 0)
        OR EXISTS (SELECT FROM contribution WHERE trust = 'local' AND delta > 0)
"""

DELTAS = {
    "contribution": ("delta", "delta_carried"),
    "cohort": ("delta", "delta_carried", "delta_spent"),
    "charge": ("delta",),
    "subject": ("delta_budget", "delta_reserved"),
}

CHECKS = {
    "subject": ("delta_within_budget", "0 <= delta_reserved AND delta_reserved <= delta_budget"),
    "contribution": ("carried_within_delta", "0 <= delta_carried AND delta_carried <= delta"),
    "cohort": ("spent_within_delta", "delta_carried <= delta_spent AND delta_spent <= delta"),
    "charge": ("not_negative", "epsilon >= 0 AND delta >= 0"),
}

COMMENTS = {
    ("study", "delta"): ("1e-12, reserved by each contribution", "1e-12; 0: Laplace noise"),
    ("subject", "reserved"): (
        "sum over contribution and enrolment, less what archived studies free",
        "sum over contribution (Laplace noise) and enrolment, less what archived studies free",
    ),
    ("contribution", "epsilon"): (
        "reserved in this study; withdrawn: spent",
        "reserved; withdrawn: spent [micro-epsilon, or 1e-6 of mu^2]",
    ),
    ("release", "epsilon_max"): (
        "micro-epsilon; as in the body",
        "micro-epsilon or 1e-6 of mu^2, as in the body",
    ),
    ("charge", "epsilon"): ("micro-epsilon, per member", "micro-epsilon or 1e-6 of mu^2, per member"),
}

CHECK = "gaussian_within_budget"


def upgrade() -> None:
    """What was spent as (epsilon, delta) cannot be told in mu^2: a ledger that holds such charges is refused.

    Studies that declared a delta and spent none of it have Laplace noise from here on. People who are known
    already have nothing to reserve for Gaussian noise until an admin gives it to them.
    """
    if op.get_bind().execute(sa.text(SPENT_A_DELTA)).scalar():
        raise RuntimeError("the ledger holds charges with a delta, which this version cannot account for")
    op.execute("UPDATE study SET delta = 0, local_mechanism = replace(local_mechanism, 'gaussian', 'hybrid')")
    op.execute("ALTER TABLE cohort DROP CONSTRAINT uq_cohort_key")
    for table, (name, _) in CHECKS.items():
        op.drop_constraint(op.f(f"ck_{table}_{name}"), table)
    for table, columns in DELTAS.items():
        for column in columns:
            op.drop_column(table, column)
    op.create_check_constraint(op.f("ck_charge_not_negative"), "charge", "epsilon >= 0")
    op.execute(
        "ALTER TABLE cohort ADD CONSTRAINT uq_cohort_key UNIQUE (study_id, epoch, trust, epsilon, carried)"
    )
    for column, comment in (
        ("gaussian_budget", "lifetime mu^2 [1e-6]"),
        ("gaussian_reserved", "sum over contribution (Gaussian noise), less what archived studies free"),
    ):
        op.add_column(
            "subject",
            sa.Column(column, sa.BigInteger(), nullable=False, server_default="0", comment=comment),
        )
        op.alter_column("subject", column, server_default=None)
    op.create_check_constraint(
        op.f(f"ck_subject_{CHECK}"),
        "subject",
        "0 <= gaussian_reserved AND gaussian_reserved <= gaussian_budget",
    )
    for (table, column), (_, comment) in COMMENTS.items():
        op.alter_column(table, column, existing_type=sa.BigInteger(), comment=comment)


def downgrade() -> None:
    """Back to deltas, all of them 0; not where a study has Gaussian noise."""
    if op.get_bind().execute(sa.text("SELECT EXISTS (SELECT FROM study WHERE delta > 0)")).scalar():
        raise RuntimeError("the ledger holds mu^2, which the version before cannot account for")
    op.drop_constraint(op.f(f"ck_subject_{CHECK}"), "subject")
    for column in ("gaussian_budget", "gaussian_reserved"):
        op.drop_column("subject", column)
    op.execute("ALTER TABLE cohort DROP CONSTRAINT uq_cohort_key")
    op.drop_constraint(op.f("ck_charge_not_negative"), "charge")
    for table, columns in DELTAS.items():
        for column in columns:
            op.add_column(table, sa.Column(column, sa.BigInteger(), nullable=False, server_default="0"))
            op.alter_column(table, column, server_default=None)
    for table, (name, rule) in CHECKS.items():
        op.create_check_constraint(op.f(f"ck_{table}_{name}"), table, rule)
    op.execute(
        "ALTER TABLE cohort ADD CONSTRAINT uq_cohort_key"
        " UNIQUE (study_id, epoch, trust, epsilon, carried, delta, delta_carried)"
    )
    for (table, column), (comment, _) in COMMENTS.items():
        op.alter_column(table, column, existing_type=sa.BigInteger(), comment=comment)
