"""The package for R: its page runs, and it reads what the views of answers say."""

import inspect
import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from dither import Client

from tests.conftest import LiveServer
from tests.support.live import ROOT, LiveService

pytestmark = [pytest.mark.system, pytest.mark.long]

NEEDED = ("httr2", "jsonlite", "openssl", "tibble")

ASKED = (Path(__file__).parent / "asked.R").read_text(encoding="utf-8")

TITLE = 'Schritte — "wie\u202f viele"? \\ 歩'


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed."""
    found = shutil.which("Rscript")
    there = found and subprocess.run(
        [found, "-e", "".join(f"library({name});" for name in NEEDED)], capture_output=True, check=False
    )
    if not there or there.returncode:
        reason = f"needs R with {', '.join(NEEDED)}; `make test-r` installs them"
        assert os.environ.get("DITHER_TEST_R") != "required", reason
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("library")
    command = ["R", "CMD", "INSTALL", "--no-test-load", "-l", str(place), str(ROOT / "client" / "r")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


def run(library: Path, service: LiveService, script: str, **variables: str) -> str:
    environment = os.environ | {
        "R_LIBS": str(library),
        "LC_ALL": "C.UTF-8",
        "DITHER_URL": service.base_url,
        "DITHER_TOKEN": service.admin_token,
        **variables,
    }
    done = subprocess.run(
        ["Rscript", "--vanilla", "-"],
        input=script,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_reads_what_the_views_say(
    library: Path, live_server: LiveServer, database_url: str
) -> None:
    service = live_server()
    page = (ROOT / "docs" / "r.md").read_text(encoding="utf-8")
    run(library, service, "\n".join(re.findall(r"^```r\n(.*?)^```", page, re.MULTILINE | re.DOTALL)))
    app = service.create_token("contribute")
    with service.client() as admin:
        made = admin.post(
            "/v1/studies", json={"slug": "poll", "title": TITLE, "choices": ["red", "green"], "tilt": 0}
        )
        assert made.status_code == 201, made.text
    people = [
        {"subject": f"p{n}", "value": ("red", "green")[n % 2], "epsilon": 3, "trust": "central"}
        for n in range(300)
    ]
    with service.client(app) as client:
        sent = client.post("/v1/studies/poll/contributions/batch", json=people)
        assert sent.json()["created"] == 300, sent.text
    tokens = {"DITHER_TOKEN_OF_DESK": service.create_token("analyse"), "DITHER_TOKEN_OF_APP": app}
    said = json.loads(run(library, service, ASKED, **tokens))
    with psycopg.connect(database_url) as connection:
        for answer in said["answers"]:
            query = """
                SELECT part, name, bin_lower, bin_upper, estimate, lower, upper
                FROM published.answer_rows WHERE release_id = %s ORDER BY group_place, part, place
            """
            kept = connection.execute(query, [answer["id"]]).fetchall()
            rows = [
                tuple(
                    row.get(name)
                    for name in ("part", "name", "bin_lower", "bin_upper", "estimate", "lower", "upper")
                )
                for row in answer["rows"]
            ]
            assert len(rows) == len(kept) > 0
            assert all(any(same(row, one) for one in kept) for row in rows), (rows, kept)
    assert said["same"]
    between = "/v1/studies/steps/statistics/difference?between=region:north,south"
    with service.client(tokens["DITHER_TOKEN_OF_DESK"]) as client:
        assert said["difference"] == pytest.approx(client.get(between).json()["estimate"], rel=1e-12)
    assert {"Minutes?", TITLE} < set(said["titles"])
    assert said["line"] == ["slope", "intercept", "r_squared"]
    assert said["number"] >= 6
    named = [line.partition(",")[0] for line in (*said["printed"], said["line_printed"])]
    assert named[0] == "mean of steps"
    assert named[-3:] == [
        "correlation of income and age",
        "table of party and sex",
        "regression of income on age",
    ]
    assert said["told"].count("is required in a study of several") == 1
    assert said["codes"] == {
        "unknown": "not_found",
        "unnamed": "invalid_request",
        "misspelt": "invalid_request",
        "infinite": "invalid_request",
        "two": "invalid_request",
        "local": "unsupported",
        "factor": "unsupported",
        "frame": "invalid_request",
        "alone": "estimator_not_applicable",
        "elsewhere": "transport",
    }
    given, led = said["given"], said["led"]
    assert given["many"] == ["created"] * 300
    assert given["faulty"][-1] == 3
    assert given["gaps"] == ["created", "refused", "refused"]
    assert given["one"][0]["trust"] == given["replaced"][0]["trust"] == "central"
    assert given["withdrawn"] is True
    assert led == {
        "token": "R quota",
        "same": True,
        "quota": 0.5,
        "usage": 0,
        "invited": 1,
        "limit": 5,
        "invitations": 1,
        "webhook": "https://webhooks.invalid/r",
        "every": "day",
        "schedules": 1,
        "session": "open",
        "sessions": 1,
        "page": "Other ways",
        "edited": "Minutes?",
        "raised": 0.5,
        "budget": 20,
        "budgets": True,
        "archived": "archived",
        "retired": "retired",
        "together": 1,
        "narrowed": "invalid_request",
        "finished": "finished",
        "round": "finished",
    }
    assert said["gone"] == ["revoked", "not_found", "not_found", "withdrawn", "TRUE"]
    python = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if name[0] != "_"}
    assert python - said["methods"].keys() == {"close", "ledger", "participate"}
    for method, arguments in said["methods"].items():
        theirs = inspect.signature(getattr(Client, method)).parameters
        free = any(one.kind is one.VAR_KEYWORD for one in theirs.values())
        names = arguments if isinstance(arguments, list) else [arguments]
        assert free or set(names) <= set(theirs), method


def same(row: tuple[Any, ...], kept: tuple[Any, ...]) -> bool:
    """Whether both say the same, numbers to 15 digits."""
    return all(
        math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
        if isinstance(one, int | float) and isinstance(other, int | float)
        else one == other
        for one, other in zip(row, kept, strict=True)
    )
