"""An analyst who stops at will: is any of the intervals wrong that hold for all steps at once?

Chains of noise are drawn as they are lowered, backwards in the share, where each is the one before and what
was taken off (`app.mechanisms.refined_laplace`, `app.mechanisms.refined_gaussian`).
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from app.core.epsilon import MICRO
from app.core.study import Currency
from app.estimators.anytime import Steps
from app.estimators.piece_shares import combined_shares
from tests.statistical import ALPHA
from tests.unit.estimators.test_piece_shares import BINS, sums_of

pytestmark = pytest.mark.statistical

RUNS = 2000
UNIT = 10_000
"""What a person weighs, beside whom noise is small."""
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
    assert ever_wrong(noise[:, :, 0], single) > (0.05 if steps == 2 else 0.13) * RUNS


@pytest.mark.parametrize("normal", [False, True])
@pytest.mark.parametrize("steps", [2, 10, 20, 200])
def test_no_interval_of_a_share_is_wrong_and_those_of_single_steps_are(source, steps, normal):
    """Of 300 people in two pieces and four bins: what is read of exact counts, with noise about it.

    The control is what a single step says, about the noise that is moved to shares that sum to 1.
    """
    shares = [(number + 1) / steps for number in range(steps)]
    first = round(MICRO * shares[0])
    noise = chains(source.people, shares, 2 * BINS, normal=normal).reshape(RUNS, steps, 2, BINS)
    whole, single = np.empty(steps), np.empty(steps)
    for step, share in enumerate(shares):
        scale = (1 / share) ** (0.5 if normal else 1)
        sums = replace(sums_of(*[(150, UNIT, scale)] * 2), normal=normal)
        plan = combined_shares(
            BINS, sums, {}, tilt=0.0, currency=Currency.GAUSSIAN if normal else Currency.LAPLACE
        )
        drawn = Steps(firsts=[first] * 2, places=[1, 2], step=step + 1, normal=normal)
        exact = [([n * UNIT for n in own], ()) for own in ((60, 30, 30, 30),) * 2]
        read = replace(plan, steps=drawn).read_labels([*exact, ([0] * BINS, ())]).bins[0]
        assert read.anytime is not None
        assert 0 < read.anytime.lower < read.interval.lower < read.share == pytest.approx(0.4)
        whole[step], single[step] = (one.upper - read.share for one in (read.anytime, read.interval))
        parts = [part * own.scales[0] for part, own in plan.parts[:2]]
        noise[:, step] *= np.array(parts)[:, None]
    errors = noise.sum(axis=2)
    for place in range(BINS):
        assert ever_wrong(errors[:, :, place], whole) <= MOST_MISSES
    moved = errors[:, :, 0] - errors.mean(axis=2)
    assert ever_wrong(moved, single) > (0.05 if steps == 2 else 0.13) * RUNS


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
