"""People who join a question that others have paid for: what they pay, and the best weights for them."""

from collections.abc import Sequence

import cvxpy
import numpy as np
import pytest

from app.core.epsilon import MICRO
from app.services.statistics.steps import MeanStep
from dither_research.histories import History

COUNT = 100
TIERS = (200_000, 400_000, 600_000)
VARIANCE = 1 / 4


def grown(days: Sequence[Sequence[int]], *, estimator: str = "adpm", tilt: int = 0) -> list[MeanStep]:
    """A step at each day's end, people of these epsilons having come on it."""
    history = History(estimator=estimator, tilt=tilt)
    for epsilons in days:
        for epsilon in epsilons:
            history.join(epsilon, [2**29] * COUNT)
        history.ask(MICRO)
    return history.steps


@pytest.mark.parametrize("estimator", ["uniform", "threshold", "adpm", "optimal"])
@pytest.mark.parametrize("tilt", [0, 100_000])
def test_who_comes_pays_once_and_no_other_person_does(estimator: str, tilt: int) -> None:
    steps = grown([TIERS] * 6, estimator=estimator, tilt=tilt)
    for day, step in enumerate(steps):
        newcomers = range(len(TIERS) * day + 1, len(TIERS) * (day + 1) + 1)
        assert [charge.cohort_id for charge in step.charges] == list(newcomers)
        assert all(0 < charge.epsilon <= epsilon for charge, epsilon in zip(step.charges, TIERS, strict=True))


def test_equal_days_have_equal_noise_whatever_their_number() -> None:
    """A plan for all as if they shared one noise would let the last day's people weigh ever less."""
    steps = grown([TIERS] * 12)
    first, *later = ([member.weight for member in piece.members] for piece in steps[-1].pieces)
    assert all(weights == first for weights in later)
    errors = np.array([step.plan.predicted_error for step in steps])
    assert errors == pytest.approx(errors[0] / np.sqrt(np.arange(1, 13)), rel=1e-6)


@pytest.mark.parametrize("newcomers", [(600_000,), (50_000, 90_000), TIERS, (1_000, 2_000_000), (3_000_000,)])
def test_no_weights_of_newcomers_are_better(newcomers: tuple[int, ...]) -> None:
    """Beside those that cvxpy finds over all weights, and all combinations with the sum that is there."""
    step = grown([TIERS, newcomers])[-1]
    old = np.array([member.weight for member in step.pieces[0].members]) / MICRO
    former, noise = cvxpy.Variable(nonneg=True), cvxpy.Variable(nonneg=True)
    weights = cvxpy.Variable(len(newcomers), nonneg=True)
    # `former` is the scale of noise in the answer that the old sum brings; its people weigh as is fixed.
    spread = float(old @ old) * former**2 + sum(weights[place] ** 2 for place in range(len(newcomers)))
    error = VARIANCE * COUNT * spread + 2 * (former**2 + noise**2)
    best = cvxpy.Problem(
        cvxpy.Minimize(error),
        [
            COUNT * (float(old.sum()) * former + np.ones(len(newcomers)) @ weights) == 1,
            weights <= np.array(newcomers) / MICRO * noise,
        ],
    ).solve(solver=cvxpy.CLARABEL)
    assert (step.plan.population_error or 0) ** 2 == pytest.approx(best, rel=1e-4)
    people = COUNT * (len(old) + len(newcomers))
    assert step.plan.predicted_error**2 == pytest.approx(best - VARIANCE / people, rel=1e-4)


def test_a_tilt_counts_for_all_pieces_together() -> None:
    """Twelve days' weights are those of one day at a tilt of sqrt(12) times as much; and no less."""
    (alone,) = grown([TIERS], tilt=346_410)[-1].pieces
    last = grown([TIERS] * 12, tilt=100_000)[-1].pieces[-1]
    assert [member.weight for member in last.members] == pytest.approx(
        [member.weight for member in alone.members], rel=1e-4
    )


def test_newcomers_too_few_to_be_asked_alone_weigh_what_they_offer() -> None:
    step = grown([TIERS, (2_000,)])[-1]
    (member,) = step.pieces[-1].members
    assert (member.weight, member.charged) == (2_000, 2_000)
