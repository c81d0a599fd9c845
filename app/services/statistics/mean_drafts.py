"""What an answer for a mean says of itself, whatever it was drawn or read from; without the database."""

from collections.abc import Mapping
from typing import Any, Protocol

from app.core.errors import BudgetExhausted
from app.core.plain import plain
from app.core.reporting_range import FIELD
from app.core.study import StudyDefinition
from app.estimators.interface import Conclusion, Estimator, Plan, Question
from app.services.statistics import planned_errors, planning
from app.services.statistics.drafts import NOT_REPORTED, Said
from app.services.statistics.questions import Resolved


class MadeOf(Protocol):
    """What answers, and from what."""

    @property
    def people(self) -> int:
        """All people."""

    @property
    def left_out(self) -> int:
        """The people who cannot pay."""

    @property
    def silent(self) -> int:
        """The people who did not report the measure."""

    @property
    def estimator(self) -> Estimator:
        """What answers."""

    @property
    def question(self) -> Question:
        """As it was answered."""

    @property
    def plan(self) -> Plan:
        """What reads the answer."""


def said_of(
    study: StudyDefinition,
    resolved: Resolved,
    made: MadeOf,
    conclusion: Conclusion,
    why: str = BudgetExhausted.code,
) -> Said:
    """What an answer for a mean says; with its own parameters: `auto` may have tried others than defaults."""
    plan, variance = made.plan, conclusion.variance

    def finished(document: dict[str, Any]) -> dict[str, Any]:
        if variance is not None:
            document |= {"variance": plain(variance), "sd": plain(variance.root)}
        if (inside := document.get(FIELD)) is not None:
            document |= _moved(document, inside["people_outside_at_most"])
        return planned_errors.of_answer(document, plan, float(study.grid.width))

    return Said(
        estimator=made.estimator.name,
        version=made.estimator.version,
        parameters={**resolved.asked(), **made.question.parameters},
        numbers={
            "asked": resolved.estimator,
            "estimate": conclusion.estimate,
            "standard_error": conclusion.standard_error,
            "interval": plain(conclusion.interval),
            "population_interval": plain(conclusion.population_interval),
            **({} if conclusion.anytime is None else {"anytime": plain(conclusion.anytime)}),
            **({} if conclusion.error is None else {"error": plain(conclusion.error)}),
        },
        details=conclusion.details,
        finished=finished,
        people=made.people,
        left_out={why: made.left_out, NOT_REPORTED: made.silent},
        width=planning.interval_width(study, plan),
        variance=None if variance is None else variance.population_interval.upper,
        noise=planning.noise_json(plan),
    )


MOVED = ", and is about values that reports inside the reporting range have moved into it"


def _moved(document: Mapping[str, Any], outside: int) -> dict[str, Any]:
    """What an answer with reports inside a range says besides: at worst all outside are of one label."""
    shown: dict[str, Any] = {"assumption": document["assumption"] + MOVED}
    if "groups" in document:
        shown["groups"] = [
            {**one, "outside_at_most": None if one["estimate"] is None else min(1.0, outside / one["people"])}
            for one in document["groups"]
        ]
    return shown
