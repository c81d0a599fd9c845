"""Quantiles beside those of other libraries: how far off they are, how wide intervals are, and if they hold.

All people offer the same, and the share is 1. The real 95 % error is what 95 % of errors stay below. A
quantile is a cell: all that has its rank is right, and an interval holds that has any of it.
"""

import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from app.core.epsilon import MICRO
from app.estimators.tree_levels import Aim
from app.services.shapes.parameters import AIM
from app.services.statistics.questions import Ask
from benchmarks import peers
from benchmarks.drafts import Answer, Crowd, drafted, fill, half_width
from benchmarks.peers import RANKS, People
from benchmarks.report import Ratio
from benchmarks.services import Installation

DRAWS, QUICK_DRAWS = 100, 4
PEER_DRAWS, QUICK_PEER_DRAWS = 400, 8

GOALS: Mapping[Aim, tuple[float, float]] = {Aim.INTERVAL: (2.5, 4.0), Aim.ESTIMATE: (1.5, 12.0)}
"""Error beside that of the better library, and half-width beside the real 95 % error."""

COVERS = 0.94

WIDER, WIDER_GOAL = 100, 2.0
"""How many times too wide a range is, and the error in it beside that in the right one."""

QUESTIONS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "median": ("median", {}),
    "quantile .9": ("quantile", {"q": "0.9"}),
    "quartiles": ("describe", {}),
}
"""By what `RANKS` calls them: the statistic and its parameters."""

SECTION = "accuracy: quantiles"


def compare(here: Installation, port: int, *, quick: bool) -> Iterator[Ratio]:
    """Every question of every crowd, beside other libraries; and medians in a range that is too wide."""
    draws, peer_draws = (QUICK_DRAWS, QUICK_PEER_DRAWS) if quick else (DRAWS, PEER_DRAWS)
    asks = {
        _key(name, aim): (Ask(statistic=statistic, parameters={**own, AIM: aim}, share=MICRO), draws)
        for name, (statistic, own) in QUESTIONS.items()
        for aim in Aim
    }
    crowds = list(peers.crowds())
    everyone = peers.answers([*crowds, *peers.whole()], dict.fromkeys(RANKS, peer_draws))
    for people, known in everyone:
        crowd = Crowd.plain(f"quantiles-{people.name}-{len(people.values)}", people)
        fill(here, port, crowd)
        parts = {key: parts_of(answers) for key, answers in drafted(here, crowd.slug, asks).items()}
        for name in QUESTIONS:
            for aim in Aim:
                yield from _beside(people, name, aim, parts[_key(name, aim)], known)
        median = _key("median", Aim.INTERVAL)
        if people not in crowds or not any(errors_of(people, "median", parts[median])):
            continue  # Where values are all equal nothing is off that could grow with the range.
        wide = Crowd.plain(f"{crowd.slug}-wide", people, wider=WIDER)
        fill(here, port, wide)
        far = parts_of(drafted(here, wide.slug, {median: asks[median]})[median])
        yield from _in_wide(people, far, parts[median])


def parts_of(answers: Sequence[Answer]) -> list[list[Answer]]:
    """The quantiles of each answer, each with its interval."""
    return [answer.get("quartiles", [answer]) for answer in answers]


def errors_of(people: People, name: str, parts: Sequence[Sequence[Answer]]) -> list[float]:
    """Of every quantile of every answer [range widths]."""
    return people.errors(name, [[one["estimate"] for one in own] for own in parts])


def covered(people: People, name: str, parts: Sequence[Sequence[Answer]]) -> float:
    """Which part of the intervals holds a quantile."""
    ends = [people.quantile(q) for q in RANKS[name]]
    return statistics.fmean(
        one["interval"]["lower"] <= high and low <= one["interval"]["upper"]
        for own in parts
        for one, (low, high) in zip(own, ends, strict=True)
    )


def _key(name: str, aim: Aim) -> str:
    return name if aim is Aim.INTERVAL else f"{name}, {AIM}={aim}"


def _of(name: str, people: People) -> str:
    return f"{name} of {people.name}, n {len(people.values):,}"


def _beside(
    people: People,
    name: str,
    aim: Aim,
    parts: Sequence[Sequence[Answer]],
    known: Mapping[str, peers.Answers],
) -> Iterator[Ratio]:
    error_goal, half_width_goal = GOALS[aim]
    what = _of(_key(name, aim), people)
    errors = errors_of(people, name, parts)
    others = {library: people.errors(name, theirs[name]) for library, theirs in known.items() if theirs[name]}
    squares = {library: float(np.square(theirs).mean()) for library, theirs in others.items() if any(theirs)}
    if len(squares) == len(known):
        best = min(squares, key=squares.__getitem__)
        yield Ratio.of_mean_squares(
            errors,
            others[best],
            section=SECTION,
            name=f"{what}, beside {best}",
            goal=error_goal,
            root=True,
            note="quantiles: beside the better library, where none is always right or has no answer",
        )
    if real := float(np.quantile(np.abs(errors), 0.95)):
        yield Ratio(
            section=SECTION,
            name=f"half-width: {what}",
            unit="ranges",
            subject=[statistics.fmean(half_width(one) for own in parts for one in own) / people.width],
            baseline=[real],
            goal=half_width_goal,
            better="lower",
            note="half-widths of intervals of 95 %, beside what 95 % of errors stay below",
        )
    yield Ratio(
        section=SECTION,
        name=f"coverage: {what}",
        unit="covers",
        subject=[covered(people, name, parts)],
        baseline=[COVERS],
        goal=1,
    )


def _in_wide(
    people: People, far: Sequence[Sequence[Answer]], near: Sequence[Sequence[Answer]]
) -> Iterator[Ratio]:
    found, right = (errors_of(people, "median", parts) for parts in (far, near))
    yield Ratio.of_mean_squares(
        found,
        right,
        section=SECTION,
        name=f"{_of('median', people)}, in a range {WIDER} times as wide",
        goal=WIDER_GOAL,
        root=True,
        note="beside the same study with the right range",
    )
    yield Ratio(
        section=SECTION,
        name=f"coverage: {_of('median', people)}, in a range {WIDER} times as wide",
        unit="covers",
        subject=[covered(people, "median", far)],
        baseline=[COVERS],
        goal=1,
    )
