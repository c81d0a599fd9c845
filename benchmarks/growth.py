"""A study that grows every day and is asked every day: steps, beside asking all people afresh every day.

The same people of the same study are asked three ways at every day's end. By steps, each person pays a share
of what they offer once, on the day they come. Afresh at the same limit: independent answers, each at a part
of that share such that those who are there from the first day pay the same in all. Afresh at the same sum:
such that the charges of all people together are the same, for which those of the first days must offer more.

What to expect where noise dominates: T days' sums have the noise of one day's people each, and their
combination 1/T of its variance. Afresh at the same limit, T days' people give a T-th each: noise as of one
day's people, T times as much. Afresh at the same sum they give 2/(T + 1): ((T + 1) / 2)^2 / T times as much,
8.0 at 30 days. Epsilons are large enough for fresh answers of the first day to be more than the middle of the
range, which would cost nothing.
"""

import math
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from app.core.epsilon import MICRO
from benchmarks.batches import send
from benchmarks.report import Ratio
from benchmarks.services import Caller, Installation, installation
from benchmarks.studies import definition

STUDIES, DAYS = 100, 30
QUICK_STUDIES, QUICK_DAYS = 4, 5
CONNECTIONS = 4
A_DAY = 300
TIERS = (1.8, 2.0, 2.2)
SHARE = 0.2
WIDTH = 120
GOAL = 1 / 20
DAYS_A_DRAW = 3
"""One more fresh answer on the last day for each of these days, as good as the first: tails are heavy."""

AFRESH = {"fresh": True, "allow_worse": True}
WAYS = ("steps", "limit", "sum")


@dataclass(frozen=True, slots=True)
class Study:
    """What each way came to.

    Attributes:
        errors: Of the last day's answers, about the mean of all people [range widths]; of fresh ones several.
        charges: In all, of three people of the first day, one of each tier [micro-epsilon].
    """

    errors: dict[str, list[float]]
    charges: dict[str, int]


def run(*, quick: bool) -> list[Ratio]:
    """Studies that grow, each asked three ways a day over HTTP."""
    studies, days = (QUICK_STUDIES, QUICK_DAYS) if quick else (STUDIES, DAYS)
    slugs = [f"growth-{number}" for number in range(studies)]
    with installation() as here:
        here.create(map(definition, slugs))
        with here.serve(workers=2) as port, ThreadPoolExecutor(CONNECTIONS) as pool:
            found = list(pool.map(lambda slug: _grow(here, port, slug, days), slugs))
    return list(_ratios(found, days))


def _grow(here: Installation, port: int, slug: str, days: int) -> Study:
    source = random.Random(slug)
    questions = {
        "steps": {"share": SHARE},
        "limit": {"share": SHARE / days, **AFRESH},
        "sum": {"share": SHARE * 2 / (days + 1), **AFRESH},
    }
    values: list[float] = []
    asked: dict[str, list[str]] = {way: [] for way in WAYS}
    errors: dict[str, list[float]] = {}
    with Caller(port) as caller:
        for day in range(days):
            new = [round(source.betavariate(2, 4) * WIDTH, 2) for _ in range(A_DAY)]
            values += new
            rows = [
                f"{slug}-{day}-{place},{value},{TIERS[place % len(TIERS)]},central"
                for place, value in enumerate(new)
            ]
            send(port, here, slug, "csv", "\n".join(["subject,value,epsilon,trust", *rows]).encode())
            for way, question in questions.items():
                document = {"statistic": "mean", "estimator": "adpm", **question}
                draws = days // DAYS_A_DRAW if day == days - 1 and way != "steps" else 1
                answers = [
                    caller.call("POST", f"/v1/studies/{slug}/releases", here.analyse, document)
                    for _ in range(draws)
                ]
                asked[way].append(answers[0]["id"])
                mean = math.fsum(values) / len(values)
                errors[way] = [(answer["estimate"] - mean) / WIDTH for answer in answers]
        for day in range(days):
            tier = day % len(TIERS)
            paid = _paid(here, caller, f"{slug}-{day}-{tier}", asked["steps"])
            if list(paid) != [asked["steps"][day]] or max(paid.values()) > TIERS[tier] * SHARE * MICRO + 1:
                raise RuntimeError(f"a person of day {day} was charged {paid}, of {TIERS[tier]}")
        charges = {
            way: sum(
                sum(_paid(here, caller, f"{slug}-0-{tier}", asked[way]).values())
                for tier in range(len(TIERS))
            )
            for way in WAYS
        }
    return Study(errors, charges)


def _paid(here: Installation, caller: Caller, person: str, releases: Sequence[str]) -> dict[str, int]:
    """What a person was charged for each of these releases that charged them [micro-epsilon]."""
    page = caller.call("GET", f"/v1/subjects/{person}/charges?limit=200", here.admin)
    return {
        charge["release"]: round(charge["epsilon"] * MICRO)
        for charge in page["items"]
        if charge["release"] in releases
    }


def _ratios(found: Sequence[Study], days: int) -> Iterator[Ratio]:
    names = {
        "limit": ("last answer beside fresh ones, the same charge for the first", GOAL),
        "sum": ("last answer beside fresh ones, the same sum of charges", None),
    }
    for way, (name, goal) in names.items():
        yield Ratio.of_mean_squares(
            [error for study in found for error in study.errors["steps"]],
            [error for study in found for error in study.errors[way]],
            section="growth",
            name=name,
            goal=goal,
            note=f"growth: {len(found)} studies of {days} days, {A_DAY} people a day, an answer a day; by "
            "steps every person was charged once, on the day they came; three people of the first day were "
            f"charged in all {', '.join(f'{charged} ({way})' for way, charged in found[0].charges.items())} "
            "micro-epsilon",
        )
