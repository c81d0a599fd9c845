"""A database that is reached by TLS, in libpq's spelling: a real server, its certificates made here."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from app.store.database import Connection, Database
from app.store.sql import Sql
from tests.conftest import LiveServer
from tests.support.commands import Done
from tests.support.databases import run_apart, scratch_directory
from tests.support.debian_postgres import DebianPostgres
from tests.system.load import make_study
from tests.system.test_backup import script

pytestmark = pytest.mark.system

Dither = Callable[..., Done]

PAIR = (("cert", "pem"), ("key", "key"))

ACCESS = """
local   all all           trust
host    all either all    trust
hostssl all dither all    trust
hostssl all certified all cert
"""
"""Who may come how: either way, by TLS only, by TLS with a certificate of this name."""

HOW = Sql("SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()")


def write_pair(
    directory: Path, name: str, signer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None
) -> tuple[x509.Name, ec.EllipticCurvePrivateKey]:
    """A certificate for a host or a person of this name, and its key: NAME.pem and NAME.key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuer, signing = signer or (subject, key)
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .sign(signing, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    (directory / f"{name}.pem").write_bytes(certificate.public_bytes(encoding))
    (directory / f"{name}.key").write_bytes(
        key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (directory / f"{name}.key").chmod(0o600)
    return subject, key


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """An authority, what it signed for the server and for a client, and a stranger's authority."""
    with scratch_directory() as directory:
        authority = write_pair(directory, "authority")
        write_pair(directory, "localhost", authority)
        write_pair(directory, "certified", authority)
        write_pair(directory, "stranger")
        yield directory


@pytest.fixture(scope="module")
def server(certificates: Path) -> Iterator[DebianPostgres]:
    with scratch_directory() as directory:
        server = DebianPostgres(
            directory,
            settings={
                "listen_addresses": "127.0.0.1",
                "ssl": "on",
                "ssl_cert_file": "localhost.pem",
                "ssl_key_file": "localhost.key",
                "ssl_ca_file": "authority.pem",
            },
            access=ACCESS,
            files={
                name: (certificates / name).read_bytes()
                for name in ("localhost.pem", "localhost.key", "authority.pem")
            },
        )
        try:
            server.sql(
                *(f"CREATE ROLE {role} LOGIN" for role in ("either", "dither", "certified")),
                *(f"CREATE DATABASE {name} OWNER certified" for name in ("dither", "restored")),
            )
            yield server
        finally:
            server.stop()


def url_of(
    server: DebianPostgres,
    certificates: Path,
    role: str,
    *,
    host: str = "localhost",
    database: str = "dither",
    authority: str = "",
    **tls: str,
) -> str:
    """The URL for a role; `certified` shows the certificate of that name."""
    if authority:
        tls["sslrootcert"] = str(certificates / f"{authority}.pem")
    if role == "certified":
        tls |= {f"ssl{kind}": str(certificates / f"certified.{end}") for kind, end in PAIR}
    return f"postgresql://{role}@{host}:{server.port}/{database}?{urlencode(tls)}"


@pytest.mark.parametrize(
    ("mode", "role", "host", "authority", "encrypted"),
    [
        ("disable", "either", "localhost", "", False),
        ("allow", "either", "localhost", "", False),
        ("allow", "dither", "localhost", "", True),
        ("prefer", "either", "localhost", "", True),
        ("require", "dither", "127.0.0.1", "", True),
        ("verify-ca", "dither", "127.0.0.1", "authority", True),
        ("verify-full", "dither", "localhost", "authority", True),
        ("verify-full", "certified", "localhost", "authority", True),
    ],
)
def test_a_mode_means_what_it_means_to_libpq(
    dither: Dither,
    server: DebianPostgres,
    certificates: Path,
    mode: str,
    role: str,
    host: str,
    authority: str,
    encrypted: bool,
) -> None:
    async def how(connection: Connection) -> tuple[bool, str | None]:
        encrypted, name = await HOW.one(connection)
        return encrypted, name

    url = url_of(server, certificates, role, host=host, authority=authority, sslmode=mode)

    async def connected() -> tuple[bool, str | None]:
        async with Database.open(url, pool_size=1) as database:
            return await database.run_tx("how", how)

    assert run_apart(connected()) == (encrypted, "/CN=certified" if role == "certified" else None)
    # PostgreSQL's own programs understand the same URL the same way.
    psql = dither(
        *("postgres", "psql", "-XtAc", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"),
        DITHER_DATABASE_URL=url,
        DITHER_POSTGRES_BIN=str(server.binaries),
    )
    assert (psql.output.strip(), psql.errors) == ("t" if encrypted else "f", "")


@pytest.mark.parametrize(
    ("mode", "role", "host", "authority", "reason"),
    [
        ("verify-ca", "dither", "localhost", "stranger", "certificate verify failed"),
        ("verify-full", "dither", "localhost", "stranger", "certificate verify failed"),
        ("verify-full", "dither", "127.0.0.1", "authority", "certificate verify failed"),
        ("verify-full", "dither", "localhost", "missing", "sslrootcert names no file"),
        ("disable", "dither", "localhost", "", "no pg_hba.conf entry"),
    ],
)
def test_a_server_that_is_not_the_right_one_is_refused_in_one_line(
    dither: Dither,
    server: DebianPostgres,
    certificates: Path,
    mode: str,
    role: str,
    host: str,
    authority: str,
    reason: str,
) -> None:
    url = url_of(server, certificates, role, host=host, authority=authority, sslmode=mode)
    refused = dither("migrate", DITHER_DATABASE_URL=url)
    assert refused.status != 0
    (line,) = refused.errors.splitlines()
    assert reason in line


def test_a_client_without_its_certificate_is_refused(dither: Dither, server: DebianPostgres) -> None:
    url = f"postgresql://certified@localhost:{server.port}/dither?sslmode=require"
    refused = dither("migrate", DITHER_DATABASE_URL=url)
    assert refused.status != 0
    (line,) = refused.errors.splitlines()
    assert "client certificate" in line


def test_programs_without_tls_refuse_a_url_that_demands_it(
    server: DebianPostgres, certificates: Path
) -> None:
    url = url_of(server, certificates, "dither", sslmode="require")
    with scratch_directory() as directory:
        refused = script("backup.sh", directory, DITHER_DATABASE_URL=url)
        assert list(directory.iterdir()) == []
    assert refused.returncode != 0
    (line,) = refused.stderr.splitlines()
    assert "built without it: let DITHER_POSTGRES_BIN name the directory of others" in line


@pytest.mark.slow
def test_a_service_is_backed_up_and_restored_by_tls(
    dither: Dither, live_server: LiveServer, server: DebianPostgres, certificates: Path
) -> None:
    def environment(database: str) -> dict[str, str]:
        url = url_of(
            server, certificates, "certified", database=database, authority="authority", sslmode="verify-full"
        )
        return {"DITHER_DATABASE_URL": url, "DITHER_POSTGRES_BIN": str(server.binaries)}

    given = environment("dither")
    migrated = dither("migrate", **given)
    assert migrated.status == 0, migrated.errors
    service = live_server(embedded=True, env=given)
    make_study(service, "age")
    with service.client(service.create_token("contribute")) as contributor:
        document = {"subject": "alice", "value": 42, "epsilon": 1, "trust": "central"}
        assert contributor.post("/v1/studies/age/contributions", json=document).status_code == 201
    with scratch_directory() as directory:
        backup = script("backup.sh", directory, **given)
        assert backup.returncode == 0, backup.stderr
        restored = script("restore.sh", Path(backup.stdout.strip()), **environment("restored"))
    assert restored.returncode == 0, restored.stderr
    assert "the ledger is clean" in restored.stdout
    values = dither(
        "postgres", "psql", "-XtAc", "SELECT count(value) FROM contribution", **environment("restored")
    )
    assert values.output.strip() == "1"
