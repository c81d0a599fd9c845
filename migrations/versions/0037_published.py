"""Views of published answers, for programs that read them by SQL.

Revision ID: 0037
Revises: 0036
"""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

# Without OFFSET the text of an answer would be parsed again for every column.
ANSWERS = """
    release JOIN study ON study.id = release.study_id CROSS JOIN LATERAL (
        SELECT CAST(convert_from(release.body, 'UTF8') AS jsonb) AS document OFFSET 0
    ) AS told
"""

WHAT = """
    release.id AS release_id, study.slug AS study, study.series, study.title,
    document ->> 'statistic' AS statistic,
    coalesce(
        document ->> 'measure',
        (SELECT string_agg(name, ',') FROM jsonb_array_elements_text(document -> 'measures') AS one (name))
    ) AS measure,
    CAST(document -> 'parameters' ->> 'q' AS double precision) AS q, document ->> 'by' AS "by",
    CAST(document ->> 'created_at' AS timestamptz) AS created_at
"""

PARTS = (
    ("bins", "bin"),
    ("cumulative", "cumulative"),
    ("choices", "choice"),
    ("coordinates", "coordinate"),
    ("quartiles", "quartile"),
)
"""Lists of an answer, and what one of their items is called."""

BESIDE = ("count", "mean", "sd", "variance")
"""What an answer says beside its own estimate."""


def number(of: str, *path: str, kind: str = "double precision") -> str:
    """A number of a JSON object; NULL where it has none."""
    *outer, last = path
    return f"CAST({of}{''.join(f' -> {name!r}' for name in outer)} ->> {last!r} AS {kind})"


def numbers(of: str, estimate: str) -> str:
    """Columns of an estimate with its intervals."""
    return f"""
        {estimate} AS estimate, {number(of, "standard_error")} AS standard_error,
        {number(of, "interval", "lower")} AS lower, {number(of, "interval", "upper")} AS upper,
        {number(of, "interval", "level")} AS level,
        {number(of, "population_interval", "lower")} AS population_lower,
        {number(of, "population_interval", "upper")} AS population_upper
    """


def people(of: str) -> str:
    """Columns of how many people an answer is about."""
    return f"{number(of, 'people', kind='bigint')} AS people, {number(of, 'noisy_count')} AS noisy_count"


def items(of: str) -> str:
    """A list of a JSON object, empty where it has none."""
    return f"jsonb_array_elements(CASE jsonb_typeof({of}) WHEN 'array' THEN {of} ELSE '[]' END)"


def upgrade() -> None:
    """They show what an analyst reads over HTTP, and no person."""
    op.execute("CREATE SCHEMA published")
    op.execute(f"""
        CREATE VIEW published.answers AS
        SELECT {WHAT}, document -> 'where' AS "where", {numbers("document", number("document", "estimate"))},
            {people("document")}, document ->> 'about' AS about,
            {number("document", "share")} AS share, {number("document", "epsilon_max")} AS epsilon_max,
            {number("document", "delta")} AS delta, document ->> 'relation' AS relation,
            document ->> 'estimator' AS estimator,
            {number("document", "estimator_version", kind="integer")} AS estimator_version, document
        FROM {ANSWERS}
    """)  # noqa: S608 - made of this module alone
    lists = ", ".join(f"({field!r}, {part!r})" for field, part in PARTS)
    beside = ", ".join(f"({field!r})" for field in BESIDE)
    estimate = f"coalesce({number('item', 'estimate')}, {number('item', 'share')})"
    op.execute(f"""
        CREATE VIEW published.answer_rows AS
        SELECT {WHAT}, "group".place AS group_place, "group".answer -> 'where' AS "where", part, row.place,
            coalesce(item ->> 'choice', item ->> 'coordinate', item ->> 'q') AS name,
            {number("item", "lower")} AS bin_lower, {number("item", "upper")} AS bin_upper,
            {numbers("item", estimate)}, {people('"group".answer')}
        FROM {ANSWERS} CROSS JOIN LATERAL (
            SELECT 0 AS place, document AS answer
            UNION ALL
            SELECT place, answer FROM {items("document -> 'groups'")} WITH ORDINALITY AS one (answer, place)
        ) AS "group" CROSS JOIN LATERAL (
            SELECT 'answer' AS part, 1 AS place, answer - 'share' AS item
            WHERE jsonb_exists(answer, 'estimate')
            UNION ALL
            SELECT part, one.place, one.item FROM (VALUES {lists}) AS list (field, part)
            CROSS JOIN LATERAL {items("answer -> field")} WITH ORDINALITY AS one (item, place)
            UNION ALL
            SELECT field, 1, answer -> field FROM (VALUES {beside}) AS other (field)
            WHERE jsonb_typeof(answer -> field) = 'object'
        ) AS row
    """)  # noqa: S608 - made of this module alone


def downgrade() -> None:
    """The role of readers stays: it is not of this database alone."""
    op.execute("DROP SCHEMA published CASCADE")
