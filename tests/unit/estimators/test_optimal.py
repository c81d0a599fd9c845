"""`optimal` as a plan: never beaten, equal to `adpm` and `kvh` where they are optimal, and its options."""

import math
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from app.accounting.costs import check_charges, group_costs
from app.core.epsilon import amount_of
from app.core.grid import GRID_SIZE
from app.core.noise import NoNoise
from app.core.study import Currency, LocalMechanism, Relation, Trust
from app.estimators import registry
from app.estimators.adpm import Adpm
from app.estimators.adpm import saturation as adpm_saturation
from app.estimators.hybrid import Kvh
from app.estimators.interface import NotApplicable
from app.estimators.noises import FINE
from app.estimators.optimal import Optimal, parse_shrinkage, saturation
from dither_research.estimators import ESTIMATORS, applicable
from tests.support.groups import (
    WIDE_GRID,
    about_population,
    central,
    local,
    public,
    query_values,
    replace_one,
)
from tests.support.profiles import mixed_profile, reports

HALF = GRID_SIZE // 2
PLAIN: dict[str, object] = {"variance": "worst_case", "shrinkage": "none"}


def plan_for(groups, parameters=None, **more):
    return Optimal().plan(groups, replace_one(groups, parameters={**PLAIN, **(parameters or {})}, **more))


@pytest.mark.long
def test_it_is_never_beaten_on_1_000_random_profiles():
    """About the population: with minimax shrinkage by nobody, unshrunk by nobody who does not shrink."""
    rng = np.random.default_rng(2024)
    rivals = [e for e in applicable(Relation.REPLACE_ONE) if e.name != "optimal"]
    for _ in range(1000):
        groups = mixed_profile(rng)
        question = replace_one(groups, parameters={**PLAIN, "shrinkage": "minimax"})
        best = about_population(Optimal().plan(groups, question))
        unshrunk = about_population(plan_for(groups))
        warranted = about_population(plan_for(groups, {"shrinkage": "noise"}))
        assert best <= warranted * (1 + 1e-9)
        assert warranted <= min(unshrunk, 0.5) * (1 + 1e-9)
        for rival in rivals:
            try:
                other = about_population(rival.plan(groups, registry.for_estimator(rival, question)))
            except NotApplicable:
                continue
            assert best**2 <= other**2 * (1 + 1e-9), rival.name
            if rival.name not in ("stretching", "adpm"):
                assert unshrunk**2 <= other**2 * (1 + 1e-9), rival.name
            if rival.name == "adpm":
                assert min(unshrunk, 0.5) ** 2 <= other**2 * (1 + 1e-9)


def test_without_reports_it_plans_like_adpm():
    """The same weights, in sixty-fourths of a micro; the same error, the same saturation point."""
    rng = np.random.default_rng(7)
    for _ in range(100):
        groups = [g for g in mixed_profile(rng) if g.trust is not Trust.LOCAL] or [central(0.5, 40)]
        ours, theirs = plan_for(groups), Adpm().plan(groups, replace_one(groups))
        if theirs.predicted_error == 0.5:
            assert about_population(ours) >= 0.5 * (1 - 1e-9)
            continue
        assert about_population(ours) == pytest.approx(about_population(theirs), rel=1e-6)
        assert ours.predicted_error == pytest.approx(theirs.predicted_error, rel=1e-5, abs=1e-9)
        for fine, coarse in zip(ours.queries[0].sum_weights, theirs.queries[0].sum_weights, strict=True):
            assert abs(fine - coarse * FINE) <= FINE
        question = replace_one(groups, parameters={"shrinkage": "noise"})
        assert saturation(groups, question) == adpm_saturation(groups)


@pytest.mark.parametrize("variance", ["worst_case", 0.02])
def test_with_one_central_epsilon_it_plans_like_kvh(variance):
    rng = np.random.default_rng(8)
    for _ in range(100):
        groups = [central(float(np.exp(rng.uniform(-3, 2))), int(rng.integers(1, 500)))]
        groups += [
            reports(float(np.exp(rng.uniform(-2, 2))), int(rng.integers(1, 900)))
            for _ in range(int(rng.integers(1, 4)))
        ]
        question = replace_one(groups, parameters={**PLAIN, "variance": variance})
        ours, theirs = Optimal().plan(groups, question), Kvh().plan(groups, question)
        assert ours.predicted_error <= theirs.predicted_error * (1 + 1e-9)
        if (saturation_of(ours, groups)) is None:
            assert ours.predicted_error == pytest.approx(theirs.predicted_error, rel=1e-9)


def saturation_of(plan, groups):
    """Whether the one central group weighs less than it offers."""
    weight = plan.queries[0].sum_weights[0]
    return None if weight == groups[0].epsilon * FINE else weight


def test_charges_are_what_is_used_and_never_more_than_offered():
    groups = [central(0.1, 700), central(2.0, 300), local(1.0, [HALF] * 50), public(3)]
    plan = plan_for(groups)
    costs = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups)
    check_charges(costs, groups)
    assert costs[0] == 100_000
    assert 100_000 < costs[1] < 2_000_000
    assert costs[1] == saturation(groups, replace_one(groups, parameters=PLAIN))
    assert costs[2:] == [0, 0]


def test_weights_sum_to_one_and_values_are_read_back():
    groups = [central(0.3, 40), central(2.0, 10), public(5), local(1.0, [7] * 30)]
    plan = plan_for(groups, grid=WIDE_GRID)
    conclusion = plan.conclude(query_values(plan, groups, [40 * 7, 10 * 7, 5 * 7, 0]))
    assert conclusion.estimate == pytest.approx(-20 + 80 * 7 / GRID_SIZE, abs=1e-9)


def test_only_what_needs_no_noise_is_answered_without():
    assert plan_for([public(5), local(1.0, [HALF] * 9)]).noise == NoNoise()
    assert plan_for([local(1.0, [HALF] * 9)]).noise == NoNoise()
    with pytest.raises(NotApplicable):
        plan_for([central(1.0, 5, participates=False)])


def test_a_constant_is_read_from_public_people_alone():
    plan = plan_for([central(1.0, 100), public(1), local(1.0, [HALF] * 9)], {"variance": 0.0})
    assert plan.noise == NoNoise()
    assert plan.predicted_error == 0


# -------------------------------------------------------------------------------------- shrinkage


def test_by_default_little_noise_moves_the_answer_by_far_less_than_itself():
    """1,000 people at epsilon 1: noise of 0.0014, drawn in by 0.000004 at the end of the range."""
    groups = [central(1.0, 1000)]
    plan = Optimal().plan(groups, replace_one(groups))
    conclusion = plan.conclude(query_values(plan, groups, [1000 * GRID_SIZE]))
    assert 0 < 1 - conclusion.estimate < conclusion.standard_error / 100
    assert conclusion.interval.lower <= conclusion.estimate <= conclusion.interval.upper


def test_without_noise_nothing_moves():
    groups = [public(3)]
    plan = Optimal().plan(groups, replace_one(groups))
    assert plan.conclude(query_values(plan, groups, [3 * GRID_SIZE])).estimate == 1


def test_minimax_draws_the_answer_in_by_one_part_in_the_root_of_n():
    groups = [public(100)]
    plan = plan_for(groups, {"shrinkage": "minimax"})
    conclusion = plan.conclude(query_values(plan, groups, [100 * GRID_SIZE]))
    assert conclusion.details["shrinkage"] == pytest.approx(10 / 11)
    assert conclusion.estimate == pytest.approx(0.5 + 0.5 * 10 / 11)
    assert conclusion.interval.upper == 1
    assert conclusion.interval.lower <= conclusion.estimate
    assert about_population(plan) ** 2 == pytest.approx(0.25 / 100 / (1 + 0.1) ** 2)


def test_next_to_no_information_is_answered_from_near_the_middle():
    """Not with the middle itself, as `adpm` does: a little is gained below W^2 / 4."""
    groups = [central(0.1, 20)]
    for rule in ("noise", "minimax"):
        plan = plan_for(groups, {"shrinkage": rule})
        assert plan.predicted_error < 0.5
        assert abs(plan.conclude([10**40]).estimate - 0.5) <= 0.5
    assert Adpm().plan(groups, replace_one(groups)).predicted_error == 0.5


@pytest.mark.parametrize("text", ["", "a", "None", "MINIMAX"])
def test_shrinkage_is_one_of_three_words(text):
    with pytest.raises(ValueError, match="must be"):
        parse_shrinkage(text)
    assert parse_shrinkage("minimax") == "minimax"


# ------------------------------------------------------------------------------- saturation point


def test_reports_lower_the_saturation_point_and_make_one_where_there_was_none():
    alone = [central(0.5, 300)]
    assert saturation(alone, replace_one(alone)) is None
    joined = [*alone, local(1.0, [HALF] * 1000)]
    point = saturation(joined, replace_one(joined))
    assert point is not None
    known = [central(0.1, 700), public(300)]
    assert saturation(known, replace_one(known, parameters={"shrinkage": "noise"})) == 214_286


def test_the_saturation_point_is_what_auto_charges():
    rng = np.random.default_rng(11)
    saturated = 0
    for _ in range(60):
        groups = [central(float(np.exp(rng.uniform(-4, 2))), int(rng.integers(2, 900))) for _ in range(4)]
        point = saturation(groups, replace_one(groups))
        _, plan, _ = registry.choose(groups, replace_one(groups, parameters={"variance": "worst_case"}))
        most = max(group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups))
        if point is None:
            assert most == max(group.epsilon for group in groups)
        else:
            assert point - 1 <= most <= point
        saturated += point is not None
    assert saturated >= 20


def test_nobody_has_no_saturation_point():
    assert saturation([], replace_one([])) is None
    assert saturation([local(1.0, [HALF])], replace_one([])) is None


# ----------------------------------------------------------------------------------------- noise


def in_mu2(groups, delta=10**6):
    """Groups and question of a study with Gaussian noise, whose people offer their epsilons at a delta."""
    groups = [replace(one, epsilon=amount_of(one.epsilon, delta)) for one in groups]
    return groups, replace(replace_one(groups, parameters=PLAIN), delta=delta)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0, 300.0])
def test_gaussian_weights_cost_the_offer_to_the_last_millionth(epsilon):
    groups, question = in_mu2([central(epsilon, 100)])
    plan = Optimal().plan(groups, question)
    costs = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups, Currency.GAUSSIAN)
    assert costs == [groups[0].epsilon]


def test_gaussian_weights_are_the_minimum_of_their_own_problem():
    """s2 sum w^2 + eta^2 with w_i <= mu_i eta, by a solver that knows nothing of epsilons."""
    groups, question = in_mu2([central(0.3, 400), central(1.0, 300), central(6.0, 200)])
    for name in ("optimal", "adpm"):
        estimator = ESTIMATORS[name]
        plan = estimator.plan(groups, registry.for_estimator(estimator, question))
        counts = np.array([one.count for one in groups], dtype=float)
        mus = np.sqrt(np.array([one.epsilon for one in groups]) / 1e6)
        weights, eta = cp.Variable(3), cp.Variable()
        error = 0.25 * counts @ weights**2 + eta**2
        problem = cp.Problem(cp.Minimize(error), [counts @ weights == 1, weights <= mus * eta, weights >= 0])
        problem.solve(solver=cp.CLARABEL)
        found = np.array(plan.queries[0].sum_weights) / (np.array(plan.queries[0].sum_weights) @ counts)
        assert found == pytest.approx(weights.value, rel=1e-3)
        if name == "adpm":
            assert about_population(plan) ** 2 == pytest.approx(problem.value, rel=1e-5)
        check_charges(
            group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups, Currency.GAUSSIAN), groups
        )


def test_the_gaussian_saturation_point_is_what_is_charged():
    groups, question = in_mu2([central(0.3, 400), central(1.0, 300), central(6.0, 200)])
    question = replace(question, parameters={**PLAIN, "shrinkage": "none"})
    plan = Optimal().plan(groups, question)
    costs = group_costs(plan.queries, plan.noise, Relation.REPLACE_ONE, groups, Currency.GAUSSIAN)
    assert max(costs) == saturation(groups, question) < groups[-1].epsilon


def test_a_gaussian_answer_says_what_it_tells_those_who_see_nothing_else():
    """Local people weigh less than central ones and lose less; half of them conspiring costs the rest."""
    groups, question = in_mu2([central(1.0, 100)])
    sent = reports(1.0, 900, LocalMechanism.GAUSSIAN)
    groups.append(replace(sent, epsilon=amount_of(sent.epsilon, 10**6)))
    question = replace(question, people=1000)
    told = []
    for coalition in (0.0, 0.5):
        parameters = {**PLAIN, "coalition": coalition}
        plan = Kvh().plan(groups, replace(question, parameters=parameters))
        amplification = plan.conclude([0]).details["amplification"]
        assert isinstance(amplification, dict)
        told.append(amplification)
    alone, conspired = told
    assert alone["delta"] == 1e-6
    assert 0 < alone["local"] < alone["central"] <= 1.0
    assert alone["central"] < conspired["central"] <= 1.0
    assert conspired["coalition"] == 0.5


def test_weights_that_follow_the_reports_carry_no_such_statement():
    groups, question = in_mu2([central(1.0, 100)])
    sent = reports(1.0, 900, LocalMechanism.GAUSSIAN)
    groups.append(replace(sent, epsilon=amount_of(sent.epsilon, 10**6)))
    parameters = {**PLAIN, "variance": "estimated", "coalition": 0.0}
    plan = Kvh().plan(groups, replace(question, parameters=parameters))
    assert "amplification" not in plan.conclude([0]).details


def test_the_wide_grid_scales_everything():
    groups = [central(0.3, 400), central(2.0, 100), local(1.0, [HALF] * 9)]
    unit, wide = plan_for(groups), plan_for(groups, grid=WIDE_GRID)
    assert wide.predicted_error == pytest.approx(80 * unit.predicted_error, rel=1e-12)
    assert wide.queries == unit.queries
    assert math.isfinite(unit.predicted_error)
    assert Fraction(unit.queries[0].sum_weights[0]) > 0
