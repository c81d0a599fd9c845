"""Fleets of simulated devices against a live service, and what their searches should find."""

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from app.core.grid import GRID_SIZE
from app.sessions.response import Tally as Answers
from app.sessions.response import truth_probability
from app.sessions.search import Mode, Rules, Search, Target, advance, least_positives
from dither_research.seeded import Random, seeded
from dither_research.simulate import fleet
from dither_research.simulate.fleet import Orders, Report, Tally
from dither_research.simulate.people import Days, make_devices
from tests.support.live import LiveService

LOWER, UPPER = 0.0, 100.0

ALWAYS = Days(share=1.0)
"""Everybody is online all the time."""

DRAWS = 20_000
"""Simulated rounds for each place that a search can come to."""

NEGLIGIBLE = 1e-7


def sample(count: int, *, minimum: float = 40.0, width: float = 15.0, seed: str) -> list[float]:
    """Values of law Beta(1, 1) on a support of 15 % of the range, four digits each."""
    draws = seeded(f"fleet {seed}").beta(1, 1, size=count)
    return [round(minimum + width * float(draw), 4) for draw in draws]


def open_session(service: LiveService, study: str, **body: Any) -> dict[str, Any]:
    with service.client() as admin:
        response = admin.post(f"/v1/studies/{study}/sessions", json=body)
    assert response.status_code == 201, response.text
    document: dict[str, Any] = response.json()
    return document


def read_session(service: LiveService, session: str) -> dict[str, Any]:
    with service.client() as admin:
        document: dict[str, Any] = admin.get(f"/v1/sessions/{session}").json()
    return document


async def send_fleet(
    service: LiveService,
    directory: Path,
    session: dict[str, Any],
    values: Sequence[float],
    *,
    days: Days = ALWAYS,
    patience: float = 60.0,
    report: Report = lambda tally, session: None,
) -> Tally:
    """Let one device for each value take part in a session."""
    orders = Orders(
        url=service.base_url,
        token=service.create_token("contribute"),
        directory=directory,
        study=session["study"],
        session=session["id"],
        epsilon=None,
        devices=tuple(make_devices([str(value) for value in values], len(values), prefix="p", seed="1")),
        days=days,
        started=time.time(),
        connections=48,
        patience=patience,
    )
    return await fleet.run(orders, report)


def drawn(directory: Path) -> Counter[int]:
    """How many devices of a fleet drew how many answers."""
    with closing(sqlite3.connect(directory / "ledger.sqlite3")) as database:
        rows = database.execute("SELECT count(*) FROM answer GROUP BY enrolment").fetchall()
    return Counter(count for (count,) in rows)


# ------------------------------------------------------------------- what a search should find


def outcomes(rules: Rules, values: Sequence[float], answers: Sequence[int]) -> dict[float, float]:
    """Middles of what may be left, in the data's unit, and their probabilities, for these very people.

    Every place that the product's state machine can come to is followed; how likely its answers are believed
    there is simulated, with as many answers as there were.
    """
    random = seeded(f"outcomes {rules}")
    ordered = np.sort((np.asarray(values) - LOWER) / (UPPER - LOWER) * GRID_SIZE)
    found: dict[float, float] = {}
    for search, probability in _leaves(Search(rules=rules), 1.0, ordered, answers, random):
        middle = LOWER + (search.lower + search.upper) / 2 / GRID_SIZE * (UPPER - LOWER)
        found[middle] = found.get(middle, 0.0) + probability
    return found


def _leaves(
    search: Search, probability: float, ordered: Any, answers: Sequence[int], random: Random
) -> Iterator[tuple[Search, float]]:
    if search.finished:
        yield search, probability
        return
    rules, count = search.rules, answers[search.round - 1]
    at_most = int(np.searchsorted(ordered, search.threshold, side="right"))
    yes = len(ordered) - at_most if rules.target is Target.MAXIMUM else at_most
    if rules.mode is Mode.USER_SPLIT or count < len(ordered):
        truths = random.hypergeometric(yes, len(ordered) - yes, count, size=DRAWS)
    else:
        truths = np.full(DRAWS, yes)
    truth = truth_probability(rules.epsilon_per_answer)
    positives = random.binomial(truths, truth) + random.binomial(count - truths, 1 - truth)
    believed = float(np.mean(positives >= least_positives(rules, count)))
    for share, tally in ((believed, count), (1 - believed, 0)):
        if probability * share > NEGLIGIBLE:
            step = advance(search, Answers(answers=count, positives=tally))
            yield from _leaves(step, probability * share, ordered, answers, random)


def tail(found: dict[float, float], estimate: float, truth: float) -> float:
    """Probability of an error at least as large as this one."""
    error = abs(estimate - truth) - 1e-9
    return sum(share for value, share in found.items() if abs(value - truth) >= error)
