"""Clients that others make from the OpenAPI document: without a warning, and they work."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import LiveServer
from tests.support.live import ROOT

pytestmark = pytest.mark.system

GENERATOR = ROOT / ".venv" / "generators" / "bin" / "openapi-python-client"
"""`make test` installs it."""

PROGRAM = """\
import sys
from made import AuthenticatedClient
from made.api.contributions import contribute
from made.api.releases import current_statistic, make_release, plan
from made.api.studies import create_study
from made.models import (
    ContributeCentralContribution, CurrentReleaseOut, MakeReleaseQuestion, Problem, StudyIn, Trust
)

url, admin, app, analyst = sys.argv[1:]

def client(token):
    return AuthenticatedClient(base_url=url, token=token)

made = create_study.sync(
    client=client(admin), body=StudyIn(slug="ages", lower=0, upper=120, trust=[Trust.CENTRAL])
)
assert made.slug == "ages", made
for number in range(20):
    kept = contribute.sync("ages", client=client(app), body=ContributeCentralContribution(
        trust="central", subject=f"person-{number}", value=40 + number, epsilon=2
    ))
    assert kept.epsilon == 2, kept
refused = contribute.sync("ages", client=client(app), body=ContributeCentralContribution(
    trust="central", subject="old", value=1000, epsilon=2
))
assert isinstance(refused, Problem) and refused.errors[0].field == "value", refused
planned = plan.sync("ages", client=client(analyst))
assert planned.estimators, planned
answer = current_statistic.sync("ages", "mean", client=client(analyst), share=0.5)
assert isinstance(answer, CurrentReleaseOut), answer
assert 0 <= answer.interval.lower <= answer.estimate <= answer.interval.upper <= 120, answer
refused = make_release.sync("ages", client=client(analyst), body=MakeReleaseQuestion(share=0.25, fresh=True))
assert isinstance(refused, Problem) and refused.code == "no_gain", refused
again = make_release.sync("ages", client=client(analyst), body=MakeReleaseQuestion(share=0.75))
assert again.id != answer.id and again.people == 20, again
"""


@pytest.fixture
def document(live_server: LiveServer, tmp_path: Path) -> tuple[Any, Path]:
    service = live_server()
    with service.client() as anyone:
        described = anyone.get("/openapi.json").json()
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(described))
    return service, path


def test_a_client_made_by_openapi_python_client_contributes_and_asks(
    document: tuple[Any, Path], tmp_path: Path
) -> None:
    if not GENERATOR.exists():
        pytest.skip("needs openapi-python-client, which `make test` installs")
    service, path = document
    made = tmp_path / "made"
    config = tmp_path / "config.yml"
    # It knows no image until it is told to keep its bytes.
    config.write_text("content_type_overrides:\n  image/svg+xml: application/octet-stream\n")
    options = ["--path", str(path), "--output-path", str(made), "--meta", "none", "--config", str(config)]
    done = subprocess.run(
        [GENERATOR, "generate", *options],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{GENERATOR.parent}:/usr/bin:/bin"},  # with the formatter that it calls
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower(), done.stdout
    tokens = [service.admin_token, service.create_token("contribute"), service.create_token("analyse")]
    done = subprocess.run(
        [GENERATOR.parent / "python", "-c", PROGRAM, service.base_url, *tokens],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_datamodel_codegen_makes_models(document: tuple[Any, Path], tmp_path: Path) -> None:
    _, path = document
    models = tmp_path / "models.py"
    options = ["--output-model-type", "pydantic_v2.BaseModel", "--formatters", "builtin"]
    done = subprocess.run(
        [Path(sys.executable).with_name("datamodel-codegen"), "--input", path, "--output", models, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower(), done.stderr
    names = {node.name for node in ast.parse(models.read_text()).body if isinstance(node, ast.ClassDef)}
    assert {"ContributionOut", "ReleaseOut", "Problem", "StudyIn"} <= names
    done = subprocess.run(
        [sys.executable, "-W", "error", models], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_control_a_media_type_that_no_generator_knows_is_warned_about(tmp_path: Path) -> None:
    if not GENERATOR.exists():
        pytest.skip("needs openapi-python-client, which `make test` installs")
    kept = json.loads((ROOT / "tests" / "golden" / "openapi.json").read_text())
    content = kept["paths"]["/v1/studies/{study}/contributions/batch"]["post"]["requestBody"]["content"]
    content["text/csv"] = {"schema": {"type": "string"}}
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(kept))
    done = subprocess.run(
        [GENERATOR, "generate", "--path", path, "--output-path", tmp_path / "made", "--meta", "none"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{GENERATOR.parent}:/usr/bin:/bin"},
    )
    assert "Unsupported content type text/csv" in done.stdout + done.stderr
