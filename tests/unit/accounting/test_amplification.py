"""What outputs of hybrid releases give away: closed forms computed here, and the published theorem."""

import math
from fractions import Fraction
from itertools import combinations

import mpmath
import pytest

from app.accounting.amplification import LocalPart, amplify
from app.core.errors import InternalFault
from tests.unit.accounting.test_gaussian import exact_delta

DELTA = 10**5  # 1e-7
N, WIDTH, DEVIATION = 252_540, 2_349_033, 53_254
"""The University of California's salaries, as the paper uses them."""


def epsilon_of(mu, delta=DELTA / 1e12):
    """Root of the analytic formula, by halving in high precision."""
    with mpmath.workdps(40):

        def excess(epsilon):
            a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
            return mpmath.ncdf(a) - mpmath.exp(epsilon) * mpmath.ncdf(b) - delta

        low, high = mpmath.mpf(0), mpmath.mpf(mu * mu / 2 + 8 * mu)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return float(high)


def kvh(share, sigma, people=N):
    """Sizes, weight of the central part and noise of the paper's estimator, in range widths."""
    central = round(share * people)
    local = people - central
    c, v = central / people, (DEVIATION / WIDTH) ** 2
    central_noise, report_noise = (sigma / central) ** 2, sigma**2
    w = c * (v + report_noise) / (v + c * (people * central_noise * (1 - c) + report_noise))
    return central, local, w, w * sigma / central


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("coalition", [Fraction(0), Fraction(1, 2), Fraction(9, 10), Fraction(1)])
def test_both_sides_equal_a_closed_form_computed_here(share, coalition):
    sigma = 4.68
    central, local, w, noise = kvh(share, sigma)
    found = amplify(
        central_weights=[w / central],
        central_sigma=noise,
        local=[LocalPart(people=local, weight=(1 - w) / local, sigma=sigma)],
        delta=DELTA,
        coalition_share=coalition,
    )
    honest = local - math.ceil(coalition * local)
    each = ((1 - w) / local * sigma) ** 2
    spread = math.sqrt(noise**2 + honest * each)
    assert found.central[0] / 1e6 == pytest.approx(epsilon_of(w / central / spread), abs=2e-6)
    spread = math.sqrt(noise**2 + max(honest, 1) * each)
    expected = epsilon_of((1 - w) / local / spread)
    assert found.local[0] / 1e6 == pytest.approx(expected, abs=2e-6)


def test_the_published_theorem_understates_what_central_people_lose():
    """The smaller of the two sensitivities: 4.0e-4 printed, .979 true (both by the classic formula)."""
    sigma = math.sqrt(2 * math.log(1.25 / 1e-7))
    central, local, w, noise = kvh(0.01, sigma)
    spread = math.sqrt(noise**2 + local * ((1 - w) / local * sigma) ** 2)
    sensitivities = w / central, (1 - w) / local
    printed, true = (sigma * pick(sensitivities) / spread for pick in (min, max))
    assert printed == pytest.approx(4.0e-4, rel=0.02)
    assert true == pytest.approx(0.979, abs=0.001)
    # Private is what keeps delta. The printed epsilon misses it by four orders of magnitude.
    mu = max(sensitivities) / spread
    assert exact_delta(printed, mu) > 1e4 * 1e-7
    ours = amplify(
        central_weights=[w / central],
        central_sigma=noise,
        local=[LocalPart(people=local, weight=(1 - w) / local, sigma=sigma)],
        delta=DELTA,
    )
    assert exact_delta(ours.central[0] / 1e6, mu) <= 1e-7
    assert ours.central[0] > 1000 * ours.local[0]


def test_local_people_gain_a_lot_and_central_people_hardly_anything():
    sigma = 4.6787  # (1, 1e-7)
    central, local, w, noise = kvh(0.01, sigma)
    found = amplify(
        central_weights=[w / central],
        central_sigma=noise,
        local=[LocalPart(people=local, weight=(1 - w) / local, sigma=sigma)],
        delta=DELTA,
    )
    assert 0.9 < found.central[0] / 1e6 < 1
    assert found.local[0] / 1e6 < 0.001


def test_nobody_ever_loses_more_than_to_the_curator():
    """Without any other noise a report costs what it was made for."""
    report = LocalPart(people=1, weight=1.0, sigma=4.6787)
    found = amplify(central_weights=[], central_sigma=0.0, local=[report], delta=DELTA)
    assert found.local[0] == pytest.approx(1_000_000, abs=20)


def test_a_larger_coalition_learns_more():
    parts = [LocalPart(people=60, weight=0.01, sigma=3.0), LocalPart(people=40, weight=0.005, sigma=9.0)]
    shares = [Fraction(k, 10) for k in range(11)]
    found = [
        amplify(central_weights=[0.01], central_sigma=0.05, local=parts, delta=DELTA, coalition_share=share)
        for share in shares
    ]
    for side in ("central", "local"):
        for column in zip(*(getattr(one, side) for one in found), strict=True):
            assert list(column) == sorted(column)
    alone = amplify(central_weights=[0.01], central_sigma=0.05, local=[], delta=DELTA)
    assert found[-1].central == alone.central


@pytest.mark.parametrize("size", range(6))
def test_the_worst_coalition_is_found(size):
    """All coalitions of that size among five people, three kinds of reports, enumerated."""
    kinds = [
        LocalPart(people=2, weight=0.2, sigma=1.0),
        LocalPart(people=1, weight=0.1, sigma=4.0),
        LocalPart(people=2, weight=0.25, sigma=0.6),
    ]
    everybody = [(kind, part) for kind, part in enumerate(kinds) for _ in range(part.people)]
    found = amplify(
        central_weights=[0.1],
        central_sigma=0.3,
        local=kinds,
        delta=DELTA,
        coalition_share=Fraction(size, 5),
    )

    def worst(weight, person):
        others = [index for index in range(5) if index != person]
        size_of_rest = min(size, len(others))
        least = min(
            sum(everybody[i][1].variance for i in range(5) if i not in attackers)
            for attackers in combinations(others, size_of_rest)
        )
        return epsilon_of(weight / math.sqrt(0.09 + least))

    assert found.central[0] / 1e6 == pytest.approx(worst(0.1, None), abs=2e-6)
    for kind, part in enumerate(kinds):
        person = next(index for index in range(5) if everybody[index][0] == kind)
        assert found.local[kind] / 1e6 == pytest.approx(worst(part.weight, person), abs=2e-6)


def test_who_weighs_nothing_loses_nothing():
    parts = [LocalPart(people=3, weight=0.0, sigma=1.0)]
    found = amplify(central_weights=[0.0, 0.1], central_sigma=1.0, local=parts, delta=DELTA)
    assert found.local == (0,)
    assert found.central[0] == 0 < found.central[1]


@pytest.mark.parametrize(
    "change",
    [
        {"central_sigma": -1.0},
        {"central_sigma": 0.0},
        {"central_sigma": math.nan},
        {"coalition_share": Fraction(-1, 2)},
        {"coalition_share": Fraction(3, 2)},
        {"delta": 0},
        {"central_weights": [math.inf]},
    ],
)
def test_what_has_no_guarantee_is_refused(change):
    valid = {"central_weights": [0.1], "central_sigma": 1.0, "local": [], "delta": DELTA}
    with pytest.raises(InternalFault):
        amplify(**(valid | change))
