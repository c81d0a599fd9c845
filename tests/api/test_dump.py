"""A dump of the database after a full run: what people sent is in it only as far as it must be."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import asyncpg

from app.core.grid import GRID_SIZE
from app.postgres.programs import libpq_environment
from app.postgres.service_user import postgres_binaries
from app.services.subjects import SubjectKey
from tests.api.service import SUBJECT_KEY, Service

LOWER, UPPER = 0, 120

IDS = {
    name: f'planted-{name}-7c1e/"ä {number}'
    for number, name in enumerate(("central", "local", "public", "batch", "put", "session", "token", "link"))
}
"""External ids that nothing else looks like, with characters that every encoding writes differently."""

VALUES = {
    "central": "73.8190437261",
    "public": "41.5728391046",
    "batch": "66.1902847351",
    "put": "58.3047192856",
}
"""What they contribute, and withdraw; `put` also what replaces it."""

REPLACED = "19.4471920385"
REPORT = 7_340_928_113


async def dump(service: Service, *arguments: str) -> bytes:
    """What pg_dump writes of the service's database."""
    command = [str(postgres_binaries(None) / "pg_dump"), *arguments]
    environment = {**os.environ, **libpq_environment(service.database_url)}
    done = await asyncio.to_thread(subprocess.run, command, env=environment, capture_output=True, check=True)
    return bytes(done.stdout)


def written(text: str) -> Iterator[tuple[str, bytes]]:
    """A text in every encoding in which a dump might hold it."""
    plain = text.encode()
    yield "plain", plain
    yield "JSON", json.dumps(text)[1:-1].encode()
    yield "JSON, escaped again", json.dumps(json.dumps(text))[3:-3].encode()
    yield "URL", quote(text, safe="").encode()
    yield "URL, with slashes", quote(text).encode()
    yield "hexadecimal", plain.hex().encode()
    yield "HEXADECIMAL", plain.hex().upper().encode()
    for start in range(3):
        # Without the characters at either end, which depend on what is beside it.
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(bytes(start) + plain + bytes(2))
            yield f"base64 at {start}", whole[4 : len(whole) - 8]
    for digest in (hashlib.sha256(plain), hashlib.sha256(json.dumps(text).encode())):
        yield "SHA-256", digest.hexdigest().encode()
        yield "SHA-256 in base64", base64.b64encode(digest.digest())


def found(text: str, content: bytes) -> list[str]:
    """The encodings in which a text is there."""
    return [encoding for encoding, needle in written(text) if needle in content]


async def full_run(service: Service) -> list[tuple[str, str, bytes]]:
    """Everything that people do, with keys wherever they are taken; returns method, path and body of each."""
    study = await service.study(
        lower=LOWER, upper=UPPER, trust=["central", "local", "public"], local_mechanism="laplace"
    )
    path, sent = f"/v1/studies/{study}/contributions", []
    await service.crowd(study)

    async def send(token: str, method: str, where: str, document: Any, key: str, status: int = 201) -> Any:
        body = json.dumps(document).encode()
        sent.append((method, where, body))
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        for _ in range(2):
            response = await service.call(method, where, token, content=body, headers=headers)
            assert response.status_code in (status, 200), response.text
        return response.json()

    def record(name: str, **fields: Any) -> dict[str, Any]:
        return {"subject": IDS[name], **fields}

    def url(name: str) -> str:
        return quote(IDS[name], safe="")

    key = SubjectKey(bytes.fromhex(SUBJECT_KEY))
    limited = await service.token("contribute", subject=key.digest(IDS["token"]))
    central = {"epsilon": 1, "trust": "central"}
    for name, token, fields in (
        ("central", "contribute", {"value": float(VALUES["central"]), **central}),
        ("local", "contribute", {"report": REPORT, "epsilon": 1, "trust": "local"}),
        ("public", "contribute", {"value": float(VALUES["public"]), "trust": "public"}),
        ("put", "contribute", {"value": float(REPLACED), **central}),
        ("token", limited, {"value": float(VALUES["central"]), **central}),
    ):
        # Clients make keys of what they know.
        key_text = f"{name}-{base64.b64encode(IDS[name].encode()).decode()}"
        await send(token, "POST", path, record(name, **fields), key_text)
    replacement = {"value": float(VALUES["put"]), **central}
    await send("contribute", "PUT", f"{path}/{url('put')}", replacement, "put", 200)
    batch = [record("batch", value=float(VALUES["batch"]), **central)]
    await send("contribute", "POST", f"{path}/batch", batch, "", 200)
    wish = {"protocol": "minimum", "epsilon": 1, "participants": 200, "rounds": 2, "mode": "budget_split"}
    session = await send("admin", "POST", f"/v1/studies/{study}/sessions", wish, "session")
    answer = record("session", round=1, answer=1)
    await send("contribute", "POST", f"/v1/sessions/{session['id']}/answers", answer, "answer")
    await service.call(
        "POST",
        "/v1/admin/tokens",
        "admin",
        json={"name": "phone", "role": "contribute", "subject": IDS["link"]},
    )
    for name in ("link", "central"):
        link = (await service.call("POST", f"/v1/subjects/{url(name)}/links", "contribute")).json()
        await service.client.get(link["url"])
        await service.call("GET", f"/v1/subjects/{url(name)}/budget", "admin")
    lifetime = {"epsilon": 20, "reason": "asked for more"}
    await service.call("PUT", f"/v1/admin/subjects/{url('central')}/budget", "admin", json=lifetime)
    await send("analyse", "POST", f"/v1/studies/{study}/releases", {"share": 0.2}, "release")
    await service.call("GET", f"/v1/studies/{study}/statistics/mean", "analyse")
    for name in ("central", "local", "public", "put", "batch", "token"):
        response = await service.call("DELETE", f"{path}/{url(name)}", "contribute")
        assert response.status_code == 204
    return sent


async def test_a_dump_holds_no_external_id_and_nothing_that_was_withdrawn(service: Service) -> None:
    sent = await full_run(service)
    content = await dump(service)
    assert b"COPY public.idempotency" in content
    for what, text in [*IDS.items(), *((name, value) for name, value in VALUES.items())]:
        assert not found(text, content), f"{what} is in the dump: {found(text, content)}"
    for value in (*VALUES.values(), REPLACED):
        point = str(round((float(value) - LOWER) / (UPPER - LOWER) * GRID_SIZE))
        assert not found(value, content)
        assert f"\t{point}\t".encode() not in content, "a withdrawn value is in the dump on its grid"
    assert str(REPORT).encode() not in content
    for method, path, body in sent:
        for document in (body, json.dumps(json.loads(body), separators=(",", ":")).encode()):
            assert not found(document.decode(), content), f"{method} {path}: its document is in the dump"


async def test_without_the_subject_key_no_value_of_a_request_can_be_tried(service: Service) -> None:
    """The row of a key is there while the contribution is; what was sent does not follow from it."""
    study = await service.study(lower=LOWER, upper=UPPER)
    path, key = f"/v1/studies/{study}/contributions", "k-1"

    def document(value: int) -> bytes:
        return json.dumps({"subject": "alice", "value": value, "epsilon": 1, "trust": "central"}).encode()

    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    sent = await service.call("POST", path, "contribute", content=document(77), headers=headers)
    assert sent.status_code == 201
    live = await dump(service)

    def tried(value: int, secret: bytes | None) -> Iterator[bytes]:
        body = document(value)
        framed = b"".join(len(part).to_bytes(4, "big") + part for part in (b"POST", path.encode(), b""))
        for plain in (body, framed + body):
            digest = hashlib.sha256(plain).digest()
            yield digest
            if secret is not None:
                yield hmac.digest(secret, plain, "sha256")
                yield hmac.digest(secret, digest, "sha256")

    def matches(content: bytes, secret: bytes | None) -> set[int]:
        guesses = ((value, one) for value in range(LOWER, UPPER + 1) for one in tried(value, secret))
        return {value for value, one in guesses if one.hex().encode() in content}

    subject = SubjectKey(bytes.fromhex(SUBJECT_KEY))
    # With the key it does: the attempt is a real one.
    derived = hmac.digest(bytes.fromhex(SUBJECT_KEY), b"\xffrequests", "sha256")
    assert matches(live, derived) == {77}
    for known in (
        None,
        b"",
        subject.digest("alice"),
        subject.fingerprint(),
        hashlib.sha256(key.encode()).digest(),
    ):
        assert matches(live, known) == set()
    assert (await service.call("DELETE", f"{path}/alice", "contribute")).status_code == 204
    assert matches(await dump(service), derived) == set(), "a withdrawn value can be tried with the key"


async def test_of_a_withdrawn_value_a_dump_has_what_was_charged_for_alone(service: Service) -> None:
    """The noisy sum of a piece keeps the value. What would tell it apart from the noise is not kept."""
    study = await service.study(lower=LOWER, upper=UPPER)
    await service.crowd(study, 40)
    subject, value = "leaver", float(VALUES["central"])
    await service.contribute(study, subject, value=value)
    releases = f"/v1/studies/{study}/releases"
    for share in (0.3, 0.6):
        question = {"share": share, "estimator": "uniform"}
        made = await service.call("POST", releases, "analyse", json=question)
        assert made.status_code == 201, made.text

    async def kept() -> dict[str, int]:
        connection = await asyncpg.connect(service.database_url)
        try:
            row = await connection.fetchrow(
                "SELECT sums[1] AS first, sums[2] AS second, piece.scale, weights[1] AS weight,"
                " charged[1] AS charged, total, total_squares"
                " FROM piece JOIN cohort ON ARRAY[cohort.id] = cohorts"
            )
        finally:
            await connection.close()
        assert row is not None
        return {name: int(number) for name, number in row.items()}

    before = await kept()
    gone = await service.call("DELETE", f"/v1/studies/{study}/contributions/{subject}", "contribute")
    assert gone.status_code == 204
    after = await kept()
    point = before["total"] - after["total"]
    assert point == round(GRID_SIZE * (value - LOWER) / (UPPER - LOWER))
    # The value, the sums that had it, and the noise of either sum: none is in a dump of the data.
    content = await dump(service, "--data-only", "--inserts")
    noises = [
        before[noisy] - before["weight"] * before[exact]
        for noisy, exact in (("first", "total"), ("second", "total_squares"))
    ]
    for secret in (VALUES["central"], point, before["total"], before["total_squares"], *noises):
        assert not found(str(secret), content)
    # The same search finds what is kept.
    for known in (after["first"], after["second"], after["total"], after["total_squares"]):
        assert found(str(known), content)
    # What is left is the value under noise: it tells the ends of the range apart by the charge.
    left = after["first"] - after["weight"] * after["total"]
    assert left == after["weight"] * point + noises[0]
    told = (abs(left - after["weight"] * GRID_SIZE) - abs(left)) / after["scale"]
    assert after["charged"] == 600_000
    assert abs(told) <= 0.6 + 1e-12


async def test_of_a_withdrawn_secret_person_a_dump_has_what_was_charged_for_alone(service: Service) -> None:
    """The same where it is secret who is there: the part of both sums, under noise that is not kept."""
    study = await service.study(lower=LOWER, upper=UPPER, relation="add_remove_one")
    await service.crowd(study, 40)
    subject, value = "leaver", float(VALUES["central"])
    await service.contribute(study, subject, value=value)
    question = {"share": 0.6, "estimator": "transformed"}
    made = await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
    assert made.status_code == 201, made.text

    async def kept() -> tuple[int, int, int, int]:
        connection = await asyncpg.connect(service.database_url)
        try:
            row = await connection.fetchrow("SELECT sums[1], sums[2], total, count FROM piece, cohort")
        finally:
            await connection.close()
        assert row is not None
        first, second, total, count = map(int, row)
        return first, second, total, count * GRID_SIZE - total

    first, second, total, rest = await kept()
    gone = await service.call("DELETE", f"/v1/studies/{study}/contributions/{subject}", "contribute")
    assert gone.status_code == 204
    after = await kept()
    assert after[:2] == (first, second)
    point = round(GRID_SIZE * (value - LOWER) / (UPPER - LOWER))
    assert (total - after[2], rest - after[3]) == (point, GRID_SIZE - point)
    content = await dump(service, "--data-only", "--inserts")
    for secret in (VALUES["central"], point, total, rest, first - 600_000 * total, second - 600_000 * rest):
        assert not found(str(secret), content)
    for known in (first, second, after[2]):
        assert found(str(known), content)
