"""The role that reads published answers by SQL, and nothing else: the views of the schema `published`."""

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from app.store.database import sql_state

ROLE = "dither_reader"

REFUSED = frozenset({"42501", "0A000"})
"""What a server says that does not let this user make roles."""

MAY_READ = text("""
    SELECT has_schema_privilege(:role, 'published', 'USAGE')
        AND has_table_privilege(:role, 'published.answers', 'SELECT')
        AND has_table_privilege(:role, 'published.answer_rows', 'SELECT')
""")

EXISTS = text("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role)")

READS_MORE = text("""
    SELECT relname FROM pg_class
    WHERE relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = CAST('release' AS regclass))
        AND relkind IN ('r', 'p', 'v', 'm', 'f') AND has_any_column_privilege(:role, oid, 'SELECT')
    ORDER BY relname
""")


def grant_reader(connection: Connection) -> str | None:
    """Make the role where it is missing, without a login, and let it read the views.

    Roles are not of one database: where a server has several, one role reads the views of each.

    Args:
        connection: In a transaction, on a database whose schema is up to date.

    Returns:
        What is wrong with the role, for people; None where it reads the views and nothing else.
    """
    role = {"role": ROLE}
    try:
        with connection.begin_nested():
            if not connection.execute(EXISTS, role).scalar_one():
                connection.execute(text(f"CREATE ROLE {ROLE} NOLOGIN"))
            if not connection.execute(MAY_READ, role).scalar_one():
                connection.execute(text(f"GRANT USAGE ON SCHEMA published TO {ROLE}"))
                connection.execute(text(f"GRANT SELECT ON ALL TABLES IN SCHEMA published TO {ROLE}"))
    except DBAPIError as error:
        if sql_state(error) not in REFUSED:
            raise
        return (
            f"no one reads answers by SQL: this user may not make the role {ROLE} or let it read; have an "
            f"administrator run CREATE ROLE {ROLE} NOLOGIN, then repeat `dither migrate`"
        )
    if more := connection.execute(READS_MORE, role).scalars().all():
        return f"the role {ROLE} can read more than published answers: {', '.join(more)}; revoke that"
    return None
