"""Answers have limits; larger ones that are stored are served, and lists and pages of them are bounded."""

import asyncio
import json
from typing import Any
from uuid import UUID

import pytest

from app.dashboard.pages import release as release_page
from app.services import work
from app.services.shapes import questions as shape_questions
from app.services.statistics import releases as listed
from app.services.statistics import steps
from app.services.statistics.releases import Releases
from app.store import release_lists as store
from app.web import request as web
from tests.api.service import Service, assert_problem
from tests.dashboard.browser import Browser, text_of

GROUPS = [f"g{number}" for number in range(30)]
QUESTION = {"statistic": "histogram", "bins": "20", "by": "group"}


@pytest.fixture
async def study(service: Service) -> str:
    """Thirty labels of three people each."""
    slug = await service.study(attributes={"group": GROUPS}, default_share=0.2)
    records = [
        {
            "subject": f"{group}-{number}",
            "value": 40 * number,
            "epsilon": 5,
            "trust": "central",
            "attributes": {"group": group},
        }
        for group in GROUPS
        for number in range(3)
    ]
    path = f"/v1/studies/{slug}/contributions/batch"
    response = await service.call("POST", path, "contribute", json=records)
    assert response.json()["created"] == len(records)
    return slug


async def ask(service: Service, study: str, **question: Any) -> dict[str, Any]:
    path = f"/v1/studies/{study}/releases"
    response = await service.call("POST", path, "analyse", json={**QUESTION, **question})
    assert response.status_code == 201, response.text
    return dict(response.json())


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"statistic": "histogram", "bins": "100"}, "at most 10 bins for each would do"),
        ({"statistic": "distribution", "edges": ",".join(map(str, range(1, 100)))}, "at most 10 bins"),
        ({"statistic": "histogram", "bins": "11"}, "11 numbers each, and an answer at most 10,000"),
    ],
)
async def test_an_answer_with_too_many_numbers_is_refused_before_it_is_charged(
    service: Service, question: dict[str, str], reason: str
):
    study = await service.study(attributes={"group": [f"g{number}" for number in range(1_000)]})
    await service.contribute(study, "ann", attributes={"group": "g7"})
    before = await service.rows()
    asked = {**question, "by": "group"}
    named = {name: value for name, value in asked.items() if name != "statistic"}
    for response in (
        await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=asked),
        await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=asked),
        await service.call(
            "GET", f"/v1/studies/{study}/statistics/{question['statistic']}", "analyse", params=named
        ),
    ):
        problem = assert_problem(response, "invalid_request", 422, "by")
        assert reason in problem["errors"][0]["reason"]
        assert "one label at a time with where" in problem["errors"][0]["reason"]
    assert await service.rows() == before
    largest = {**asked, "bins": "10"} if "bins" in asked else {**asked, "edges": "10,20,30,40,50,60,70,80,90"}
    planned = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=largest)
    assert planned.status_code == 200


async def test_a_stored_answer_that_is_too_large_is_served_with_its_replays(
    service: Service, study: str, monkeypatch: pytest.MonkeyPatch
):
    path, key = f"/v1/studies/{study}/releases", {"Idempotency-Key": "first"}
    made = await service.call("POST", path, "analyse", json=QUESTION, headers=key)
    assert made.status_code == 201
    monkeypatch.setattr(shape_questions, "MOST_NUMBERS", 599)
    monkeypatch.setattr(web, "STREAMED", 10_000)
    release = made.json()["id"]
    replayed = await service.call("POST", path, "analyse", json=QUESTION, headers=key)
    read = await service.call("GET", f"/v1/releases/{release}", "analyse")
    assert replayed.content == read.content == made.content
    assert int(read.headers["content-length"]) == len(read.content) > 3 * web.STREAMED
    named = {"bins": "20", "by": "group"}
    current = await service.call("GET", f"/v1/studies/{study}/statistics/histogram", "analyse", params=named)
    assert current.json() == {**made.json(), "new_contributions": False}
    finer = await service.call("POST", path, "analyse", json={**QUESTION, "share": 1})
    assert_problem(finer, "invalid_request", 422, "by")
    plan = await service.call("GET", f"/v1/studies/{study}/plan", "analyse", params=QUESTION)
    assert_problem(plan, "invalid_request", 422, "by")


@pytest.mark.parametrize("role", ["analyse", "admin"])
async def test_a_page_of_a_list_ends_before_it_is_too_large(
    service: Service, study: str, role: str, monkeypatch: pytest.MonkeyPatch
):
    made = [(await ask(service, study, share=share))["id"] for share in (0.2, 0.4, 0.6, 0.8)]
    path, pages = f"/v1/studies/{study}/releases", list[list[str]]()
    cursor: dict[str, str] | None = {}
    whole = (await service.call("GET", path, role)).json()
    assert (len(whole["items"]), whole["next_cursor"]) == (4, None)
    size = len(json.dumps(whole["items"][0] | {"charges": None}, separators=(",", ":")))
    monkeypatch.setattr(listed, "MOST_BYTES", 2 * size + size // 2)
    if role == "admin":
        charges = len(whole["items"][0]["charges"])
        monkeypatch.setattr(listed, "CHARGE_BYTES", size // charges)
    while cursor is not None:
        page = (await service.call("GET", path, role, params=cursor)).json()
        pages.append([one["id"] for one in page["items"]])
        cursor = {"cursor": page["next_cursor"]} if page["next_cursor"] else None
    assert [len(page) for page in pages] == ([1] * 4 if role == "admin" else [2, 2])
    assert [one for page in pages for one in page] == made[::-1]
    monkeypatch.setattr(listed, "MOST_BYTES", 1)
    assert len((await service.call("GET", path, role)).json()["items"]) == 1


async def test_pages_show_some_labels_of_a_large_answer_at_a_time(
    service: Service, study: str, analyst: Browser, monkeypatch: pytest.MonkeyPatch
):
    release = (await ask(service, study))["id"]
    whole = text_of((await analyst.get(f"/dashboard/releases/{release}")).text)
    assert all(group in whole for group in GROUPS)
    assert "Next labels" not in whole
    monkeypatch.setattr(listed, "MOST_WHOLE", 10_000)
    monkeypatch.setattr(release_page, "LABELS", 12)
    seen = list[str]()
    for first, shown in ((0, "Labels 1 to 12 of 30"), (12, "13 to 24 of 30"), (24, "25 to 30 of 30")):
        page = (await analyst.get(f"/dashboard/releases/{release}?first={first}")).text
        assert shown in text_of(page)
        assert ("Labels before" in page, "Next labels" in page) == (first > 0, first < 24)
        seen += [group for group in GROUPS if f"{group}<" in page or f"{group}:" in text_of(page)]
    assert sorted(set(seen)) == sorted(GROUPS)
    assert "30 labels in all" in text_of((await analyst.get(f"/dashboard/releases/{release}?first=99")).text)
    assert (await analyst.get(f"/dashboard/releases/{release}?first=-1")).status_code == 422


async def test_a_page_of_a_study_reads_no_labels_of_large_answers(
    service: Service, study: str, analyst: Browser
):
    made = await ask(service, study)
    assert len(json.dumps(made)) > store.BEFORE_GROUPS
    page = await analyst.get(f"/dashboard/studies/{study}")
    assert f"/dashboard/releases/{made['id']}" in page.text
    found = await service.api.services.studies.get(study)
    (head,) = (await service.api.services.releases.page(found, 9, None, heads=True)).items
    assert json.loads(head.body) == {name: value for name, value in made.items() if name != "groups"}
    (step,) = await service.api.services.releases.steps(UUID(made["id"]), 9)
    assert step.body == head.body


async def leave_during(
    service: Service, method: str, path: str, query: str, begun: asyncio.Event
) -> list[Any]:
    """Send a request and leave once it is worked on; returns what it was answered."""
    sent = list[Any]()
    document = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if document:
            return document.pop()
        await begun.wait()
        return {"type": "http.disconnect"}

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": b"",
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {service.tokens['analyse']}".encode())],
        "state": {"api": service.api},
    }
    await service.app(scope, receive, collect)
    return sent


@pytest.mark.parametrize(
    ("method", "what"), [("GET", "plan"), ("GET", "statistics/mean"), ("POST", "releases")]
)
async def test_work_ends_when_its_client_leaves(
    service: Service, study: str, method: str, what: str, monkeypatch: pytest.MonkeyPatch
):
    """Nothing is answered, charged or published, and the place is free again."""
    begun, loop, labels, part = asyncio.Event(), asyncio.get_running_loop(), list[str](), steps._part

    def endless(*arguments: Any) -> Any:
        labels.append(arguments[5])
        if len(labels) == 3:
            loop.call_soon_threadsafe(begun.set)
            while True:
                work.checkpoint()
        return part(*arguments)

    monkeypatch.setattr(steps, "_part", endless)
    before = await service.rows()
    assert await leave_during(service, method, f"/v1/studies/{study}/{what}", "by=group", begun) == []
    assert len(labels) == 3, "no label after the one that was worked on"
    assert {**await service.rows(), "cohort": 0} == {**before, "cohort": 0}
    monkeypatch.undo()
    assert (await service.call(method, f"/v1/studies/{study}/{what}?by=group", "analyse")).status_code < 300


async def test_pages_have_few_places_for_one_token(
    service: Service, study: str, analyst: Browser, admin: Browser, monkeypatch: pytest.MonkeyPatch
):
    """A page waits for others of its token, and is refused as a page; those of others are not held up."""
    busy, go_on, page = asyncio.Event(), asyncio.Event(), Releases.page

    async def slow(*arguments: Any, **options: Any) -> Any:
        busy.set()
        await go_on.wait()
        return await page(*arguments, **options)

    made = work.Work(of_one=1, patience=0.05)
    monkeypatch.setattr(Releases, "page", slow)
    before = service.api.work
    object.__setattr__(service.api, "work", made)
    try:
        waiting = asyncio.create_task(analyst.get(f"/dashboard/studies/{study}"))
        await busy.wait()
        refused = await analyst.get("/dashboard/studies")
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert (await admin.get("/dashboard/tokens")).status_code == 200
        go_on.set()
        assert (await waiting).status_code == 200
        assert (await analyst.get("/dashboard/studies")).status_code == 200
    finally:
        object.__setattr__(service.api, "work", before)
        made.close()
