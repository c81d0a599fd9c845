"""Webhooks of a real service: verified by another program, and each told through kill -9."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from benchmarks.services import free_port
from tests.conftest import LiveServer
from tests.support import receiver
from tests.support.live import LiveService

pytestmark = pytest.mark.system

PRIVATE = {"DITHER_WEBHOOK_PRIVATE_ADDRESSES": "true"}

HOOKS, RELEASES = 50, 20


class Receiver:
    """A receiver in a process of its own, which can be killed."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.file = directory / "received"
        receiver.prepare(self.file)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, receiver.__file__, str(self.port), str(self.file)], stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def received(self) -> list[dict[str, Any]]:
        return receiver.received(self.file)


@contextmanager
def receiving(directory: Path) -> Iterator[Receiver]:
    one = Receiver(directory)
    one.start()
    try:
        yield one
    finally:
        one.kill()


def until(happened: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def ask(service: LiveService, analyst: httpx.Client, study: str) -> None:
    wish = {"estimator": "uniform", "share": 0.01, "fresh": True, "allow_worse": True}
    answer = analyst.post(f"/v1/studies/{study}/releases", json=wish)
    assert answer.status_code == 201, answer.text


def study_with_people(service: LiveService, slug: str) -> None:
    with service.client() as admin:
        made = admin.post("/v1/studies", json={"slug": slug, "lower": 0, "upper": 10})
        assert made.status_code == 201, made.text
    people = [{"subject": f"{slug}-{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(10)]
    with service.client(service.create_token("contribute")) as app:
        assert app.post(f"/v1/studies/{slug}/contributions/batch", json=people).json()["created"] == 10


def create(service: LiveService, url: str, *events: str) -> str:
    with service.client() as admin:
        made = admin.post("/v1/admin/webhooks", json={"url": url, "events": events})
    assert made.status_code == 201, made.text
    return str(made.json()["secret"])


def test_a_webhook_is_received_and_verified(live_server: LiveServer, tmp_path: Path) -> None:
    service = live_server(env=PRIVATE)
    study_with_people(service, "told")
    with receiving(tmp_path) as one, service.client(service.create_token("analyse")) as analyst:
        secret = create(service, f"http://127.0.0.1:{one.port}/hook", "released", "study_closed")
        ask(service, analyst, "told")
        with service.client() as admin:
            assert admin.post("/v1/studies/told/close").status_code == 200
        until(lambda: len(one.received()) == 2)
        [release] = analyst.get("/v1/studies/told/releases").json()["items"]
        said = {}
        for event in one.received():
            document = Webhook(secret).verify(event["body"], event["headers"])
            said[document["type"]] = document["data"]
            with pytest.raises(WebhookVerificationError):
                Webhook(secret).verify(event["body"] + " ", event["headers"])
        assert said == {
            "released": {"study": "told", "release": release["id"]},
            "study_closed": {"study": "told", "state": "closed"},
        }
        with service.client() as admin:
            until(lambda: admin.get("/v1/admin/webhooks").json()["items"][0]["waiting"] == 0)


@pytest.mark.long
def test_a_thousand_events_come_through_kills_of_both_and_none_is_invented(
    live_server: LiveServer, tmp_path: Path
) -> None:
    service = live_server(env=PRIVATE, processes=2)
    study_with_people(service, "stormy")
    analyse = service.create_token("analyse")
    with receiving(tmp_path) as one:
        secrets = {
            f"/{number}": create(service, f"http://127.0.0.1:{one.port}/{number}", "released")
            for number in range(HOOKS)
        }
        for number in range(RELEASES):
            with service.client(analyse, index=number % 2) as analyst, suppress(httpx.TransportError):
                ask(service, analyst, "stormy")
            if number in (5, 12):
                until(lambda: len(one.received()) > 100)
                service.kill(number % 2)
                one.kill()
                service.start(number % 2)
                one.start()
        with service.client(analyse) as analyst:
            page = analyst.get("/v1/studies/stormy/releases", params={"limit": 200}).json()["items"]
        published = {release["id"] for release in page}
        assert len(published) * HOOKS >= 1000
        expected = {(path, release) for path in secrets for release in published}

        def told() -> list[tuple[str, str, str]]:
            return [
                (event["path"], json.loads(event["body"])["data"]["release"], event["headers"]["webhook-id"])
                for event in one.received()
            ]

        until(lambda: {(path, release) for path, release, _ in told()} >= expected)
        with service.client() as admin:
            until(
                lambda: all(
                    hook["waiting"] + hook["given_up"] == 0
                    for hook in admin.get("/v1/admin/webhooks", params={"limit": 200}).json()["items"]
                )
            )
        # Whatever came is one of these, and what came twice had the same id.
        assert {(path, release) for path, release, _ in told()} == expected
        assert len(set(told())) == len(expected)
        for event in one.received():
            Webhook(secrets[event["path"]]).verify(event["body"], event["headers"])
