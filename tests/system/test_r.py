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

ASKED = """
library(dither)
desk <- dither(Sys.getenv("DITHER_URL"), Sys.getenv("DITHER_TOKEN_OF_DESK"))
app <- dither(Sys.getenv("DITHER_URL"), Sys.getenv("DITHER_TOKEN_OF_APP"))
code <- function(wish) tryCatch({ wish; "none" }, dither_problem = function(problem) problem$code)
answers <- list(
  desk$mean("steps", by = "region"),
  desk$mean("steps", where = c(region = "north")),
  desk$histogram("steps", edges = c(30, 45.5)),
  desk$quantile("steps", q = 0.9),
  desk$describe("steps"),
  desk$shares("poll"),
  desk$correlation("house", "income", "age", share = 0.8)
)
first <- desk$release("steps", share = 0.3, idempotency_key = "once")
again <- desk$release("steps", share = 0.3, idempotency_key = "once")
codes <- list(
  unknown = code(desk$mean("none")),
  unnamed = code(desk$mean("steps", "region")),
  misspelt = code(desk$mean("steps", sharing = 0.1)),
  infinite = code(desk$mean("steps", share = Inf)),
  local = code(app$contribute("steps", "eve", 3, epsilon = 1, trust = "local")),
  elsewhere = code(dither("http://127.0.0.1:9", "a", tries = 1)$studies())
)
said <- list(
  answers = lapply(answers, function(answer) list(id = attr(answer, "said")$id, rows = answer)),
  same = identical(attr(first, "said"), attr(again, "said")),
  difference = desk$difference("steps", between = list(region = c("north", "south")))$estimate[[1]],
  line = desk$regression("house", "income", "age")$part,
  titles = desk$studies(page_size = 2)$title,
  number = length(desk$releases("steps", page_size = 3)),
  codes = codes,
  methods = lapply(unclass(desk), function(method) setdiff(names(formals(method)), "..."))
)
cat(jsonlite::toJSON(said, auto_unbox = TRUE, digits = NA, na = "null"))
"""

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
    studies: tuple[dict[str, Any], ...] = (
        {"slug": "poll", "title": TITLE, "choices": ["red", "green"]},
        {"slug": "house", "measures": {name: {"lower": 0, "upper": 100} for name in ("income", "age")}},
    )
    app = service.create_token("contribute")
    for study in studies:
        with service.client() as admin:
            assert admin.post("/v1/studies", json={**study, "tilt": 0}).status_code == 201
        people = [{"subject": f"p{n}", "epsilon": 3, "trust": "central"} for n in range(300)]
        for number, one in enumerate(people):
            both = {"income": number % 100, "age": number % 50}
            one |= {"values": both} if "measures" in study else {"value": study["choices"][number % 2]}
        with service.client(app) as client:
            sent = client.post(f"/v1/studies/{study['slug']}/contributions/batch", json=people)
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
    assert {"Minutes on foot?", TITLE} < set(said["titles"])
    assert said["line"] == ["slope", "intercept", "r_squared"]
    assert said["number"] >= 6
    assert said["codes"] == {
        "unknown": "not_found",
        "unnamed": "invalid_request",
        "misspelt": "invalid_request",
        "infinite": "invalid_request",
        "local": "unsupported",
        "elsewhere": "transport",
    }
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
