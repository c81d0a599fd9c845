"""The form of an answer: odds in words, numbers as people write them, and values as they were given."""

from dataclasses import replace
from decimal import Decimal
from math import erf, exp, sqrt

import pytest

from app.core.errors import InvalidRequest
from app.core.grid import parse_decimal
from app.core.ledger import Holding
from app.core.measures import Measure
from app.core.study import Relation, StudyDefinition, Trust
from app.dashboard.answer_form import _text, given, record_of, steps

STUDY = StudyDefinition(
    slug="s",
    title="t",
    lower=Decimal(0),
    upper=Decimal(100),
    relation=Relation.REPLACE_ONE,
    trust=frozenset({Trust.CENTRAL}),
    epsilon_min=500_000,
    epsilon_max=2_000_000,
    default_share=200_000,
)


def test_steps_are_the_ends_of_the_range_and_the_middle():
    assert [(one.name, one.epsilon) for one in steps(STUDY)] == [
        ("Strong", "0.5"),
        ("Medium", "1"),
        ("Light", "2"),
    ]
    assert [one.epsilon for one in steps(replace(STUDY, epsilon_max=500_000))] == ["0.5"]
    listed = replace(STUDY, epsilons=(2_000_000, 100_000, 700_000, 1_000_000), epsilon_min=100_000)
    assert [one.epsilon for one in steps(listed)] == ["0.1", "1", "2"]


@pytest.mark.parametrize("low", [1, 12_345, 999_999, 1_234_567])
@pytest.mark.parametrize("more", [0, 1, 30, 10**6, 10**9])
def test_every_step_is_one_that_the_study_admits(low: int, more: int):
    study = replace(STUDY, epsilon_min=low, epsilon_max=low + more)
    for one in steps(study):
        assert study.admits(one.offer)
        assert study.admits(round(float(one.epsilon) * 1_000_000))


def test_odds_are_those_of_the_best_guess_rounded_up():
    """Against the definition: the largest sum of positive differences of two densities, by quadrature."""
    for one in steps(STUDY):
        epsilon = one.amount / 1e6
        worst = exp(epsilon) / (1 + exp(epsilon))  # randomized response meets the bound
        assert 0 <= one.of_answer / 100 - worst < 0.01
        assert one.of_presence is None
    secret = replace(STUDY, relation=Relation.ADD_REMOVE_ONE)
    for one, other in zip(steps(secret), steps(STUDY), strict=True):
        assert one.of_presence == other.of_answer
        epsilon = 2 * one.amount / 1e6
        assert 0 <= one.of_answer / 100 - exp(epsilon) / (1 + exp(epsilon)) < 0.01
    gaussian = replace(STUDY, delta=10_000_000)
    for one in steps(gaussian):
        mu = sqrt(one.amount / 1e6)
        width, reach = 1e-3, 12
        grid = [(place + 0.5) * width - reach for place in range(int(2 * reach / width))]
        apart = sum(max(exp(-((x - mu) ** 2) / 2) - exp(-(x**2) / 2), 0) for x in grid) * width
        right = (1 + apart / sqrt(2 * 3.141592653589793)) / 2
        assert right == pytest.approx((1 + erf(mu / sqrt(8))) / 2, abs=1e-5)
        assert 0 <= one.of_answer / 100 - right < 0.01


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("37,5", "37.5"),
        ("0,125", "0.125"),
        ("1 234", "1234"),
        ("\N{MINUS SIGN}3", "-3"),
        ("1,2345", "1.2345"),
    ],
)
def test_numbers_are_read_as_people_write_them(written: str, read: str):
    assert record_of(STUDY, {"value": written}, ".")["value"] == read


@pytest.mark.parametrize("written", ["1,234", "12,345,678"])
def test_a_comma_that_may_mean_two_things_is_asked_about(written: str):
    with pytest.raises(InvalidRequest) as refusal:
        record_of(STUDY, {"value": written}, ".")
    assert [one.field for one in refusal.value.fields] == ["value"]


@pytest.mark.parametrize("text", ["0", "100", "37.5", "33.333333333", "0.1", "99.99999999"])
def test_a_value_is_shown_as_the_shortest_text_that_is_kept_the_same(text: str):
    measure = Measure(Decimal(0), Decimal(100))
    point = STUDY.grid.point(*parse_decimal(text))
    assert point is not None
    shown = _text(measure, point)
    assert STUDY.grid.point(*parse_decimal(shown)) == point
    assert len(shown) <= len(text)


def test_nothing_is_shown_of_what_was_withdrawn():
    held = Holding(
        live=False, trust=Trust.CENTRAL, epsilon=1, carried=1, value=None, vector=None, epoch=1, sender=None
    )
    assert given(STUDY, held) == {}
    assert given(STUDY, replace(held, live=True, trust=Trust.LOCAL, value=5)) == {}
