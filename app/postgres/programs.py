"""PostgreSQL's own programs, on the service's database."""

import os
import subprocess
from collections.abc import Mapping, Sequence

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
"""Parameters of a URL, and what libpq calls them in the environment; arguments can be seen by everybody."""


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


def run_tool(url: str, program: str, arguments: Sequence[str]) -> int:
    """Run one of the programs that come with the embedded PostgreSQL; returns its exit status.

    Raises:
        ValueError: it does not come with it, or the URL cannot be told to it.
    """
    file = postgres_binaries(None) / program
    if "/" in program or not file.is_file():
        raise ValueError(f"there is no program {program} in {file.parent}")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DITHER_", "PG"))
    }
    command = [str(file), *arguments]
    done = subprocess.run(command, env=environment | libpq_environment(url), check=False)  # noqa: S603 - fixed programs
    return done.returncode
