"""Bounds on single groups: the solver's proportions as integers that satisfy every constraint exactly."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import clarabel
import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.costs import check_charges, group_costs
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE
from app.core.study import Relation
from app.estimators.accuracy import WORST_VARIANCE
from app.estimators.interface import NotApplicable
from app.estimators.optimal import Optimal
from app.estimators.selectors import parse_caps, parse_entries, parse_variances, selected
from app.estimators.solver import Constrained, solve
from tests.support.groups import central, local, public, query_values, replace_one
from tests.support.profiles import mixed_profile, reports

cp: Any = cvxpy  # its functions carry no types

HALF = GRID_SIZE // 2
PLAIN: dict[str, object] = {"variance": "worst_case", "shrinkage": "none", "noise": "laplace"}
GROUPS = [central(0.1, 700), central(2.0, 300), reports(1.0, 500), reports(4.0, 200), public(30)]


def plan_for(groups, **options):
    return Optimal().plan(groups, replace_one(groups, parameters={**PLAIN, **options}))


def shares(groups, **options):
    """Weight of all people of each group: how far the answer moves when they do."""
    plan = plan_for(groups, **options)
    start = plan.conclude(query_values(plan, groups, [g.count * HALF for g in groups])).estimate
    found = []
    for index, group in enumerate(groups):
        moved, sums = list(groups), [g.count * HALF for g in groups]
        other = plan
        if group.reports is None:
            sums[index] += group.count * GRID_SIZE // 8
        else:
            moved[index] = local_like(group, HALF + GRID_SIZE // 8)
            other = plan_for(moved, **options)
        found.append((other.conclude(query_values(other, moved, sums)).estimate - start) * 8)
    return found


def local_like(group, value):
    made = local(group.epsilon / 1e6, [value] * 2)
    object.__setattr__(made, "count", group.count)
    assert made.reports is not None
    object.__setattr__(made.reports, "total", value * group.count)
    object.__setattr__(made.reports, "total_squares", value * value * group.count)
    return made


# --------------------------------------------------------------------------------------- optimum


def test_bounds_that_bind_nobody_change_nothing():
    free = plan_for(GROUPS)
    bound = plan_for(GROUPS, group_cap={"public": 1.0}, group_variance={"central": 0.25})
    assert bound.predicted_error == pytest.approx(free.predicted_error, rel=1e-7)
    for ours, exact in zip(bound.queries[0].sum_weights, free.queries[0].sum_weights, strict=True):
        assert ours == pytest.approx(exact, rel=1e-3, abs=2)


def test_a_cap_holds_exactly_and_nothing_is_wasted():
    free = shares(GROUPS)
    assert free[4] > 0.02
    capped = shares(GROUPS, group_cap={"public": 0.02})
    assert capped[4] <= 0.02
    assert capped[4] == pytest.approx(0.02, rel=1e-6)
    assert sum(capped) == pytest.approx(1)
    assert plan_for(GROUPS, group_cap={"public": 0.02}).predicted_error > plan_for(GROUPS).predicted_error


def test_caps_on_one_epsilon_and_on_a_whole_side_hold_together():
    options = {"group_cap": {"central": 0.3, "central@2000000": 0.2, "local@4000000": 0.1}}
    found = shares(GROUPS, **options)
    assert found[0] + found[1] <= 0.3 + 1e-12
    assert found[1] <= 0.2 + 1e-12
    assert found[3] <= 0.1 + 1e-12


def test_a_group_known_to_vary_less_weighs_more():
    before, after = shares(GROUPS), shares(GROUPS, group_variance={"local@4000000": 0.001})
    assert after[3] > before[3] * 1.5
    plan = plan_for(GROUPS, group_variance={"central": 0.01, "local": 0.01, "public": 0.01})
    known = plan_for(GROUPS, variance=0.01)
    assert plan.predicted_error == pytest.approx(known.predicted_error, rel=1e-6)
    mass = sum(w * g.count for w, g in zip(plan.queries[0].sum_weights, GROUPS, strict=True)) * HALF
    same = sum(w * g.count for w, g in zip(known.queries[0].sum_weights, GROUPS, strict=True)) * HALF
    ours, theirs = plan.conclude([mass]).population_interval, known.conclude([same]).population_interval
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-4)


@pytest.mark.long
def test_100_random_profiles_satisfy_everything_exactly():
    """Offers, caps (in fractions, inside the plan), and no smaller error than without the caps."""
    rng = np.random.default_rng(4)
    solved = 0
    for _ in range(100):
        groups = mixed_profile(rng)
        caps = {str(rng.choice(["central", "local", "public"])): float(rng.choice([0.1, 0.5, 0.9]))}
        try:
            plan = plan_for(groups, group_cap=caps)
        except NotApplicable:
            continue
        solved += 1
        costs = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups)
        check_charges(costs, groups)
        assert plan.predicted_error >= plan_for(groups).predicted_error * (1 - 1e-9)
    assert solved > 30


def test_caps_that_leave_weight_to_nobody_have_no_answer():
    with pytest.raises(NotApplicable, match="unassigned"):
        plan_for(GROUPS, group_cap={"central": 0.1, "local": 0.1, "public": 0.1})


@pytest.mark.parametrize("tilt", [0.0, 0.1])
def test_the_shares_are_those_of_the_problem_as_it_is_written(tilt):
    """Stated again for cvxpy, of random groups, caps and people who are in no group."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        size = int(rng.integers(3, 12))
        counts = rng.integers(1, 500, size).astype(float)
        epsilons = np.where(rng.random(size) < 0.3, np.inf, np.exp(rng.uniform(-3, 2, size)))
        epsilons[0], people = 1.0, counts.sum() * 1.2
        costs, members = rng.uniform(0.05, 2, size), [0, size - 1]
        found = solve(
            Constrained(
                counts=counts, costs=costs, epsilons=epsilons, caps=[(members, 0.3)], tilt=tilt, people=people
            )
        )
        share, eta, finite = cp.Variable(size, nonneg=True), cp.Variable(), np.isfinite(epsilons)
        away = (cp.norm1(share - counts / people) + (1 - counts.sum() / people)) / 2
        error = (costs / counts) @ share**2 + 2 * eta**2 + (tilt * away) ** 2
        bounds = [cp.sum(share) == 1, cp.sum(share[members]) <= 0.3]
        offers = share[finite] <= (counts * epsilons)[finite] * eta
        best = cp.Problem(cp.Minimize(error), [*bounds, offers]).solve(solver=cp.CLARABEL)
        share.value, eta.value = found, (found[finite] / (counts * epsilons)[finite]).max()
        assert error.value == pytest.approx(best, rel=1e-5)
        assert found[members].sum() <= 0.3


# ----------------------------------------------------------------------------------- fail closed


def problem():
    return Constrained(
        counts=np.array([10.0, 5.0]),
        costs=np.array([0.25, 0.25]),
        epsilons=np.array([1.0, np.inf]),
        caps=[([1], 0.4)],
    )


@pytest.mark.parametrize(
    "status", ["AlmostSolved", "AlmostPrimalInfeasible", "MaxIterations", "DualInfeasible", "NumericalError"]
)
def test_nothing_but_an_optimum_is_accepted(monkeypatch, status):
    found = SimpleNamespace(status=getattr(clarabel.SolverStatus, status), x=[0.6, 0.4, 0.1])
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *_: SimpleNamespace(solve=lambda: found))
    with pytest.raises(InternalFault, match=status):
        solve(problem())


@pytest.mark.parametrize("shares", [[math.nan, 0.4], [0.3, 0.3]])
def test_an_optimum_that_is_none_is_a_fault(monkeypatch, shares):
    found = SimpleNamespace(status=clarabel.SolverStatus.Solved, x=[*shares, 0.1])
    monkeypatch.setattr(clarabel, "DefaultSolver", lambda *_: SimpleNamespace(solve=lambda: found))
    with pytest.raises(InternalFault, match="no weights"):
        solve(problem())


def test_numbers_that_no_solver_can_take_are_a_fault():
    with pytest.raises(InternalFault):
        solve(replace(problem(), counts=np.array([math.nan, 5.0])))


def test_weights_beyond_a_cap_are_a_fault(monkeypatch):
    """A solver that lies: everything to the public people, whose cap is 0.4."""
    lie = np.array([0.0, 0.0, 1.0, 0.0, 0.0])  # central, public, local
    monkeypatch.setattr("app.estimators.constrained.solve", lambda _: lie)
    with pytest.raises(InternalFault):
        plan_for(GROUPS, group_cap={"public": 0.4})


def test_a_solver_that_lies_about_offers_costs_nobody_more_than_they_offered(monkeypatch):
    """All the weight on those who offer least: the noise follows from the weights that are used."""
    lie = np.array([0.9, 0.0, 0.1, 0.0, 0.0])  # central, public, local
    monkeypatch.setattr("app.estimators.constrained.solve", lambda _: lie)
    plan = plan_for(GROUPS, group_cap={"public": 0.4})
    costs = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, GROUPS)
    check_charges(costs, GROUPS)
    assert costs[0] == 100_000


# ------------------------------------------------------------------------------------- parameters


def test_entries_are_canonical():
    assert parse_variances("local@0.50:0.1, central:4e-2") == {"central": 0.04, "local@500000": 0.1}
    assert parse_caps("public:1") == {"public": 1.0}


REFUSED = (
    ["", "central", "central:", "central:x", "somebody:1", "central:1,central:2", "public@1:0.5"],
    ["central@:1", "central@0:1", "central@x:1", "central:0.1;local:0.2", "central:nan", "a," * 60],
)


@pytest.mark.parametrize("text", [text for texts in REFUSED for text in texts])
def test_anything_else_is_refused_with_a_reason(text):
    for parse in (parse_variances, parse_caps):
        with pytest.raises(ValueError, match="must"):
            parse(text)


def test_numbers_out_of_range_are_refused():
    for text in ("central:0", "central:1.1", "central:-0.1"):
        with pytest.raises(ValueError, match="must"):
            parse_caps(text)
    with pytest.raises(ValueError, match="must"):
        parse_variances("central:-1")


@given(st.text(alphabet="centralpubi@:,.0123456789e- ", max_size=20))
def test_no_text_makes_the_parser_fail_in_another_way(text):
    try:
        parsed = parse_entries(text)
    except ValueError:
        return
    assert all(isinstance(value, float) for value in parsed.values())


def test_the_more_specific_entry_counts():
    assert selected("central", GROUPS, 0) == [0, 1]
    assert selected("central@2000000", GROUPS, 0) == [1]
    assert selected("public", GROUPS, 0) == [4]
    one = plan_for(GROUPS, group_variance={"central": 0.25, "central@2000000": 0.01})
    two = plan_for(GROUPS, group_variance={"central@2000000": 0.01})
    assert one.predicted_error == pytest.approx(two.predicted_error, rel=1e-9)
    assert Fraction(WORST_VARIANCE) == Fraction(1, 4)


def test_a_parameter_that_was_not_parsed_is_a_fault():
    with pytest.raises(InternalFault):
        plan_for(GROUPS, group_cap="public:0.5")
