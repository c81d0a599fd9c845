"""What a K-means round publishes about central people: exact sums plus noise of the stated law, no less."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.core.grid import GRID_SIZE
from app.core.noise import DiscreteLaplace
from app.core.study import Relation
from app.services.sessions import kmeans_release
from app.sessions.kmeans import ClusterRules
from app.sessions.points import ClusterSums
from tests.statistical import ALPHA, SAMPLE_SIZE, SMALLEST_SCALE_ERROR
from tests.support.noise import NoiseSource
from tests.support.verdicts import shape_p_value, size_p_value

pytestmark = pytest.mark.statistical

RULES = {
    relation: ClusterRules(dimension=3, clusters=5, rounds=4, epsilon=6_000_000, relation=relation)
    for relation in Relation
}
QUERIES = 5 * (1 + 3)
STATED = {
    # b = sensitivity / epsilon of a round: 5 or 2.5 range widths over 1.5.
    Relation.REPLACE_ONE: 5 / 1.5 * GRID_SIZE,
    Relation.ADD_REMOVE_ONE: 2.5 / 1.5 * GRID_SIZE,
}


@pytest.fixture
def sums(source: NoiseSource) -> ClusterSums:
    """Some people about some centers."""
    points = source.people.integers(0, GRID_SIZE + 1, (5 + 1000, 3))
    made = ClusterSums([tuple(center) for center in points[:5].tolist()])
    made.add(points[5:])
    return made


def published_noise(
    sums: ClusterSums, relation: Relation, source: NoiseSource, monkeypatch: pytest.MonkeyPatch
) -> NDArray[np.int64]:
    """What many rounds publish, less the exact sums; the production code around the tests' source."""
    noise, _ = kmeans_release._priced(RULES[relation])
    assert isinstance(noise, DiscreteLaplace)
    assert len(noise.scales) == QUERIES
    rounds = SAMPLE_SIZE // QUERIES
    draws = iter(source.draws(noise, rounds).tolist())

    def draw(asked: DiscreteLaplace, *, queries: int) -> tuple[int, ...]:
        assert (asked, queries) == (noise, QUERIES)
        return tuple(next(draws))

    monkeypatch.setattr(kmeans_release, "draw", draw)
    exact = np.array(sums.queries(), dtype=np.int64)
    published = [kmeans_release._noisy(sums, noise) for _ in range(rounds)]
    drawn: NDArray[np.int64] = (np.array(published, dtype=np.int64) - exact).ravel()
    return drawn


@pytest.mark.parametrize("relation", Relation)
def test_sums_carry_discrete_laplace_noise_of_the_stated_scale(
    sums: ClusterSums, relation: Relation, source: NoiseSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = published_noise(sums, relation, source, monkeypatch)
    assert shape_p_value(drawn, STATED[relation]) > ALPHA
    assert size_p_value(drawn, STATED[relation]) > ALPHA


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("error", [-SMALLEST_SCALE_ERROR, SMALLEST_SCALE_ERROR])
def test_control_another_scale_is_caught(
    sums: ClusterSums,
    relation: Relation,
    error: float,
    source: NoiseSource,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = published_noise(sums, relation, source, monkeypatch)
    assert size_p_value(drawn, STATED[relation] * (1 + error)) < ALPHA


def test_control_the_noise_of_presence_is_not_enough_for_values(
    sums: ClusterSums, source: NoiseSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it, as the paper prints it, would be caught."""
    drawn = published_noise(sums, Relation.ADD_REMOVE_ONE, source, monkeypatch)
    assert size_p_value(drawn, STATED[Relation.REPLACE_ONE]) < ALPHA


def test_control_one_draw_for_all_queries_of_a_round_is_caught(
    sums: ClusterSums, source: NoiseSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = published_noise(sums, Relation.REPLACE_ONE, source, monkeypatch)
    repeated = np.repeat(drawn[::QUERIES], QUERIES)
    assert shape_p_value(repeated, STATED[Relation.REPLACE_ONE]) < ALPHA
