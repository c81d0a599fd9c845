"""Quantiles of many laws at many levels against those of each alone, and against a search of the tail."""

import numpy as np
import pytest
import scipy

from app.estimators import quantile_tables
from app.estimators.quantile_tables import quantiles_of
from app.estimators.quantiles import ErrorLaw, error_law

LEVELS = (0.95, 0.8, 0.9, 0.99, 0.995, 0.9995)


def some_laws(rng: np.random.Generator, *, normal: float) -> list[ErrorLaw]:
    """Laws of the same Laplaces beside Normal parts of many sizes."""
    laplaces = [(float(rng.uniform(0.01, 2)), int(rng.integers(1, 12))) for _ in range(rng.integers(1, 6))]
    return [error_law(normal_variance=float(one), laplaces=laplaces) for one in normal * rng.uniform(0, 1, 9)]


@pytest.mark.parametrize("normal", [0.0, 1e-3, 1.0, 1e3])
def test_each_law_has_the_quantiles_that_it_has_alone(normal: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        laws = some_laws(rng, normal=normal)
        table = quantiles_of(laws, LEVELS)
        alone = [[law.quantile(level) for level in LEVELS] for law in laws]
        assert table == pytest.approx(np.array(alone), rel=1e-11)


def test_the_tail_has_what_the_level_leaves_there_by_a_search_that_knows_no_slope() -> None:
    rng = np.random.default_rng(2)
    for law in [one for _ in range(5) for one in some_laws(rng, normal=1.0)]:
        found = quantiles_of([law], LEVELS)[0]
        for level, x in zip(LEVELS, found.tolist(), strict=True):
            # Above the wiggles of an inversion far out there is one root.
            searched = scipy.optimize.brentq(
                lambda x, law=law, left=1 - level: law.tail(x) - left, 0.0, 11 * law.variance**0.5, xtol=1e-13
            )
            assert x == pytest.approx(searched, rel=1e-7)


def test_a_quantile_does_not_depend_to_the_last_bit_on_other_levels() -> None:
    rng = np.random.default_rng(3)
    for normal in (1e-3, 1.0, 1e3):
        laws = some_laws(rng, normal=normal)
        table = quantiles_of(laws, LEVELS)
        for place, level in enumerate(LEVELS):
            quantile_tables._table.cache_clear()
            assert quantiles_of(laws, [level])[:, 0].tolist() == table[:, place].tolist()


def test_closed_forms_and_points_are_those_of_the_law() -> None:
    laws = [
        ErrorLaw(sigma=2.0, laplaces=()),
        ErrorLaw(sigma=0.0, laplaces=((1.5, 1),)),
        ErrorLaw(sigma=1.0, laplaces=((1.5, 2),)),
        ErrorLaw(sigma=0.0, laplaces=()),
        ErrorLaw(sigma=0.0, laplaces=((1.5, 3),)),
    ]
    table = quantiles_of(laws, LEVELS)
    for law, found in zip(laws, table.tolist(), strict=True):
        assert found == pytest.approx([law.quantile(level) for level in LEVELS], rel=1e-12)
