"""Answers drafted as the service drafts them: the whole way from cohorts to the document, without publishing.

So one study can be asked many times.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from app.core.study import Study
from app.services import Services
from app.services.statistics.questions import Ask
from app.store import cohorts
from benchmarks.batches import send
from benchmarks.peers import EPSILON, People
from benchmarks.services import Caller, Installation

Answer = Mapping[str, Any]
"""The document of an answer, or a part of it with an estimate and an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """A study and who contributes to it.

    Attributes:
        slug, lower, upper, relation: Of the study; all else as a new study has it by default.
        epsilons, values: One a person; values in the data's unit.
    """

    slug: str
    lower: int
    upper: int
    epsilons: np.ndarray
    values: np.ndarray
    relation: str = "replace_one"

    @classmethod
    def plain(cls, slug: str, people: People, *, wider: int = 1) -> Self:
        """People who all offer the same, in a range that is this many times as wide as theirs."""
        return cls(
            slug=slug,
            lower=people.lower,
            upper=people.lower + wider * people.width,
            epsilons=np.full(len(people.values), EPSILON),
            values=people.values,
        )

    @property
    def study(self) -> dict[str, object]:
        """The document that makes the study."""
        return {"slug": self.slug, "lower": self.lower, "upper": self.upper, "relation": self.relation}

    @property
    def csv(self) -> bytes:
        """The batch of its people."""
        rows = zip(self.values, self.epsilons, strict=True)
        lines = [
            f"{self.slug}-{number},{value:.6f},{epsilon:.6g},central"
            for number, (value, epsilon) in enumerate(rows)
        ]
        return "\n".join(["subject,value,epsilon,trust", *lines]).encode()


def fill(here: Installation, port: int, crowd: Crowd) -> None:
    """Make a study over HTTP, with every default that a new one has, and let its people contribute."""
    with Caller(port) as caller:
        caller.call("POST", "/v1/studies", here.admin, crowd.study)
    send(port, here, crowd.slug, "csv", crowd.csv)


def drafted(
    here: Installation, slug: str, asks: Mapping[str, tuple[Ask, int]], *, fresh: bool = False
) -> dict[str, list[Answer]]:
    """Answers to each question, as often as it says; none is published, so that none knows of another.

    Args:
        here: The installation.
        slug: The study.
        asks: By name: the question, and how often it is asked.
        fresh: As in `Answering.release`; otherwise an answer is read for the first time.
    """

    async def use(services: Services) -> dict[str, list[Answer]]:
        study = await services.studies.read(slug)
        await _fold(services, study)
        return {
            name: [await _draft(services, study, ask, fresh=fresh) for _ in range(draws)]
            for name, (ask, draws) in asks.items()
        }

    found: dict[str, list[Answer]] = here.use(use)
    return found


def publish(here: Installation, slug: str, ask: Ask) -> None:
    """Publish an answer, so that later ones know what it says."""

    async def use(services: Services) -> None:
        study = await services.studies.read(slug)
        await services.answering(study, ask).release(study, ask, None)

    here.use(use)


async def _fold(services: Services, study: Study) -> None:
    await services.database.run_tx("benchmark.seal", lambda c: cohorts.seal(c, study.id))
    await services.database.run_tx("benchmark.fold", lambda c: cohorts.fold(c, study.id))


async def _draft(services: Services, study: Study, ask: Ask, *, fresh: bool) -> Answer:
    """Those that are predicted to say nothing count as all others do."""
    answering: Any = services.answering(study, ask)
    request = answering.request_of(study, ask, asker=None, first=not fresh, fresh=fresh, allow_worse=True)
    request = await services.database.run_tx("benchmark.towards", request.towards)
    draft, _ = await answering._draft(services.database.run_tx, request)
    answer: Answer = json.loads(draft.body)
    return answer


def half_width(answer: Answer, interval: str = "interval") -> float:
    """Half of an interval."""
    return float(answer[interval]["upper"] - answer[interval]["lower"]) / 2
