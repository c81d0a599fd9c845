"""A whole run with planted values: none of them turns up in logs, metrics or errors."""

import asyncio
import gzip
import json
import os

import httpx
import pytest

from tests.conftest import LiveServer
from tests.support.databases import execute
from tests.support.live import LiveService, run_command
from tests.system.load import make_study

pytestmark = pytest.mark.system

VALUE = "73.8190437261"
"""A contributed value that nothing else looks like."""

SUBJECT = "planted-person-5f1c9e"

REFUSED_SUBJECT = "refused-person-77ab31"

PASSWORD = "planted-password-c0ffee41"

HEADER = "planted-header-1d0c2b"


async def run(service: LiveService, contribute: str, analyse: str) -> list[httpx.Response]:
    """Everything that people do, and much that they should not do; returns the refusals and failures."""
    answers: list[httpx.Response] = []
    headers = {"Cookie": HEADER, "Content-Type": "application/json"}
    path = "/v1/studies/age/contributions"
    good = f'{{"subject":"{SUBJECT}","value":{VALUE},"epsilon":1,"trust":"central"}}'
    with service.client(contribute) as device:
        device.headers.update(headers)
        answers.append(device.post(path, content=good))
        answers.append(device.post(path, content=good.replace(VALUE, VALUE + "1")))
        for broken in (
            good.replace(VALUE, f'"{VALUE}"'),
            good.replace(VALUE, VALUE + "e300"),
            good.replace('"epsilon":1', '"epsilon":1e9'),
            good.replace("central", VALUE),
            good[:-1],
            good.replace("}", f',"subject":"{SUBJECT}"}}'),
            good.replace("}", f',"{SUBJECT}":1}}'),
            good.replace(SUBJECT, REFUSED_SUBJECT).replace('"epsilon":1', '"epsilon":11'),
        ):
            answers.append(device.post(path, content=broken))
        batch = f"subject,value,epsilon,trust\n{SUBJECT},{VALUE},1,central\n{SUBJECT},x{VALUE},1,central\n"
        answers.append(
            device.post(f"{path}/batch", content=batch.encode(), headers={"Content-Type": "text/csv"})
        )
        answers.append(
            device.post(
                f"{path}/batch",
                content=gzip.compress(batch.encode())[:-5],
                headers={"Content-Type": "text/csv", "Content-Encoding": "gzip"},
            )
        )
        answers.append(device.get(f"/v1/studies/age/plan?{SUBJECT}={VALUE}"))
        answers.append(device.get(f"/v1/nowhere/{SUBJECT}"))
        answers.append(device.delete(f"{path}/{REFUSED_SUBJECT}"))
        answers.append(device.get("/v1/studies", headers={"Authorization": f"Bearer {contribute}x"}))
    with service.client(analyse) as analyst:
        answers.append(analyst.get(f"/v1/studies/age/statistics/mean?estimator={SUBJECT}&share={VALUE}"))
        answers.append(analyst.post("/v1/studies/age/releases", json={"share": 0.1, "allow_worse": True}))
        answers.append(analyst.post("/v1/studies/age/releases", json={"share": 1}))
        answers.append(analyst.post("/v1/studies/age/releases", json={"share": 1, "fresh": True}))
    assert service.database_url is not None
    # A fault in the middle: the statement that fails quotes rows, and its exception holds the parameters.
    await execute(
        service.database_url, "ALTER TABLE contribution ADD CONSTRAINT planted CHECK (epoch < 0) NOT VALID"
    )
    try:
        with service.client(contribute) as device:
            other = json.loads(good) | {"subject": REFUSED_SUBJECT}
            answers.append(device.post(path, json=other))
            answers.append(
                device.put(f"{path}/{SUBJECT}", json={"value": 1, "epsilon": 2, "trust": "central"})
            )
    finally:
        await execute(service.database_url, "ALTER TABLE contribution DROP CONSTRAINT planted")
    return answers


async def test_what_was_planted_turns_up_nowhere(live_server: LiveServer) -> None:
    service = live_server(env={"DITHER_LOG_LEVEL": "debug", "PGPASSWORD": PASSWORD})
    make_study(service, "age")
    contribute, analyse = service.create_token("contribute"), service.create_token("analyse")
    crowd = [{"subject": f"p{n}", "value": n, "epsilon": 1, "trust": "central"} for n in range(30)]
    with service.client(contribute) as device:
        device.post("/v1/studies/age/contributions/batch", json=crowd)
    answers = await run(service, contribute, analyse)
    statuses = {answer.status_code for answer in answers}
    assert {201, 400, 401, 403, 404, 409, 422, 500} <= statuses, statuses
    metrics = []
    for token in (service.admin_token, analyse):
        with service.client(token) as client:
            metrics.append(client.get("/metrics").text)
    await asyncio.to_thread(service.terminate)
    key = (service.data_directory / "subject.key").read_text().strip()
    secrets = {
        "a token": [contribute, analyse, service.admin_token],
        "the subject key": [key],
        "a password": [PASSWORD],
        "a value": [VALUE],
        "somebody's id": [SUBJECT, REFUSED_SUBJECT],
        "a header": [HEADER],
    }
    log = service.output()
    assert "request.failed" in log
    for what, planted in secrets.items():
        for text in planted:
            assert text not in log, f"{what} is in the log"
            assert not any(text in page for page in metrics), f"{what} is in the metrics"
    for answer in answers:
        if answer.status_code >= 400:
            told = answer.text + str(answer.headers)
            for what in ("a token", "the subject key", "a password", "a value", "a header"):
                assert not any(text in told for text in secrets[what]), f"{what} is in {answer.status_code}"


@pytest.mark.parametrize(
    "environment",
    [
        {"DITHER_DATABASE_URL": f"postgresql://dither:{PASSWORD}@127.0.0.1:9/dither"},
        {"DITHER_DATABASE_URL": f"mysql://dither:{PASSWORD}@127.0.0.1:9/dither"},
        {"DITHER_DATABASE_URL": "postgresql://127.0.0.1:9/dither", "DITHER_SUBJECT_KEY": PASSWORD},
    ],
)
def test_a_broken_start_tells_no_secret(environment: dict[str, str]) -> None:
    """A database that is not there, a URL or a key that is none: said, and not quoted."""
    variables = {"PATH": os.environ["PATH"], "DITHER_SUBJECT_KEY": "5a" * 32, **environment}
    done = run_command("serve", environment=variables)
    assert done.returncode != 0
    assert done.stderr
    assert PASSWORD not in done.stdout + done.stderr
