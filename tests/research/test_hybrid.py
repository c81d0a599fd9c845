"""The hybrid paper's closed forms and figures, corrected."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dither_research.amplification import (
    amplified,
    analytic_sigma,
    classic_sigma,
    gaussian_setting,
    guarantee,
)
from dither_research.catalogue import REPRODUCTIONS
from dither_research.hybrid_figures import UC_PEOPLE, UC_VARIANCE
from dither_research.hybrid_forms import (
    Setting,
    best_weight,
    full_lm_error,
    hybrid_error,
    kvh_limit,
    kvh_weight,
    laplace,
    pwh_beats_both,
    pwh_weight,
    relative_improvement,
    tcm_error,
    weak_improvement,
)
from dither_research.seeded import seeded
from tests.statistical import Z


def checks(name):
    return {check.quantity: check for check in REPRODUCTIONS[name].reproduce().checks}


def random_setting(random) -> Setting:
    n = int(10 ** random.uniform(2, 6))
    share = max(2 / n, 10 ** random.uniform(-3, -0.1))
    return laplace(n, share, 10 ** random.uniform(-1.5, 1), random.uniform(1e-4, 0.25))


def test_the_closed_forms_are_the_simulated_errors():
    """Both parts differ in variance and in mean; errors are about the mean of those who are there."""
    n, share, runs = 400, 0.1, 200_000
    at = laplace(n, share, 2.0, 0.02, local_variance=0.05, gap=0.2)
    random = seeded("closed forms")
    people, others = round(n * share), n - round(n * share)
    first = 0.2 + math.sqrt(0.02 / people) * random.standard_normal(runs)
    second = math.sqrt(0.05 / others) * random.standard_normal(runs)
    everybody = share * first + (1 - share) * second
    noise = math.sqrt(at.central_noise) * random.standard_normal(runs)
    reports = math.sqrt(at.local_noise / others) * random.standard_normal(runs)
    full = math.sqrt(at.local_noise / n) * random.standard_normal(runs)
    weight = kvh_weight(at)
    for errors, form in (
        (first + noise - everybody, tcm_error(at)),
        (full, full_lm_error(at)),
        (weight * (first + noise) + (1 - weight) * (second + reports) - everybody, hybrid_error(at, weight)),
    ):
        assert float(np.mean(errors**2)) == pytest.approx(form, rel=Z * math.sqrt(2 / runs))


def test_no_weight_is_better_than_the_best():
    random = seeded("weights")
    for _ in range(200):
        at = random_setting(random)
        best = hybrid_error(at, best_weight(at))
        assert best <= min(hybrid_error(at, w) for w in random.random(20)) * (1 + 1e-12)
        assert kvh_weight(at) == pytest.approx(best_weight(at), rel=1e-9)


def test_kvh_beats_both_baselines_and_never_by_more_than_17_eighths():
    """At epsilon <= 1: with y = epsilon^2 v / m^2 <= 1/4 the limit 2 + y / 2 is 17/8 at most."""
    assert kvh_limit(1 / 9, 1 / 4) == pytest.approx(17 / 8, abs=1e-9)
    random, largest = seeded("17/8"), 0.0
    for _ in range(20_000):
        n = 10 ** random.uniform(1, 9)
        share, signal = 10 ** random.uniform(-4, -0.05), random.uniform(1e-4, 0.25)
        if share * n < 1:
            continue
        at = laplace(n, share, math.sqrt(signal), 1.0)
        largest = max(largest, relative_improvement(at, hybrid_error(at, kvh_weight(at))))
    assert 2.05 < largest < 17 / 8


def test_the_corrected_condition_for_pwh_holds_in_10_000_settings():
    random, tried, better = seeded("pwh"), 0, 0
    while tried < 10_000:
        n = int(10 ** random.uniform(1, 6))
        share = 10 ** random.uniform(-4, -0.01)
        signal = 10 ** random.uniform(-4, 1)
        if share * n <= 1:
            continue
        at = laplace(n, share, math.sqrt(signal), 1.0)
        improvement = relative_improvement(at, hybrid_error(at, pwh_weight(at)))
        if abs(improvement - 1) < 1e-9:
            continue
        tried += 1
        better += improvement > 1
        assert (improvement > 1) == pwh_beats_both(n=n, share=share, signal=signal)
        assert weak_improvement(at, hybrid_error(at, pwh_weight(at))) >= 1
    assert 1000 < better < 9000


def test_the_printed_conditions_are_those_of_the_plain_weight():
    """epsilon >= sqrt 2 m / s, or c <= y / 2, or n < 2 (1 + c) / (c (2 c - y)): for w = c, not for PWH."""
    random, naive, pwh, tried = seeded("printed"), 0, 0, 3000
    for _ in range(tried):
        n, share = int(10 ** random.uniform(2, 6)), 10 ** random.uniform(-2, -0.3)
        signal = 10 ** random.uniform(-3, 1)
        at = laplace(n, share, math.sqrt(signal), 1.0)
        printed = signal >= 2 or share <= signal / 2 or n < 2 * (1 + share) / (share * (2 * share - signal))
        naive += printed != (relative_improvement(at, hybrid_error(at, share)) > 1)
        pwh += printed != (relative_improvement(at, hybrid_error(at, pwh_weight(at))) > 1)
    assert pwh > 0.5 * tried
    assert naive < 0.02 * tried


@pytest.mark.long
def test_figure_1_lies_between_1_and_a_little_above_2():
    found = checks("hybrid-figure-1")
    assert found["smallest R"].ours >= 1
    assert 2 < found["largest R"].ours < 2.05
    assert found["product's plans against closed forms, largest"].ours < 1e-9


@pytest.mark.long
def test_figure_2_peaks_just_above_2():
    found = checks("hybrid-figure-2")
    assert 2.01 <= found["peak of R"].ours <= 2.03
    assert found["product's plans against closed forms, largest"].ours < 1e-9


@pytest.mark.long
def test_figure_3_keeps_r_above_1_and_corrects_the_n():
    found = checks("hybrid-figure-3")
    assert found["smallest r"].ours >= 1
    assert found["n from which r(E_H(0.001)) < 1"].ours == 10_057


def test_figure_4_changes_by_at_most_a_tenth():
    found = checks("hybrid-figure-4")
    assert found["largest change of R against equal variances"].ours <= 0.1
    assert found["typical change (median)"].ours < 0.01


def test_figure_5_loses_with_every_shift():
    rows = REPRODUCTIONS["hybrid-figure-5"].reproduce().rows
    by_shift: dict[str, list[float]] = {}
    for row in rows:
        by_shift.setdefault(str(row["panel"]), []).append(float(row["improvement"]))
    none, small, large = by_shift.values()
    assert np.median(large) < np.median(small) < np.median(none)


@pytest.mark.long
def test_figure_8_has_its_extremes_where_the_text_does_not_put_them():
    found = checks("hybrid-figure-8")
    assert found["largest r"].ours == pytest.approx(2387, abs=1)
    assert found["largest r"].note == "at c = 10 %, epsilon = 0.1"
    assert found["smallest R"].ours == pytest.approx(0.225, abs=0.001)
    assert found["smallest R"].note.endswith("epsilon = 10")


def independent_epsilon(mu: float, delta: float) -> float:
    """Of the Gaussian mechanism, by bisection of its formula, without the product's accounting."""
    low, high = 0.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        value = norm.cdf(mu / 2 - middle / mu) - math.exp(middle) * norm.cdf(-mu / 2 - middle / mu)
        low, high = (middle, high) if value > delta else (low, middle)
    return high


def test_the_amplification_has_the_larger_sensitivity():
    """c = 1 %, nobody adversarial, classic calibration: printed 4.0e-4, true 0.979."""
    classic = classic_sigma(1, 1e-7)
    at = gaussian_setting(UC_PEOPLE, 0.01, classic, UC_VARIANCE)
    shown = amplified(at, 0)
    assert classic * min(shown.central, shown.local) == pytest.approx(4.0e-4, abs=0.1e-4)
    assert classic * max(shown.central, shown.local) == pytest.approx(0.979, abs=0.001)
    assert shown.central > shown.local
    found = checks("hybrid-figure-7")
    assert found["epsilon' of every person at c = 1 %, no person adversarial"].ours == pytest.approx(
        0.979, abs=0.001
    )


@pytest.mark.parametrize("coalition", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
def test_amplified_epsilons_are_those_of_an_independent_computation(share, coalition):
    n, sigma = UC_PEOPLE, analytic_sigma(1, 1e-7)
    v, c = UC_VARIANCE, share
    central, local = (sigma / (c * n)) ** 2, sigma**2
    weight = c * (v + local) / (v + c * (n * central * (1 - c) + local))
    people = (1 - c) * n
    noise = weight**2 * central + ((1 - weight) / people) ** 2 * (1 - coalition) * people * local
    shown = amplified(gaussian_setting(n, share, sigma, v), coalition)
    assert shown.central == pytest.approx(weight / (c * n) / math.sqrt(noise), rel=1e-9)
    assert shown.local == pytest.approx((1 - weight) / people / math.sqrt(noise), rel=1e-9)
    # Nobody loses more than without the others' noise.
    assert independent_epsilon(shown.central, 1e-7) <= 1 + 1e-6
    assert sigma == pytest.approx(math.sqrt(0.67) * classic_sigma(1, 1e-7), rel=0.01)
    central_epsilon, local_epsilon = guarantee(gaussian_setting(n, share, sigma, v), coalition)
    assert central_epsilon == pytest.approx(independent_epsilon(shown.central, 1e-7), abs=3e-6)
    assert local_epsilon == pytest.approx(independent_epsilon(shown.local, 1e-7), abs=3e-6)
