"""docs/questions.md: each question of it is answered, and each line of the SDK can be called."""

import inspect
import json
import re
from typing import Any

import pytest
from dither import Client

from tests.api.service import Service
from tests.support.live import ROOT
from tests.upgrades import filling

pytestmark = pytest.mark.long

TABLE = re.compile(r"^\| (?!question)([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)
BELOW = re.compile(r"^\| question \| HTTP, below `(/v1/studies/\w+/)` \| SDK \|$", re.MULTILINE)

STUDIES: dict[str, dict[str, Any]] = {
    "commute": {
        "lower": 0,
        "upper": 120,
        "default_share": 0.01,
        "attributes": {"region": ["north", "south"], "age": ["young", "old"]},
    },
    "household": {"measures": filling.MEASURES, "default_share": 0.2},
}


def rows() -> list[tuple[str, str, str]]:
    """What is below which path, the request and the line in Python."""
    page = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    starts = [(found.start(), found[1]) for found in BELOW.finditer(page)]
    return [
        (max(start for start in starts if start[0] < found.start())[1], found[2], found[3])
        for found in TABLE.finditer(page)
    ]


def person(slug: str, number: int) -> dict[str, Any]:
    record: dict[str, Any] = {"subject": f"p{number}", "epsilon": 2, "trust": "central"}
    if slug == "household":
        values = {"income": number * 20, "age": 18 + number % 80, "party": ("red", "green")[number % 2]}
        return record | {"values": values}
    labels = {"region": ("north", "south")[number % 2], "age": ("young", "old")[number // 2 % 2]}
    return record | {"value": 20 + number % 40, "attributes": labels}


async def test_every_question_of_the_page_is_answered(service: Service) -> None:
    for slug, definition in STUDIES.items():
        made = await service.call(
            "POST", "/v1/studies", "admin", json={"slug": slug, "tilt": 0, **definition}
        )
        assert made.status_code == 201, made.text
        path = f"/v1/studies/{slug}/contributions/batch"
        people = [person(slug, number) for number in range(400)]
        assert (await service.call("POST", path, "contribute", json=people)).json()["created"] == 400
    asked = rows()
    assert len(asked) > 25
    for below, request, _ in asked:
        method, _, rest = request.partition(" ") if request.startswith("POST ") else ("GET", "", request)
        path, _, document = rest.partition(" ")
        options = {"json": json.loads(document)} if document else {}
        response = await service.call(method, below + path, "analyse", **options)
        assert response.is_success, f"{request}: {response.text}"


@pytest.mark.parametrize("line", [line for _, _, line in rows()])
def test_a_line_in_python_is_a_call_of_the_sdk(line: str) -> None:
    class Desk:
        def __getattr__(self, name: str) -> Any:
            method = getattr(Client, name)
            return lambda *given, **named: inspect.signature(method).bind(None, *given, **named)

    assert isinstance(eval(line, {"desk": Desk()}), inspect.BoundArguments)
