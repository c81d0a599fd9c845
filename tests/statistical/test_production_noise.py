"""The noise that the service and its devices really draw, from the operating system's entropy, on every run.

The other statistical tests may run on seeded stand-ins, which know nothing of a fault in the production
samplers. Here a verdict is a false alarm with probability below 1e-8: six standard errors are 2e-9 of a
Normal mean, and the skewness of a mean of SIZE absolute values or squares makes that at most five times as
much (Edgeworth: exp(6^3 * 0.04 / 6)). So is a scale of 0.9 seen:

- Laplace: |z| / b has mean 1 and deviation 1, so six standard errors of SIZE = 16,000 draws are 4.7 %; 10 %
  less noise lies 7.4 of its own standard errors beyond.
- Gaussian: z^2 / sigma^2 has mean 1 and deviation sqrt 2: 6.7 %, of which 19 % less are 13 beyond.
- Hourglass at 0.9 of their noise, epsilon / 0.9: the mean level moves by 10 % or
  more of itself, with a deviation of about its size: 7 beyond.
- Reports of devices: squared errors move by 14 % to 19 % and deviate by at most sqrt 5 of their mean, so
  DEVICE_SIZE = 24,000 reports see it from 8.7 % on, 5 or more beyond.

Each verdict stands beside its control with 0.9 of the noise.
"""

from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from dither.device.randomizers import randomizer
from dither.device.response import respond

from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import LocalMechanism
from app.estimators.interface import UNIT_SCALE
from app.mechanisms import laplace
from app.mechanisms.draw import draw
from app.mechanisms.hourglass import hourglass
from app.mechanisms.local_reports import report_noise
from app.mechanisms.randomized_response import KaryChannel
from tests.api.service import Service, open_service
from tests.support.verdicts import (
    gaussian_size,
    hourglass_size,
    mean_p_value,
    size_p_value,
)

pytestmark = pytest.mark.statistical

SIX_SIGMA = 2 * NormalDist().cdf(-6)
SIZE = 16_000
DEVICE_SIZE = 24_000
LESS = 0.9

SCALES = [3.0, UNIT_SCALE, 2.0**56]
EPSILONS = [500_000, 2_000_000]


def drawn(noise: Any, *, queries: int = 1) -> np.ndarray:
    return np.array([draw(noise, queries=queries) for _ in range(SIZE)], dtype=np.int64)


# ------------------------------------------------------------------------------------- the one door


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_noise_has_its_scale(scale: float) -> None:
    assert size_p_value(drawn(DiscreteLaplace(scales=(scale,)))[:, 0], scale) > SIX_SIGMA


def test_control_laplace_noise_of_a_smaller_scale_is_caught() -> None:
    smaller = DiscreteLaplace(scales=(LESS * UNIT_SCALE,))
    assert size_p_value(drawn(smaller)[:, 0], UNIT_SCALE) < SIX_SIGMA


@pytest.mark.parametrize("sigma", SCALES)
def test_gaussian_noise_has_its_sigma(sigma: float) -> None:
    assert gaussian_size(drawn(DiscreteGaussian(sigmas=(sigma,)))[:, 0], sigma) > SIX_SIGMA


def test_control_gaussian_noise_of_a_smaller_sigma_is_caught() -> None:
    smaller = DiscreteGaussian(sigmas=(LESS * UNIT_SCALE,))
    assert gaussian_size(drawn(smaller)[:, 0], UNIT_SCALE) < SIX_SIGMA


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (LESS, False)])
def test_hourglass_noise_has_its_price_and_less_is_caught(epsilon: int, factor: float, fits: bool) -> None:
    samples = drawn(hourglass(GRID_SIZE, round(epsilon / factor)), queries=2)
    assert (hourglass_size(samples, hourglass(GRID_SIZE, epsilon)) > SIX_SIGMA) == fits


# ------------------------------------------------------------------------------------------ devices


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (LESS, False)])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "duchi", "piecewise", "hybrid", "optimal"])
def test_reports_of_devices_are_as_noisy_as_stated_and_less_is_caught(
    mechanism: Any, factor: float, fits: bool
) -> None:
    """Of a value in the middle, where each of them has its largest or nearly its largest variance."""
    point = GRID_SIZE // 2
    device = randomizer(mechanism)
    reports = [device.report(point, round(1e6 / factor)) for _ in range(DEVICE_SIZE)]
    squares = ((np.array(reports, dtype=np.float64) - point) / GRID_SIZE) ** 2
    stated = report_noise(LocalMechanism(mechanism), 10**6).at(point) / GRID_SIZE**2
    # Where both reports lie equally far from the middle (Duchi) squares do not vary, but for their rounding.
    spread = max(float(squares.var()), (1e-6 * stated) ** 2 * DEVICE_SIZE)
    assert (mean_p_value(squares, stated, spread) > SIX_SIGMA) == fits


@pytest.mark.parametrize(("factor", "fits"), [(1.0, True), (LESS, False)])
@pytest.mark.parametrize("categories", [2, 4])
def test_answers_lie_as_often_as_stated_and_less_is_caught(
    categories: int, factor: float, fits: bool
) -> None:
    """A lie has probability 0.27 and 0.48 at epsilon 1: six standard errors are 2.1 % and 2.4 % absolute at
    SIZE, and epsilon / 0.9 makes it 0.02 and 0.03 less, so four times as many answers are drawn."""
    stated = KaryChannel(categories=categories, epsilon=10**6)
    lie = 1 - stated.truth
    lies = [respond(1, categories, round(1e6 / factor)) != 1 for _ in range(4 * SIZE)]
    assert (mean_p_value(np.array(lies), lie, lie * (1 - lie)) > SIX_SIGMA) == fits


# -------------------------------------------------------------------------- what a release over HTTP carries

CLUSTERS, DIMENSION = 256, 64
ROUND_EPSILON = 8


async def published_noise(service: Service) -> np.ndarray:
    """Noise of a K-means round in its stated scales: 256 counts and 256 * 64 sums of one release.

    Both people are at the middle of the range, about which sums are, next to the first center.
    """
    study = await service.study(dimension=DIMENSION, trust=["central"])
    for subject in (f"ada of {study}", f"bob of {study}"):
        record = {"subject": subject, "value": [50] * DIMENSION, "epsilon": ROUND_EPSILON, "trust": "central"}
        stored = await service.call("POST", f"/v1/studies/{study}/contributions", "contribute", json=record)
        assert stored.status_code == 201, stored.text
    elsewhere = [
        [int(digit) for digit in f"{number:03}"] + [0] * (DIMENSION - 3) for number in range(1, CLUSTERS)
    ]
    centres = [[50] * DIMENSION, *elsewhere]
    wish = {"protocol": "kmeans", "epsilon": ROUND_EPSILON, "rounds": 1, "centres": centres}
    made = await service.call("POST", f"/v1/studies/{study}/sessions", "admin", json=wish)
    assert made.status_code == 201, made.text
    path = f"/v1/sessions/{made.json()['id']}/close-round"
    closed = (await service.call("POST", path, "admin", json={"round": 1})).json()
    release = closed["path"][0]["release"]
    document = (await service.call("GET", f"/v1/releases/{release}", "admin")).json()
    assert [charge["epsilon"] for charge in document["charges"]] == [ROUND_EPSILON]
    counts, sums = np.array(document["counts"]), np.array(document["sums"]) / 100
    assert sums.shape == (CLUSTERS, DIMENSION)
    counts[0] -= 2
    return np.concatenate([counts, sums.ravel()]) * ROUND_EPSILON / (DIMENSION + 2)


async def test_a_release_over_http_carries_the_noise_that_it_charges(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """16,640 draws; one person moves counts and sums by d + 2 together, so that is the scale at epsilon 1."""
    async with open_service(database_url) as service:
        assert mean_p_value(np.abs(await published_noise(service)), 1.0, 1.0) > SIX_SIGMA
        honest = laplace._measurement
        monkeypatch.setattr(laplace, "_measurement", lambda scale: honest(LESS * scale))
        assert mean_p_value(np.abs(await published_noise(service)), 1.0, 1.0) < SIX_SIGMA


@pytest.mark.parametrize(
    ("relation", "estimator"), [("replace_one", "uniform"), ("add_remove_one", "transformed")]
)
async def test_a_mean_over_http_moves_by_the_noise_that_it_charges(
    database_url: str, monkeypatch: pytest.MonkeyPatch, relation: str, estimator: str
) -> None:
    """Every draw is as large as the scale that the sampler was asked for: exact, so 0.9 of it would show.

    Both releases ask for two sums, each under its own draw: a mean square beside a mean, or two halves.
    """
    asked: list[float] = []

    def one_scale(scale: float) -> Any:
        def measurement(exact: list[int]) -> list[int]:
            asked.extend([scale] * len(exact))
            return [one + round(scale) for one in exact]

        return measurement

    async with open_service(database_url) as service:
        study = await service.study(relation=relation, trust=["central"], epsilon={"min": 8, "max": 8})
        for number in range(10):
            await service.contribute(study, f"p{number}", value=12.5, epsilon=8)
        monkeypatch.setattr(laplace, "_measurement", one_scale)
        question = {"statistic": "mean", "estimator": estimator, "share": 0.25, "fresh": True}
        document = (
            await service.call("POST", f"/v1/studies/{study}/releases", "analyse", json=question)
        ).json()
    assert document["epsilon_max"] == 2
    if estimator == "uniform":  # distances from the middle, and their squares, for one price
        moved = 1 / (10 * 2)
        mean, square = -0.375 + moved, 0.375**2 + moved
        assert document["estimate"] == pytest.approx(100 * (0.5 + mean), rel=1e-12)
        variance = 100**2 * (square - mean**2 + 2 * moved**2)
        assert document["variance"]["estimate"] == pytest.approx(variance, rel=1e-9)
    else:  # sums 1.25 and 8.75, each half a person more
        assert document["noisy_count"] == pytest.approx(11, rel=1e-12)
        assert document["estimate"] == pytest.approx(100 * 1.75 / 11, rel=1e-12)
    assert asked == [UNIT_SCALE] * 2
