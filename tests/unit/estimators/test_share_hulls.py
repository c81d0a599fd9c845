"""Intervals for many shares together against those that are searched one by one."""

import numpy as np
import pytest

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.study import Currency, Trust
from app.estimators import confidence
from app.estimators.pivot import mass_risk
from app.estimators.quantiles import ErrorLaw
from app.estimators.share_hulls import _MOST_EQUAL, _equal_laplaces
from app.estimators.shares import SharesPlan
from app.estimators.weighing import weigh_secret

# Inversions stop at fewer nodes than those of one law; both are good to 5e-7 where intervals end.
CLOSE = 1e-7


@pytest.mark.parametrize("currency", Currency)
@pytest.mark.parametrize("epsilons", [[MICRO], [MICRO // 4, MICRO // 2, MICRO]], ids=["equal", "unequal"])
@pytest.mark.parametrize("bins", [2, 3, 10])
@pytest.mark.parametrize("tilt", [0.0, 0.05, 1.0])
def test_each_share_has_the_interval_that_is_searched_for_it_alone(
    currency: Currency, epsilons: list[int], bins: int, tilt: float
) -> None:
    rng = np.random.default_rng(bins)
    groups = [Group(trust=Trust.CENTRAL, epsilon=epsilon, count=40) for epsilon in epsilons]
    weighed = weigh_secret(groups, cap=max(epsilons), floor=min(epsilons), currency=currency, tilt=tilt)
    plan, heavy = SharesPlan(bins=bins, weighing=weighed), max(weighed.weights)
    for people in (3, 30, 3000):
        shares = people * rng.dirichlet(np.ones(bins)) + rng.laplace(0, 3, bins)
        counts = [int(heavy * share) for share in shares]
        total, found = sum(counts), plan.read(counts)
        of_total = 0.0 if weighed.is_equal else mass_risk()
        joint = of_total + (confidence.risk() - of_total) / bins
        each = of_total + (confidence.risk() - of_total) / max(1, bins - 1)
        for count, share in zip(counts, found.bins, strict=True):
            for risk, population, interval in (
                (confidence.risk(), False, share.interval),
                (confidence.risk(), True, share.population_interval),
                (joint, False, share.simultaneous),
            ):
                lower, upper = plan._hull_secret(1, count, total - count, risk, population=population)
                assert interval.lower == pytest.approx(max(0.0, min(lower, share.share)), abs=CLOSE)
                assert interval.upper == pytest.approx(min(1.0, max(upper, share.share)), abs=CLOSE)
        # Bands rise, so that they lie within what is searched for each of their points.
        for place, share in enumerate(found.cumulative, 1):
            lower, upper = plan._hull_secret(place, sum(counts[:place]), sum(counts[place:]), each)
            assert share.interval.lower >= min(lower, share.share) - CLOSE
            assert share.interval.upper <= max(upper, share.share) + CLOSE


@pytest.mark.parametrize("many", [1, 2, 3, 9, _MOST_EQUAL])
def test_sums_of_equal_laplaces_have_the_tail_that_is_inverted(many: int) -> None:
    x = np.array([0.5, 2.0, 7.0, 20.0]) * many**0.5
    law = ErrorLaw(sigma=0.0, laplaces=((1.0, many),))
    found = _equal_laplaces(x, np.full(len(x), many))
    assert found == pytest.approx([law.tail(float(one)) for one in x], abs=1e-9)
