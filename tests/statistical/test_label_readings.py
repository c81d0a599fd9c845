"""Intervals read off answers by labels hold as often as they say, through planning, noise and reading."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pytest

from app.core.attributes import Attributes
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Relation
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.kept_ends import written
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.reading import Reading
from app.services.statistics.readings import read_off
from app.services.statistics.steps import plan_step, take
from dither_research.histories import STUDY, cohort_of

pytestmark = [pytest.mark.statistical, pytest.mark.long]

ROUNDS = 400
SLACK = 5 * math.sqrt(0.95 * 0.05 / ROUNDS)
"""Five standard deviations: a false alarm below 1e-6 each."""

LABELS = {"north": (0.3, 40), "south": (0.6, 10), "east": (0.5, 25), "west": (0.4, 15), "isles": (0.7, 5)}
"""Mean and people of each; all in a label offer the same, so that intervals are exact."""

SURVEY = replace(STUDY, attributes=Attributes.of({"region": list(LABELS)}))
COHORTS = [
    cohort_of(number, 4 * MICRO, [int(mean * GRID_SIZE)] * people, segment=number - 1)
    for number, (mean, people) in enumerate(LABELS.values(), start=1)
]
SHARES = "region:north=.2,south=.3,east=.5,west=0,isles=0"
ASKS = {
    "difference": Ask(statistic="difference", between="region:north,south", simultaneous=True),
    "standardize": Ask(standardize=SHARES),
}
TRUTHS = {"difference": -0.3, "standardize": 0.2 * 0.3 + 0.3 * 0.6 + 0.5 * 0.5}


def held(interval: Mapping[str, float], truth: float) -> bool:
    return interval["lower"] <= truth + 1e-9 and interval["upper"] >= truth - 1e-9


def test_differences_known_shares_and_all_labels_at_once():
    plain = Ask(by="region", estimator="uniform", share=MICRO, tilt=0)
    resolved = resolve(SURVEY, plain)
    step = plan_step(
        SURVEY,
        COHORTS,
        resolved,
        resolved.question(SURVEY, people=sum(people for _, people in LABELS.values())),
        [],
        None,
    )
    assert step is not None
    readings = {name: Reading.of(SURVEY, ask) for name, ask in ASKS.items()}
    counts = dict.fromkeys((*ASKS, "simultaneous", "plain"), 0)
    for _ in range(ROUNDS):
        found, _ = take(step, COHORTS)
        body, _ = written({**asdict(found), **found.details})
        shown: dict[str, Any] = {
            name: json.loads(read_off(body, one, SURVEY)) for name, one in readings.items()
        }
        for name, truth in TRUTHS.items():
            counts[name] += held(shown[name]["interval"], truth)
        groups = list(zip(shown["difference"]["groups"], LABELS.values(), strict=True))
        counts["simultaneous"] += all(held(group["simultaneous"], mean) for group, (mean, _) in groups)
        counts["plain"] += all(held(group["interval"], mean) for group, (mean, _) in groups)
    for name in ("difference", "standardize", "simultaneous"):
        assert counts[name] / ROUNDS >= 0.95 - SLACK, name
        assert counts[name] / ROUNDS <= 0.96 + SLACK, (name, "no wider than need be")
    assert counts["plain"] / ROUNDS < 0.95 - SLACK, "the control fails"


SECRET_ROUNDS = 200


@pytest.mark.parametrize("least_offer", [4 * MICRO, pytest.param(MICRO, marks=pytest.mark.slow)])
def test_secret_labels_hold_together_and_plain_intervals_do_not(least_offer: int):
    """False alarms at 5 standard deviations: one in a million. The control: all plain ones at once."""
    survey = replace(SURVEY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=least_offer, epsilon_max=4 * MICRO)
    asks = {name: replace(ask, tilt=None, estimator=None) for name, ask in ASKS.items()}
    resolved = resolve(survey, Ask(by="region", share=MICRO))
    people = Crowd.of(survey, COHORTS, resolved)
    _, plan, _ = planning.choose(survey, people, resolved, resolved.question(survey, people=None))
    readings = {name: Reading.of(survey, ask) for name, ask in asks.items()}
    counts = dict.fromkeys((*ASKS, "simultaneous", "plain"), 0)
    for _ in range(SECRET_ROUNDS):
        found = planning.answer(plan, people)
        body, _ = written({**asdict(found), **found.details})
        shown: dict[str, Any] = {
            name: json.loads(read_off(body, one, survey)) for name, one in readings.items()
        }
        for name, truth in TRUTHS.items():
            counts[name] += held(shown[name]["interval"], truth)
        groups = list(zip(shown["difference"]["groups"], LABELS.values(), strict=True))
        counts["simultaneous"] += all(held(group["simultaneous"], mean) for group, (mean, _) in groups)
        counts["plain"] += all(held(group["interval"], mean) for group, (mean, _) in groups)
    least = 0.95 - 5 * math.sqrt(0.95 * 0.05 / SECRET_ROUNDS)
    for name in ("difference", "standardize", "simultaneous"):
        assert counts[name] / SECRET_ROUNDS >= least, name
    # Where offers may differ, intervals allow for people who weigh more.
    assert counts["plain"] / SECRET_ROUNDS < least or least_offer == MICRO, "the control fails"


CELLS = {
    ("north", "young"): (0.2, 15),
    ("north", "old"): (0.9, 60),
    ("south", "young"): (0.1, 40),
    ("south", "old"): (0.5, 10),
}
"""Mean and people of each cell; attributes go together."""

MARGINS = "region:north=.3,south=.7;age:young=.4,old=.6"


def test_raked_means_hold_and_those_of_one_margin_do_not():
    """The truth is weighed by the root of the quadratic that two by two cells have in closed form."""
    survey = replace(STUDY, attributes=Attributes.of({"region": ["north", "south"], "age": ["young", "old"]}))
    cohorts = [
        cohort_of(number, 4 * MICRO, [int(mean * GRID_SIZE)] * people, segment=number - 1)
        for number, (mean, people) in enumerate(CELLS.values(), start=1)
    ]
    (a, b, c, d), row, column = [people for _, people in CELLS.values()], 0.3, 0.4
    odds = a * d / (b * c)
    linear = 1 - row - column + odds * (row + column)
    first = (math.sqrt(linear**2 + 4 * (1 - odds) * odds * row * column) - linear) / (2 * (1 - odds))
    weights = (first, row - first, column - first, 1 - row - column + first)
    truth = sum(weight * mean for weight, (mean, _) in zip(weights, CELLS.values(), strict=True))
    resolved = resolve(survey, Ask(by="region,age", estimator="uniform", share=MICRO, tilt=0))
    question = resolved.question(survey, people=a + b + c + d)
    step = plan_step(survey, cohorts, resolved, question, [], None)
    assert step is not None
    raked = Reading.of(survey, Ask(standardize=MARGINS))
    counts = dict.fromkeys(("raked", "one margin", "narrow"), 0)
    for _ in range(ROUNDS):
        found, _ = take(step, cohorts)
        body, _ = written({**asdict(found), **found.details})
        shown = json.loads(read_off(body, raked, survey))
        counts["raked"] += held(shown["interval"], truth)
        lower, upper = (shown["interval"][end] for end in ("lower", "upper"))
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        counts["narrow"] += abs(middle - truth) <= half / 3
        # The same interval about the answer that knows the shares of regions alone.
        of_region = {"north": (a, b), "south": (c, d)}
        centers = [group["error"]["center"] for group in shown["groups"]]
        only = sum(
            share * people / sum(of_region[region]) * center
            for (region, share), pair in zip(
                {"north": 0.3, "south": 0.7}.items(), (centers[:2], centers[2:]), strict=True
            )
            for people, center in zip(of_region[region], pair, strict=True)
        )
        counts["one margin"] += abs(only - truth) <= half
    assert counts["raked"] / ROUNDS >= 0.95 - SLACK
    assert counts["raked"] / ROUNDS <= 0.96 + SLACK, "no wider than need be"
    assert counts["narrow"] / ROUNDS < 0.95 - SLACK, "the control fails"
    assert counts["one margin"] / ROUNDS < 0.95 - SLACK, "the control fails"
