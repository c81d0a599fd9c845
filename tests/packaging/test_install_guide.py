"""docs/how-to/install.md, command by command, in directories of the test's own.

systemd is not there to be asked: a stand-in reads the same units, with their paths replaced, and runs what
they say. The packages that the lock file names are those of this environment. nginx is asked where it is
installed.
"""

import getpass
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import httpx
import pytest

from benchmarks.services import free_port
from tests.support.databases import scratch_directory
from tests.support.live import ROOT
from tools.release import our_version

pytestmark = pytest.mark.system

GUIDE = ROOT / "docs" / "how-to" / "install.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
VERSIONS = (our_version(), "1.1.0")

SYSTEMCTL = """\
#!/usr/bin/env python3
'''Run what a unit says: start (a oneshot to its end), stop, enable --now.'''
import configparser, os, shlex, signal, subprocess, sys, time
from pathlib import Path

units = Path(os.environ["UNITS"])

def read(name):
    unit = configparser.RawConfigParser(strict=False, delimiters=("=",))
    unit.optionxform = str
    text = (units / f"{name}.service").read_text()
    unit.read_string(text)
    lines = [line.partition("=") for line in text.splitlines()]
    return unit["Service"], [value for key, _, value in lines if key == "ExecStart"]

def start(name):
    service, starts = read(name)
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["DATA"]}
    settings = Path(service["EnvironmentFile"].removeprefix("-"))
    environment |= dict(line.split("=", 1) for line in settings.read_text().split())
    environment |= dict(word.split("=", 1) for word in shlex.split(service["Environment"]))
    if service["Type"] == "oneshot":
        for command in starts:
            subprocess.run(shlex.split(command), env=environment, check=True)
        return
    with (units / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(shlex.split(starts[0]), env=environment, stdout=log, stderr=log,
                                   start_new_session=True)
    (units / f"{name}.pid").write_text(str(process.pid))

def stop(name):
    pid = int((units / f"{name}.pid").read_text())
    os.kill(pid, signal.SIGTERM)
    while True:  # It is no child of this process.
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)

match sys.argv[1:]:
    case ["daemon-reload"] | ["reload", "nginx"]:
        pass
    case ["enable", "--now", *names]:
        for name in names:
            if not name.endswith(".timer"):
                start(name)
    case ["start", name]:
        start(name)
    case ["stop", name]:
        stop(name)
    case other:
        sys.exit(f"the stand-in does not know {other}")
"""

PIP = """\
#!/bin/sh
# What the lock file names is installed here already, without what is installed from the work tree.
case "$*" in
  *requirements.lock*) echo "{packages}" > "$(dirname "$0")/../{site}/dependencies.pth" ;;
  *) exec "{python}" -m pip --python "$(dirname "$0")/python" "$@" ;;
esac
"""

VENV = """\
#!/bin/sh
# `python3 -m venv DIR`, with a pip that installs the lock file from this environment.
if [ "$1 $2" = "-m venv" ]; then
  "{python}" -m venv --without-pip "$3" && install -m 0755 "$(dirname "$0")/pip" "$3/bin/pip"
else
  exec "{python}" "$@"
fi
"""


def put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout after `make release`: deploy/, the lock file, and wheels of two versions."""
    checkout = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT / "deploy", checkout / "deploy")
    shutil.copy(ROOT / "requirements.lock", checkout)
    source = checkout / "source"
    source.mkdir()
    for name in ("app", "client", "migrations", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"):
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(
                path, source / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__", "js")
            )
        else:
            shutil.copy(path, source / name)
    for version in VERSIONS:
        for project in (source / "pyproject.toml", source / "client" / "pyproject.toml"):
            text = project.read_text()
            text = re.sub(r'^version = ".*"$', f'version = "{version}"', text, flags=re.MULTILINE)
            project.write_text(re.sub(r'"dither==[^"]*"', f'"dither=={version}"', text))
        command: list[str | Path] = [
            "wheel",
            "-qq",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "-w",
            checkout / "dist",
        ]
        subprocess.run([sys.executable, "-m", "pip", *command, source, source / "client"], check=True)
    return checkout


@pytest.mark.slow
def test_the_guide_installs_serves_backs_up_and_upgrades(release: Path) -> None:
    with scratch_directory() as place:
        place.chmod(0o755)  # The account that runs the database reads its programs in it.
        port = str(free_port())
        names = {
            "ACCOUNT": getpass.getuser(),
            "PREFIX": str(place / "opt"),
            "CONFIG": str(place / "etc"),
            "DATA": str(place / "data"),
            "BACKUPS": str(place / "backups"),
            "UNITS": str(place / "units"),
            "NGINX": str(place / "nginx"),
            "TLS": str(place / "tls"),
        }
        replaced = {
            "/opt/dither": names["PREFIX"],
            "/etc/dither": names["CONFIG"],
            "/var/lib/dither": names["DATA"],
            "/var/backups/dither": names["BACKUPS"],
            "/root/dither-subject.key": str(place / "key-elsewhere"),
            "DITHER_PORT=8000": f"DITHER_PORT={port}",
            "127.0.0.1:8000": f"127.0.0.1:{port}",
        }
        checkout = place / "checkout"
        shutil.copytree(release, checkout, ignore=shutil.ignore_patterns("source"))
        for unit in checkout.glob("deploy/*.service"):
            unit.write_text(_replace(unit.read_text(), replaced))
        for directory in ("bin", "nginx", "tls"):
            (place / directory).mkdir()
        certificate(place / "tls")
        site = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        put(place / "bin" / "systemctl", SYSTEMCTL)
        put(place / "bin" / "pip", PIP.format(packages=dependencies(place), site=site, python=sys.executable))
        put(place / "bin" / "python3", VENV.format(python=sys.executable))
        if shutil.which("nginx") is None:
            put(place / "bin" / "nginx", "#!/bin/sh\n")
        environment = {"PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place)}
        blocks = [_replace(block, replaced) for block in BLOCK.findall(GUIDE.read_text())]
        assert len(blocks) == 9
        exports = "\n".join(f"export {name}={value}" for name, value in names.items())
        script = "set -euo pipefail\n" + blocks[0] + exports + "\n" + "\n".join(blocks[1:])
        # The nginx of this machine reads its own configuration; the guide's file is read by itself below.
        script = script.replace("\nnginx -t\n", "\n")
        try:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=300,
            )
            log = place / "units" / "dither.log"
            assert done.returncode == 0, done.stderr + (log.read_text() if log.exists() else "")
            assert f"\ndither {VERSIONS[0]}\n" in done.stdout
            assert done.stdout.count('{"status":"ready"}') == 2
            token = (place / "data" / "admin.token").read_text().strip()
            assert token in done.stdout
            studies = httpx.get(
                f"http://127.0.0.1:{port}/v1/studies", headers={"Authorization": f"Bearer {token}"}
            )
            assert studies.status_code == 200, "the upgraded service knows the first one's token"
            assert os.readlink(place / "opt" / "current") == VERSIONS[1]
            dumps = list((place / "backups").glob("dither-*.dump"))
            assert len(dumps) == 2
            assert all(dump.stat().st_mode & 0o777 == 0o600 for dump in dumps)
            assert (place / "key-elsewhere").read_bytes() == (place / "data" / "subject.key").read_bytes()
            assert (place / "etc" / "dither.env").read_text() == "DITHER_PUBLIC_URL=https://dither.example\n"
            proxy(place, port)
        finally:
            subprocess.run(
                [place / "bin" / "systemctl", "stop", "dither"], env=environment | names, check=False
            )


def dependencies(place: Path) -> Path:
    """This environment's packages, without what is installed from the work tree."""
    packages = place / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "dither" not in path.name and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    return packages


def _replace(text: str, replaced: dict[str, str]) -> str:
    for old, new in replaced.items():
        text = text.replace(old, new)
    return text


def certificate(directory: Path) -> None:
    names = ["-subj", "/CN=dither.example", "-addext", "subjectAltName=DNS:dither.example"]
    files: list[str | Path] = ["-keyout", directory / "privkey.pem", "-out", directory / "fullchain.pem"]
    command: list[str | Path] = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        *names,
        *files,
    ]
    subprocess.run(command, check=True, capture_output=True)


def proxy(place: Path, port: str) -> None:
    """The configuration that the guide made: TLS reaches the service through it."""
    made = (place / "nginx" / "dither.conf").read_text()
    assert re.findall(r"^    server .*;$", made, re.MULTILINE) == [f"    server 127.0.0.1:{port};"]
    nginx = shutil.which("nginx")
    if nginx is None:
        return
    secure = free_port()
    made = made.replace("listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;")
    made = made.replace("/var/log/nginx", str(place / "nginx"))
    (place / "nginx" / "dither.conf").write_text(made)
    whole = f"""\
        pid {place}/nginx/pid;
        error_log {place}/nginx/error.log;
        user {getpass.getuser()};
        events {{}}
        http {{
            client_body_temp_path {place}/nginx/body;
            proxy_temp_path {place}/nginx/proxy;
            fastcgi_temp_path {place}/nginx/fastcgi;
            uwsgi_temp_path {place}/nginx/uwsgi;
            scgi_temp_path {place}/nginx/scgi;
            include {place}/nginx/dither.conf;
        }}
        """
    (place / "nginx" / "nginx.conf").write_text(textwrap.dedent(whole))
    command = [nginx, "-c", str(place / "nginx" / "nginx.conf")]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    subprocess.run(command, check=True)
    try:
        asked: list[str | Path] = ["curl", "--silent", "--fail", "--cacert", place / "tls" / "fullchain.pem"]
        asked += [
            "--resolve",
            f"dither.example:{secure}:127.0.0.1",
            f"https://dither.example:{secure}/openapi.json",
        ]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert '"openapi"' in done.stdout
    finally:
        subprocess.run([*command, "-s", "stop"], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["dither.service", "dither-backup.service", "dither-backup.timer"])
def test_a_unit_means_something_to_systemd(name: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    for file in (ROOT / "deploy").glob("dither*.*"):
        # It checks that commands exist: any that does stands in for what is not installed here.
        text = re.sub(r"(ExecStart=)/opt/dither/current/bin/\S+", r"\1/bin/true", file.read_text())
        (tmp_path / file.name).write_text(text)
    done = subprocess.run(
        [analyze, "verify", "--man=no", tmp_path / name], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "dither" in line]
    assert done.returncode == 0, done.stderr
    assert ours == []


def test_the_units_and_the_guide_name_the_same_places() -> None:
    first = BLOCK.findall(GUIDE.read_text())[0]
    unit = (ROOT / "deploy" / "dither-backup.service").read_text()
    for name in ("/opt/dither", "/etc/dither", "/var/lib/dither", "/var/backups/dither"):
        assert name in first
        assert name in unit
