"""One estimator's plan as it is shown, and an answer as it is to be published; without the database."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from app.core.errors import ServiceError
from app.core.release import StoredRelease
from app.core.study import Currency, StudyDefinition
from app.estimators.expected import ExpectedValues
from app.estimators.interface import Accuracy, Estimator, NotApplicable, Plan, Question
from app.services.statistics import planning
from app.services.statistics.asked_accuracy import Readable
from app.services.statistics.crowds import Crowd
from app.services.statistics.levels import Level
from app.services.statistics.questions import MEAN, SD, SUM, VARIANCE, Resolved
from app.services.statistics.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """What an answer would charge at most, and how accurate it would be.

    Attributes:
        predicted_error: Root mean square error about the dataset [the statistic's unit], at most that of the
            range.
        half_width: Half of the interval for the dataset, not cut off at the ends of the range, at most half
            of that; None in add_remove_one studies, and of shapes without one [the statistic's unit].
        population_predicted_error, population_half_width: As predicted_error and half_width, about the
            population that people were drawn from; None where that is not predicted.
        anytime_half_width: As half_width, of the interval that holds for all steps of the question at once;
            None of an answer without steps.
        epsilon_max: The most that any person would be charged [micro-epsilon, at the study's delta].
        epsilon_max_total: That with what the answers that it sharpens have charged [as `epsilon_max`].
        mu2_max: The same as `epsilon_max` in mu^2 [1e-6]; None in a study with Laplace noise.
    """

    predicted_error: float
    half_width: float | None = None
    population_predicted_error: float | None = None
    population_half_width: float | None = None
    anytime_half_width: float | None = None
    epsilon_max: int
    epsilon_max_total: int
    mu2_max: int | None = None

    @classmethod
    def of(
        cls, study: StudyDefinition, accuracy: Accuracy, *, most: int, most_in_all: int, **more: Any
    ) -> Self:
        """An answer of this accuracy that charges that much, and what more its kind says of it.

        Args:
            study, accuracy: Of which study, how accurate.
            most, most_in_all: The largest charge by it, and with those that it sharpens [the study's
                currency].
            **more: Fields of the kind.
        """
        return cls(
            predicted_error=accuracy.error,
            half_width=accuracy.half_width,
            population_predicted_error=accuracy.population_error,
            population_half_width=accuracy.population_half_width,
            anytime_half_width=accuracy.anytime_half_width,
            epsilon_max=study.epsilon(most),
            epsilon_max_total=study.epsilon(most_in_all),
            mu2_max=most if study.noise is Currency.GAUSSIAN else None,
            **more,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEstimator(PlannedAnswer):
    """Price and accuracy of one estimator.

    Attributes:
        estimator, summary: Name, and one line about it.
        predicted_error_at_tilt_0: The error for a question without a tilt, if privacy and values have nothing
            to do with each other; None in add_remove_one studies.
        answers_left: How many more answers like this the study can give, see `statistics.answers_left`.
        chosen: Whether the question is answered with it.
        one_report_moves: How far one local report can move the answer; None without reports in it [the
            statistic's unit].
        statistics: What is read off the answer, at no further price.
        gain: Of a mean over a range that is found, see `shapes.found_plans.FoundPlan`; None of others.
        expected_range: The range that such a mean is planned for: its width [data's unit], and the release
            that found it, None of a guess; None of others.
        expected_values: What values the predicted error is about, see `estimators.expected`: mean and sd
            [data's unit], and whether that is a guess; None where it rests on no such thing.
        of_mean: The error of the mean, by which estimators are chosen [data's unit].
    """

    estimator: str
    summary: str
    predicted_error_at_tilt_0: float | None = None
    one_report_moves: float | None
    statistics: tuple[str, ...]
    answers_left: int | None = None
    chosen: bool = False
    gain: float | None = None
    expected_range: Mapping[str, object] | None = None
    expected_values: Mapping[str, object] | None = None
    of_mean: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers(PlannedAnswer):
    """What renews the answer that stands, at its share: people of whom it has used less pay, no others.

    Attributes:
        people: Those who are charged.
    """

    people: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A question that may be asked.

    Attributes:
        stands: The best answer to it so far; in add_remove_one studies the newest one to just this question.
        free: Whether what is read without a share charges no person: it combines what came after that.
        newcomers: What renewing that would take; None without newcomers, and in add_remove_one studies.
        share: What it would take of each epsilon in all [ppm].
        share_before: What it has taken [ppm].
        tilt: Of the question [ppm]; None of a count.
        assumption: What it and the predictions assume of people, in words; None of a count.
        level: add_remove_one: whom the answer would be about.
        estimators: Price and accuracy of every estimator that has an answer. The predicted error of a
            histogram or a quantile is that of a bin's share, or of a rank, as a part of all people.
        refusal: Why no estimator has an answer; None where one has.
        paid_as: What is paid once, of several planned questions that have the same: the steps of a question,
            or what is read off one answer. Empty of an answer with noise of its own.
    """

    share: int
    share_before: int = 0
    tilt: int | None
    assumption: str | None
    level: Level | None = None
    stands: StoredRelease | None
    free: bool = False
    newcomers: Newcomers | None = None
    estimators: Sequence[PlannedEstimator]
    refusal: ServiceError | None = None
    paid_as: bytes = b""

    @property
    def chosen(self) -> PlannedEstimator | None:
        """What answers it as it is asked; None where nothing does, or where that is refused."""
        if self.refusal is not None:
            return None
        return next((one for one in self.estimators if one.chosen and one.answers_left != 0), None)


def charges_of(planned: Sequence[Planned], study: StudyDefinition) -> tuple[list[int], int]:
    """What each answer charges a person at most, and all of them together [the study's currency].

    Charges add up, and no one is charged more by an answer than its largest charge: so the sum of these
    bounds what any person is charged. What is paid once counts once, by its largest charge.
    """
    paid: dict[bytes, int] = {}
    amounts, apart = [], 0
    for one in planned:
        chosen, amount = one.chosen, 0
        if chosen is not None:
            amount = chosen.epsilon_max if study.noise is Currency.LAPLACE else chosen.mu2_max or 0
        amounts.append(amount)
        if one.paid_as:
            paid[one.paid_as] = max(paid.get(one.paid_as, 0), amount)
        else:
            apart += amount
    return amounts, min(apart + sum(paid.values()), study.amount(study.epsilon_max))


def price(
    study: StudyDefinition,
    resolved: Resolved,
    people: Crowd,
    question: Question,
    estimator: Estimator,
    reading: Reading,
) -> PlannedEstimator | None:
    """What this estimator would do; under `auto` with the parameters that `auto` would take."""
    plain = replace(question, tilt=0.0)
    try:
        _, plan, question = planning.choose(study, people, resolved, question, among=[estimator])
        untilted = plan
        if resolved.tilt:
            _, untilted, _ = planning.choose(study, people, resolved, plain, among=[estimator])
    except NotApplicable:
        return None
    except ServiceError as refusal:
        if refusal.code == "budget_exhausted":
            return None
        raise
    costs = planning.charges(plan, people, study).column("epsilon")
    most = planning.epsilon_max(study, estimator, question, costs)
    reads = [Readable(study=study, plan=one, people=people.people) for one in (plan, untilted)]
    return planned(reading, estimator, question, *reads, most=most, most_in_all=most)


def planned(
    reading: Reading,
    estimator: Estimator,
    question: Question,
    read: Readable,
    untilted: Readable,
    *,
    most: int,
    most_in_all: int,
) -> PlannedEstimator:
    """How accurate an answer will be and what it charges at most, with those that it sharpens, as shown.

    Args:
        reading, estimator, question: What is read off the answer to which question.
        read: What it is read off.
        untilted: The same for a question without a tilt.
        most, most_in_all: [the study's currency].
    """
    study, accuracy = read.study, read.accuracy(reading)
    secret = study.hides_people
    return PlannedEstimator.of(
        study,
        accuracy,
        most=most,
        most_in_all=most_in_all,
        estimator=estimator.name,
        summary=estimator.summary,
        predicted_error_at_tilt_0=None if secret else untilted.accuracy(reading).error,
        one_report_moves=read.one_report(reading),
        statistics=statistics(study, read.plan, question),
        expected_values=_expected_values(study, reading, question.expected),
        of_mean=read.plan.predicted_error,
    )


def _expected_values(
    study: StudyDefinition, reading: Reading, expected: ExpectedValues
) -> Mapping[str, object] | None:
    """What values a predicted error is about; of a mean only where people are secret and one is published."""
    lower, width = float(study.grid.lower), float(study.grid.width)
    mean = lower + width * expected.place
    if reading.statistic in (VARIANCE, SD):
        return {"mean": mean, "sd": width * math.sqrt(expected.spread), "guess": expected.variance is None}
    if not study.hides_people or expected.mean is None:
        return None
    return {"mean": mean, "sd": None, "guess": False}


def statistics(study: StudyDefinition, plan: Plan, answered: Question) -> tuple[str, ...]:
    """What is read off the answer of a plan; a sum only where the number of people is public."""
    sums = (SUM,) if not study.hides_people else ()
    return MEAN, *sums, *((VARIANCE, SD) if planning.says_spread(study, plan, answered) else ())
