"""Hash partitions of the tables with a row or more a person, by the person; made once, on empty tables."""

from sqlalchemy import Connection, MetaData, Table, text
from sqlalchemy.schema import CreateIndex, CreateTable

from app.core.errors import SchemaMismatch
from app.store.tables import metadata

PERSONS = {"subject": "id", "contribution": "subject_id", "enrolment": "subject_id", "answer": "subject_id"}
"""Tables that can be distributed, and the column that says whose a row is."""

MOST = 256

COUNT_PARTITIONS = text("SELECT count(*) FROM pg_inherits WHERE inhparent = CAST('contribution' AS regclass)")

IS_DISTRIBUTED = text("SELECT count(*) FROM pg_extension WHERE extname = 'citus'")


def partition(connection: Connection, partitions: int) -> bool:
    """Make the tables of people anew, with partitions, in this transaction.

    Args:
        connection: On a database whose schema is up to date.
        partitions: How many each table gets, 2 to `MOST`.

    Returns:
        False where they have as many already.

    Raises:
        SchemaMismatch: they have others, one has a row, or the database has Citus; nothing is changed.
    """
    if connection.execute(IS_DISTRIBUTED).scalar_one():
        raise SchemaMismatch("the database has Citus, which distributes tables itself: nothing was changed")
    connection.execute(text(f"LOCK TABLE {', '.join(PERSONS)} IN ACCESS EXCLUSIVE MODE"))
    found = connection.execute(COUNT_PARTITIONS).scalar_one()
    if found == partitions:
        return False
    if found:
        raise SchemaMismatch(f"the tables of people have {found} partitions, and this is not changed")
    for name in PERSONS:
        if connection.execute(text(f"SELECT EXISTS (SELECT FROM {name})")).scalar_one():
            raise SchemaMismatch(
                f"the table {name} has rows: partitions are made on a new database, and nothing was changed"
            )
    made = MetaData(naming_convention=metadata.naming_convention)
    tables = [metadata.tables[name].to_metadata(made) for name in PERSONS]
    connection.execute(text(f"DROP TABLE {', '.join(PERSONS)}"))
    for table in tables:
        _create(connection, table, partitions)
    return True


def _create(connection: Connection, table: Table, partitions: int) -> None:
    table.dialect_options["postgresql"]["partition_by"] = f"HASH ({PERSONS[table.name]})"
    connection.execute(CreateTable(table))
    for column in table.columns:
        if column.comment:
            said = column.comment.replace("'", "''")
            connection.execute(text(f"COMMENT ON COLUMN {table.name}.{column.name} IS '{said}'"))
    for index in sorted(table.indexes, key=lambda one: str(one.name)):
        connection.execute(CreateIndex(index))
    for number in range(partitions):
        connection.execute(
            text(
                f"CREATE TABLE {table.name}_{number} PARTITION OF {table.name}"
                f" FOR VALUES WITH (MODULUS {partitions}, REMAINDER {number})"
            )
        )
