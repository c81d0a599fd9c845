"""The examples under deploy/ and docker-compose.yml: they can be read, and name settings that there are."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.serve import SHUTDOWN_SECONDS
from app.settings import COMMAND_VARIABLES, Settings
from tests.support.live import ROOT

DEPLOY = ROOT / "deploy"

CHART = DEPLOY / "helm" / "dither"

EXAMPLES = sorted(
    [
        *(path for path in DEPLOY.rglob("*") if path.is_file()),
        *(ROOT / name for name in ("docker-compose.yml", "Dockerfile", ".env.example")),
    ]
)

OWN = {
    "DITHER_DATABASE_URL": "compose has its own database",
    "DITHER_POSTGRES_BIN": "the image holds no other PostgreSQL",
    "DITHER_DATA_DIR": "the image's volume",
    "DITHER_ALLOW_UNSAFE_DATABASE": "for tests only",
}
"""Settings that an installation by compose does not choose, and why."""

VARIABLE = re.compile(r"\bDITHER_[A-Z_]+\b|\bdither_(?:database|subject)_[a-z_]+\b")


def kubernetes(*values: str) -> list[dict[str, Any]]:
    """What Helm makes of the chart with these values."""
    helm = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if helm is None:
        pytest.skip("needs helm, whose wheel is for Linux on x86-64")
    given = [part for value in ("publicUrl=https://dither.example", *values) for part in ("--set", value)]
    done = subprocess.run(
        [helm, "lint", "--strict", CHART, *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [helm, "template", "dither", CHART, *given], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    named = {name.upper() for name in VARIABLE.findall(path.read_text())}
    assert named <= {*Settings.variables(), *COMMAND_VARIABLES}


def test_every_example_is_in_the_guide() -> None:
    guide = (ROOT / "docs" / "operations.md").read_text()
    for path in DEPLOY.iterdir():
        assert f"deploy/{path.name}" in guide


def test_compose_passes_every_setting_on() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    given = services["api"]["environment"]
    chosen = {*Settings.variables(), "DITHER_WORKERS"} - set(OWN)
    assert set(given) - {"DITHER_DATABASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"} == chosen
    for name in chosen:
        assert given[name].startswith(f"${{{name}:"), "from .env"
    assert services["migrate"]["environment"] == given
    example = (ROOT / ".env.example").read_text()
    for name in chosen:
        assert re.search(rf"^(# )?{name}=", example, re.MULTILINE), name


def test_the_example_of_settings_states_the_defaults() -> None:
    example = (ROOT / ".env.example").read_text()
    stated = dict(re.findall(r"^# (DITHER_[A-Z_]+)=(.+)$", example, re.MULTILINE))
    assert stated.pop("DITHER_WORKERS") == "2"
    made = Settings.model_validate(
        {name.removeprefix("DITHER_").lower(): value for name, value in stated.items()}
    )
    assert made == Settings()


def test_the_unit_stops_gracefully_and_may_do_little() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "dither.service")
    service = unit["Service"]
    assert service["ExecStart"] == "/opt/dither/current/bin/dither serve"
    assert service["KillSignal"] == "SIGTERM"
    assert service["KillMode"] == "mixed", "the supervisor asks its workers"
    assert int(service["TimeoutStopSec"]) > SHUTDOWN_SECONDS
    assert service["User"] == "dither"
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["UMask"]) == (
        "yes",
        "strict",
        "0077",
    )
    assert service["StateDirectory"] == "dither"
    assert "DITHER_DATA_DIR=/var/lib/dither" in service["Environment"]
    assert unit["Install"]["WantedBy"] == "multi-user.target"


def test_the_deployment_is_probed_and_drained() -> None:
    found = {document["kind"]: document for document in kubernetes()}
    assert set(found) == {"Job", "Deployment", "Service", "PodDisruptionBudget"}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (api,) = pod["containers"]
    assert found["Deployment"]["spec"]["replicas"] > 1
    assert api["readinessProbe"]["httpGet"]["path"] == "/health/ready"
    assert api["livenessProbe"]["httpGet"]["path"] == "/health/live"
    paused = int(api["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > SHUTDOWN_SECONDS + paused
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["Deployment"]["spec"]["selector"]["matchLabels"] == labels


@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_a_pod_may_do_little_and_reads_secrets_from_files(kind: str) -> None:
    (document,) = (document for document in kubernetes() if document["kind"] == kind)
    pod = document["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        limits = container["securityContext"]
        assert limits["readOnlyRootFilesystem"] is True
        assert limits["allowPrivilegeEscalation"] is False
        assert limits["capabilities"] == {"drop": ["ALL"]}
        assert {"name": "secrets", "mountPath": "/run/secrets", "readOnly": True} in container["volumeMounts"]
        named = {entry["name"] for entry in container["env"]}
        assert not named & {"DITHER_SUBJECT_KEY", "DITHER_DATABASE_URL"}


def test_compose_waits_long_enough_for_a_shutdown() -> None:
    api = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["api"]
    assert int(api["stop_grace_period"].removesuffix("s")) > SHUTDOWN_SECONDS


def test_the_proxy_is_patient_enough_and_logs_no_path() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert text.count("{") == text.count("}")
    read = re.search(r"proxy_read_timeout (\d+)s;", text)
    most = re.search(r"client_max_body_size (\d+)m;", text)
    assert read is not None
    assert most is not None
    fields = Settings.model_fields
    assert int(read[1]) > fields["request_timeout_seconds"].default
    assert int(most[1]) * 2**20 > fields["max_batch_bytes"].default
    (line,) = re.findall(r"^log_format dither (.*);$", text, re.MULTILINE)
    assert not re.search(r"\$request\b|\$(request_)?uri|\$args|\$http_|\$remote_user", line)
    assert "proxy_next_upstream error timeout;" in text, "never non_idempotent"
    assert "$request_id" in line
    assert "proxy_set_header X-Request-Id $request_id;" in text


def test_images_come_by_their_digest() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    images = [service["image"] for service in compose.values() if "build" not in service]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert len(images) >= 4
    for image in images:
        assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)


def test_what_builds_our_packages_comes_by_its_hash() -> None:
    """pip would download the newest build backend otherwise, whatever the lock files say."""
    for name in ("requirements-dev.lock", "requirements-build.lock"):
        assert re.search(r"^hatchling==\S+ \\\n +--hash=sha256:", (ROOT / name).read_text(), re.MULTILINE)
    for name in ("Makefile", "Dockerfile"):
        lines = (ROOT / name).read_text().replace("$(PIP)", "pip install --no-deps").splitlines()
        installs = [
            line for line in lines if re.search(r"pip (install|wheel) ", line) and " --no-deps " in line
        ]
        assert len(installs) >= 2
        for line in installs:
            assert "--require-hashes" in line or "--no-build-isolation" in line or "--no-index" in line, line


def test_behind_tls_the_service_knows_its_public_address() -> None:
    """Otherwise cookies are not Secure, and people's links begin with http://."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert "DITHER_PUBLIC_URL:?" in compose["services"]["api"]["environment"]["DITHER_PUBLIC_URL"]
    (deployment,) = (document for document in kubernetes() if document["kind"] == "Deployment")
    variables = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    (url,) = (entry["value"] for entry in variables if entry["name"] == "DITHER_PUBLIC_URL")
    assert Settings(public_url=url).public_url == "https://dither.example"
    assert "DITHER_PUBLIC_URL=https://dither.example" in (DEPLOY / "nginx.conf").read_text()


def test_the_chart_takes_settings_an_ingress_and_a_digest() -> None:
    found = {
        document["kind"]: document
        for document in kubernetes(
            "settings.DITHER_LIFETIME_EPSILON=5",
            "image.digest=sha256:" + "0" * 64,
            "ingress.enabled=true",
            "ingress.host=dither.example",
            "ingress.tlsSecretName=certificate",
            "replicas=1",
        )
    }
    (api,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "DITHER_LIFETIME_EPSILON", "value": "5"} in api["env"]
    assert api["image"] == "dither-server@sha256:" + "0" * 64
    assert found["Job"]["spec"]["template"]["spec"]["containers"][0]["image"] == api["image"]
    assert found["Ingress"]["spec"]["tls"] == [{"hosts": ["dither.example"], "secretName": "certificate"}]
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize(
    "value",
    ["publicUrl=", "publicUrl=dither.example", "settings.FOO=1", "ingress.enabled=true", "replica=2"],
)
def test_the_chart_refuses_values_that_cannot_work(value: str) -> None:
    with pytest.raises(AssertionError):
        kubernetes(value)


def test_the_chart_has_the_version_of_the_service() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_prometheus_reads_the_metrics_with_a_token() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    (monitor,) = (one for one in kubernetes("podMonitor.enabled=true") if one["kind"] == "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert (endpoint["path"], endpoint["authorization"]["type"]) == ("/metrics", "Bearer")
    (secret,) = compose["services"]["prometheus"]["secrets"]
    for text in ((DEPLOY / "prometheus.yml").read_text(), compose["configs"]["prometheus"]["content"]):
        (job,) = yaml.safe_load(text)["scrape_configs"]
        assert job["authorization"] == {"type": "Bearer", "credentials_file": secret["target"]}


@pytest.mark.parametrize("name", ["backup.sh", "restore.sh"])
def test_a_script_can_be_run(name: str) -> None:
    path = DEPLOY / name
    assert path.stat().st_mode & 0o111
    assert "set -euo pipefail" in path.read_text()
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run([bash, "-n", path], check=True)
