"""By several attributes: a person is in one cell, and pays what one answer costs."""

from dataclasses import replace
from itertools import product

import pytest

from app.core.attributes import Attributes, label_of
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE, square
from app.core.piece import Piece
from app.core.study import Relation, StudyDefinition
from app.estimators.interface import Plan
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.steps import plan_step as plan_shape_step
from app.services.statistics import planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_noise import step_scale
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import MeanStep, plan_step
from dither_research import histories
from dither_research.histories import cohort_of

LABELS = {"region": ["north", "south"], "sex": ["f", "m"], "age": ["-29", "30-59", "60-"]}
CELLS = [f"{region}, {age}" for region, age in product(LABELS["region"], LABELS["age"])]
STUDY = replace(histories.STUDY, attributes=Attributes.of(LABELS))
SECRET = replace(STUDY, relation=Relation.ADD_REMOVE_ONE, epsilon_min=MICRO // 4, epsilon_max=3 * MICRO)
EPSILONS = (MICRO // 4, MICRO, 3 * MICRO)


def crowd(epsilons: tuple[int, ...] = EPSILONS) -> list[Cohort]:
    """Fifteen people of each epsilon in every segment but the last."""
    segments = range(STUDY.attributes.combinations - 1)
    return [
        cohort_of(number, epsilon, 5 * [0, GRID_SIZE // 3, GRID_SIZE], segment=segment)
        for number, (segment, epsilon) in enumerate(product(segments, epsilons), start=1)
    ]


def flattened(study: StudyDefinition) -> tuple[StudyDefinition, list[Cohort]]:
    """The same people of a study whose one attribute has a label for each cell of region and age."""
    places = study.attributes.places("region,age")
    one = replace(study, attributes=Attributes.of({"cell": [cell.replace(", ", "/") for cell in CELLS]}))
    return one, [replace(cohort, segment=places[cohort.segment]) for cohort in crowd()]


def test_segments_are_in_the_cell_of_their_labels():
    attributes = STUDY.attributes
    for by in ("region", "age", "region,age", "sex,age", "region,sex,age"):
        cells, places = list(attributes.cells(by)), attributes.places(by)
        assert len(cells) == attributes.size(by) == len(set(cells))
        for segment in range(attributes.combinations):
            assert cells[places[segment]] == label_of(attributes.labels_of(segment), by)
    assert list(attributes.cells("region,age")) == CELLS


def steps(study: StudyDefinition, cohorts: list[Cohort], by: str) -> MeanStep:
    resolved = resolve(study, Ask(by=by, estimator="adpm", share=MICRO // 2, tilt=0))
    question = resolved.question(study, people=sum(one.count for one in cohorts))
    step = plan_step(study, cohorts, resolved, question, [], None)
    assert step is not None
    return step


@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_a_mean_by_cells_is_that_by_the_labels_of_one_attribute(delta: int):
    """All that is proved of labels holds of cells: the same sums, under the same noise, at the same price."""
    study = replace(STUDY, delta=delta)
    one, same = flattened(study)
    by_cells, by_labels = steps(study, crowd(), "region,age"), steps(one, same, "cell")
    assert by_cells.charges == by_labels.charges
    assert by_cells.pieces == by_labels.pieces
    assert [label_of(part.where, "region,age") for part in by_cells.parts] == CELLS
    assert by_cells.plan.predicted_error == by_labels.plan.predicted_error


def moved_by(pieces: tuple[Piece, ...], cohort: int, grid: list[int]) -> float:
    """The largest log-likelihood ratio of all noisy sums, of a value of one member that is another one."""
    total = 0.0
    for piece in pieces:
        scale = step_scale(piece.unit, piece.share)
        for member in piece.members:
            if member.cohort_id == cohort:
                moves = (abs(new - old) + abs(square(new) - square(old)) for old, new in product(grid, grid))
                total += member.weight * max(moves) / scale
    return total * MICRO


def test_a_person_pays_what_one_mean_costs_against_all_neighbors():
    alike = crowd((MICRO,))
    by, whole = steps(STUDY, alike, "region,age"), steps(STUDY, alike, "")
    assert by.charges == whole.charges
    assert by.most == whole.most == MICRO // 2
    cohorts = crowd()
    by = steps(STUDY, cohorts, "region,age")
    charged = {one.cohort_id: one.epsilon for one in by.charges}
    grid = [place * GRID_SIZE // 4 for place in range(5)]
    for cohort in cohorts:
        mine = [piece for piece in by.pieces if cohort.id in piece.column("cohort_id")]
        assert len(mine) == 1, "no other cell's sums have this person"
        worst = moved_by(by.pieces, cohort.id, grid)
        assert worst <= charged[cohort.id] + 1e-6, "never below"
        assert charged[cohort.id] <= worst + 1 + 1e-6, "at most one micro above"
        # The planted fault: with the sums of every label of each attribute a person would be in two.
        twice = steps(STUDY, cohorts, "region").pieces + steps(STUDY, cohorts, "age").pieces
        assert moved_by(twice, cohort.id, grid) > charged[cohort.id] + 1


@pytest.mark.parametrize("statistic", ["histogram", "median", "describe", "count"])
@pytest.mark.parametrize("study", [STUDY, SECRET], ids=["replace_one", "add_remove_one"])
@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_shapes_by_cells_cost_what_they_cost_by_the_labels_of_one_attribute(
    statistic: str, study: StudyDefinition, delta: int
):
    study = replace(study, delta=delta)
    prices = list[list[object]]()
    for one, cohorts, by in ((study, crowd(), "region,age"), (*flattened(study), "cell")):
        question = shape_kinds.resolve(one, Ask(statistic=statistic, by=by, share=MICRO // 2))
        question = question.leveled(one, [])
        plan = shape_kinds.make(one, question, cohorts)
        prices.append([plan.most, list(plan.charges()), plan.predicted_error])
        if statistic == "histogram" and one.relation is Relation.REPLACE_ONE:
            step = plan_shape_step(one, question, cohorts, [], None)
            assert step is not None
            prices[-1] += [step.charges, step.pieces]
    assert prices[0] == prices[1]


@pytest.mark.parametrize("delta", [0, 1_000_000])
def test_secret_cells_are_those_that_are_declared_at_one_price(delta: int):
    """Number and scale of the noisy sums do not depend on the people; a person pays the price of one mean."""
    study = replace(SECRET, delta=delta, epsilon_min=MICRO, epsilon_max=MICRO)

    def planned(cohorts: list[Cohort], by: str) -> tuple[Plan, Crowd]:
        resolved = resolve(study, Ask(by=by, share=MICRO // 2, expected_size=100.0)).leveled(study, [])
        question = resolved.question(study, people=None)
        people = Crowd.of(study, cohorts, resolved)
        _, plan, _ = planning.choose(study, people, resolved, question)
        return plan, people

    everyone, people = planned(crowd((MICRO,)), "region,age")
    for fewer in (crowd()[:1], []):
        plan, _ = planned(fewer, "region,age")
        assert (len(plan.queries), plan.noise) == (len(everyone.queries), everyone.noise)
        assert plan.predicted_error == everyone.predicted_error
    whole, same = planned(crowd((MICRO,)), "")
    assert (
        len({query.terms for query in everyone.queries})
        == len(everyone.queries)
        == len(CELLS) * len(whole.queries)
    )
    by_cohort = {one.cohort_id: one.epsilon for one in planning.charges(everyone, people, study)}
    of_one = {one.cohort_id: one.epsilon for one in planning.charges(whole, same, study)}
    assert by_cohort == of_one


def test_attributes_have_one_order_and_a_problem_says_what_is_wrong():
    one, other = (resolve(STUDY, Ask(by=by, tilt=0)) for by in ("age,region", "region,age"))
    assert one.digest == other.digest
    assert one.of_whom_and_what == {"by": "region,age"}
    for ask, reason in (
        (Ask(by="region,region"), "names region twice"),
        (Ask(by="region,town"), "must name attributes of the study: region, sex, age"),
        (Ask(by="region,"), "must name attributes of the study: region, sex, age"),
        (Ask(by="region,age", where="age:60-"), "names age, of which where names the label"),
    ):
        for statistic, read in (("mean", resolve), ("median", shape_kinds.resolve)):
            with pytest.raises(InvalidRequest) as refused:
                read(STUDY, replace(ask, statistic=statistic))
            assert [(one.field, one.reason) for one in refused.value.fields] == [("by", reason)]


def test_limits_are_those_of_the_product():
    many = replace(
        STUDY,
        attributes=Attributes.of({"a": [f"a{n}" for n in range(20)], "b": [f"b{n}" for n in range(10)]}),
    )
    for by, fits in (("a", True), ("a,b", False)):
        question = shape_kinds.resolve(many, Ask(statistic="histogram", by=by, parameters={"bins": "60"}))
        if fits:
            question.refuse_too_many_numbers(many)
            continue
        with pytest.raises(InvalidRequest) as refused:
            question.refuse_too_many_numbers(many)
        assert refused.value.fields[0].field == "by"
        assert (
            "has 200 labels of 60 numbers each, and an answer at most 10,000"
            in refused.value.fields[0].reason
        )
