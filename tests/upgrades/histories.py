"""Random histories of studies, and what each answer of them charges: the same to the micro for ever.

People come, change what they offer and leave; questions are asked again and again, at shares that rise and
fall. Noise is left out, since a choice of weights may look at what is published.
"""

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import asyncpg

from tests.api.service import Service
from tests.upgrades import filling

SEEDS = 3
LENGTH = 24
SHARES = (0.05, 0.1, 0.2, 0.35, 0.6, 1.0)
EPSILONS = (0.5, 1, 2)
STUDIES = tuple(slug for slug in filling.STUDIES if slug not in ("archived", "retired", "closed"))

CHARGES = """
    SELECT c.trust || ' ' || c.segment || ' ' || c.epsilon || ': ' || h.epsilon
    FROM charge h JOIN cohort c ON c.id = h.cohort_id WHERE h.release_id = $1
    ORDER BY c.trust, c.segment, c.epsilon, h.epsilon
"""
"""Trust, combination of labels, offer and charge of each cohort [micro-epsilon, or 1e-6 of mu^2]."""

Event = dict[str, Any]


def histories() -> Iterator[tuple[str, int]]:
    """Study and seed of each."""
    return ((slug, seed) for slug in STUDIES for seed in range(SEEDS))


async def played(service: Service, kind: str, seed: int) -> list[Event]:
    """What came of each step of a history: an answer's charges, or the code of a refusal."""
    source = random.Random(f"{kind} {seed}")
    slug = f"{kind}-{seed}"
    made = await service.call("POST", "/v1/studies", "admin", json={**filling.STUDIES[kind], "slug": slug})
    assert made.status_code == 201, made.text
    history = _History(service, kind, slug, source)
    await history.arrive(12)
    events = []
    for _ in range(LENGTH):
        turn = source.random()
        if turn < 0.2:
            await history.arrive(source.randrange(1, 6))
        elif turn < 0.3:
            await history.leave()
        elif turn < 0.35:
            await history.change()
        else:
            events.append(await history.ask())
    return events


class _History:
    def __init__(self, service: Service, kind: str, slug: str, source: random.Random) -> None:
        self._service = service
        self._kind = kind
        self._slug = slug
        self._source = source
        self._came = 0
        self._there: dict[str, dict[str, Any]] = {}

    async def arrive(self, people: int) -> None:
        records = [self._person() for _ in range(people)]
        path = f"/v1/studies/{self._slug}/contributions/batch"
        response = await self._service.call("POST", path, "contribute", json=records)
        assert response.json()["created"] == people, response.text
        self._there |= {record["subject"]: record for record in records}

    async def leave(self) -> None:
        if self._there:
            name = self._source.choice(sorted(self._there))
            del self._there[name]
            path = f"/v1/studies/{self._slug}/contributions/{name}"
            assert (await self._service.call("DELETE", path, "contribute")).status_code == 204

    async def change(self) -> None:
        """One central person offers twice as much, within what the study takes."""
        central = sorted(
            name for name, one in self._there.items() if one["trust"] == "central" and one["epsilon"] <= 1
        )
        if central:
            record = self._there[self._source.choice(central)]
            record["epsilon"] *= 2
            document = {name: value for name, value in record.items() if name != "subject"}
            path = f"/v1/studies/{self._slug}/contributions/{record['subject']}"
            response = await self._service.call("PUT", path, "contribute", json=document)
            assert response.is_success, response.text

    async def ask(self) -> Event:
        question = dict(self._source.choice(filling.QUESTIONS[self._kind]))
        if "share" in question:
            question["share"] = self._source.choice(SHARES)
        how = self._source.choice(("read", "release", "release", "fresh"))
        event: Event = {"how": how, "question": question}
        options = {"statistic": "mean", **question, "allow_worse": self._source.random() < 0.7}
        before = await self._known()
        if how == "read":
            method, path, sent = filling.request(self._slug, question)
            response = await self._service.call(method, path, "analyse", **sent)
        else:
            options |= {"fresh": True} if how == "fresh" else {}
            path = f"/v1/studies/{self._slug}/releases"
            response = await self._service.call("POST", path, "analyse", json=options)
        if not response.is_success:
            return event | {"refused": response.json()["code"]}
        made = response.json()["id"]
        if made in before:
            return event | {"charges": "none: it stands"}
        return event | {"charges": await self._charged(made)}

    async def _known(self) -> set[str]:
        path = f"/v1/studies/{self._slug}/releases?limit=200"
        page = (await self._service.call("GET", path, "analyse")).json()
        return {item["id"] for item in page["items"]}

    async def _charged(self, release: str) -> list[str]:
        connection = await asyncpg.connect(self._service.database_url)
        try:
            return [row[0] for row in await connection.fetch(CHARGES, release)]
        finally:
            await connection.close()

    def _person(self) -> dict[str, Any]:
        self._came += 1
        return filling.record(self._kind, f"{self._slug}-{self._came}", self._came, self._source)


def as_text(kept: Mapping[str, list[Event]]) -> str:
    """A line for each step."""
    lines = []
    for name, events in kept.items():
        steps = ",\n".join(f"  {json.dumps(event)}" for event in events)
        lines.append(f"{json.dumps(name)}: [\n{steps}\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"
