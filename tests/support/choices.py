"""Plans of shares for people of several kinds, by the code that releases are made with."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from app.core.cohort import Cohort
from app.core.epsilon import MICRO
from app.core.study import StudyDefinition, Trust
from app.estimators.shares import SharesPlan
from app.services.shapes import kinds as shape_kinds
from app.services.shapes.kinds import resolve
from app.services.shapes.plans import ShapePlan
from app.services.shapes.questions import SHARES
from app.services.statistics.questions import Ask
from dither_research.histories import STUDY


def study_of_choices(number: int, **terms: Any) -> StudyDefinition:
    labels = tuple(f"c{place}" for place in range(number))
    own: dict[str, Any] = {
        "lower": Decimal(0),
        "upper": Decimal(number - 1),
        "choices": labels,
        "trust": frozenset(Trust),
        "epsilon_min": 10_000,
        "epsilon_max": 9 * MICRO,
    }
    return replace(STUDY, **own | terms)


def cohorts(profile: list[tuple[Trust, float, int]]) -> list[Cohort]:
    return [
        Cohort(
            id=number,
            trust=trust,
            epsilon=round(epsilon * MICRO),
            carried=0,
            spent=round(epsilon * MICRO) if trust is Trust.LOCAL else 0,
            count=count,
            total=0,
            total_squares=0,
        )
        for number, (trust, epsilon, count) in enumerate(profile, 1)
    ]


def plan_of(
    profile: list[tuple[Trust, float, int]], choices: int = 5, tilt: int = 0, **terms: Any
) -> ShapePlan:
    study: StudyDefinition = study_of_choices(choices, **terms)
    of_public = not study.hides_people
    question = resolve(study, Ask(statistic=SHARES, share=MICRO, tilt=tilt if of_public else None))
    found = shape_kinds.make(study, question, cohorts(profile))
    assert isinstance(found, ShapePlan)
    return found


def shares_of(plan: ShapePlan) -> SharesPlan:
    assert isinstance(plan.plan, SharesPlan)
    return plan.plan


def error(plan: ShapePlan, choices: int) -> float:
    """Mean square error of all shares together."""
    return choices * plan.predicted_error**2
