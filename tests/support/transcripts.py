"""What somebody can fetch from a service, without what is random, so that transcripts can be compared."""

import base64
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import httpx
import pytest

from app.accounting.pair_prices import PARTS
from app.core.cohort import Cohorts
from app.core.grid import GRID_SIZE
from app.core.study import Trust
from app.estimators.tree_levels import Drawn
from app.services.shapes import coordinates, counts, covariances, descriptions, found_means
from app.services.shapes import plans as shape_plans
from app.services.shapes import trees as shape_trees
from app.services.statistics import alone, combining, kept_sums, offered, piece_noise, planning, steps
from app.services.statistics.crowds import Crowd
from app.services.statistics.levels import Numbered

VARYING: tuple[tuple[re.Pattern[bytes], bytes | Callable[[re.Match[bytes]], bytes]], ...] = (
    (
        re.compile(rb"\b[0-9a-f]{8}((-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24}([0-9a-f]{32})?\b)"),
        lambda found: {36: b"ID", 32: b"REQUEST", 64: b"FORM"}[len(found[0])],
    ),
    (re.compile(rb"dither_(login|guest)=[\w-]+"), b"COOKIE"),
    (re.compile(rb"(?<=/take/)[\w-]{22}\b"), b"CODE"),
    (re.compile(rb'(?<=name="key" value=")[\w-]{43}(?=")'), b"KEY"),
    (re.compile(rb"dither_[a-z_]*_seconds[^\n]*"), b"SECONDS"),
    (re.compile(rb"(dither_[a-z_]*_created[^\n]*) [^ \n]*"), rb"\1 TIME"),
)
"""Random ids and cookies, how long things took and since when they are counted."""

CURSOR = re.compile(rb"""(cursor(?:=|":\s*"))([\w-]+)""")


def stripped(response: httpx.Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """A response without what is random: status, headers, body."""
    body = without_random(response.content)
    headers = {name.lower(): _header(value) for name, value in response.headers.raw}
    if b"SECONDS" in body:
        # How many digits a duration has.
        headers[b"content-length"] = str(len(body)).encode()
    return response.status_code, sorted(headers.items()), body


def without_random(text: bytes) -> bytes:
    """A text without what is random."""
    text = CURSOR.sub(lambda found: found[1] + _opened(found[2]), text)
    for pattern, name in VARYING:
        text = pattern.sub(name, text)
    return text


_header = lru_cache(4096)(without_random)
"""Most headers of all responses are the same few."""


def _opened(cursor: bytes) -> bytes:
    """What a cursor holds, so that a random id in it is seen as one."""
    return base64.urlsafe_b64decode(cursor + b"=" * (-len(cursor) % 4))


def fix_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the noise happen to make the same noisy integers of everybody's data."""

    def noisy(plan: Any, people: Any) -> list[int]:
        return [40_000_000_000 + 7_000_000_000 * place for place in range(len(plan.queries))]

    take, keep, combine, third = steps.take, kept_sums.kept_of, combining.combine, GRID_SIZE // 3

    def same(cohorts: Any) -> Any:
        return [
            replace(one, total=one.count * third, total_squares=one.count * third // 3) for one in cohorts
        ]

    def with_same_public(cohorts: Any) -> Any:
        # Of values that are not public a combination reads no sum: theirs stay as they are.
        return [same([one])[0] if one.trust is Trust.PUBLIC else one for one in cohorts]

    def stepped(step: Any, cohorts: Any) -> Any:
        return take(step, same(cohorts))

    def kept(study: Any, resolved: Any, people: Any, *rest: Any) -> Any:
        people = replace(people, cohorts=Cohorts.of(with_same_public(people.cohorts)))
        return keep(study, resolved, people, *rest)

    def combined(study: Any, cohorts: Any, *rest: Any) -> Any:
        return combine(study, with_same_public(cohorts), *rest)

    def weighed(crowd: Any, weights: Any, counts: Any, length: int) -> list[int]:
        return [7_000_000 * (place % 5 + 1) for place in range(length)]

    def drawn(first: offered.Offered) -> list[Numbered]:
        return [Numbered(least=one, most=one, people=1e9 / one) for one in first.levels]

    monkeypatch.setattr(offered.Offered, "drawn", drawn)
    monkeypatch.setattr(planning, "noisy", noisy)
    monkeypatch.setattr(coordinates.CoordinatesPlan, "noisy", lambda plan, sums, *_: (noisy(plan, sums), ()))
    monkeypatch.setattr(
        covariances.PairPlan,
        "noisy",
        lambda plan, *_: ([PARTS * 7_000_000 * place for place in range(1, plan.plan.sums + 1)], ()),
    )
    monkeypatch.setattr(counts.CountPlan, "noisy", lambda plan, *_: 17_000_000 * GRID_SIZE)
    monkeypatch.setattr(steps, "take", stepped)
    for module in (alone, descriptions):
        monkeypatch.setattr(module, "kept_of", kept)
    monkeypatch.setattr(combining, "combine", combined)
    monkeypatch.setattr(piece_noise, "draw", lambda noise, queries: (0,) * queries)
    monkeypatch.setattr(piece_noise, "refine_laplace", lambda noise, *_: noise)
    monkeypatch.setattr(
        piece_noise, "more_gaussian", lambda noisy, exact, _, part, *_bits: noisy + part * exact
    )

    def level(tree: shape_trees.Tree, place: int, starts: tuple[int, ...], counts: object) -> Drawn:
        return Drawn(starts=starts, counts=(1_000_000,) * (len(starts) + 1))

    monkeypatch.setattr(Crowd, "weighed", weighed)
    monkeypatch.setattr(shape_plans, "draw", lambda noise, queries: (0,) * queries)
    monkeypatch.setattr(
        found_means.SumsInRange, "noisy", lambda sums, *_: [40_000_000_000 for _ in sums.plan.queries]
    )
    monkeypatch.setattr(shape_trees.Tree, "level", level)
