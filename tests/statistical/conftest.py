"""The noise source of the statistical tests."""

import pytest

from app.estimators import confidence
from tests.support.noise import NoiseSource, ProductionSource, fresh_stand_in, noise_source


@pytest.fixture
def source(request: pytest.FixtureRequest) -> NoiseSource:
    """Seeded by the test's name, or fresh: `tests.support.noise`. RUNS simulated releases are many draws."""
    many = hasattr(request.module, "RUNS")
    return noise_source(request.node.nodeid, by_commit=fresh_stand_in if many else ProductionSource)


@pytest.fixture(autouse=True)
def one_level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated answers are read at one level, four times as fast, but where levels are what is looked at."""
    if not hasattr(request.module, "LEVELS"):
        monkeypatch.setattr(confidence, "OTHERS", ())
