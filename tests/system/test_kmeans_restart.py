"""kill -9 in the middle of K-means sessions: rounds that have their answers close after the restart."""

import asyncio
import time
from typing import Any

import pytest

from tests.conftest import LiveServer
from tests.system.load import findings, make_study

pytestmark = pytest.mark.system

SESSIONS = 2
KMEANS: dict[str, Any] = {
    "protocol": "kmeans",
    "epsilon": 2,
    "rounds": 2,
    "centres": [[25, 25], [75, 75]],
    "answers_per_round": 1,
}


async def test_full_rounds_close_after_a_kill(live_server: LiveServer) -> None:
    service = live_server()
    make_study(service, "places", dimension=2, trust=["central", "local"], epsilon={"max": 8})
    people = [
        {"subject": f"p{number}", "value": [number % 100, number % 97], "epsilon": 8, "trust": "central"}
        for number in range(5_000)
    ]
    with service.client(service.create_token("contribute")) as contribute, service.client() as admin:
        contribute.post("/v1/studies/places/contributions/batch", json=people).raise_for_status()
        made = [admin.post("/v1/studies/places/sessions", json=KMEANS).json()["id"] for _ in range(SESSIONS)]
        for session in made:
            answer = {"subject": f"device-{session}", "round": 1, "answer": 0, "report": [1, 2]}
            response = contribute.post(f"/v1/sessions/{session}/answers", json=answer)
            assert response.status_code == 201, response.text
        # Each answer filled its round; the central parts are being made at this moment.
        service.kill()
    service.start()
    deadline = time.monotonic() + 30
    with service.client() as admin:
        while True:
            # A list shows sessions as they are stored: what closes the rounds is the watch alone.
            items = admin.get("/v1/studies/places/sessions").json()["items"]
            if all(item["round"] == 2 for item in items) or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
        assert {item["round"] for item in items} == {2}
        for item in items:
            [step] = item["path"]
            assert step["answers"] == 1
            assert step["central"] == pytest.approx(5_000, abs=24 * 4), "scale 4: an odd count in 2e9"
            release = admin.get(f"/v1/releases/{step['release']}").json()
            assert {charge["epsilon"] for charge in release["charges"]} == {1}
    assert await findings(service) == []
