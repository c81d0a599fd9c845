"""What an answer for a mean says of itself and of labels, whatever it was drawn or read from; no database."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.core.errors import BudgetExhausted
from app.core.plain import plain
from app.core.reporting_range import FIELD
from app.estimators.interface import Conclusion, Estimator, Plan, Question
from app.estimators.together import drawn_to_whole
from app.services.statistics import planned_errors, planning
from app.services.statistics.crowds import Crowd
from app.services.statistics.drafts import NOT_REPORTED, Said
from app.services.statistics.questions import Resolved


class OfMean:
    """An answer for a mean: what answers whom, and what it says of itself.

    Attributes:
        estimator, question, plan: What answers, as it was answered, and what reads it.
        crowd: All people.
    """

    __slots__ = ()

    estimator: Estimator
    question: Question
    plan: Plan
    crowd: Crowd

    @property
    def interval_width(self) -> float:
        """Predicted width of the interval, by which answers are compared [data's unit]."""
        return planning.interval_width(self.question.grid, self.plan)

    def said_of(
        self, resolved: Resolved, conclusion: Conclusion, *, why: str = BudgetExhausted.code, **more: Any
    ) -> Said:
        """What it says; with its own parameters: `auto` may have tried others than defaults.

        Args:
            resolved, conclusion: What was asked, and the answer.
            why: People who cannot pay have no part in it.
            **more: Fields of `Said`.
        """
        plan, variance = self.plan, conclusion.variance

        def finished(document: dict[str, Any]) -> dict[str, Any]:
            document |= conclusion.spread()
            if (inside := document.get(FIELD)) is not None:
                document |= _moved(document, inside["people_outside_at_most"])
            return planned_errors.of_answer(document, plan, float(self.question.grid.width))

        return Said.of(
            self,
            estimator=self.estimator.name,
            version=self.estimator.version,
            parameters={**resolved.asked(), **self.question.parameters},
            numbers={
                "asked": resolved.estimator,
                **conclusion.numbers(),
                **({} if conclusion.anytime is None else {"anytime": plain(conclusion.anytime)}),
                **({} if conclusion.error is None else {"error": plain(conclusion.error)}),
            },
            details=conclusion.details,
            finished=finished,
            left_out={why: self.crowd.unable, NOT_REPORTED: self.crowd.silent},
            variance=None if variance is None else variance.population_interval.upper,
            **more,
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
    return shown if found is None else shown | found.spread()
