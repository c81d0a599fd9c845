"""Parts of one release: each with its part of every offer, and the sum of their prices as its price."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from app.core.cohort import Groups
from app.core.study import Relation, StudyDefinition, Trust
from app.estimators import registry
from app.estimators.interface import Estimator, Question
from app.services.shapes.questions import ShapeQuestion
from app.services.statistics.crowds import Crowd

Part = Callable[[int], int]
"""What a part of the release may take of an offer [both in the study's currency]."""


def of_whole(offer: int) -> int:
    """What the tree of all people may take of an offer, beside that of a label."""
    return offer // 3


def of_label(offer: int) -> int:
    """What is left for the tree of the label."""
    return offer - of_whole(offer)


_MEANS = {Relation.REPLACE_ONE: "adpm", Relation.ADD_REMOVE_ONE: "transformed"}


def mean_estimator(study: StudyDefinition) -> Estimator:
    """What answers for a mean beside other parts: of central and public people only."""
    return registry.get(_MEANS[study.relation], study.relation)


def part_of(crowd: Crowd, part: Part) -> Crowd:
    """The crowd as one of the parts sees it; whom it leaves nothing has no place in it."""
    groups = [
        replace(
            group,
            epsilon=part(group.epsilon),
            participates=group.participates and (group.trust is Trust.PUBLIC or part(group.epsilon) > 0),
        )
        for group in crowd.groups
    ]
    return replace(crowd, groups=Groups.of(groups))


def mean_question(
    study: StudyDefinition,
    question: ShapeQuestion,
    crowd: Crowd,
    part: Part,
    parameters: Mapping[str, object] | None = None,
) -> Question:
    """What the part for the mean is asked."""
    return Question(
        relation=study.relation,
        grid=study.grid,
        cap=part(question.offer(study.amount(study.epsilon_max))),
        floor=part(question.least_offer(study)),
        delta=study.delta,
        people=None if study.hides_people else crowd.people,
        expected_size=question.size,
        tilt=question.assumed_tilt(study),
        parameters=parameters or {},
    )
