"""How wide intervals of a line are beside what it is really off by, and whether they cover, all at once.

Draws are seeded, so that the verdict is the same on every run. On other draws an interval that covers with
95 % has less than `LEAST` hits with a probability of 1e-8; medians of half-widths differ by a few hundredths.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.estimators.lines import Seen
from app.estimators.second_moments import _line
from app.services.shapes import covariances
from tests.statistical import ALPHA
from tests.unit.services.test_correlations import STUDIES, least_of, plan_of, sums_of
from tests.unit.services.test_covariances import cohort, drawn

pytestmark = pytest.mark.statistical

PEOPLE, READ, DRAWN = 1_000, 120, 20_000
LEAST = READ - int(binom.isf(ALPHA, READ, 0.05))
WIDEST, WIDEST_NEAR = 1.9, 2.6
"""Half-width over what 95 % of errors stay below, at most: of an intercept, and at and beside the mean."""


def together(people: np.random.Generator, count: int) -> np.ndarray:
    """The second number follows the first one, which is spread evenly."""
    first = people.random(count)
    second = np.clip(0.2 + 0.6 * first + people.normal(0, 0.1, count), 0, 1)
    return np.round(np.stack([first, second], axis=1) * GRID_SIZE)


def noisy(
    noise: DiscreteGaussian | DiscreteLaplace, exact: np.ndarray, runs: int, people: np.random.Generator
) -> np.ndarray:
    """Sums with their noise, shape (runs, sums)."""
    if isinstance(noise, DiscreteGaussian):
        return exact + people.normal(0, 1, (runs, len(exact))) * np.array(noise.sigmas)
    return exact + people.laplace(0, 1, (runs, len(exact))) * np.array(noise.scales)


def moments(sums: np.ndarray, mass: int) -> tuple[np.ndarray, ...]:
    """Means, covariance and variances [range widths], written down once more for many runs.

    Args:
        sums: Shape (runs, sums).
        mass: What all people weigh; 0 where that is secret.
    """
    if sums.shape[1] == 5:
        x, y, products, first, second = sums.T / (mass * GRID_SIZE)
        return x + 0.5, y + 0.5, products - x * y, first - x * x, second - y * y
    nine = sums.reshape(-1, 3, 3)
    if mass:
        nine = nine / (mass * GRID_SIZE)
        nine = nine + (1 - nine.sum(axis=(1, 2), keepdims=True)) / 9
    else:
        nine = nine / nine.sum(axis=(1, 2), keepdims=True)
    one, half, square = np.ones(3), np.array([0, 0.5, 1]), np.array([0, 0, 1])
    x, y, products, first, second = (
        np.einsum("rij,i,j->r", nine, of, on)
        for of, on in [(half, one), (one, half), (half, half), (square, one), (one, square)]
    )
    return x, y, products - x * y, first - x * x, second - y * y


@pytest.mark.parametrize("turned", [False, True], ids=["age on income", "income on age"])
@pytest.mark.parametrize("points", [drawn, together])
@pytest.mark.parametrize("study", STUDIES, ids=lambda of: f"{of.noise}-{of.relation.value}")
def test_a_line_is_at_most_twice_as_wide_as_it_is_off(study, points, turned, monkeypatch):
    monkeypatch.setattr(covariances, "draw", lambda noise, queries: [0] * queries)
    people = np.random.default_rng(11)
    study, values = least_of(study), points(people, PEOPLE)
    plan = plan_of(study, [cohort(1, study.least, PEOPLE)])
    reader: Any = plan.plan
    exact = np.array(plan.noisy({1: sums_of(values, study)})[0], dtype=float)
    draw = partial(noisy, reader.noise, exact)

    own, other = (values / GRID_SIZE)[:, :: -1 if turned else 1].T
    slope, offset = np.polyfit(own, other, 1)
    x, y, both, *variances = moments(draw(DRAWN, people), reader.weighing.mass)
    if turned:
        x, y, variances = y, x, variances[::-1]
    on, of = reader.grids[:: -1 if turned else 1]
    zero = -float(on.lower) / float(on.width)
    truth = offset + slope * zero
    errors = np.abs(y + both / variances[0] * (zero - x) - truth)

    places = np.clip(own.mean() + own.std() * np.array([-1, -0.3, 0, 0.3, 1]), 0, 1)
    line = offset + slope * places
    off = np.abs(y[:, None] + (both / variances[0])[:, None] * (places - x[:, None]) - line)

    halves, held, control, near, at_once, narrow = [], 0, 0, [], 0, 0
    for sums in draw(READ, people):
        dataset: Seen = reader.seen([round(one) for one in sums])[0]
        dataset = dataset.turned if turned else dataset
        found: Any = _line(dataset, dataset, (on, of))
        answer = found["intercept"]
        lower, upper = (
            (answer["interval"][end] - float(of.lower)) / float(of.width) for end in ("lower", "upper")
        )
        halves.append((upper - lower) / 2)
        held += lower <= truth <= upper
        control += abs(truth - (lower + upper) / 2) <= (upper - lower) / 12
        at, lowest, highest = (
            np.array([one[name] for one in found["band"]]) for name in ("at", "lower", "upper")
        )
        at = (at - float(on.lower)) / float(on.width)
        lowest, highest = ((one - float(of.lower)) / float(of.width) for one in (lowest, highest))
        straight, middle, half = offset + slope * at, (lowest + highest) / 2, (highest - lowest) / 2
        at_once += bool((np.abs(straight - middle) <= half * (1 + 1e-9)).all())
        narrow += bool((np.abs(straight - middle) <= half / 4).all())
        near.append([np.interp(places, at, half)])
    assert (np.median(np.concatenate(near), axis=0) / np.quantile(off, 0.95, axis=0)).max() <= WIDEST_NEAR
    assert at_once >= LEAST
    assert narrow < LEAST
    ratio = np.median(halves) / np.quantile(errors, 0.95)
    assert ratio <= WIDEST
    assert held >= LEAST
    assert control < LEAST
