"""A statistic is its declaration, its plan and one registration: here is one that no other module knows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.core import question as questions
from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.errors import InvalidRequest
from app.core.grid import GRID_SIZE
from app.core.study import Relation, StudyDefinition
from app.services.shapes import kinds
from app.services.shapes.labels import LabelsPlan
from app.services.shapes.plans import ShapePlan
from app.services.shapes.priced_plan import OneShape, PricedPlan
from app.services.shapes.questions import SHAPES, of_shares
from app.services.statistics.questions import Ask
from dither_research import histories
from dither_research.histories import cohort_of
from tests.support.shape_chains import ShapeChain

STUDY = replace(histories.STUDY, attributes=Attributes.of({"region": ["north", "south"]}))
SECRET = replace(STUDY, relation=Relation.ADD_REMOVE_ONE)
CROWD = [
    cohort_of(1 + segment, MICRO, 30 * [0, GRID_SIZE // 2, GRID_SIZE - 1, GRID_SIZE - 1], segment=segment)
    for segment in range(2)
]
COUNTS = {cohort.id: [30, 30, 60] for cohort in CROWD}
THIRDS = (GRID_SIZE // 3, 2 * GRID_SIZE // 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThirdsPlan(ShapePlan):
    """The shares of the people in each third of the range."""

    name, answers = "thirds", ("thirds",)
    summary = "Noisy counts of the thirds of the range."
    parts_of_document = ("thirds",)

    @classmethod
    def own(cls, study: StudyDefinition, ask: Ask, parameters: Mapping[str, str]) -> Mapping[str, Any]:
        return {"starts": THIRDS, "numbers": 3, "special": {"parts": 3}}

    def _parts(self, read: Any) -> dict[str, object]:
        return {"thirds": [one.share for one in read.bins]}


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = questions.Statistic(summary="Show the thirds.", fields=questions.STATISTICS["shares"].fields)
    monkeypatch.setitem(questions.STATISTICS, "thirds", declared)
    monkeypatch.setitem(kinds.ESTIMATORS, "thirds", ThirdsPlan)
    monkeypatch.setitem(kinds.BY_STATISTIC, "thirds", ThirdsPlan)


def made(study: StudyDefinition, statistic: str, by: str = "", **parameters: str) -> kinds.AnyPlan:
    ask = Ask(statistic=statistic, by=by, share=MICRO, parameters=parameters)
    return kinds.make(study, kinds.resolve(study, ask), CROWD)


def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.shapes.plans.draw", lambda noise, queries: (0,) * queries)


@pytest.mark.parametrize("study", [STUDY, SECRET], ids=["public", "secret"])
def test_it_is_priced_and_read_as_its_plan_says(study: StudyDefinition, monkeypatch: pytest.MonkeyPatch):
    exact(monkeypatch)
    plan, like = made(study, "thirds"), made(study, "histogram", bins="3")
    assert plan.charges() == like.charges() != ()
    assert [one.noise for one in plan.measured()] == [one.noise for one in like.measured()]
    assert isinstance(plan, ShapePlan)
    answer = plan.read(plan.noisy(COUNTS))
    assert answer["thirds"] == pytest.approx([0.25, 0.25, 0.5])
    question = plan.question
    assert (question.estimator, question.statistic) == ("thirds", "thirds")
    assert question.asked()["parts"] == 3
    assert question.assumption(study) == of_shares(question.assumed(study))
    assert question.digest != kinds.resolve(study, Ask(statistic="histogram", share=MICRO)).digest


def test_it_has_labels_whose_sums_add_up(monkeypatch: pytest.MonkeyPatch):
    exact(monkeypatch)
    plan = made(STUDY, "thirds", by="region")
    assert isinstance(plan, LabelsPlan)
    assert plan.charges() == made(STUDY, "thirds").charges()
    answer = plan.read(plan.noisy(COUNTS))
    assert answer["thirds"] == pytest.approx([0.25, 0.25, 0.5])
    groups: Any = answer["groups"]
    assert [one["where"]["region"] for one in groups] == ["north", "south"]


def test_its_sums_are_kept_and_sharpened_at_the_noise_of_bins(monkeypatch: pytest.MonkeyPatch):
    noise = kinds.noise_of_pieces("thirds", STUDY.noise, 3)
    assert noise == kinds.noise_of_pieces("histogram", STUDY.noise, 3)
    chain = ShapeChain(STUDY, Ask(statistic="thirds"))
    people: list[Cohort] = CROWD
    first = chain.step(MICRO // 4, people, COUNTS)
    second = chain.step(MICRO // 2, people, COUNTS)
    assert second.predicted_error < first.predicted_error
    assert len(chain.pieces) == 1
    assert all(len(piece.sums) == 3 for piece in chain.pieces.values())
    assert {len(chain.last[name]) for name in ThirdsPlan.parts_of_document} == {3}


def test_what_it_does_not_declare_is_refused():
    with pytest.raises(InvalidRequest) as refused:
        made(STUDY, "thirds", bins="3")
    assert [one.field for one in refused.value.fields] == ["bins"]


def test_every_statistic_has_one_plan_and_each_says_all_of_itself():
    declared = [name for plan in kinds.ESTIMATORS.values() for name in plan.answers]
    assert len(declared) == len(set(declared))
    assert set(declared) == {*SHAPES, "mean", "thirds"}
    for name, plan in kinds.ESTIMATORS.items():
        assert issubclass(plan, PricedPlan)
        assert plan.name == name
        assert plan.summary.endswith(".")


def test_pages_show_some_labels_of_answers_with_several_numbers_for_each():
    of_one = {"estimate", "interval", "population_interval", "means"}
    several = {
        name
        for name, plan in kinds.ESTIMATORS.items()
        if issubclass(plan, OneShape) and not of_one.issuperset(plan.parts_of_document)
    }
    assert {*kinds.MANY_NUMBERS, "thirds"} == several
    assert "quantile" not in several
