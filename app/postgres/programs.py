"""PostgreSQL's own programs, on the service's database."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import make_url

from app.postgres.service_user import postgres_binaries

VARIABLES: Mapping[str, str] = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
}
"""Parameters of a URL, and what libpq calls them in the environment; all users can see arguments."""

TLS_MODES = ("require", "verify-ca", "verify-full")
"""Values of `sslmode` that refuse a connection without TLS."""

NO_ATTEMPT = 3
"""How pg_isready ends where libpq refuses the parameters themselves."""


def libpq_environment(url: str) -> dict[str, str]:
    """The variables that lead libpq to a database.

    Raises:
        ValueError: the URL says something that cannot be said so.
    """
    parsed = make_url(url)
    parameters = {
        "host": parsed.host,
        "port": None if parsed.port is None else str(parsed.port),
        "user": parsed.username,
        "password": parsed.password,
        "dbname": parsed.database,
        **{name: str(value) for name, value in parsed.query.items()},
    }
    unknown = sorted(set(parameters) - set(VARIABLES))
    if unknown:
        raise ValueError(
            f"the database URL has parameters that PostgreSQL's programs are not told: {unknown}"
        )
    return {VARIABLES[name]: value for name, value in parameters.items() if value is not None}


def run_tool(url: str, program: str, arguments: Sequence[str], binaries: Path | None = None) -> int:
    """Run one of PostgreSQL's programs on a database; returns its exit status.

    Args:
        url: The database.
        program: Its name.
        arguments: Of the program.
        binaries: Where the programs are; None: those that come with the embedded PostgreSQL.

    Raises:
        ValueError: it is not there, or it cannot reach a database as the URL demands.
        EmbeddedPostgresError: there are no programs at all.
    """
    directory = postgres_binaries(binaries)
    if "/" in program or not (directory / program).is_file():
        raise ValueError(f"there is no program {program} in {directory}")
    told = libpq_environment(url)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DITHER_", "PG"))
    }
    if told.get("PGSSLMODE") in TLS_MODES and not _can_encrypt(directory, environment):
        raise ValueError(
            f"the database URL demands TLS, and the PostgreSQL programs in {directory} are built without it: "
            "let DITHER_POSTGRES_BIN name the directory of others, such as /usr/lib/postgresql/17/bin"
        )
    command = [str(directory / program), *arguments]
    done = subprocess.run(command, env=environment | told, check=False)  # noqa: S603 - fixed programs
    return done.returncode


def _can_encrypt(directory: Path, environment: Mapping[str, str]) -> bool:
    """Whether the libpq of these programs knows TLS. One that does not refuses to even try."""
    probe = [str(directory / "pg_isready"), "-q", "-h", "/nonexistent"]
    done = subprocess.run(probe, env={**environment, "PGSSLMODE": "require"}, check=False)  # noqa: S603 - fixed program
    return done.returncode != NO_ATTEMPT
