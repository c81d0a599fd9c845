"""Labels that are as secret as presence: what a person pays against all neighbors, and what is read."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from app.accounting.costs import group_costs
from app.core.cohort import Groups
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, square
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation
from app.estimators.interface import Plan, Question
from app.estimators.labels_secret import labels_plan
from app.estimators.transformed import MOMENTS, Transformed
from tests.support.groups import UNIT_GRID, central

REGIONS = [{"region": name} for name in ("north", "south", "empty")]
EPSILONS = [0.25, 0.5, 1.0]
GROUPS = Groups.of([central(epsilon, 4) for _ in range(2) for epsilon in EPSILONS])
LABELS = [label for label in range(2) for _ in EPSILONS]
GRID = [place * GRID_SIZE // 8 for place in range(9)]
ASKED = Question(relation=Relation.ADD_REMOVE_ONE, grid=UNIT_GRID, cap=MICRO, floor=MICRO // 4, people=None)
QUESTIONS = {
    "mean": ASKED,
    "sd": replace(ASKED, parameters={MOMENTS.name: 2}),
    "gaussian": replace(ASKED, delta=1_000_000),
    "sd, gaussian": replace(ASKED, delta=1_000_000, parameters={MOMENTS.name: 2}),
}


def moves(plan: Plan, place: int, point: int) -> list[int]:
    """What one person more in a group moves each query by."""
    totals, counts, squares = ([0] * len(GROUPS) for _ in range(3))
    totals[place], counts[place], squares[place] = point, GRID_SIZE, square(point)
    return [query.value(totals, counts, squares) for query in plan.queries]


def loss(plan: Plan, steps: list[int]) -> Fraction:
    """The log-likelihood ratio of all noisy sums, or mu^2 [micro]."""
    match plan.noise:
        case DiscreteLaplace(scales=scales):
            return MICRO * sum(
                (Fraction(abs(s)) / Fraction(b) for s, b in zip(steps, scales, strict=True)), Fraction()
            )
        case DiscreteGaussian(sigmas=sigmas):
            return MICRO * sum(
                (Fraction(s * s) / (Fraction(b) ** 2 - 9) for s, b in zip(steps, sigmas, strict=True)),
                Fraction(),
            )
    raise AssertionError(plan.noise)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_price_is_the_loss_over_all_neighbors_and_at_most_a_micro_more(name: str):
    """One person more, or fewer, in any label with any value; and two neighbors for one who moves."""
    question = QUESTIONS[name]
    currency = Currency.GAUSSIAN if question.delta else Currency.LAPLACE
    plan = labels_plan(GROUPS, LABELS, REGIONS, question)
    costs = group_costs(plan.queries, plan.noise, question.relation, GROUPS, currency)
    alone = Transformed().plan(GROUPS, question)
    assert costs == group_costs(alone.queries, alone.noise, question.relation, GROUPS, currency), (
        "what one mean costs"
    )
    for place, cost in enumerate(costs):
        worst = max(loss(plan, moves(plan, place, point)) for point in GRID)
        assert worst <= cost <= worst + 1, "never below, at most one micro above"
    if question.delta:
        return
    half = len(EPSILONS)
    for place, (old, new) in product(range(half), product(GRID[::4], GRID[::4])):
        moved = [b - a for a, b in zip(moves(plan, place, old), moves(plan, place + half, new), strict=True)]
        total = costs[place] + costs[place + half]
        assert loss(plan, moved) <= total, "who moves is two neighbors"
        if name == "mean":
            assert loss(plan, moved) > total - 2, "and half of that would not do"


def answers(people: int, epsilon: float, rounds: int, draws: int | None = None) -> tuple[float, float]:
    """How often the interval of a label, and that of the whole, holds the mean of its people."""
    random = np.random.default_rng(people)
    question = replace(ASKED, cap=int(epsilon * MICRO), floor=int(epsilon * MICRO))
    groups = Groups.of([central(epsilon, people) for _ in range(2)])
    plan = labels_plan(groups, [0, 1], REGIONS, question)
    if draws is not None:
        # The control reads the whole as if its sums had one draw of noise.
        alone = Transformed().plan(groups, question).conclude
    truths, held = [0.2, 0.6], np.zeros(2)
    totals = [round(truth * people * GRID_SIZE) for truth in truths]
    exact = [query.value(totals, [people * GRID_SIZE] * 2, [0, 0]) for query in plan.queries]
    assert isinstance(plan.noise, DiscreteLaplace)
    for _ in range(rounds):
        noise = random.laplace(size=len(exact)) * plan.noise.scales
        noisy = [value + round(error) for value, error in zip(exact, noise, strict=True)]
        found = plan.conclude(noisy)
        own = found.details["groups"][0]["interval"]
        whole = found.interval if draws is None else alone([sum(noisy[0::2]), sum(noisy[1::2])]).interval
        held += [own["lower"] <= 0.2 <= own["upper"], whole.lower <= 0.4 <= whole.upper]
    return tuple(held / rounds)


@pytest.mark.long
def test_intervals_of_labels_and_of_the_whole_hold_and_with_one_draw_too_few_do_not():
    """False alarm below 1e-6: five standard deviations of 600 rounds."""
    rounds = 600
    slack = 5 * math.sqrt(0.95 * 0.05 / rounds)
    label, whole = answers(50, 1.0, rounds)
    assert min(label, whole) > 0.95 - slack
    assert whole < 0.95 + slack, "no wider than it must be"
    _, control = answers(50, 1.0, rounds, draws=1)
    assert control < 0.95 - slack


def test_an_empty_label_is_asked_like_any_other_and_labels_need_not_be_there():
    plan = labels_plan(GROUPS, LABELS, REGIONS, ASKED)
    empty = labels_plan(Groups.of([]), [], REGIONS, ASKED)
    assert len(plan.queries) == len(empty.queries) == 2 * len(REGIONS)
    assert (plan.noise, plan.predicted_error) == (empty.noise, empty.predicted_error)
    values = [GRID_SIZE * MICRO * (place + 1) for place in range(6)]
    assert plan.conclude(values) == empty.conclude(values), "nothing but noisy sums is read"
    with pytest.raises(InternalFault, match="no declared label"):
        labels_plan(GROUPS, [*LABELS[:-1], 3], REGIONS, ASKED)
