"""A database that is reached by TLS, in libpq's spelling: as a server with a certificate answers."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import make_url

from app.core.errors import SchemaMismatch
from app.store.migrate import current_revision, head_revision
from tests.support.databases import scratch_directory

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


def write_pair(
    directory: Path, name: str, signer: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None
) -> Path:
    """A certificate for a host of this name, and its key: NAME.pem and NAME.key."""
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
    return directory / f"{name}.pem"


@dataclass
class TlsServer:
    """TLS in front of a real server, whose own build may have none.

    Attributes:
        port: Where it listens on 127.0.0.1.
        encrypted: Connections that asked for TLS and got it.
        plain: Connections that did not ask for it.
    """

    upstream: str
    context: ssl.SSLContext
    port: int = 0
    encrypted: int = 0
    plain: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: the request for TLS as PostgreSQL answers it, then whatever is said."""
        with suppress(OSError, asyncio.IncompleteReadError):
            first = await reader.readexactly(8)
            if first == SSL_REQUEST:
                writer.write(b"S")
                await writer.drain()
                await writer.start_tls(self.context)
                self.encrypted += 1
                first = b""
            else:
                self.plain += 1
            upstream_reader, upstream_writer = await asyncio.open_unix_connection(self.upstream)
            upstream_writer.write(first)
            await asyncio.gather(copy(reader, upstream_writer), copy(upstream_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def served(server: TlsServer) -> Iterator[TlsServer]:
    """Answer in a thread of its own, so that programs can be waited for."""
    loop = asyncio.new_event_loop()
    listening = loop.run_until_complete(asyncio.start_server(server.answer, "127.0.0.1", 0))
    server.port = listening.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listening.close()
        for task in asyncio.all_tasks(loop):
            task.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        loop.close()


@pytest.fixture(scope="module")
def certificates() -> Iterator[Path]:
    """A directory with an authority, a stranger's authority, and a server's certificate for localhost."""
    with scratch_directory() as directory:
        ca = write_pair(directory, "authority")
        key = serialization.load_pem_private_key((directory / "authority.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        write_pair(directory, "localhost", (x509.load_pem_x509_certificate(ca.read_bytes()).subject, key))
        write_pair(directory, "stranger")
        yield directory


@pytest.fixture
def tls_server(database_url: str, certificates: Path) -> Iterator[TlsServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "localhost.pem", certificates / "localhost.key")
    query = make_url(database_url).query
    with served(TlsServer(f"{query['host']}/.s.PGSQL.{query.get('port', 5432)}", context)) as server:
        yield server


def url_of(server: TlsServer, database_url: str, host: str = "localhost", **tls: str) -> str:
    parsed = make_url(database_url)
    return f"postgresql://{parsed.username}@{host}:{server.port}/{parsed.database}?{urlencode(tls)}"


@pytest.mark.parametrize(
    ("mode", "authority", "host", "encrypted"),
    [
        ("disable", None, "localhost", False),
        ("prefer", None, "localhost", True),
        ("require", None, "127.0.0.1", True),
        ("verify-ca", "authority", "127.0.0.1", True),
        ("verify-full", "authority", "localhost", True),
    ],
)
async def test_a_mode_means_what_it_means_to_libpq(
    tls_server: TlsServer,
    database_url: str,
    certificates: Path,
    mode: str,
    authority: str | None,
    host: str,
    encrypted: bool,
) -> None:
    tls = {"sslmode": mode}
    if authority is not None:
        tls["sslrootcert"] = str(certificates / f"{authority}.pem")
    assert await current_revision(url_of(tls_server, database_url, host, **tls)) == head_revision()
    assert (tls_server.encrypted > 0, tls_server.plain > 0) == (encrypted, not encrypted)


@pytest.mark.parametrize(
    ("mode", "authority", "host"),
    [
        ("verify-ca", "stranger", "localhost"),
        ("verify-full", "stranger", "localhost"),
        ("verify-full", "authority", "127.0.0.1"),
        ("verify-full", "missing", "localhost"),
    ],
)
async def test_a_server_that_is_not_the_right_one_is_refused(
    tls_server: TlsServer, database_url: str, certificates: Path, mode: str, authority: str, host: str
) -> None:
    root = str(certificates / f"{authority}.pem")
    with pytest.raises(SchemaMismatch, match="cannot be used"):
        await current_revision(url_of(tls_server, database_url, host, sslmode=mode, sslrootcert=root))
