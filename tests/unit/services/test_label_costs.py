"""Planning by labels costs as much as there are cohorts, not labels times cohorts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.study import Trust
from app.estimators.combination import combination_plan
from app.estimators.interface import NotApplicable, Plan
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.steps import plan_step as plan_shape_step
from app.services.statistics import steps
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_ledger import PieceLedger
from app.services.statistics.piece_noise import NOISES
from app.services.statistics.questions import Ask, resolve
from app.services.statistics.steps import plan_step
from app.services.statistics.whole_plans import plan_whole
from dither_research import histories
from dither_research.histories import cohort_of

LABELS, AGES = 40, 3
STUDY = replace(
    histories.STUDY,
    attributes=Attributes.of(
        {
            "region": [f"r{number}" for number in range(LABELS)],
            "age": [f"a{number}" for number in range(AGES)],
        }
    ),
)


class Seen(list[Cohort]):
    """Cohorts, with a count of how often one of them is looked at."""

    looks = 0

    def __iter__(self) -> Iterator[Cohort]:
        for one in super().__iter__():
            Seen.looks += 1
            yield one


def people() -> Seen:
    Seen.looks = 0
    return Seen(
        cohort_of(segment + 1, MICRO, [50, 60, 70], segment=segment) for segment in range(LABELS * AGES)
    )


@pytest.fixture(autouse=True)
def _no_look_at_all_segments_for_a_label(monkeypatch: pytest.MonkeyPatch) -> None:
    def where(self: Attributes, conditions: Mapping[str, str]) -> frozenset[int]:
        raise AssertionError(f"looks at every combination of labels for {conditions}")

    monkeypatch.setattr(Attributes, "where", where)


@pytest.mark.parametrize("statistic", ["histogram", "median", "describe", "count"])
def test_each_cohort_is_looked_at_a_few_times(statistic: str):
    cohorts, question = (
        people(),
        shape_kinds.resolve(
            STUDY, Ask(statistic=statistic, by="region", tilt=0 if statistic != "count" else None)
        ),
    )
    if statistic == "histogram":
        assert plan_shape_step(STUDY, question, cohorts, [], None) is not None
    else:
        shape_kinds.make(STUDY, question, cohorts)
    assert Seen.looks <= 20 * len(cohorts)


def test_a_plan_makes_none_of_a_label_before_it_is_read(monkeypatch: pytest.MonkeyPatch):
    """What it costs, and what the whole errs by, is seen without: one combination, not one for each label."""
    made = list[Plan]()

    def seen(*arguments: Any) -> Plan:
        made.append(combination_plan(*arguments))
        return made[-1]

    monkeypatch.setattr(steps, "combination_plan", seen)
    cohorts, resolved = people(), resolve(STUDY, Ask(by="region", tilt=0, share=MICRO // 2))
    step = plan_step(STUDY, cohorts, resolved, resolved.question(STUDY, people=3 * len(cohorts)), [], None)
    assert step is not None
    assert len(made) == 1
    plans = [plan() for plan in step.plan.labels if plan is not None]
    assert len(plans) == LABELS
    assert [part.plan and part.plan() for part in step.parts] == plans, "each is made once"
    assert len(made) == 1 + LABELS


@pytest.mark.parametrize("trust", list(Trust))
@pytest.mark.parametrize("count", [0, 3])
def test_a_label_has_an_answer_where_its_plan_can_be_made(trust: Trust, count: int):
    """Which is told without making it."""
    one = replace(cohort_of(1, MICRO, [50, 60, 70]), count=count, trust=trust)
    if trust is Trust.PUBLIC:
        one = replace(one, epsilon=0)
    cohorts, resolved = [one, cohort_of(2, MICRO, [10, 20])], resolve(STUDY, Ask(tilt=0, estimator="kvh"))
    asked = resolved.question(STUDY, people=count + 2)
    whole = plan_whole(STUDY, cohorts, resolved, asked, {1, 2})
    assert whole.weights is not None
    ledger = PieceLedger(cohorts, [], resolved, NOISES[STUDY.noise])
    alone = whole.people.some(STUDY, [0])
    label = replace(whole, people=alone)
    weights = [MICRO] * len(alone.groups)
    joins = count and trust is Trust.CENTRAL
    pieces = steps.joined(STUDY, ledger, label, weights, [], 1) if joins else ()
    if steps.is_answered(label, pieces):
        assert steps.combined(label, weights, alone.cohorts, pieces, 1, [1] * len(pieces)) is not None
    else:
        with pytest.raises(NotApplicable):
            steps.combined(label, weights, alone.cohorts, pieces, 1, [1] * len(pieces))


def test_each_cohort_is_looked_at_a_few_times_for_a_mean():
    cohorts, resolved = (
        people(),
        resolve(STUDY, Ask(by="region", tilt=0, estimator="uniform", share=MICRO // 2)),
    )
    asked = resolved.question(STUDY, people=3 * len(cohorts))
    assert plan_step(STUDY, cohorts, resolved, asked, [], None) is not None
    Crowd.of(STUDY, cohorts, resolved)
    assert Seen.looks <= 20 * len(cohorts)


def test_who_takes_part_is_found_once():
    resolved = resolve(STUDY, Ask(by="region", tilt=0, share=MICRO // 2))
    ledger = PieceLedger(people(), [], resolved, NOISES[STUDY.noise])
    assert ledger.taking_part is ledger.taking_part


def test_segments_are_told_apart_by_the_labels_of_each_attribute():
    attributes = STUDY.attributes
    for name, labels in attributes.labels.items():
        found = [labels[place] for place in attributes.places(name)]
        assert found == [attributes.labels_of(segment)[name] for segment in range(attributes.combinations)]
