"""What an answer for a mean says of itself and of labels, whatever it was drawn or read from; no database."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from app.core.errors import BudgetExhausted
from app.core.plain import plain
from app.core.reporting_range import FIELD
from app.core.study import StudyDefinition
from app.estimators.interface import Conclusion, Estimator, Plan, Question
from app.estimators.together import drawn_to_whole
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


NUMBERS = ("estimate", "standard_error", "interval", "population_interval", "error")
"""What the answer for a label says; its error is what intervals of several labels together are made of."""


def labels_shown(
    labels: Sequence[tuple[Mapping[str, str], int, int, Conclusion | None]], whole: Conclusion
) -> list[dict[str, object]]:
    """The answers for all labels, beside each the one that is drawn to the whole.

    The one that is drawn starts where the noise left it, and the estimate has been drawn to the middle of the
    range already: it stays between the estimate and the whole.

    Args:
        labels: For each its condition, its people, those of them who are left out, and its answer; None
            where there is none.
        whole: The answer for all people.

    Privacy: post-processing.
    """
    shown = [_shown(*label) for label in labels]
    answers = [
        (place, found.estimate, found.error)
        for place, (*_, found) in enumerate(labels)
        if found is not None and found.error is not None
    ]
    drawn = drawn_to_whole(
        [(error.center, error.dataset.law.variance) for *_, error in answers], whole.estimate
    )
    for (place, estimate, _), answer in zip(answers, drawn or (), strict=drawn is not None):
        lower, upper = sorted((estimate, whole.estimate))
        shown[place]["drawn_to_whole"] = min(max(answer, lower), upper)
    return shown


def _shown(
    where: Mapping[str, str], people: int, left_out: int, found: Conclusion | None
) -> dict[str, object]:
    """The answer for one label; without a number where there is none."""
    numbers = {name: None if found is None else plain(getattr(found, name)) for name in NUMBERS}
    shown: dict[str, object] = {
        "where": dict(where),
        "people": people,
        "people_left_out": left_out,
        **numbers,
        "drawn_to_whole": None,
    }
    if found is not None and found.anytime is not None:
        shown["anytime"] = plain(found.anytime)
    if found is not None and found.variance is not None:
        shown |= {"variance": plain(found.variance), "sd": plain(found.variance.root)}
    return shown
