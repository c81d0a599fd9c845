"""Planning by labels costs as much as there are cohorts, not labels times cohorts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from app.core.attributes import Attributes
from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.services.shapes import shape_kinds, shape_questions
from app.services.shapes.shape_steps import plan_step
from app.services.statistics.by_label import plan_by
from app.services.statistics.crowds import Crowd
from app.services.statistics.piece_ledger import PieceLedger
from app.services.statistics.piece_noise import NOISES
from app.services.statistics.questions import Ask, resolve
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
        shape_questions.resolve(
            STUDY, Ask(statistic=statistic, by="region", tilt=0 if statistic != "count" else None)
        ),
    )
    if statistic == "histogram":
        assert plan_step(STUDY, question, cohorts, [], None) is not None
    else:
        shape_kinds.make(STUDY, question, cohorts)
    assert Seen.looks <= 20 * len(cohorts)


def test_each_cohort_is_looked_at_a_few_times_for_a_mean():
    cohorts, resolved = (
        people(),
        resolve(STUDY, Ask(by="region", tilt=0, estimator="uniform", share=MICRO // 2)),
    )
    asked = resolved.question(STUDY, people=3 * len(cohorts))
    assert plan_by(STUDY, cohorts, resolved, asked, [], None) is not None
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
