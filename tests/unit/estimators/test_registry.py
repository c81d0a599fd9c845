"""Names, parameters, and what `auto` chooses."""

from dataclasses import replace

import numpy as np
import pytest

from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE
from app.core.study import Relation, Trust
from app.estimators import registry
from app.estimators.interface import NotApplicable
from tests.support.groups import add_remove_one, central, local, public, query_values, replace_one

HALF = 1 << 29


def test_every_estimator_is_found_under_its_own_name():
    for name, estimator in registry.ESTIMATORS.items():
        assert estimator.name == name
        assert registry.get(name, estimator.relation) is estimator
        assert estimator.version >= 1
        assert estimator.summary.endswith(".")


def test_each_relation_has_its_estimators():
    assert {e.name for e in registry.applicable(Relation.REPLACE_ONE)} == {
        *("uniform", "optimal", "adpm", "kvh", "pwh", "threshold"),
    }
    assert {e.name for e in registry.applicable(Relation.ADD_REMOVE_ONE)} == {"transformed", "hourglass"}


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        ("nobody", Relation.REPLACE_ONE),
        ("", Relation.REPLACE_ONE),
        ("auto", Relation.REPLACE_ONE),
        ("adpm", Relation.ADD_REMOVE_ONE),
        ("transformed", Relation.REPLACE_ONE),
    ],
)
def test_an_unknown_or_unsuitable_name_is_refused(name, relation):
    with pytest.raises(InvalidRequest) as refused:
        registry.get(name, relation)
    assert refused.value.fields[0].field == "estimator"


def test_auto_takes_the_parameters_of_all_that_apply():
    union = [p.name for p in registry.parameters("auto", Relation.REPLACE_ONE)]
    assert len(union) == len(set(union))
    assert {"variance", "shrinkage"} <= set(union)
    assert [p.name for p in registry.parameters("auto", Relation.ADD_REMOVE_ONE)] == ["moments", "level"]
    assert registry.parameters("adpm", Relation.REPLACE_ONE) == ()
    assert [p.name for p in registry.parameters("kvh", Relation.REPLACE_ONE)] == [
        *("variance", "coalition"),
    ]


def test_a_question_is_cut_to_what_an_estimator_declares():
    question = replace_one([], parameters={"variance": 0.1, "other": 5})
    adpm, kvh = (registry.get(name, Relation.REPLACE_ONE) for name in ("adpm", "kvh"))
    assert registry.for_estimator(adpm, question).parameters == {}
    assert registry.for_estimator(kvh, question).parameters == {
        "variance": 0.1,
        "coalition": 0.0,
    }
    assert registry.for_estimator(kvh, replace_one([])).parameters == {
        "variance": "estimated",
        "coalition": 0.0,
    }


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ([central(0.1, 500), central(5.0, 500)], "optimal"),
        ([central(1.0, 5), local(1.0, [HALF] * 1000)], "optimal"),
        ([local(1.0, [HALF] * 100)], "optimal"),
        ([public(3)], "uniform"),
    ],
)
def test_auto_takes_the_smallest_predicted_error_and_the_first_of_equals(groups, name):
    question = replace_one(groups, parameters={"variance": "worst_case", "unknown": 1})
    estimator, plan, _ = registry.choose(groups, question)
    assert estimator.name == name
    for other in registry.applicable(Relation.REPLACE_ONE):
        try:
            rival = other.plan(groups, registry.for_estimator(other, question))
        except NotApplicable:
            continue
        assert plan.predicted_error <= rival.predicted_error


def test_auto_has_the_defaults_of_every_parameter():
    """It draws an answer in by what its noise warrants: 10,000 people who say .1 are not moved to .104."""
    for groups in ([central(1.0, 10_000)], [central(0.1, 500), central(5.0, 500), local(1.0, [HALF] * 9)]):
        estimator, _, answered = registry.choose(groups, replace_one(groups))
        assert answered.parameters == {one.name: one.default for one in estimator.parameters}


def noise_alone(conclusion):
    """Half of the interval that the noise in an answer gives, for people who weigh the same."""
    return replace(conclusion.error.dataset, normal=0.0, reach=0.0).half_width()


@pytest.mark.parametrize("name", ["auto", *(one.name for one in registry.applicable(Relation.REPLACE_ONE))])
def test_no_default_leaves_the_interval_that_its_noise_gives(name):
    """Whatever the values are, and wherever noise takes them: little or much of it, inside and outside."""
    rng = np.random.default_rng([*name.encode()])
    answered = 0
    for _ in range(60):
        groups = [
            central(float(np.exp(rng.uniform(-4, 2))), 1 + int(np.exp(rng.uniform(0, 8))))
            for _ in range(int(rng.integers(1, 4)))
        ]
        groups += [local(1.0, [HALF] * 40)] if rng.random() < 0.3 else []
        groups += [public(3)] if rng.random() < 0.2 else []
        question = replace_one(groups, tilt=float(rng.choice([0.0, 0.1])))
        try:
            _, plan, _ = registry.choose(
                groups, question, None if name == "auto" else [registry.ESTIMATORS[name]]
            )
        except NotApplicable:
            continue
        for position in (-0.4, 0.0, 0.1, 0.5, 0.97, 1.0, 1.6):
            totals = [
                0 if group.trust is Trust.LOCAL else round(position * group.count * GRID_SIZE)
                for group in groups
            ]
            conclusion = plan.conclude(query_values(plan, groups, totals))
            if conclusion.error is None:
                continue
            answered += 1
            center = min(max(conclusion.error.center, 0.0), 1.0)
            assert abs(conclusion.estimate - center) <= noise_alone(conclusion) + 1e-12
    assert answered > 50


def test_control_minimax_by_name_leaves_it():
    groups = [central(1.0, 10_000)]
    question = replace_one(groups, parameters={"shrinkage": "minimax"})
    _, plan, _ = registry.choose(groups, question, [registry.ESTIMATORS["optimal"]])
    conclusion = plan.conclude(query_values(plan, groups, [1_000 * GRID_SIZE]))
    assert abs(conclusion.estimate - 0.1) > 5 * noise_alone(conclusion)


def test_auto_draws_nothing_exact_in():
    _, plan, _ = registry.choose([public(3)], replace_one([public(3)]))
    assert "shrinkage" not in plan.conclude([3 * HALF]).details


def test_auto_answers_where_the_size_is_secret_and_does_not_look_who_is_there():
    """Where everybody offers the same the hourglass errs least; otherwise it would leave epsilon unused."""
    for groups in ([], [central(1.0, 500)]):
        assert registry.choose(groups, add_remove_one(expected_size=1000))[0].name == "hourglass"
        uneven = add_remove_one(cap=1.0, floor=0.1, expected_size=1000)
        assert registry.choose(groups, uneven)[0].name == "transformed"


def test_auto_has_no_answer_where_nobody_has():
    with pytest.raises(NotApplicable):
        registry.choose([], replace_one([]))
