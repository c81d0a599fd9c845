"""What the API answers against files that a reviewer reads. `make golden` renews them.

Everything is compared but the last digits of numbers: processors round `exp` and sums differently.
"""

import difflib
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Match

from app.services.statistics import saturation
from tests.api.service import Service
from tests.golden import script
from tests.support.noiseless import without_noise

DIRECTORY = Path(__file__).parent
RENEW = os.environ.get("GOLDEN") == "renew"
# Far above the rounding of any processor (1e-14 was seen), far below a change of a formula.
ROUNDING = 1e-9


def steady(kept: Any, now: Any) -> Any:
    """What was answered now, with the kept number wherever both are one but for rounding."""
    if isinstance(kept, float) and isinstance(now, float):
        return kept if math.isclose(kept, now, rel_tol=ROUNDING) else now
    if isinstance(kept, dict) and isinstance(now, dict):
        return {name: steady(kept.get(name), value) for name, value in now.items()}
    if isinstance(kept, list) and isinstance(now, list) and len(kept) == len(now):
        return [steady(*pair) for pair in zip(kept, now, strict=True)]
    return now


def differences(name: str, document: object) -> str:
    """A readable diff between a golden file and what was answered now; empty where they agree."""
    path = DIRECTORY / f"{name}.json"
    kept = path.read_text() if path.exists() else "null"
    text = json.dumps(steady(json.loads(kept), document), indent=1, ensure_ascii=False) + "\n"
    if RENEW:
        path.write_text(text)
        kept = text
    lines = difflib.unified_diff(
        kept.splitlines(), text.splitlines(), f"kept {name}", f"now {name}", lineterm=""
    )
    return "\n".join(lines)


@pytest.mark.long
async def test_the_openapi_document_is_the_one_that_is_kept(service: Service) -> None:
    document = service.app.openapi()
    # It is that of the installed distribution; a release is no change of the document.
    found = differences("openapi", document | {"info": document["info"] | {"version": "<version>"}})
    assert not found, f"{found}\n\n`make golden` renews the files; the diff belongs in the commit."


@pytest.mark.long
async def test_every_endpoint_answers_what_is_kept(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    # A machine that is slow at the moment would answer from the profile of before.
    monkeypatch.setattr(saturation, "QUICK", math.inf)
    without_noise(monkeypatch)
    files = await script.run(service)
    found = "\n".join(filter(None, (differences(name, exchanges) for name, exchanges in files.items())))
    assert not found, f"{found}\n\n`make golden` renews the files; the diff belongs in the commit."
    kept = {path.stem for path in DIRECTORY.glob("*.json")} - {"openapi"}
    assert kept == set(files)
    assert recorded_routes(service, files) >= declared_routes(service)


def declared_routes(service: Service) -> set[tuple[str, str]]:
    """Method and path of every operation of the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = service.app.openapi()["paths"]
    # These are text; tests/api/test_metrics.py and tests/api/test_operations.py hold what it says.
    texts = {("GET", path) for path in ("/metrics", "/llms.txt", "/llms-full.txt")}
    return {(method.upper(), path) for path, methods in paths.items() for method in methods} - texts


def recorded_routes(service: Service, files: dict[str, list[script.Exchange]]) -> set[tuple[str, str]]:
    """The operations that the golden files hold."""
    found = set()
    for method, path in script.operations(files):
        for route in service.app.routes:
            scope = {"type": "http", "method": method, "path": path, "root_path": ""}
            if route.matches(scope)[0] is Match.FULL:
                found.add((method, route.path_format))  # type: ignore[attr-defined]  # a route has it
                break
    return found


def test_only_the_rounding_of_a_number_is_passed_over() -> None:
    kept = {"half_width": 2.0462702890206463, "rows": [1.0, 2], "id": "a"}
    assert steady(kept, kept | {"half_width": 2.0462702890206472}) == kept
    for now in (
        kept | {"half_width": 2.04628},
        kept | {"rows": [1.0, 3]},
        kept | {"rows": [1.0]},
        kept | {"id": "b"},
        kept | {"more": 1.0},
        {"rows": [1.0, 2], "id": "a"},
    ):
        assert steady(kept, now) == now
