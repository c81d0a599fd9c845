"""Variances of local reports, against the sums that define them."""

import math

import mpmath
import pytest
from dither.device.gaussian import gaussian_sigma, micro_mu2
from dither.device.randomizers import ReportNoise
from dither.device.shapes import HALF, HYBRID_THRESHOLD, piecewise_shape

from app.core.grid import GRID_SIZE
from app.core.study import LocalMechanism
from app.mechanisms.local_reports import report_noise
from tests.support.reports import report_scale

DUCHI, PIECEWISE, HYBRID = LocalMechanism.DUCHI, LocalMechanism.PIECEWISE, LocalMechanism.HYBRID


@pytest.mark.parametrize("epsilon", [1, 1000, 1_000_000, 37_000_000, 10**12])
def test_laplace_variance_equals_the_textbook_form_in_high_precision(epsilon):
    with mpmath.workdps(60):
        q = mpmath.e ** (-mpmath.mpf(epsilon) / (GRID_SIZE * 10**6))
        expected = float(2 * q / (1 - q) ** 2)
    assert report_noise(LocalMechanism.LAPLACE, epsilon).worst == pytest.approx(expected, rel=1e-12)


def test_laplace_variance_of_a_small_scale_equals_the_sum_over_all_integers():
    epsilon = GRID_SIZE * 10**6 // 3
    scale = report_scale(epsilon)
    with mpmath.workdps(30):
        weights = [mpmath.e ** (-z / mpmath.mpf(scale)) for z in range(400)]
        norm = 2 * mpmath.fsum(weights) - 1
        second = 2 * mpmath.fsum(w * z * z for z, w in enumerate(weights)) / norm
    assert report_noise(LocalMechanism.LAPLACE, epsilon).worst == pytest.approx(float(second), rel=1e-12)


EPSILONS = [10_000, 500_000, 700_000, 1_000_000, 3_000_000, 8_000_000]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bounded_reports_vary_as_published(epsilon):
    """Wang et al., equations 4 and 7 for data in [-1, 1], and Duchi's ((e^eps + 1) / (e^eps - 1))^2 - x^2."""
    t = math.exp(epsilon / 2e6)
    for position in (-1.0, -0.3, 0.0, 0.8, 1.0):
        point = HALF * (1 + position)
        duchi = ((t * t + 1) / (t * t - 1)) ** 2 - position**2
        piecewise = position**2 / (t - 1) + (t + 3) / (3 * (t - 1) ** 2)
        assert report_noise(DUCHI, epsilon).at(point) / HALF**2 == pytest.approx(duchi, rel=1e-5)
        assert report_noise(PIECEWISE, epsilon).at(point) / HALF**2 == pytest.approx(piecewise, rel=1e-6)
        share = 1 - 1 / t if epsilon > HYBRID_THRESHOLD else 0.0
        mixed = share * piecewise + (1 - share) * duchi
        assert report_noise(HYBRID, epsilon).at(point) / HALF**2 == pytest.approx(mixed, rel=1e-6)


def test_a_hybrid_reports_variance_hardly_depends_on_the_value():
    for epsilon in (610_000, 1_000_000, 8_000_000):
        assert abs(report_noise(HYBRID, epsilon).curvature) < 1e-8


def test_the_hybrid_threshold_is_where_duchi_alone_is_as_good():
    def hybrid(epsilon):
        t = mpmath.exp(epsilon / 2)
        return (t + 3) / (3 * t * (t - 1)) + (t**2 + 1) ** 2 / (t * (t**2 - 1) ** 2)

    def duchi(epsilon):
        return ((mpmath.exp(epsilon) + 1) / (mpmath.exp(epsilon) - 1)) ** 2

    with mpmath.workdps(30):
        crossing = mpmath.findroot(lambda epsilon: hybrid(epsilon) - duchi(epsilon), 0.6)
        root = mpmath.sqrt(241)
        published = mpmath.log(
            (-5 + 2 * mpmath.cbrt(6353 - 405 * root) + 2 * mpmath.cbrt(6353 + 405 * root)) / 27
        )
        assert mpmath.almosteq(crossing, published, 1e-20)
        assert int(published * 10**6) == HYBRID_THRESHOLD


@pytest.mark.parametrize(
    ("epsilon", "ratios"),
    [
        (100_000, (0.50, 0.67, 0.50)),
        (1_000_000, (0.585, 0.653, 0.536)),
        (2_000_000, (0.86, 0.61, 0.52)),
        (4_000_000, (2.15, 0.48, 0.44)),
        (8_000_000, (8.01, 0.20, 0.20)),
    ],
)
def test_worst_variances_against_laplace(epsilon, ratios):
    laplace = report_noise(LocalMechanism.LAPLACE, epsilon).worst
    for mechanism, ratio in zip((DUCHI, PIECEWISE, HYBRID), ratios, strict=True):
        assert report_noise(mechanism, epsilon).worst / laplace == pytest.approx(ratio, abs=0.006)


def test_hybrid_is_a_good_deal_at_epsilon_one():
    laplace = report_noise(LocalMechanism.LAPLACE, 1_000_000).worst
    assert report_noise(HYBRID, 1_000_000).worst <= 0.55 * laplace


def test_hybrid_is_never_worse_than_its_parts_in_the_worst_case():
    for epsilon in range(50_000, 12_000_000, 50_000):
        best = min(report_noise(DUCHI, epsilon).worst, report_noise(PIECEWISE, epsilon).worst)
        assert report_noise(HYBRID, epsilon).worst <= best * (1 + 1e-9)


def test_gaussian_reports_vary_by_the_square_of_their_sigma():
    assert report_noise(LocalMechanism.GAUSSIAN, 50_000).worst == float(gaussian_sigma(50_000)) ** 2
    # analytic sigma at (1, 1e-7) in the classic sigma's unit: .818
    classic = math.sqrt(2 * math.log(1.25e7)) * GRID_SIZE
    assert gaussian_sigma(micro_mu2(10**6, 10**5)) / classic == pytest.approx(0.818, abs=0.001)


def test_the_worst_value_is_at_an_end_or_in_the_middle():
    noise = ReportNoise(constant=10.0, curvature=-1.0)
    assert noise.worst == 10.0
    noise = ReportNoise(constant=10.0, curvature=2.0)
    assert noise.worst == noise.at(0) == noise.at(GRID_SIZE) == 10 + 2.0 * HALF**2


def test_more_epsilon_than_the_grid_holds_makes_no_difference():
    for mechanism in (DUCHI, PIECEWISE, HYBRID):
        assert report_noise(mechanism, 64_000_000).worst == report_noise(mechanism, 10**12).worst
    assert piecewise_shape(10**12).window == 1


@pytest.mark.parametrize("mechanism", LocalMechanism)
@pytest.mark.parametrize("epsilon", [0, -1])
def test_a_report_without_epsilon_is_refused(mechanism, epsilon):
    with pytest.raises(ValueError, match=r"epsilon|mu"):
        report_noise(mechanism, epsilon)
