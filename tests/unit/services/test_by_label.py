"""A question by labels: what a person pays, against all neighbors, and what is read off the same sums."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from uuid import uuid4

import pytest

from app.accounting.gaussian import effective_variance
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InternalFault
from app.core.grid import GRID_SIZE, square
from app.core.piece import LastStep, Piece
from app.estimators.interface import Plan
from app.services.statistics import steps
from app.services.statistics.piece_noise import step_scale
from app.services.statistics.questions import Ask, Resolved, resolve
from app.services.statistics.steps import MeanStep, plan_step, take
from dither_research import histories
from dither_research.histories import cohort_of

REGIONS = 50
STUDY = replace(
    histories.STUDY, attributes=Attributes.of({"region": [f"r{number}" for number in range(REGIONS)]})
)


def asked(by: str, estimator: str = "uniform", share: int = MICRO // 2) -> Resolved:
    return resolve(STUDY, Ask(by=by, estimator=estimator, share=share, tilt=0))


def planned(cohorts: list[Cohort], by: str, estimator: str = "uniform") -> MeanStep:
    resolved = asked(by, estimator)
    question = resolved.question(STUDY, people=sum(one.count for one in cohorts))
    step = plan_step(STUDY, cohorts, resolved, question, [], None)
    assert step is not None
    return step


def crowd(epsilons: list[int], labels: int = REGIONS) -> list[Cohort]:
    drawn = random.Random(1)
    return [
        cohort_of(number, epsilon, [drawn.randrange(GRID_SIZE + 1) for _ in range(4)], segment=segment)
        for number, (segment, epsilon) in enumerate(product(range(labels), epsilons), start=1)
    ]


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
def test_fifty_labels_cost_each_person_what_one_mean_costs(estimator: str):
    cohorts = crowd([MICRO])
    by, whole = planned(cohorts, "region", estimator), planned(cohorts, "", estimator)
    costs = {charge.cohort_id: charge.epsilon for charge in by.charges}
    assert len(costs) == REGIONS
    assert costs == {charge.cohort_id: charge.epsilon for charge in whole.charges}
    assert by.most == whole.most == MICRO // 2


def loss(step: MeanStep, label: int, epsilon_place: int, old: int, new: int, cohorts: list[Cohort]) -> float:
    """The largest log-likelihood ratio of all noisy sums, when one member's value is another one."""
    mover = cohorts[epsilon_place]
    assert mover.segment == label
    moved = [
        replace(
            one,
            total=one.total + (new - old if one is mover else 0),
            total_squares=one.total_squares + (square(new) - square(old) if one is mover else 0),
        )
        for one in cohorts
    ]
    total = 0.0
    for piece in step.pieces:
        scale = step_scale(piece.unit, piece.share)
        for name in ("total", "total_squares"):
            exact = [
                sum(
                    member.weight * getattr(next(one for one in rows if one.id == member.cohort_id), name)
                    for member in piece.members
                )
                for rows in (cohorts, moved)
            ]
            total += abs(exact[0] - exact[1]) / scale
    return total * MICRO


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
def test_the_charge_is_the_loss_over_all_neighbors_and_at_most_a_micro_more(estimator: str):
    epsilons = [MICRO // 4, MICRO, 3 * MICRO]
    cohorts = crowd(epsilons, labels=3)
    step = planned(cohorts, "region", estimator)
    costs = {charge.cohort_id: charge.epsilon for charge in step.charges}
    grid = [place * GRID_SIZE // 4 for place in range(5)]
    for place, one in enumerate(cohorts):
        worst = max(loss(step, one.segment, place, old, new, cohorts) for old, new in product(grid, grid))
        assert worst <= costs.get(one.id, 0) + 1e-6, "never below"
        assert costs.get(one.id, 0) <= worst + 1 + 1e-6, "at most one micro above"
        assert costs[one.id] <= one.epsilon // 2 + 1


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal"])
def test_under_gaussian_noise_the_charge_is_the_loss_over_all_neighbors(estimator: str):
    """mu^2 of both noisy sums of the own label, at the precision that the piece has by then."""
    study = replace(STUDY, delta=1_000_000)
    cohorts = crowd([MICRO // 4, MICRO, 3 * MICRO], labels=3)
    resolved = resolve(study, Ask(by="region", estimator=estimator, share=MICRO // 2, tilt=0))
    step = plan_step(study, cohorts, resolved, resolved.question(study, people=len(cohorts) * 4), [], None)
    assert step is not None
    costs = {charge.cohort_id: charge.epsilon for charge in step.charges}
    grid = [place * GRID_SIZE // 4 for place in range(5)]
    for one in cohorts:
        weights = [
            (member.weight, effective_variance(piece.unit) * MICRO / piece.share)
            for piece in step.pieces
            for member in piece.members
            if member.cohort_id == one.id
        ]
        assert len(weights) == 1, "no other label's sums have this person"
        weight, variance = weights[0]
        worst = MICRO * max(
            weight**2 * ((new - old) ** 2 + 4 * (square(new) - square(old)) ** 2) / variance
            for old, new in product(grid, grid)
        )
        assert worst <= costs[one.id] <= worst + 1, "never below, at most 1e-6 above"


def test_labels_and_the_whole_are_read_off_the_same_sums():
    """With noise far below the values each label has its mean, and the whole that of all."""
    many = 3_000_000
    alone = [
        cohort_of(segment + 1, 4 * MICRO, [segment * GRID_SIZE // REGIONS], segment=segment)
        for segment in range(REGIONS - 1)
    ]
    cohorts = [
        replace(one, count=many, total=many * one.total, total_squares=many * one.total_squares)
        for one in alone
    ]
    step = planned(cohorts, "region")
    found, taken = take(step, cohorts)
    groups = found.details["groups"]
    assert isinstance(groups, list)
    assert len(groups) == REGIONS
    for segment, group in enumerate(groups[:-1]):
        assert group["where"] == {"region": f"r{segment}"}
        assert group["estimate"] == pytest.approx(segment / REGIONS, abs=1e-4)
    assert groups[-1]["estimate"] is None
    assert found.estimate == pytest.approx(sum(range(REGIONS - 1)) / (REGIONS - 1) / REGIONS, abs=1e-4)
    assert [len(piece.members) for piece in taken.changed] == [1] * (REGIONS - 1)


@pytest.mark.parametrize("estimator", ["uniform", "adpm", "optimal", "auto"])
@pytest.mark.parametrize("tilt", [0, MICRO // 10])
@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_a_label_that_no_person_joins_reads_what_a_plan_of_its_own_reads(
    estimator: str, tilt: int, delta: int, monkeypatch: pytest.MonkeyPatch
):
    study = replace(STUDY, delta=delta)
    cohorts = crowd([MICRO // 4, MICRO, 3 * MICRO], labels=3)

    def step(share: int, pieces: Sequence[Piece], before: LastStep | None) -> MeanStep:
        resolved = resolve(study, Ask(by="region", estimator=estimator, share=share, tilt=tilt))
        question = resolved.question(study, people=len(cohorts) * 4, variance=0.2)
        planned = plan_step(study, there, resolved, question, pieces, before)
        assert planned is not None
        return planned

    there = cohorts
    first = step(MICRO // 4, [], None)
    _, taken = take(first, there)
    paid = {charge.cohort_id: charge.epsilon for charge in first.charges}
    there = [replace(one, spent=one.spent + paid[one.id]) for one in cohorts]
    before = LastStep(release=uuid4(), share=MICRO // 4, epoch=1)
    found = step(MICRO // 2, taken.changed, before)
    settled: list[bool] = []
    own = steps._settled
    monkeypatch.setattr(steps, "_settled", lambda *of: settled.append(own(*of)))

    planned_alone = step(MICRO // 2, taken.changed, before)

    assert settled == [True] * 3 + [True] * (REGIONS - 3)
    assert found.charges == planned_alone.charges
    assert found.pieces == planned_alone.pieces
    for one, other in zip(found.parts, planned_alone.parts, strict=True):
        assert (one.where, one.pieces, one.crowd.unable) == (other.where, other.pieces, other.crowd.unable)
        assert (one.plan is None) == (other.plan is None)
        if one.plan is not None and other.plan is not None:
            assert said(one.plan()) == said(other.plan())


def said(plan: Plan) -> list[object]:
    """What a plan by parts says before it is answered."""
    assert plan.interval_width is not None
    assert plan.bound is not None
    assert plan.spread is not None
    return [plan.predicted_error, plan.bias, plan.interval_width(), plan.bound(), plan.spread()]


def test_a_sum_over_two_labels_is_a_fault():
    cohorts = crowd([MICRO], labels=2)
    resolved = asked("region", share=MICRO)
    question = resolved.question(STUDY, people=8)
    mixed = planned(cohorts, "").pieces
    with pytest.raises(InternalFault, match="of another one"):
        plan_step(STUDY, cohorts, resolved, question, mixed, None)
