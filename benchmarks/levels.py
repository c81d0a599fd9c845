"""Processor time of releases that are read at every level, beside that of those that are read at one."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from unittest.mock import patch

import httpx

from app.core.study import Relation, Trust
from app.estimators import confidence, quantile_tables, quantiles
from app.main import create_app
from app.settings import Settings
from benchmarks.report import Ratio
from benchmarks.services import KEY, Installation, installation
from benchmarks.studies import definition

PEOPLE, QUICK_PEOPLE, EPSILONS, LABELS = 4_000, 200, 40, 50
GOAL = 1.3
BY = {"by": "group"}
HISTOGRAM, MEDIAN = {"statistic": "histogram", "bins": 10}, {"statistic": "median"}
QUESTIONS: Mapping[str, tuple[Relation, Mapping[str, object]]] = {
    "mean": (Relation.REPLACE_ONE, {}),
    "mean by 50": (Relation.REPLACE_ONE, BY),
    "histogram": (Relation.REPLACE_ONE, HISTOGRAM),
    "histogram by 50": (Relation.REPLACE_ONE, {**HISTOGRAM, **BY}),
    "median": (Relation.REPLACE_ONE, MEDIAN),
    "median by 50": (Relation.REPLACE_ONE, {**MEDIAN, **BY}),
    "describe": (Relation.REPLACE_ONE, {"statistic": "describe"}),
    "secret mean by 50": (Relation.ADD_REMOVE_ONE, BY),
    "secret histogram": (Relation.ADD_REMOVE_ONE, HISTOGRAM),
    "secret histogram by 50": (Relation.ADD_REMOVE_ONE, {**HISTOGRAM, **BY}),
    "secret median by 50": (Relation.ADD_REMOVE_ONE, {**MEDIAN, **BY}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A question, and the studies of the same people that are asked it.

    Attributes:
        name: In the table.
        question: What is asked.
        every, one: Read at all levels, and at one.
    """

    name: str
    question: Mapping[str, object]
    every: str
    one: str


def run(*, quick: bool) -> list[Ratio]:
    """Steps of each question by turns with other levels and without, in this process."""
    with installation() as here:
        rows = list[Row]()
        for place, (name, (relation, question)) in enumerate(QUESTIONS.items()):
            slugs = f"every-{place}", f"one-{place}"
            for slug in slugs:
                _create(here, slug, relation)
            rows.append(Row(name=name, question=question, every=slugs[0], one=slugs[1]))
        return asyncio.run(_measured(here, rows, QUICK_PEOPLE if quick else PEOPLE, 1 if quick else 7))


def _create(here: Installation, slug: str, relation: Relation) -> None:
    plain = definition(slug, labels=LABELS)
    if relation is Relation.ADD_REMOVE_ONE:
        plain = replace(plain, relation=relation, trust=frozenset({Trust.CENTRAL}))
    here.create_study(plain)


async def _measured(here: Installation, rows: Sequence[Row], people: int, rounds: int) -> list[Ratio]:
    app = create_app(Settings(database_url=here.url, subject_key=KEY.hex(), log_level="error"))
    took: dict[str, list[float]] = {slug: [] for row in rows for slug in (row.every, row.one)}
    async with app.router.lifespan_context(app) as state:

        async def with_state(scope, receive, send):
            await app({**scope, "state": dict(state or {})}, receive, send)

        transport = httpx.ASGITransport(with_state)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", timeout=600) as client:
            for slug in took:
                path, records = f"/v1/studies/{slug}/contributions/batch", _people(slug, people)
                await _post(client, here.contribute, path, records)
            for step in range(1, rounds + 2):
                for row in rows:
                    asked = {**row.question, "share": step / 40, "allow_worse": True}
                    took[row.every].append(await _release(client, here, row.every, asked))
                    with patch.object(confidence, "OTHERS", ()):
                        took[row.one].append(await _release(client, here, row.one, asked))
    # The first round warms up: imports, connections, prepared statements.
    return [
        Ratio(
            section="levels",
            name=row.name,
            unit="s",
            subject=took[row.every][1:],
            baseline=took[row.one][1:],
            goal=GOAL,
            better="lower",
            note=f"levels: processor time of a step over {people:,} people with {EPSILONS} epsilons, read at "
            f"{len(confidence.LEVELS)} levels, beside one that is read at {confidence.LEVEL} alone",
        )
        for row in rows
    ]


def _people(prefix: str, people: int) -> list[dict[str, object]]:
    """Central contributions, each with one of the labels."""
    return [
        {
            "subject": f"{prefix}-{number}",
            "value": number * 37 % 120,
            "epsilon": (10 + number % EPSILONS) / 100,
            "trust": "central",
            "attributes": {"group": f"g{number % LABELS}"},
        }
        for number in range(people)
    ]


async def _release(
    client: httpx.AsyncClient, here: Installation, study: str, question: Mapping[str, object]
) -> float:
    """Seconds of this process for one release; the database's are not in it.

    Laws that the other study's answer was read by are not kept: this one's would find them.
    """
    quantiles.ErrorLaw._quantile.cache_clear()
    quantiles._inverted.cache_clear()
    quantile_tables._table.cache_clear()
    started = time.process_time()
    await _post(client, here.analyse, f"/v1/studies/{study}/releases", question)
    return time.process_time() - started


async def _post(client: httpx.AsyncClient, token: str, path: str, document: object) -> None:
    response = await client.post(path, json=document, headers={"Authorization": f"Bearer {token}"})
    if response.status_code not in {200, 201}:
        raise RuntimeError(f"{path} was answered {response.status_code}: {response.text}")
