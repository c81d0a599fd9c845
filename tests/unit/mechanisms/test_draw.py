"""The door to noise: what it refuses, and that a failing source gives no noise.

That noise is as large as stated is in tests/statistical/test_production_noise.py.
"""

import math
from dataclasses import dataclass

import pytest

from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteGaussian, DiscreteLaplace, Hourglass, NoNoise
from app.estimators.interface import UNIT_SCALE
from app.mechanisms import gaussian, laplace
from app.mechanisms.draw import draw
from app.mechanisms.hourglass import hourglass


def test_no_noise_is_a_zero_a_query():
    assert draw(NoNoise(), queries=3) == (0, 0, 0)


def test_noise_is_one_integer_a_query():
    values = draw(DiscreteLaplace(scales=(UNIT_SCALE, 3.0)), queries=2)
    assert len(values) == 2
    assert all(type(value) is int for value in values)


@pytest.mark.parametrize(
    "scale", [0.0, -0.0, -1.0, math.inf, -math.inf, math.nan, math.nextafter(2.0**56, math.inf)]
)
def test_an_impossible_scale_is_refused(scale):
    with pytest.raises(InternalFault):
        draw(DiscreteLaplace(scales=(scale,)), queries=1)
    with pytest.raises(InternalFault):
        draw(DiscreteGaussian(sigmas=(scale,)), queries=1)


@pytest.mark.parametrize(
    "noise",
    [
        Hourglass(sensitivity=3, epsilon=1, step=1),
        Hourglass(sensitivity=4, epsilon=1, step=3),
    ],
)
def test_impossible_steps_are_refused(noise):
    with pytest.raises(InternalFault):
        draw(noise, queries=2)


@pytest.mark.parametrize(
    ("noise", "queries"),
    [
        (DiscreteLaplace(scales=(1.0,)), 2),
        (DiscreteGaussian(sigmas=(70.0,)), 2),
        (Hourglass(sensitivity=4, epsilon=1, step=1), 1),
    ],
)
def test_noise_for_another_number_of_queries_is_refused(noise, queries):
    with pytest.raises(InternalFault):
        draw(noise, queries=queries)


def test_an_unknown_mechanism_is_refused():
    @dataclass(frozen=True)
    class Unknown:
        pass

    with pytest.raises(InternalFault):
        draw(Unknown(), queries=1)  # type: ignore[arg-type]  # wrong on purpose


def _broken(scale):
    def measurement(values):
        raise OSError("no entropy")

    return measurement


@pytest.mark.parametrize(
    "source",
    [
        _broken,
        lambda scale: lambda values: [0.5],
        lambda scale: lambda values: None,
        lambda scale: lambda values: [1, 2],
        lambda scale: lambda values: [],
    ],
)
def test_a_failing_source_gives_no_noise(monkeypatch, source):
    monkeypatch.setattr(laplace, "_measurement", source)
    monkeypatch.setattr(gaussian, "_measurement", source)
    with pytest.raises(InternalFault):
        draw(DiscreteLaplace(scales=(1.0,)), queries=1)
    with pytest.raises(InternalFault):
        draw(DiscreteGaussian(sigmas=(1.0,)), queries=1)


def test_without_entropy_there_are_no_steps(monkeypatch):
    def broken(count):
        raise OSError("no entropy")

    monkeypatch.setattr("app.mechanisms.entropy.secrets.randbits", broken)
    with pytest.raises(InternalFault):
        draw(hourglass(GRID_SIZE, 1_000_000), queries=2)


def test_the_sampler_of_a_scale_is_built_once():
    laplace._measurement.cache_clear()
    draw(DiscreteLaplace(scales=(17.0, 3.0, 17.0)), queries=3)
    assert laplace._measurement.cache_info().misses == 2


def test_every_query_has_the_noise_of_its_own_scale(monkeypatch):
    calls = []

    def measurement(scale):
        def add(values):
            calls.append(len(values))
            return [int(scale) + place for place in range(len(values))]

        return add

    for module in (laplace, gaussian):
        monkeypatch.setattr(module, "_measurement", measurement)
    sizes = (100.0, 100.0, 200.0, 100.0)
    for noise in (DiscreteLaplace(scales=sizes), DiscreteGaussian(sigmas=sizes)):
        assert draw(noise, queries=4) == (100, 101, 200, 100)
    assert calls == [2, 1, 1] * 2
