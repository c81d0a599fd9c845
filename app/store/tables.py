"""The schema, for reading and for `alembic check`; docs/data-model.md draws it.

Every unique key of `subject`, `contribution`, `enrolment` and `answer` starts with the subject id, so they
can be distributed by it; all other tables stay small.
"""

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    Enum,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.store.operation_tables import metadata

__all__ = ["metadata", "subject"]

trust = Enum("central", "local", "public", name="trust")
relation = Enum("replace_one", "add_remove_one", name="relation")
study_state = Enum("open", "closed", "archived", "retired", name="study_state")
session_state = Enum("open", "finished", name="session_state")

study = Table(
    "study",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("slug", Text, nullable=False, unique=True),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("series", Text, comment="slug; NULL: none"),
    Column(
        "texts",
        JSONB,
        nullable=False,
        server_default="{}",
        comment="title, description and labels in other languages, by language",
    ),
    Column("lower", Text, nullable=False, comment="decimal text, exactly as it was given"),
    Column("upper", Text, nullable=False),
    Column("relation", relation, nullable=False),
    Column("trust", ARRAY(Text), nullable=False),
    Column("epsilon_min", BigInteger, nullable=False, comment="micro-epsilon"),
    Column("epsilon_max", BigInteger, nullable=False, comment="micro-epsilon"),
    Column(
        "epsilons",
        ARRAY(BigInteger),
        nullable=False,
        server_default="{}",
        comment="the only admissible ones, in order [micro-epsilon]; none: all in the range",
    ),
    Column("default_share", Integer, nullable=False, comment="parts per million"),
    Column("tilt", Integer, nullable=False, server_default="0", comment="parts per million of the range"),
    Column("delta", BigInteger, nullable=False, comment="1e-12; 0: Laplace noise"),
    Column("dimension", Integer, nullable=False),
    Column("local_mechanism", Text, nullable=False),
    Column("attributes", ARRAY(Text), nullable=False, server_default="{}", comment="name:label, in order"),
    Column(
        "choices",
        ARRAY(Text),
        nullable=False,
        server_default="{}",
        comment="labels, in order; a value is the number of one; none: values are numbers",
    ),
    Column(
        "measures",
        ARRAY(Text),
        nullable=False,
        server_default="{}",
        comment='name:lower:upper or name:["label",...], in order: coordinates of a value; none: one value',
    ),
    Column(
        "reporting_range",
        JSONB,
        comment="start and zoom [grid steps], the part outside at most, and the searches; NULL: none",
    ),
    Column("state", study_state, nullable=False, server_default="open"),
    Column("epoch", Integer, nullable=False, server_default="1", comment="that new contributions carry"),
    Column("folded_epoch", Integer, nullable=False, server_default="0", comment="last one in cohort"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    CheckConstraint("folded_epoch < epoch", name="folded_before_current"),
)

subject = Table(
    "subject",
    metadata,
    Column("id", LargeBinary, primary_key=True, comment="HMAC-SHA256(server key, external id)"),
    Column("budget", BigInteger, nullable=False, comment="lifetime epsilon [micro-epsilon]"),
    Column(
        "reserved",
        BigInteger,
        nullable=False,
        comment="sum over contribution (Laplace noise) and enrolment, less what archived studies free",
    ),
    Column("gaussian_budget", BigInteger, nullable=False, comment="lifetime mu^2 [1e-6]"),
    Column(
        "gaussian_reserved",
        BigInteger,
        nullable=False,
        comment="sum over contribution (Gaussian noise), less what archived studies free",
    ),
    CheckConstraint("0 <= reserved AND reserved <= budget", name="reserved_within_budget"),
    CheckConstraint(
        "0 <= gaussian_reserved AND gaussian_reserved <= gaussian_budget", name="gaussian_within_budget"
    ),
)

contribution = Table(
    "contribution",
    metadata,
    Column("subject_id", LargeBinary, ForeignKey("subject.id"), primary_key=True),
    Column("study_id", Integer, primary_key=True),
    Column(
        "epsilon",
        BigInteger,
        nullable=False,
        comment="reserved; withdrawn: spent [micro-epsilon, or 1e-6 of mu^2]",
    ),
    Column("carried", BigInteger, nullable=False, comment="spent before this value, never forgotten"),
    Column("value", BigInteger, comment="grid point, local: the report, vectors: 0, NULL: withdrawn"),
    Column("vector", ARRAY(BigInteger), comment="grid points, in studies of vectors"),
    Column("trust", trust, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column(
        "contributed_on",
        Date,
        server_default=text("((CURRENT_TIMESTAMP AT TIME ZONE 'UTC'::text))::date"),
        comment="UTC; NULL: before days were kept",
    ),
    # Tokens are never deleted, and a foreign key would lock the token's row with every contribution.
    Column("sender", Uuid, comment="the token that sent the value; NULL: withdrawn, or before it was kept"),
    Column(
        "segment",
        SmallInteger,
        nullable=False,
        server_default="0",
        comment="which combination of the study's labels; 0: none, or withdrawn; + 1024: reported inside "
        "the reporting range",
    ),
    CheckConstraint("0 <= carried AND carried <= epsilon", name="carried_within_epsilon"),
    CheckConstraint("value IS NOT NULL OR vector IS NULL", name="vector_withdrawn_with_value"),
    Index("ix_contribution_study_id_epoch", "study_id", "epoch"),
)

tally = Table(
    "tally",
    metadata,
    Column("study_id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column(
        "writer",
        Integer,
        primary_key=True,
        autoincrement=False,
        comment="process of the server: none waits for another",
    ),
    Column("count", BigInteger, nullable=False, comment="live values that came, less those that went"),
)

cohort = Table(
    "cohort",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("epoch", Integer, nullable=False, comment="the last one whose people are in it"),
    Column("trust", trust, nullable=False),
    Column("epsilon", BigInteger, nullable=False, comment="the most each member may spend; public: 0"),
    Column("carried", BigInteger, nullable=False, comment="what each had spent before"),
    Column("before", BigInteger, nullable=False, comment="carried, or spent when cohorts became this one"),
    Column("count", BigInteger, nullable=False, comment="live members"),
    Column("total", Numeric, nullable=False, comment="sum of their values"),
    Column(
        "total_squares", Numeric, nullable=False, comment="of reports, or of steps from the middle / 2^15"
    ),
    Column("reach", BigInteger, comment="steps outside the grid that reports count at most; NULL: all"),
    Column("spent", BigInteger, nullable=False, comment="before + its charges; local: epsilon"),
    Column("segment", SmallInteger, nullable=False, server_default="0", comment="of its members"),
    CheckConstraint(
        "carried <= before AND before <= spent AND spent <= epsilon", name="spent_within_epsilon"
    ),
    CheckConstraint("count >= 0", name="count_not_negative"),
    # Of cohorts that became one the former ones stay, empty, with what they were charged.
    Index("ix_cohort_study_id_id", "study_id", "id", postgresql_where=text("count > 0")),
    # A release changes a row for each cohort: with room in its page none of the indexes has to.
    postgresql_with={"fillfactor": 50},
)

lineage = Table(
    "lineage",
    metadata,
    Column("study_id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("trust", trust, primary_key=True),
    Column("segment", SmallInteger, primary_key=True, autoincrement=False, comment="as in the cohort"),
    Column("epsilon", BigInteger, primary_key=True, autoincrement=False, comment="as in the cohort"),
    Column("carried", BigInteger, primary_key=True, autoincrement=False, comment="as in the cohort"),
    Column("cohort_id", BigInteger, ForeignKey("cohort.id"), nullable=False),
    Column("reach", BigInteger, comment="steps outside the grid that a report counts; NULL: all"),
    Column("former", ARRAY(BigInteger), nullable=False, server_default="{}", comment="cohorts of before"),
    Index("ix_lineage_cohort_id", "cohort_id"),
)

release = Table(
    "release",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("number", BigInteger, nullable=False, unique=True, comment="place in the hash chain, from 1"),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False),
    Column("question", LargeBinary, nullable=False, comment="SHA-256 of statistic, estimator, parameters"),
    Column("sequence", Integer, nullable=False, comment="1 is the first answer to the question"),
    Column("epoch", Integer, nullable=False, comment="last epoch that took part"),
    Column("estimator", Text, nullable=False),
    Column("estimator_version", Integer, nullable=False),
    Column("noise", JSONB, nullable=False, comment="what was added, to recompute the cost"),
    Column("body", LargeBinary, nullable=False, comment="the answer, byte for byte"),
    Column("kept_ends", LargeBinary, comment="of intervals at other levels; NULL: not kept"),
    Column("estimate", Float, nullable=True, comment="as in the body; NULL: not one number"),
    Column("standard_error", Float, nullable=True, comment="as in the body; NULL: not one number"),
    Column(
        "noisy_count", Float, nullable=True, comment="as in the body; NULL: the number of people is public"
    ),
    Column("variance", Float, nullable=True, comment="upper end for the population, as in the body"),
    Column(
        "epsilon_max", BigInteger, nullable=False, comment="micro-epsilon or 1e-6 of mu^2, as in the body"
    ),
    Column("family", LargeBinary, comment="SHA-256 of the question without share and cap; NULL: K-means"),
    Column("share", Integer, comment="that was asked for [parts per million]"),
    Column("share_before", Integer, comment="of the question; NULL: not a step of its shares"),
    Column("cap", BigInteger, comment="that was asked for [micro-epsilon]; NULL: none"),
    Column("people", BigInteger, comment="as in the body; NULL: secret"),
    Column("people_left_out", BigInteger, comment="as in the body; NULL: secret"),
    Column("width", Float, comment="predicted, of the interval; NULL: answers are not compared"),
    Column("previous_hash", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    UniqueConstraint("study_id", "question", "sequence"),
    Index("ix_release_study_id_number", "study_id", "number"),
    Index("ix_release_study_id_family_number", "study_id", "family", "number"),
)

charge_block = Table(
    "charge_block",
    metadata,
    # Charges of a release are two arrays: a row for each of 60,000 cohorts took eight times the room. The
    # view `charge` has a row for each. The statement that charges the cohorts writes them, and the audit
    # looks for others: a foreign key would look the release up.
    Column("release_id", Uuid, primary_key=True),
    # Stored as they are, like those of `piece`.
    Column("cohorts", ARRAY(BigInteger), nullable=False, comment="ids, ascending"),
    Column(
        "amounts",
        ARRAY(BigInteger),
        nullable=False,
        comment="what each was charged [micro-epsilon or 1e-6 of mu^2, per member]",
    ),
    CheckConstraint(
        "0 < cardinality(cohorts) AND cardinality(amounts) = cardinality(cohorts)"
        " AND array_position(cohorts, NULL) IS NULL AND array_position(amounts, NULL) IS NULL"
        " AND 0 <= ALL (amounts)",
        name="charges",
    ),
)

piece = Table(
    "piece",
    metadata,
    Column("study_id", Integer, ForeignKey("study.id"), primary_key=True),
    Column("family", LargeBinary, primary_key=True, comment="the question, as in release"),
    Column("number", Integer, primary_key=True, comment="from 1"),
    Column("unit", Double, nullable=False, comment="Laplace scale at share 1"),
    Column("share", Integer, nullable=False, comment="that it has used [parts per million]"),
    Column(
        "base",
        Integer,
        nullable=False,
        server_default="0",
        comment="that its people had given in closed pieces before [parts per million]",
    ),
    Column("scale", Double, nullable=False, comment="of the noise in all sums"),
    Column("sums", ARRAY(Numeric), nullable=False, comment="noisy; of values and of squares, or by bin"),
    Column("refinable", Boolean, nullable=False),
    Column("release_id", Uuid, ForeignKey("release.id"), nullable=False, comment="last change"),
    # Arrays with a place for each cohort: a release over years of epochs would write a row for each. They are
    # stored as they are: to compress them took as long as to write them.
    Column("cohorts", ARRAY(BigInteger), nullable=False, comment="ids, ascending; none where it is secret"),
    Column("weights", ARRAY(BigInteger), nullable=False, comment="of each member; never change"),
    Column("counts", ARRAY(BigInteger), nullable=False, comment="members at the first draw"),
    Column("charged", ARRAY(BigInteger), nullable=False, comment="micro-epsilon, per member"),
    CheckConstraint("0 < share AND share <= 1000000 AND 0 < unit AND unit <= scale", name="scale_of_share"),
    CheckConstraint("0 <= base AND base + share <= 1000000", name="base_of_share"),
    CheckConstraint("0 < cardinality(sums)", name="sums"),
    CheckConstraint(
        "(0 < cardinality(cohorts) OR NOT refinable) AND cardinality(weights) = cardinality(cohorts)"
        " AND cardinality(counts) = cardinality(cohorts) AND cardinality(charged) = cardinality(cohorts)"
        " AND 0 < ALL (weights) AND 0 < ALL (counts) AND 0 < ALL (charged)",
        name="members",
    ),
)

chain = Table(
    "chain",
    metadata,
    Column("id", SmallInteger, primary_key=True),
    Column("number", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    CheckConstraint("id = 1", name="one_row"),
)

allowance = Table(
    "allowance",
    metadata,
    # No row before the first time.
    Column("id", SmallInteger, primary_key=True),
    Column(
        "raised",
        BigInteger,
        nullable=False,
        comment="on top of the setting, for people who are new [micro-epsilon]",
    ),
    CheckConstraint("id = 1", name="one_row"),
    Column(
        "gaussian_raised",
        BigInteger,
        nullable=False,
        comment="on top of the setting, for people who are new: mu^2 [1e-6]",
    ),
    CheckConstraint("raised >= 0", name="not_negative"),
    CheckConstraint("gaussian_raised >= 0", name="gaussian_not_negative"),
)

session = Table(
    "session",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("number", BigInteger, Identity(), nullable=False, unique=True),
    Column("study_id", Integer, ForeignKey("study.id"), nullable=False, index=True),
    Column("protocol", Text, nullable=False),
    Column("state", session_state, nullable=False, server_default="open"),
    Column("rounds", Integer, nullable=False),
    Column("round", Integer, comment="that is open; NULL: finished"),
    Column("answers", BigInteger, nullable=False, server_default="0", comment="in the open round"),
    Column("epsilon", BigInteger, nullable=False, comment="that enrolling reserves"),
    Column("epsilon_per_answer", BigInteger, nullable=False),
    Column("epsilon_report", BigInteger, nullable=False, comment="beside a person's first answer"),
    Column("assignment_key", LargeBinary, comment="NULL: all people, every round"),
    Column("answers_per_round", BigInteger, comment="that close it; NULL: none do"),
    Column("round_seconds", Double, comment="that close it; NULL: no time does"),
    Column("round_closes_at", DateTime(timezone=True)),
    Column("deadline", DateTime(timezone=True), nullable=False, comment="ends it"),
    Column("document", JSONB, nullable=False, comment="rules and progress"),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("finished_at", DateTime(timezone=True)),
    CheckConstraint(
        "(state = 'open') = (round IS NOT NULL) AND (state = 'finished') = (finished_at IS NOT NULL)",
        name="open_has_round",
    ),
)

enrolment = Table(
    "enrolment",
    metadata,
    Column("subject_id", LargeBinary, ForeignKey("subject.id"), primary_key=True),
    Column("session_id", Uuid, primary_key=True, index=True),
    Column("reserved", BigInteger, nullable=False, comment="finished: what was spent"),
    Column("spent", BigInteger, nullable=False),
    Column("report", ARRAY(BigInteger), comment="grid steps; NULL: none"),
    Column("report_sender", Uuid, comment="the token that sent the report"),
    CheckConstraint("0 <= spent AND spent <= reserved", name="spent_within_reserved"),
)

answer = Table(
    "answer",
    metadata,
    Column("subject_id", LargeBinary, primary_key=True),
    Column("session_id", Uuid, primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("answer", Integer, nullable=False, comment="the randomized category"),
    Column("sender", Uuid, comment="the token that sent it; NULL: before it was kept"),
    Index("ix_answer_session_id_round", "session_id", "round"),
)
