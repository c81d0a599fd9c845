"""Shares of choices on random data: size of errors, coverage, and controls that must fail.

Each verdict is at `Z` standard deviations, a false alarm in 100 million. 1,000 draws of squares, whose mean
errs by 3 %, are enough for the control that errs by half: it is 9 such errors from passing.
"""

import math

import numpy as np
import pytest
from dither.device.choices import ChoiceRandomizer

from app.core.epsilon import MICRO
from app.core.study import Trust
from app.services.shapes import plans as shape_plans
from tests.statistical import Z
from tests.support.choices import error, plan_of, shares_of

pytestmark = pytest.mark.statistical


def reported(rng: np.random.Generator, truth: np.ndarray, epsilon: float, runs: int) -> np.ndarray:
    """How many reports have each choice in them, run by run; truth is people by choice."""
    reports, choices = ChoiceRandomizer(truth.size).range(round(epsilon * MICRO)), truth.size
    p, q = float(reports.kept), float(reports.other)
    if reports.is_single:
        law = np.full((choices, choices), q) + np.eye(choices) * (p - q)
        return np.sum([rng.multinomial(int(n), row, size=runs) for n, row in zip(truth, law, strict=True)], 0)
    rest = int(truth.sum()) - truth
    return rng.binomial(truth.astype(int), p, size=(runs, choices)) + rng.binomial(
        rest.astype(int), q, size=(runs, choices)
    )


@pytest.mark.parametrize("epsilon", [0.5, 3])
def test_answers_err_as_predicted_and_their_intervals_cover(epsilon: float):
    """Central people and both kinds of reports, and controls that must fail."""
    choices, runs = 6, 1000
    profile = [(Trust.CENTRAL, 0.2, 200), (Trust.LOCAL, epsilon, 600)]
    plan = plan_of(profile, choices)
    rng = np.random.default_rng()
    shares = shares_of(plan)
    truth = np.array([0.4, 0.25, 0.2, 0.1, 0.05, 0.0])
    central, local = (200 * truth).astype(int), (600 * truth).astype(int)
    arrived = reported(rng, local, epsilon, runs)
    squares, covered, jointly, narrow = [], 0, 0, 0
    for run in range(runs):
        counts = {1: central.tolist(), 2: arrived[run].tolist()}
        noisy = shape_plans.noisy_counts(plan.crowd, shares, counts)
        squares.append(((shares._plane(noisy, [counts[2]]) - truth) ** 2).sum())
        read = shares.read(noisy, [counts[2]])
        assert sum(one.share for one in read.bins) == pytest.approx(1)
        held = [
            one.interval.lower <= share <= one.interval.upper
            for one, share in zip(read.bins, truth, strict=True)
        ]
        covered += sum(held)
        jointly += all(
            one.simultaneous.lower <= share <= one.simultaneous.upper
            for one, share in zip(read.bins, truth, strict=True)
        )
        narrow += sum(
            abs(share - (one.interval.lower + one.interval.upper) / 2)
            <= (one.interval.upper - one.interval.lower) / 5
            for one, share in zip(read.bins, truth, strict=True)
        )
    # All offers have the same shares, so what was predicted for people who weigh differently does not show.
    wanted = error(plan, choices) - (1 - 1 / choices) * plan.plan.weighing.uneven
    assert abs(np.mean(squares) - wanted) < Z * np.std(squares) / math.sqrt(runs)
    assert abs(np.mean(squares) - 1.5 * wanted) > Z * np.std(squares) / math.sqrt(runs), "the control"
    least = 0.95 * choices * runs - Z * math.sqrt(0.95 * 0.05 * choices * runs)
    assert covered >= least
    assert narrow < least, "the control"
    assert jointly >= 0.95 * runs - Z * math.sqrt(0.95 * 0.05 * runs)
