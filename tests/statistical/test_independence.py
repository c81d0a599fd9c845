"""The test of a table keeps its level where choices are independent, and finds those that are not.

200 tables a case, with the noise of the answer itself. Under independence the number of tables below a level
of 5 % is binomial; a level of 7.5 % is allowed for, since margins are estimates, and more than 42 of them
then come up with a probability below 1e-9. In the control one choice goes with the other: 150 must see it.
"""

import numpy as np
import pytest

from app.core.noise import DiscreteGaussian, DiscreteLaplace
from app.core.study import Currency, Relation
from app.estimators import independence
from app.estimators.independence import p_value
from app.estimators.shares import SharesPlan
from app.estimators.weighing import Weighing, unit_of

pytestmark = pytest.mark.statistical

RUNS, LEVEL, MOST, LEAST = 200, 0.05, 42, 150
PEOPLE = 1000
FIRST, SECOND = (0.6, 0.3, 0.1), (0.8, 0.2)
NULL = np.outer(FIRST, SECOND)
DEPENDENT = NULL + 0.1 * np.array([[1, -1], [-1, 1], [0, 0]])


@pytest.fixture(autouse=True)
def _few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough for a level of 5 %."""
    monkeypatch.setattr(independence, "TABLES", 999)


def found(source, law: np.ndarray, relation: Relation, currency: Currency) -> int:
    """In how many of the runs independence is rejected."""
    unit = unit_of(currency)
    weight = unit // 2  # An epsilon of one half, and what is worth as much.
    weighing = Weighing(
        relation=relation,
        weights=(weight,),
        mass=PEOPLE * weight,
        squares=1 / PEOPLE,
        largest=1 / PEOPLE,
        cap=weight,
        floor=weight,
        currency=currency,
    )
    plan = SharesPlan(bins=law.size, weighing=weighing)
    assert isinstance(plan.noise, DiscreteGaussian if currency is Currency.GAUSSIAN else DiscreteLaplace)
    noise = source.draws(plan.noise, RUNS)
    people = np.random.default_rng(1).multinomial(PEOPLE, law.ravel(), size=RUNS)
    rejected = 0
    for counts, errors in zip(people, noise, strict=True):
        drawn = [weight * int(count) + int(error) for count, error in zip(counts, errors, strict=True)]
        rejected += p_value(plan, [(drawn, ())], law.shape[0]) <= LEVEL
    return rejected


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("currency", list(Currency))
def test_independent_choices_are_rejected_as_rarely_as_the_level_says(source, relation, currency):
    assert found(source, NULL, relation, currency) <= MOST


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("currency", list(Currency))
def test_control_dependent_choices_are_found(source, relation, currency):
    assert found(source, DEPENDENT, relation, currency) >= LEAST
