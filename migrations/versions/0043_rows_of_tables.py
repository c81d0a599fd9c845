"""The view of an answer's parts has the cells of tables, and the lines and r_squared of correlations.

Revision ID: 0043
Revises: 0042
"""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

PARTS = {
    "bins": "bin",
    "cumulative": "cumulative",
    "choices": "choice",
    "coordinates": "coordinate",
    "quartiles": "quartile",
}
"""Lists of an answer, and what one of their items is called."""

BESIDE = ("count", "mean", "sd", "variance")
"""What an answer says beside its own estimate."""


def number(*path: str, kind: str = "double precision") -> str:
    """A number of an item; NULL where it has none."""
    *outer, last = path
    return f"CAST({' -> '.join(['item', *map(repr, outer)])} ->> {last!r} AS {kind})"


def items(of: str) -> str:
    """A list of a JSON object with places, empty where it has none."""
    array = f"CASE jsonb_typeof({of}) WHEN 'array' THEN {of} ELSE '[]' END"
    return f"jsonb_array_elements({array}) WITH ORDINALITY AS one (item, place)"


LISTS = ", ".join(f"({field!r}, {part!r})" for field, part in PARTS.items())

OTHERS = ", ".join(f"({field!r})" for field in BESIDE)

TABLES = f"""
    UNION ALL
    SELECT 'cell', one.place, one.item, (
        SELECT string_agg(measure || '=' || (one.item -> 'where' ->> measure), '; ' ORDER BY named.place)
        FROM jsonb_array_elements_text(document -> 'measures') WITH ORDINALITY AS named (measure, place)
    ) FROM {items("answer -> 'cells'")}
    UNION ALL
    SELECT part, one.place, one.item -> part, document -> 'measures' ->> CAST(one.place - 1 AS integer)
    FROM {items("answer -> 'lines'")} CROSS JOIN (VALUES ('slope'), ('intercept')) AS list (part)
    UNION ALL
    SELECT 'r_squared', 1, jsonb_build_object(
        'estimate', answer -> 'r_squared', 'interval', answer -> 'r_squared_interval'
    ), NULL WHERE jsonb_typeof(answer -> 'r_squared') = 'number'
"""  # noqa: S608 - made of this module alone
"""What is new. A line has the name of the measure that it explains."""


def replace_view(more: str) -> None:
    """Make the view anew, with the same columns: what may read it still may."""
    # Without OFFSET the text of an answer would be parsed again for every column.
    op.execute(f"""
        CREATE OR REPLACE VIEW published.answer_rows AS
        SELECT release.id AS release_id, study.slug AS study, study.series, study.title,
            document ->> 'statistic' AS statistic,
            coalesce(document ->> 'measure', (
                SELECT string_agg(name, ',')
                FROM jsonb_array_elements_text(document -> 'measures') AS one (name)
            )) AS measure,
            CAST(document -> 'parameters' ->> 'q' AS double precision) AS q, document ->> 'by' AS "by",
            CAST(document ->> 'created_at' AS timestamptz) AS created_at,
            "group".place AS group_place, answer -> 'where' AS "where", part, row.place, row.name,
            {number("lower")} AS bin_lower, {number("upper")} AS bin_upper,
            coalesce({number("estimate")}, {number("share")}) AS estimate,
            {number("standard_error")} AS standard_error,
            {number("interval", "lower")} AS lower, {number("interval", "upper")} AS upper,
            {number("interval", "level")} AS level,
            {number("population_interval", "lower")} AS population_lower,
            {number("population_interval", "upper")} AS population_upper,
            CAST(answer ->> 'people' AS bigint) AS people,
            CAST(answer ->> 'noisy_count' AS double precision) AS noisy_count
        FROM release JOIN study ON study.id = release.study_id CROSS JOIN LATERAL (
            SELECT CAST(convert_from(release.body, 'UTF8') AS jsonb) AS document OFFSET 0
        ) AS told CROSS JOIN LATERAL (
            SELECT 0 AS place, document AS answer
            UNION ALL
            SELECT place, item FROM {items("document -> 'groups'")}
        ) AS "group" CROSS JOIN LATERAL (
            SELECT 'answer' AS part, 1 AS place, answer - 'share' AS item, NULL AS name
            WHERE jsonb_exists(answer, 'estimate')
            UNION ALL
            SELECT part, one.place, one.item,
                coalesce(one.item ->> 'choice', one.item ->> 'coordinate', one.item ->> 'q')
            FROM (VALUES {LISTS}) AS list (field, part) CROSS JOIN LATERAL {items("answer -> field")}
            UNION ALL
            SELECT field, 1, answer -> field, NULL FROM (VALUES {OTHERS}) AS other (field)
            WHERE jsonb_typeof(answer -> field) = 'object'
            {more}
        ) AS row
    """)  # noqa: S608 - made of this module alone


def upgrade() -> None:
    """Answers of before have these rows, too."""
    replace_view(TABLES)


def downgrade() -> None:
    """Answers keep them in their document."""
    replace_view("")
