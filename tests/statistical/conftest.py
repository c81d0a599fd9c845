"""The noise source of the statistical tests."""

import pytest

from tests.support.noise import NoiseSource, noise_source


@pytest.fixture
def source(request: pytest.FixtureRequest) -> NoiseSource:
    """Seeded by the test's name, or the service's own noise under DITHER_TEST_ENTROPY=os."""
    return noise_source(request.node.nodeid)
