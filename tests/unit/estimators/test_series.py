"""A change and a trend off published means: closed forms, brute force, and how often intervals miss."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import linregress

from app.estimators.interface import Interval
from app.estimators.series import LEAST, Wave, combined, slope
from app.estimators.together import ErrorBound, KnownError

RUNS = 20_000


def interval(center: float, half: float, level: float = 0.95) -> Interval:
    return Interval(level=level, lower=center - half, upper=center + half, coverage="exact")


def wave(
    mean: float,
    *,
    scale: float = 0.0,
    noise: float = 0.0,
    people: float = 0.0,
    reach: float = 0.0,
    risk: float = 0.0,
    said: bool = True,
) -> Wave:
    """A mean with Laplace noise of some scale, Normal noise, and people of some standard deviation."""
    laplaces = ((scale, 1),) if scale else ()
    bound = ErrorBound(laplaces=laplaces, normal=noise**2 + people**2, reach=reach, risk=risk)
    return Wave(
        estimate=min(max(mean, 0.0), 100.0),
        noise=math.sqrt(2 * scale**2 + noise**2),
        lower=0.0,
        upper=100.0,
        interval=interval(mean, 1.0),
        population_interval=interval(mean, 2.0),
        error=KnownError(center=mean, dataset=bound, population=bound) if said else None,
    )


@pytest.mark.parametrize("waves", range(2, 12))
def test_the_slope_is_that_of_least_squares(waves: int) -> None:
    values = [(7 * place**2) % 13 for place in range(waves)]
    weights = slope(waves)
    found = math.fsum(weight * value for weight, value in zip(weights, values, strict=True))
    assert found == pytest.approx(linregress(range(waves), values).slope, abs=1e-12)
    assert math.fsum(weights) == pytest.approx(0, abs=1e-15)
    assert weights == sorted(weights)
    line = [Fraction(3) + Fraction(5, 2) * place for place in range(waves)]
    assert sum(w * float(v) for w, v in zip(weights, line, strict=True)) == pytest.approx(2.5)


def test_one_laplace_has_its_closed_form_and_two_gaussians_theirs() -> None:
    one = combined([(-1, wave(40)), (1, wave(42, scale=3))])
    assert one.estimate == 2
    assert one.standard_error == pytest.approx(3 * math.sqrt(2))
    assert one.interval.upper - one.estimate == pytest.approx(3 * math.log(20))
    two = combined([(-1, wave(40, noise=3)), (1, wave(42, noise=4))])
    assert two.interval.upper - two.estimate == pytest.approx(1.959964 * 5, rel=1e-6)
    # People may be the same ones in both: what they are off by adds up, in the worst case.
    same = combined([(-1, wave(40, people=3)), (1, wave(42, people=4))])
    assert same.interval.upper - same.estimate == pytest.approx(1.959964 * 7, rel=1e-6)
    reach = combined([(-1, wave(40, noise=3, reach=1)), (1, wave(42, noise=4, reach=0.5))])
    assert reach.interval.upper - reach.estimate == pytest.approx(1.959964 * 5 + 1.5, rel=1e-6)


def test_a_sum_is_no_larger_than_it_can_be() -> None:
    beyond = combined([(-1, wave(-20, noise=9)), (1, wave(130, noise=9))])
    assert (beyond.estimate, beyond.interval.upper) == (100, 100)
    assert beyond.interval.lower < 100


@pytest.mark.parametrize("together", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("weights", [[-1.0, 1.0], slope(3), slope(6)])
def test_intervals_hold_whatever_the_same_people_do_in_several_studies(
    weights: list[float], together: float
) -> None:
    """95 % hold; that fewer than 94.2 % of 20,000 do by chance has less than 1e-6. One with less does not."""
    generator = np.random.default_rng(20_300_131)
    count = len(weights)
    scales, noises, people = [np.linspace(low, high, count) for low, high in ((1, 2), (0.5, 1.5), (2, 1))]
    same, own = generator.standard_normal((2, RUNS, count))
    shared = same[:, :1] * np.where(np.arange(count) % 2, together, 1.0) if together else same
    errors = (
        generator.laplace(size=(RUNS, count)) * scales
        + own * noises
        + (shared if together else same) * people
    )
    means = 50 + np.arange(count)
    waves = [
        wave(float(mean), scale=float(scale), noise=float(noise), people=float(who))
        for mean, scale, noise, who in zip(means, scales, noises, people, strict=True)
    ]
    found = combined(list(zip(weights, waves, strict=True)))
    half = found.interval.upper - found.estimate
    off = np.abs(errors @ np.array(weights))
    assert np.mean(off <= half) > 0.942
    assert np.mean(off <= 0.5 * half) < 0.942


def test_answers_that_say_an_interval_alone_hold_with_what_is_left() -> None:
    waves = [wave(40, said=False), wave(45, said=False)]
    found = combined([(-1, waves[0]), (1, waves[1])])
    assert (found.interval.lower, found.interval.upper, found.interval.level) == (3, 7, 0.9)
    mixed = combined([(-1, waves[0]), (1, wave(45))])
    assert mixed.interval == found.interval
    # The middle one of three has no weight, and no risk.
    three = combined(list(zip(slope(3), [waves[0], wave(43, said=False), waves[1]], strict=True)))
    assert three.interval.level == 0.9
    most = combined(list(zip(slope(10), [wave(40, said=False)] * 10, strict=True)))
    assert most.interval.level == LEAST
    with pytest.raises(ValueError, match="level"):
        combined(list(zip(slope(12), [wave(40, said=False)] * 12, strict=True)))


def test_risks_of_bounds_lower_the_level_that_is_said() -> None:
    few = combined([(-1, wave(40, people=1, risk=0.01)), (1, wave(42, people=1, risk=0.01))])
    assert few.population_interval is not None
    assert few.population_interval.level == 0.95
    levels = []
    for count in range(2, 60):
        found = combined(list(zip(slope(count), [wave(40, noise=1) for _ in range(count)], strict=True)))
        assert found.interval.level == 0.95
        risky = [wave(40, people=1, risk=0.01) for _ in range(count)]
        bad = [
            Wave(
                **{
                    **{n: getattr(one, n) for n in Wave.__dataclass_fields__},
                    "error": KnownError(
                        center=40,
                        dataset=ErrorBound(laplaces=(), normal=1, reach=0),
                        population=one.error.population,
                    ),
                }
            )
            for one in risky
            if one.error
        ]
        interval_found = combined(list(zip(slope(count), bad, strict=True))).population_interval
        levels.append(None if interval_found is None else interval_found.level)
    kept = [level for level in levels if level is not None]
    assert kept[0] == 0.95
    assert min(kept) >= LEAST
    assert None in levels
    assert all(one >= other for one, other in pairwise(kept))
