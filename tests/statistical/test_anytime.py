"""An analyst who stops at will: is any of the intervals wrong that hold for all steps at once?

Chains of noise are drawn as they are lowered, backwards in the share, where each is the one before and what
was taken off (`app.mechanisms.refined_laplace`, `app.mechanisms.refined_gaussian`).
"""

import numpy as np
import pytest
from scipy.stats import binom, norm

from app.core.epsilon import MICRO
from app.estimators.anytime import Steps
from tests.statistical import ALPHA

pytestmark = pytest.mark.statistical

RUNS = 2000
MOST_MISSES = int(binom.isf(ALPHA, RUNS, 0.05))
"""What is wrong in 5 % of all runs is so more often with a probability of at most ALPHA."""


def chains(people, shares, sums, *, normal):
    """Noise over its scale at each share, shape (runs, steps, sums)."""
    found = np.empty((RUNS, len(shares), sums))
    scales = [(1 / share) ** (0.5 if normal else 1) for share in shares]

    def drawn(scale, now=1.0):
        if normal:
            return people.normal(
                0, np.sqrt(scale**2 - (scale * now) ** 2 if now < 1 else scale**2), (RUNS, sums)
            )
        return people.laplace(0, scale, (RUNS, sums))

    noise, before = drawn(scales[-1]), scales[-1]
    found[:, -1] = noise / before
    for step in range(len(shares) - 2, -1, -1):
        scale = scales[step]
        more = drawn(scale, before / scale)
        stays = 0 if normal else people.random((RUNS, sums)) < (before / scale) ** 2
        noise, before = noise + np.where(stays, 0.0, more), scale
        found[:, step] = noise / scale
    return found


def ever_wrong(errors, bounds):
    """In how many runs an error is above its bound at one of the steps."""
    return int((np.abs(errors) > np.asarray(bounds)).any(axis=1).sum())


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("steps", [2, 10, 20, 200])
def test_no_interval_of_a_question_is_wrong_and_those_of_single_steps_are(source, steps, normal):
    """The whole of three labels, a label, and what single steps promise as the control."""
    shares = [(number + 1) / steps for number in range(steps)]
    first = round(MICRO * shares[0])
    noise = chains(source.people, shares, 3, normal=normal)
    drawn = Steps(firsts=[first] * 3, places=[1, 2, 3], step=1, normal=normal)
    label = Steps(firsts=[first], places=[1], step=1, normal=normal).always([1.0])
    # Every run stops where its error is the largest.
    assert ever_wrong(noise[:, :, 0], label) <= MOST_MISSES
    assert ever_wrong(noise @ [0.5, 0.3, 0.2], drawn.always([0.5, 0.3, 0.2])) <= MOST_MISSES
    single = norm.isf(0.025) if normal else np.log(20)
    assert ever_wrong(noise[:, :, 0], single) > (0.065 if steps == 2 else 0.13) * RUNS


@pytest.mark.parametrize("normal", [False, True])
def test_no_interval_is_wrong_over_a_hundred_renewals_by_newcomers(source, normal):
    """Tenfold growth; the newest sum dominates in one case, as each has what is best in the other."""
    draw = source.people.normal if normal else source.people.laplace
    noise = draw(0, 1, (RUNS, 100))
    masses = 10 ** (np.arange(101) / 100)
    sizes = np.diff(masses, prepend=0)[:100] + (np.arange(100) == 0)
    for newest in (False, True):
        wrong = np.zeros(RUNS, dtype=bool)
        for number in range(100):
            shares = (sizes[: number + 1] ** 2) / (sizes[: number + 1] ** 2).sum()
            if newest:
                shares = np.full(number + 1, 0.1 / max(number, 1))
                shares[-1] = 0.9 if number else 1.0
            noises = shares / sizes[: number + 1]
            made = Steps(
                firsts=[100_000] * (number + 1),
                places=range(1, number + 2),
                step=number + 1,
                normal=normal,
            )
            wrong |= np.abs(noise[:, : number + 1] @ noises) > made.always(noises)
        assert int(wrong.sum()) <= MOST_MISSES
    # As if each newcomers' sum had all of the risk for itself.
    alone = Steps(firsts=[MICRO], places=[1], step=1, normal=normal).always([1.0])
    assert ever_wrong(noise, alone) > RUNS / 2
