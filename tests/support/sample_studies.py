"""Studies with people and releases, as a service that has run for a while would have them."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from tests.support.databases import run_apart
from tests.support.live import LiveService

COMMUTE, SLEEP, RENT, PLACES = "commute-minutes", "sleep-hours", "rent-share", "places"

STUDIES: tuple[dict[str, Any], ...] = (
    {
        "slug": COMMUTE,
        "title": "How long is your way to work?",
        "local_mechanism": "laplace",
        "lower": 0,
        "upper": 120,
        "trust": ["central", "local", "public"],
        "epsilon": {"min": 0.01, "max": 5},
        "default_share": 0.1,
    },
    {
        "slug": SLEEP,
        "title": "How long did you sleep last night?",
        "lower": 0,
        "upper": 16,
        "relation": "add_remove_one",
        "epsilon": {"min": 0.05, "max": 2},
        "default_share": 0.2,
    },
    {
        "slug": RENT,
        "title": "What part of your income is rent?",
        "lower": 0,
        "upper": 100,
        "epsilon": {"min": 0.1, "max": 10},
        "default_share": 0.5,
    },
    {
        "slug": PLACES,
        "title": "Where do you go for a walk?",
        "lower": 0,
        "upper": 10,
        "dimension": 2,
        "epsilon": {"min": 0.1, "max": 4},
    },
)
SQUARES = ((2, 2), (8, 3), (5, 8))
"""Where people go for a walk."""

CHOICES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5)
WEIGHTS = (2, 5, 4, 7, 6, 8, 12, 7, 14, 6, 8, 3, 2)


def fill(service: LiveService, *, people: int = 1500, releases: int = 5) -> dict[str, str]:
    """Store studies, people and releases; returns a token of each role, the admin's own included.

    `alice` has contributed to every study, and `zoe` has reserved nearly all that she has.
    """
    source = random.Random(7)
    tokens = {role: service.create_token(role) for role in ("contribute", "analyse")}
    with service.client() as admin:
        for study in STUDIES:
            assert admin.post("/v1/studies", json=study).status_code == 201
    with service.client(tokens["contribute"]) as device:
        _send(device, COMMUTE, [_commuter(source, number) for number in range(people)])
        sleepers = [
            _central(
                f"person-{number}", round(min(16, max(0, source.gauss(7, 1.2))), 2), min(2, _epsilon(source))
            )
            for number in range(people // 2)
        ]
        _send(device, SLEEP, sleepers)
        renters = [
            _central(
                f"person-{number}",
                round(min(100, max(0, source.gauss(33, 12))), 1),
                max(0.1, _epsilon(source)),
            )
            for number in range(people // 3)
        ]
        _send(device, RENT, [*renters, _central("zoe", 30, 9.5)])
        for slug, value in ((COMMUTE, 37), (SLEEP, 7.5), (RENT, 28)):
            _send(device, slug, [_central("alice", value, 1)])
    with service.client(tokens["analyse"]) as analyst:
        for number in range(releases):
            share = (0.05, 0.1, 0.02)[number % 3]
            made = analyst.post(
                f"/v1/studies/{COMMUTE}/releases", json={"share": share, "allow_worse": True, "fresh": True}
            )
            assert made.status_code == 201, made.text
            time.sleep(0.3)  # apart on the axis of time
        question = {"expected_size": people // 2}
        assert analyst.post(f"/v1/studies/{SLEEP}/releases", json=question).status_code == 201
        for share in (0.1, 0.2, 0.35, 0.5):
            made = analyst.post(f"/v1/studies/{RENT}/releases", json={"share": share})
            assert made.status_code == 201, made.text
    with service.client(tokens["contribute"]) as device:
        latecomers = [_central(f"late-{number}", 35, 1) for number in range(people // 15)]
        _send(device, RENT, latecomers)
    _hold_search(service, tokens["contribute"], source)
    _hold_clusters(service, tokens["contribute"], source)
    assert service.database_url is not None
    run_apart(_spread_days(service.database_url))
    with service.client() as admin:
        time.sleep(1)
        assert admin.get("/v1/admin/overview").status_code == 200, "the first figures are made"
    return {"admin": service.admin_token, **tokens}


def _hold_search(service: LiveService, token: str, source: random.Random) -> None:
    """A median that is being looked for: some rounds are closed, and one is half answered."""
    wish = {"protocol": "quantile", "quantile": 0.5, "mode": "budget_split", "rounds": 6, "epsilon": 9}
    schedule = {"participants": 30, "answers_per_round": 30}
    with service.client() as admin:
        started = admin.post(f"/v1/studies/{COMMUTE}/sessions", json={**wish, **schedule})
        assert started.status_code == 201, started.text
    session = started.json()["id"]
    values = {f"walker-{number}": source.gauss(38, 12) for number in range(30)}
    with service.client(token) as device:
        for number in range(1, 5):
            asked = device.get(f"/v1/sessions/{session}/round").json()
            for subject, value in list(values.items())[: 13 if number == 4 else 30]:
                truth = (value <= asked["threshold_value"]) is (source.random() < 0.82)
                answer = {"subject": subject, "round": number, "answer": int(truth)}
                given = device.post(f"/v1/sessions/{session}/answers", json=answer)
                assert given.status_code == 201, given.text


def _hold_clusters(service: LiveService, token: str, source: random.Random) -> None:
    """Clusters that are being looked for among central people: some rounds are closed, and one is open."""
    walkers = [
        {
            "subject": f"stroller-{number}",
            "value": [round(min(10, max(0, source.gauss(middle, 0.6))), 2) for middle in SQUARES[number % 3]],
            "epsilon": 4,
            "trust": "central",
        }
        for number in range(900)
    ]
    with service.client(token) as device:
        _send(device, PLACES, walkers)
    wish = {"protocol": "kmeans", "rounds": 5, "epsilon": 4, "centres": [[4, 4], [6, 4], [5, 6]]}
    with service.client() as admin:
        started = admin.post(f"/v1/studies/{PLACES}/sessions", json=wish)
        assert started.status_code == 201, started.text
        path = f"/v1/sessions/{started.json()['id']}/close-round"
        for number in range(1, 5):
            closed = admin.post(path, json={"round": number})
            assert closed.status_code == 200, closed.text


def _send(device: Any, slug: str, records: list[dict[str, Any]]) -> None:
    response = device.post(f"/v1/studies/{slug}/contributions/batch", json=records)
    assert response.json()["refused"] == 0, response.text[:2000]


def _epsilon(source: random.Random) -> float:
    return source.choices(CHOICES, WEIGHTS)[0]


def _central(subject: str, value: float, epsilon: float) -> dict[str, Any]:
    return {"subject": subject, "value": value, "epsilon": epsilon, "trust": "central"}


def _commuter(source: random.Random, number: int) -> dict[str, Any]:
    subject = f"person-{number}"
    kind = source.random()
    if kind < 0.2:
        report = {"report": source.randrange(-(2**30), 2**31), "epsilon": _epsilon(source), "trust": "local"}
        return {"subject": subject, **report}
    minutes = round(min(120, max(0, source.gauss(38, 18))), 1)
    if kind < 0.25:
        return {"subject": subject, "value": minutes, "trust": "public"}
    return _central(subject, minutes, _epsilon(source))


async def _spread_days(url: str) -> None:
    """Pretend that people came over the last month, more of them lately."""
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT study_id, subject_id FROM contribution ORDER BY 1, 2")
        source, today = random.Random(3), datetime.now(UTC).date()
        days = [today - timedelta(days=int(min(29, source.expovariate(1 / 9)))) for _ in rows]
        await connection.executemany(
            "UPDATE contribution SET contributed_on = $3 WHERE study_id = $1 AND subject_id = $2",
            [(row["study_id"], row["subject_id"], day) for row, day in zip(rows, days, strict=True)],
        )
    finally:
        await connection.close()
