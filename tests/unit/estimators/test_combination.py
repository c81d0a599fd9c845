"""The combination of noisy sums against generalized least squares, and a general solver with a tilt."""

import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import cvxpy
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from app.core.cohort import Group
from app.core.epsilon import MICRO
from app.core.grid import GRID_SIZE
from app.core.study import Trust
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.combination import Sums, _Parts, combination_plan
from app.estimators.interface import UNIT_SCALE, Linear
from app.estimators.reports import noise_variance
from tests.support.groups import local, public, replace_one
from tests.support.weights import rows_of, weights_of

cp: Any = cvxpy  # its functions carry no types

PIECES = 4


@st.composite
def situations(draw, *, others=True):
    """Sums over some groups of people, in one or in several of them, there or not, with noise of any size."""
    pieces = draw(st.integers(1, PIECES))
    groups, weights, absent = [], [], []
    for place in range(pieces):
        # Each piece has people of its own; some are in another one too, some have left.
        for _ in range(draw(st.integers(1, 2))):
            inside = {place: draw(st.integers(MICRO // 100, MICRO))}
            if draw(st.booleans()):
                inside[draw(st.integers(0, pieces - 1))] = draw(st.integers(MICRO // 100, MICRO))
            groups.append(Group(trust=Trust.CENTRAL, epsilon=0, count=draw(st.integers(20, 3_000))))
            weights.append(inside)
            absent.append(draw(st.integers(0, 4)) == 0)
    if draw(st.booleans()):
        # People in no sum: they have not paid.
        groups.append(Group(trust=Trust.CENTRAL, epsilon=0, count=draw(st.integers(20, 3_000))))
        weights.append({})
        absent.append(False)
    if others and draw(st.booleans()):
        groups.append(public(draw(st.integers(1, 200))))
        weights.append({})
        absent.append(False)
    if others and draw(st.booleans()):
        groups.append(local(draw(st.sampled_from([0.1, 1.0, 4.0])), [0] * draw(st.integers(1, 500))))
        weights.append({})
        absent.append(False)
    scales = [UNIT_SCALE / draw(st.floats(0.02, 1)) for _ in range(pieces)]
    return Sums(
        groups=tuple(groups),
        weights=weights_of(weights),
        absent=np.array(absent),
        scales=tuple(scales),
        public_weight=MICRO,
    )


def linear(*, attached=False, variance=WORST_VARIANCE):
    return Linear(
        reports=True,
        attached=attached,
        steering=variance,
        variance=WORST_VARIANCE,
        expected_variance=variance,
        shrinkage=lambda squares, noise, bias: 1.0,
    )


class Oracle:
    """The error of a combination from the weight of each person: nothing of it is taken from the module."""

    def __init__(self, sums, tilt, variance=WORST_VARIANCE):
        counts = np.array([group.count for group in sums.groups], dtype=float)
        columns, noises = [], []
        for piece, scale in enumerate(sums.scales):
            weighs = np.array([float(weight.get(piece, 0)) for weight in rows_of(sums.weights)])
            total = float(weighs @ counts)
            columns.append(weighs / total)
            noises.append(2 * (scale / GRID_SIZE / total) ** 2)
        for place, group in enumerate(sums.groups):
            if group.trust is not Trust.CENTRAL:
                column = np.zeros(len(sums.groups))
                column[place] = 1 / group.count
                columns.append(column)
                noises.append(
                    noise_variance(group, variance) / group.count if group.trust is Trust.LOCAL else 0.0
                )
        self.columns, self.noises = np.array(columns).T, np.array(noises)
        self.counts, self.variance, self.tilt = counts, variance, tilt
        self.there, self.gone = counts * ~sums.absent, counts * sums.absent
        self.equal = ~sums.absent / self.there.sum()

    def matrix(self):
        return self.variance * self.columns.T @ np.diag(self.counts) @ self.columns + np.diag(self.noises)

    def error(self, shares):
        # Who weighs too much differs from the others by the tilt, who has left by the whole range.
        weights = self.columns @ shares
        over = float(self.there @ np.maximum(weights - self.equal, 0))
        bias = self.tilt * over + float(self.gone @ weights)
        sampling = self.variance * float(self.counts @ (weights - self.equal) ** 2)
        return sampling + float(self.noises @ shares**2) + bias**2

    def least_squares(self):
        """The best shares that are not negative, without a tilt: the closed form on every set of parts."""
        matrix, size = self.matrix(), len(self.noises)
        found = []
        for number in range(1, 2**size):
            used = [place for place in range(size) if number >> place & 1]
            whole = np.linalg.solve(matrix[np.ix_(used, used)], np.ones(len(used)))
            if whole.min() >= 0:
                shares = np.zeros(size)
                shares[used] = whole / whole.sum()
                found.append(shares)
        return min(found, key=self.error)

    def solve(self):
        """The best shares that are not negative, by a general solver."""
        shares = cp.Variable(len(self.noises), nonneg=True)
        root = np.vstack(
            [np.sqrt(self.variance * self.counts)[:, None] * self.columns, np.diag(np.sqrt(self.noises))]
        )
        due = np.concatenate([np.sqrt(self.variance * self.counts) * self.equal, np.zeros(len(self.noises))])
        unit = 1 / np.sqrt(max(min(map(self.error, np.eye(len(self.noises)))), 1e-9))
        over = self.there @ cp.pos(self.columns @ shares - self.equal)
        bias = self.tilt * over + self.gone @ self.columns @ shares
        objective = cp.sum_squares(unit * (root @ shares - due)) + cp.square(unit * bias)
        problem = cp.Problem(cp.Minimize(objective), [cp.sum(shares) == 1])
        for tolerance, equilibrated in product((1e-9, 1e-8, 1e-7), (True, False)):
            # Now and then rounding keeps it from the end on one of both scales; then it warns. A thousandth
            # is asked for.
            tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), tolerance)
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                problem.solve(solver=cp.CLARABEL, equilibrate_enable=equilibrated, **tolerances)
            if problem.status == cp.OPTIMAL:
                break
        assert problem.status == cp.OPTIMAL
        found = np.maximum(np.asarray(shares.value), 0)
        return found / found.sum()


def question_of(sums, tilt):
    present = sum(group.count for group, gone in zip(sums.groups, sums.absent, strict=True) if not gone)
    return replace(replace_one(sums.groups), tilt=tilt, people=present)


def shares_of(sums, tilt, variance=WORST_VARIANCE):
    question = question_of(sums, tilt)
    parts = _Parts.of(sums, linear(variance=variance), question)
    sizes = np.array([group.count for group in sums.groups], dtype=float)
    return parts.best(question, sizes, sums, variance)


@given(sums=situations(), variance=st.sampled_from([WORST_VARIANCE, 0.01]))
def test_without_a_tilt_and_leavers_it_is_generalized_least_squares(sums, variance):
    sums = replace(sums, absent=np.zeros_like(sums.absent))
    shares, oracle = shares_of(sums, 0.0, variance), Oracle(sums, 0.0, variance)
    assert shares.sum() == pytest.approx(1)
    assert shares == pytest.approx(oracle.least_squares(), abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(("tilt", "excess"), [(0.02, 0.01), (0.1, 0.01), (1.0, 0.1)])
@given(sums=situations())
@settings(max_examples=40)
def test_with_a_tilt_it_is_nearly_what_a_general_solver_finds(tilt, excess, sums):
    """Of 1,413 situations the square error was above the solver's by .13 % at a tilt of .1, 5.6 % at 1.

    Where public people leave no error, the solver finds one of its own tolerance.
    """
    assume(not sums.absent.all())
    oracle = Oracle(sums, tilt)
    shares, best = shares_of(sums, tilt), oracle.error(oracle.solve())
    assert shares.min() >= 0
    assert (1 - 1e-3) * best - 1e-15 <= oracle.error(shares) <= (1 + excess) * best


@given(rows=st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 2**70), max_size=3)), data=st.data())
def test_weights_by_columns_are_those_of_each_group(rows, data):
    counts = [data.draw(st.integers(0, 9)) for _ in rows]
    weights = weights_of(rows)

    assert [list(row.items()) for row in rows_of(weights)] == [list(row.items()) for row in rows]
    assert list(weights.by_group(counts)) == [
        count for row, count in zip(rows, counts, strict=True) for _ in row
    ]
    assert weights.masses(counts, 4) == [
        sum(row.get(piece, 0) * count for row, count in zip(rows, counts, strict=True)) for piece in range(4)
    ]


def test_control_equal_shares_are_far_from_the_best_ones():
    sums = Sums(
        groups=tuple(Group(trust=Trust.CENTRAL, epsilon=0, count=count) for count in (1_000, 30)),
        weights=weights_of([{0: MICRO}, {1: MICRO}]),
        absent=np.array([False, False]),
        scales=(UNIT_SCALE, UNIT_SCALE),
        public_weight=0,
    )
    oracle = Oracle(sums, 0.1)
    assert oracle.error(np.array([0.5, 0.5])) > 3 * oracle.error(oracle.solve())


@pytest.mark.long
@given(sums=situations(), tilt=st.sampled_from([0.0, 0.1, 1.0]))
@settings(max_examples=40)
def test_those_who_left_count_in_the_error(sums, tilt):
    """The predicted error is that of the shares; who has left may be as far off as the range is wide."""
    assume(not sums.absent.all())
    plan = combination_plan(sums, linear(), question_of(sums, tilt))
    oracle = Oracle(sums, tilt)
    assert plan.predicted_error**2 == pytest.approx(oracle.error(shares_of(sums, tilt)), rel=1e-6)


def test_a_leaver_raises_the_error_and_widens_the_interval():
    def made(left):
        sums = Sums(
            groups=tuple(Group(trust=Trust.CENTRAL, epsilon=0, count=count) for count in (400 - left, left)),
            weights=weights_of([{0: MICRO}, {0: MICRO}]),
            absent=np.array([False, True]),
            scales=(UNIT_SCALE,),
            public_weight=0,
        )
        return combination_plan(sums, linear(), question_of(sums, 0.1))

    plans = [made(left) for left in (1, 10, 50, 200)]
    errors = [plan.predicted_error for plan in plans]
    widths = [plan.interval_width() for plan in plans]
    assert errors == sorted(errors)
    assert errors[-1] > 1.5 * errors[0]
    assert widths == sorted(widths)
    assert widths[-1] > 1.5 * widths[0]


@pytest.mark.long
@given(sums=situations(others=False), moved=st.integers(0, PIECES - 1), value=st.integers(1, 7))
@settings(max_examples=40)
def test_the_answer_is_the_combination_of_the_sums(sums, moved, value):
    """All have one value: it is the answer. A sum that is moved moves it by its share."""
    assume(not sums.absent.all())
    moved %= len(sums.scales)
    shares = shares_of(sums, 0.0)
    masses = [
        sum(
            weight.get(piece, 0) * group.count
            for group, weight in zip(sums.groups, rows_of(sums.weights), strict=True)
        )
        for piece in range(len(sums.scales))
    ]
    plan = combination_plan(sums, linear(), question_of(sums, 0.0))

    def answer(noise):
        noisy = [mass * value * GRID_SIZE // 8 for mass in masses]
        noisy[moved] += int(noise * masses[moved] * GRID_SIZE)
        return plan.conclude([*noisy, 0, *(mass * GRID_SIZE // 16 for mass in masses), 0]).estimate

    assert answer(0) == pytest.approx(value / 8, abs=1e-9)
    assert answer(Fraction(1, 16)) == pytest.approx(value / 8 + shares[moved] / 16, abs=1e-7)
