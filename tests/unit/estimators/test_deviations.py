"""How far weights are from 1/n: against person by person, and the bias against linear programs."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from app.estimators.deviations import Deviations

GROUPS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.booleans(), st.floats(0.01, 0.25)),
    min_size=1,
    max_size=5,
).filter(lambda groups: any(size and weight and not gone for size, weight, gone, _ in groups))
"""People, what one of them weighs, whether they have left, and the variance of a value."""


def weights(groups: list[tuple[int, int, bool, float]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = np.array([size for size, *_ in groups], dtype=float)
    raw = np.array([weight for _, weight, *_ in groups], dtype=float)
    return sizes, raw / float(sizes @ raw), np.array([gone for _, _, gone, _ in groups])


@given(groups=GROUPS, missing=st.integers(0, 3))
def test_variances_are_those_of_all_people_one_by_one(groups, missing):
    sizes, person, absent = weights(groups)
    present = int(sizes[~absent].sum())
    found = Deviations.of(sizes, person, people=present + missing, absent=absent)
    each = [
        (weight, 0.0 if gone else 1 / (present + missing), variance)
        for (size, _, gone, variance), weight in zip(groups, person, strict=True)
        for _ in range(size)
    ]
    largest = max(variance for *_, variance in groups)
    each += [(0.0, 1 / (present + missing), largest)] * missing
    variances = np.array([variance for *_, variance in groups])
    assert (found.people, found.missing) == (present + missing, missing)
    assert found.about_population(variances) == pytest.approx(sum(v * c**2 for c, _, v in each))
    assert found.about_dataset(variances) == pytest.approx(sum(v * (c - due) ** 2 for c, due, v in each))
    assert found.about_dataset() == pytest.approx(sum((c - due) ** 2 for c, due, _ in each))
    assert found.farthest == pytest.approx(max(abs(c - due) for c, due, _ in each))
    assert found.largest == pytest.approx(max(c for c, *_ in each))
    assert found.equal == all(abs(c - due) < 1e-12 for c, due, _ in each)


@given(groups=GROUPS, tilt=st.floats(0.0, 1.0))
def test_the_bias_is_the_most_that_values_within_the_tilt_move_an_answer_by(groups, tilt):
    """The largest error over all values in [0, 1], from a linear program that knows no formula of ours."""
    sizes, person, absent = weights(groups)
    due = np.where(absent, 0.0, 1 / sizes[~absent].sum())
    error = sizes * (person - due)
    above, below = np.where(~absent & (error > 0), error, 0.0), np.where(~absent & (error < 0), -error, 0.0)
    found = Deviations.of(sizes, person, tilt=tilt, absent=absent)
    if min(above.sum(), below.sum()) < 1e-9:
        # No two kinds of people whose means could differ: who has left moves it, or no one.
        assert found.bias >= float(error[absent].sum()) - 1e-9
        return
    apart = above / above.sum() - below / below.sum()
    solved = linprog(
        -error,
        A_ub=np.array([apart, -apart]),
        b_ub=[tilt, tilt],
        bounds=[(0, 1)] * len(sizes),
        method="highs",
    )
    assert found.bias == pytest.approx(-solved.fun, abs=1e-9)


def test_rounding_makes_no_weights_unequal_and_a_real_difference_does():
    sizes = np.array([3.0, 4.0])
    person = np.array([1 / 7 + 1e-17, 1 / 7 - 1e-17])
    assert Deviations.of(sizes, person, tilt=1.0).equal
    assert Deviations.of(sizes, person, tilt=1.0).bias == 0.0
    assert not Deviations.of(sizes, person + np.array([4e-8, -3e-8]), tilt=1.0).equal
    assert not Deviations.of(sizes, person, people=8).equal


SAMPLES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(1, 5), st.integers(0, 5)),
    min_size=1,
    max_size=4,
)
"""People who were heard and who were not, what one of the first weighs, and what their values start with."""


@given(samples=SAMPLES, tilt=st.floats(0.0, 1.0))
def test_who_is_heard_by_a_draw_is_no_tilt_and_has_the_variance_of_the_draw(samples, tilt):
    """Against people one by one, and against every sample that there could have been."""
    sizes = np.array([heard for heard, *_ in samples], dtype=float)
    silent = np.array([rest for _, rest, *_ in samples], dtype=float)
    raw = np.array([weight for *_, weight, _ in samples], dtype=float)
    person = raw / float(sizes @ raw)
    found = Deviations.of(sizes, person, tilt=tilt, silent=silent)
    people = sizes.sum() + silent.sum()
    each = sizes * person / (sizes + silent)
    assert found.people == people
    assert found.bias == pytest.approx(
        tilt / 2 * float((sizes + silent) @ np.abs(each - 1 / people)), abs=1e-12
    )
    for place, (heard, rest, _, start) in enumerate(samples):
        values = [((start + one) * one) % 7 / 6 for one in range(heard + rest)]
        scatter = float(np.var(values))
        errors = [
            person[place] * sum(sample) - each[place] * sum(values)
            for sample in itertools.combinations(values, heard)
        ]
        assert float(np.mean(errors)) == pytest.approx(0, abs=1e-12)
        alone = heard * person[place] ** 2 - (heard + rest) * each[place] ** 2 + float(found.drawn[place])
        assert float(np.mean(np.square(errors))) == pytest.approx(alone * scatter, abs=1e-12)
    squares = sizes @ (person - 1 / people) ** 2 + silent.sum() / people**2 + found.drawn.sum()
    assert found.about_dataset() == pytest.approx(squares, abs=1e-12)
    assert found.moved(1.0).sum() == pytest.approx(squares, abs=1e-12)
    assert found.equal == (not silent.any() and bool(np.all(np.abs(person - 1 / people) < 1e-12)))
