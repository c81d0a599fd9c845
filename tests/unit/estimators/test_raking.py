"""Raking: weights of cells that meet several known margins, beside independent solutions."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.estimators.interface import NotApplicable
from app.estimators.raking import raked

cp: Any = cvxpy  # its functions carry no types

Margins = Mapping[str, Mapping[str, float]]
SEXES = {"sex": {"f": 0.5, "m": 0.5}, "age": {"old": 0.3, "young": 0.7}}


def cells_of(margins: Margins) -> list[dict[str, str]]:
    return [dict(zip(margins, labels, strict=True)) for labels in product(*margins.values())]


def margins_of(cells: Sequence[Mapping[str, str]], weights: Sequence[float], like: Margins) -> Margins:
    return {
        name: {
            label: math.fsum(w for cell, w in zip(cells, weights, strict=True) if cell[name] == label)
            for label in labels
        }
        for name, labels in like.items()
    }


def random_margins(random: np.random.Generator, sizes: Sequence[int]) -> Margins:
    found = {}
    for name, size in zip("abc", sizes, strict=False):
        shares = random.dirichlet(np.full(size, 3.0))
        found[name] = {f"{name}{place}": float(share) for place, share in enumerate(shares)}
    return found


@pytest.mark.parametrize(("sizes", "seed"), [((2, 3), 1), ((4, 5), 2), ((2, 3, 4), 3), ((3, 3), 4)])
def test_the_weights_are_the_nearest_that_meet_the_margins(sizes: Sequence[int], seed: int) -> None:
    """Found by a solver for convex programs, as the minimum of the Kullback-Leibler divergence."""
    random = np.random.default_rng(seed)
    margins = random_margins(random, sizes)
    cells = cells_of(margins)
    people = random.integers(1, 200, len(cells))
    people[seed % len(cells)] = 0
    weights = raked(cells, people.tolist(), margins)
    there = people / people.sum()
    wanted = cp.Variable(len(cells), nonneg=True)
    met = [
        cp.sum(wanted[[place for place, cell in enumerate(cells) if cell[name] == label]]) == share
        for name, shares in margins.items()
        for label, share in shares.items()
    ]
    used = np.flatnonzero(people)
    nearest = cp.Minimize(cp.sum(cp.kl_div(wanted[used], there[used])))
    none = [wanted[place] == 0 for place in np.flatnonzero(people == 0)]
    cp.Problem(nearest, met + none).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_feas=1e-11)
    assert weights == pytest.approx(wanted.value, abs=2e-6)
    found = margins_of(cells, weights, margins)
    for name, shares in margins.items():
        assert found[name] == pytest.approx(shares, rel=1e-9)


def test_two_by_two_is_the_root_of_a_quadratic() -> None:
    """The odds ratio of the people stays: w (w + 1 - r - c) = k (r - w) (c - w)."""
    people, (row, column) = [10, 40, 30, 20], (0.5, 0.3)
    ratio = 10 * 20 / (40 * 30)
    a, b, c = 1 - ratio, 1 - row - column + ratio * (row + column), -ratio * row * column
    first = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    weights = raked(cells_of(SEXES), people, SEXES)
    assert weights == pytest.approx([first, row - first, column - first, 1 - row - column + first], abs=1e-9)


def test_one_margin_is_post_stratification() -> None:
    cells = cells_of(SEXES)
    one = {"age": SEXES["age"]}
    assert raked(cells, [10, 40, 30, 20], one) == pytest.approx(
        [0.3 * 10 / 40, 0.7 * 40 / 60, 0.3 * 30 / 40, 0.7 * 20 / 60]
    )


def test_people_who_have_the_margins_already_weigh_alike() -> None:
    weights = raked(cells_of(SEXES), [20, 30, 10, 40], SEXES)
    assert weights == pytest.approx([0.2, 0.3, 0.1, 0.4])


@given(
    people=st.lists(st.integers(1, 500), min_size=6, max_size=6),
    parts=st.lists(st.integers(1, 1000), min_size=5, max_size=5),
    order=st.permutations(range(6)),
)
def test_margins_are_met_in_every_order(people: list[int], parts: list[int], order: list[int]) -> None:
    regions, ages = parts[:3], parts[3:]
    margins = {
        "region": {f"r{place}": one / sum(regions) for place, one in enumerate(regions)},
        "age": {f"a{place}": one / sum(ages) for place, one in enumerate(ages)},
    }
    cells = cells_of(margins)
    weights = raked(cells, people, margins)
    assert math.fsum(weights) == pytest.approx(1)
    for name, shares in margins_of(cells, weights, margins).items():
        assert shares == pytest.approx(margins[name], rel=1e-9)
    turned = {name: dict(reversed(margins[name].items())) for name in reversed(margins)}
    again = raked([cells[place] for place in order], [people[place] for place in order], turned)
    assert again == pytest.approx([weights[place] for place in order], rel=1e-7)
    # Twice the people everywhere change nothing, and neither do shares of people who are raked already.
    assert raked(cells, [2 * one for one in people], margins) == pytest.approx(weights, rel=1e-9)


@pytest.mark.parametrize(
    ("people", "reason"),
    [
        ([0, 40, 0, 20], "No person with age:old"),
        ([0, 0, 30, 20], "No person with sex:f"),
        # All old people are women, of whom there would be too few.
        ([10, 0, 0, 20], "meet the shares of sex and of age"),
        # Met by weights of 0 for women who are young, who would be left out in silence.
        ([0, 50, 30, 20], None),
    ],
)
def test_margins_that_cannot_be_met_are_refused(people: list[int], reason: str | None) -> None:
    margins = SEXES if reason else {"sex": {"f": 0.7, "m": 0.3}, "age": {"old": 0.3, "young": 0.7}}
    with pytest.raises(NotApplicable) as refused:
        raked(cells_of(margins), people, margins)
    assert (reason or "meet the shares of sex and of age") in str(refused.value)


def test_a_share_of_nothing_needs_no_people() -> None:
    margins = {"sex": {"f": 1.0, "m": 0.0}, "age": {"old": 0.3, "young": 0.7}}
    assert raked(cells_of(margins), [10, 40, 30, 0], margins) == pytest.approx([0.3, 0.7, 0, 0])
    assert raked(cells_of(SEXES), [30, 20, 0, 40], SEXES) == pytest.approx([0.3, 0.2, 0, 0.5])


def test_attributes_that_are_nearly_the_same_are_raked() -> None:
    """Odds of a million: the error falls slowly."""
    weights = raked(cells_of(SEXES), [1_000_000, 1_000, 1_000, 900_000], SEXES)
    assert margins_of(cells_of(SEXES), weights, SEXES)["age"] == pytest.approx(SEXES["age"])
    alike = {"sex": {"f": 0.5, "m": 0.5}, "age": {"old": 0.5, "young": 0.5}}
    weights = raked(cells_of(alike), [900_000, 1_000, 1_000, 300_000], alike)
    assert weights[0] * weights[3] / (weights[1] * weights[2]) == pytest.approx(9 * 3 * 1e4, rel=1e-6)
