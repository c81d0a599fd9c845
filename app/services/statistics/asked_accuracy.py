"""How accurate what is read off an answer will be, in its own unit, from the plan of the mean."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from app.core.study import StudyDefinition
from app.estimators import confidence
from app.estimators.expected import ExpectedValues
from app.estimators.interface import Accuracy, Plan, Question
from app.estimators.together import ErrorBound
from app.services.statistics import planned_errors, planning
from app.services.statistics.label_weights import LabelWeights
from app.services.statistics.questions import MEAN, SD, SUM, VARIANCE
from app.services.statistics.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """What an answer can be read off.

    Attributes:
        study: The study; of one of several measures, the study of that one.
        plan: Of all people.
        people: All people, where their number is public.
        cells: Those of each cell of a question by labels, where their number is public.
    """

    study: StudyDefinition
    plan: Plan
    people: int
    cells: Mapping[str, int] = field(default_factory=dict)

    def accuracy(self, reading: Reading) -> Accuracy:
        r"""The error and the interval that an answer is planned to have [the statistic's unit].

        A sum has those of the mean, n times; n is public where there are sums. A variance has the error that
        its plan predicts, and the most that its interval can be, and so has a standard deviation. What is
        read off several labels has what `app.estimators.together` makes of theirs.
        """
        with confidence.at(reading.level):
            return self._accuracy(reading)

    def _accuracy(self, reading: Reading) -> Accuracy:
        width, public = float(self.study.grid.width), not self.study.hides_people
        if reading.label_weights:
            return self._weighted(self._parts(reading.label_weights), public=public)
        if reading.statistic in (VARIANCE, SD) and self.plan.spread is not None:
            spread = self.plan.spread()
            return spread if reading.statistic == VARIANCE else spread.root
        plan, times = self.plan, self._times(reading)
        anytime = plan.anytime_width
        error, bound = plan.population_error, plan.population_bound
        return Accuracy(
            error=times * min(plan.predicted_error, width),
            half_width=times * planning.interval_width(self.study.grid, plan) / 2 if public else None,
            population_error=None if error is None else times * min(error, width),
            population_half_width=None if bound is None else times * min(bound().half_width(), width / 2),
            anytime_half_width=None if anytime is None else times * anytime() / 2,
        )

    def one_report(self, reading: Reading) -> float | None:
        """How far one local report can move it [the statistic's unit]; None without reports in it."""
        if reading.statistic in (VARIANCE, SD):
            return None
        label_weights = reading.label_weights
        parts = self._parts(label_weights) if label_weights else [(self._times(reading), self.plan)]
        moves = [abs(times) * plan.one_report for times, plan in parts if plan.one_report is not None]
        return max(moves, default=None)

    def expected_values(self, reading: Reading, expected: ExpectedValues) -> Mapping[str, object] | None:
        """What values the error is about; of a mean only where people are secret and one is published."""
        lower, width = float(self.study.grid.lower), float(self.study.grid.width)
        mean = lower + width * expected.place
        if reading.statistic in (VARIANCE, SD):
            return {
                "mean": mean,
                "sd": width * math.sqrt(expected.spread),
                "guess": expected.variance is None,
            }
        if not self.study.hides_people or expected.mean is None:
            return None
        return {"mean": mean, "sd": None, "guess": False}

    def statistics(self, answered: Question) -> tuple[str, ...]:
        """What is read off it; a sum only where the number of people is public."""
        sums = (SUM,) if not self.study.hides_people else ()
        spread = (VARIANCE, SD) if planning.says_spread(self.study, self.plan, answered) else ()
        return MEAN, *sums, *spread

    def _times(self, reading: Reading) -> int:
        return self.people if reading.statistic == SUM else 1

    def _parts(self, label_weights: LabelWeights) -> list[tuple[float, Plan]]:
        """What each label weighs; those without an answer have none."""
        plans = dict(zip(label_weights.cells, self.plan.labels, strict=True))
        weighed = [(weight, plans[name]) for name, weight in label_weights.of(self.cells).items()]
        return [(weight, plan()) for weight, plan in weighed if plan is not None]

    def _weighted(self, parts: Sequence[tuple[float, Plan]], *, public: bool) -> Accuracy:
        """Of a weighted sum of answers about disjoint people: noise is independent, biases may all add up."""
        width = float(self.study.grid.width)
        whole = ErrorBound(laplaces=(), normal=0.0, reach=width / 2)
        # An interval has at most the width of all that the sum can be.
        most = planned_errors.largest([weight for weight, _ in parts], width) / 2

        def error(errors: Sequence[float]) -> float:
            of_each = [
                (weight, min(error, width), plan.bias)
                for (weight, plan), error in zip(parts, errors, strict=True)
            ]
            return planned_errors.weighted(of_each, width)

        def half_width(bounds: Sequence[Callable[[], ErrorBound] | None]) -> float:
            of_each = [
                (weight, whole if bound is None else bound())
                for (weight, _), bound in zip(parts, bounds, strict=True)
            ]
            return min(ErrorBound.weighted(of_each).half_width(), most)

        population = [plan.population_error for _, plan in parts if plan.population_error is not None]
        return Accuracy(
            error=error([plan.predicted_error for _, plan in parts]),
            half_width=half_width([plan.bound for _, plan in parts]) if public else None,
            population_error=error(population) if len(population) == len(parts) else None,
            population_half_width=half_width([plan.population_bound for _, plan in parts])
            if public
            else None,
        )
