"""The noise source of the statistical tests."""

import pytest

from tests.support.noise import NoiseSource, ProductionSource, fresh_stand_in, noise_source
from tests.support.one_level import one_level

__all__ = ["one_level", "source"]


@pytest.fixture
def source(request: pytest.FixtureRequest) -> NoiseSource:
    """Seeded by the test's name, or fresh: `tests.support.noise`. RUNS simulated releases are many draws."""
    many = hasattr(request.module, "RUNS")
    return noise_source(request.node.nodeid, by_commit=fresh_stand_in if many else ProductionSource)
