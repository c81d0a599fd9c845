"""What stands between a client and a service: proxies, certificates, addresses. Faults name their causes."""

import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dither import Client, ConnectionFailed, InvalidRequest, Retry
from dither._base import _tls

from tests.client.service import COMMUTE

ONCE = Retry(attempts=1)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.delenv("DITHER_CA", raising=False)


@pytest.mark.parametrize("proxy", ["foo:bar", "http://[::1", "ftp://host", "://", "http://h:port"])
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY", "proxy="])
def test_a_proxy_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch, name: str, proxy: str) -> None:
    given: dict[str, Any] = {"proxy": proxy} if name == "proxy=" else {}
    if not given:
        monkeypatch.setenv(name, proxy)
    with pytest.raises(InvalidRequest, match=r"^proxy is none that can be used; .*HTTP_PROXY"):
        Client("http://service.invalid", "token", **given)


@pytest.mark.parametrize("url", ["http://service.invalid", "https://service.invalid"])
def test_a_proxy_that_does_not_answer_is_blamed_and_not_the_service(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://user:secret@127.0.0.1:9")
    with Client(url, "token", retry=ONCE) as client, pytest.raises(ConnectionFailed) as fault:
        client.study("commute")
    assert f"the proxy http://127.0.0.1:9, through which {url} is asked" in str(fault.value)
    assert "secret" not in str(fault.value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert "nothing answers at http://127.0.0.1:9" in _fault("http://127.0.0.1:9")


class _Study(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(COMMUTE).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def _certificate(directory: Path, name: str) -> tuple[Path, Path]:
    key, certificate = directory / "key.pem", directory / "ca.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=own"]
    files = ["-keyout", str(key), "-out", str(certificate), "-addext", f"subjectAltName={name}"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Any]:
    """A service with a certificate of an authority of its own, for a name."""
    servers = []

    def serve(name: str) -> tuple[str, Path]:
        certificate, key = _certificate(tmp_path, name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Study)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"https://127.0.0.1:{server.server_port}", certificate

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def _fault(url: str) -> str:
    with Client(url, "token", retry=ONCE) as client, pytest.raises(ConnectionFailed) as fault:
        client.study("commute")
    return str(fault.value)


@pytest.mark.long
def test_a_certificate_of_an_own_authority_is_named_and_trusted_once_it_is_said(
    secured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, authority = secured("IP:127.0.0.1")
    assert f"the certificate of {url} is not trusted here; name its authority's certificate" in _fault(url)
    with Client(url, "token", retry=ONCE, ca=authority) as client:
        assert client.study("commute").slug == "commute"
    monkeypatch.setenv("DITHER_CA", str(authority))
    with Client(url, "token", retry=ONCE) as client:
        assert client.study("commute").slug == "commute"
    assert "does not let through" not in _fault(url.replace("https", "http"))


@pytest.mark.long
def test_a_certificate_for_another_name_and_a_port_without_tls_are_named(
    secured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, authority = secured("DNS:elsewhere.example")
    monkeypatch.setenv("DITHER_CA", str(authority))
    assert f"the certificate of {url} is one for another name" in _fault(url)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Study)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert "does not answer with TLS" in _fault(f"https://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def test_certificates_that_are_none_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "ca.pem"
    other.write_text("no certificate")
    for path in (tmp_path / "missing.pem", other):
        with pytest.raises(InvalidRequest, match=r"^ca \(DITHER_CA\) names no certificates in PEM"):
            Client("https://service.invalid", "token", ca=path)
        monkeypatch.setenv("DITHER_CA", str(path))
        with pytest.raises(InvalidRequest, match=r"^ca \(DITHER_CA\)"):
            Client("https://service.invalid", "token")
        monkeypatch.delenv("DITHER_CA")
    _tls("")
